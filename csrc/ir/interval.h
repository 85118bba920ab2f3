/* Interval arithmetic on 64-bit integers. Operations wrap as their dtype does. */
#ifndef CI_IR_INTERVAL_H
#define CI_IR_INTERVAL_H

#include "ir/op.h"

typedef struct CiInterval {
    int64_t low, high; /* inclusive, low <= high */
} CiInterval;

/* The range of all values of the type. u64, which has no interval, and types that are not integers
 * have the full interval. */
CiInterval ci_interval_of_type(CiDtype dtype);
bool ci_interval_is_known(CiDtype dtype); /* true for bool and all integers except u64 */
CiInterval ci_interval_hull(CiInterval a, CiInterval b);
bool ci_interval_is_within(CiInterval a, CiInterval b);
/* The range of a loop's sum: a plus at most `times` steps, each in `step`. False if it exceeds 64 bits. */
bool ci_interval_add_up(CiInterval a, CiInterval step, int64_t times, CiInterval *sum);
/* A pointwise operation on operands of a known type; *may_wrap: the exact result may not fit. */
CiInterval ci_interval_pointwise(CiOp op, CiDtype operand, CiInterval a, CiInterval b,
                                 bool *may_wrap);
/* The least interval of a fixed ladder around a. */
CiInterval ci_interval_widen(CiInterval a);

#endif
