/* The scalar operations over blocks of values, compiled from ops.def and support.def. Narrow
 * floats are floats in blocks. */
#ifndef CI_DEVICE_INTERP_OPS_H
#define CI_DEVICE_INTERP_OPS_H

#include "ir/op.h"

/* out may be one of the operands. */
typedef void (*CiInterpOp)(void *out, const void *a, const void *b, const void *c, int64_t count);
typedef struct CiInterpRows {
    CiInterpOp ops[CI_OP_COUNT];
} CiInterpRows;

extern const CiInterpRows ci_interp_rows_bool, ci_interp_rows_i8, ci_interp_rows_i16,
    ci_interp_rows_i32, ci_interp_rows_i64, ci_interp_rows_u8, ci_interp_rows_u16,
    ci_interp_rows_u32, ci_interp_rows_u64, ci_interp_rows_f32, ci_interp_rows_f64,
    ci_interp_rows_c64, ci_interp_rows_c128;

/* narrow.c: of a narrow float, else NULL. What is cast from f64 and c128 comes out rounded. */
typedef struct CiInterpNarrow {
    void (*round)(float *block, int64_t count);
    void (*gather)(float *block, const uint16_t *memory, int64_t stride, int64_t count);
    void (*scatter)(const float *block, uint16_t *memory, int64_t stride, int64_t count);
    CiInterpOp from_f64, from_c128;
} CiInterpNarrow;
const CiInterpNarrow *ci_interp_narrow(CiDtype dtype);
CiInterpOp ci_interp_own(CiOp op, CiDtype narrow); /* NULL: as f32 does it */

/* A pointwise operation, or NULL. Its results, and those of casts, are what blocks hold before they
 * are rounded to narrow floats. */
CiInterpOp ci_interp_function(CiOp op, CiDtype operand);
CiInterpOp ci_interp_cast(CiDtype from, CiDtype to);
CiInterpOp ci_interp_where(CiDtype value);
/* Size of a value in a block: narrow floats take four bytes. */
int ci_interp_size(CiDtype dtype);
/* Values of `size` bytes from one place to another. */
void ci_interp_move(int size, void *to, int64_t to_stride, const void *from, int64_t from_stride,
                    int64_t count);
/* Memory <-> block: element k is at element[offset + k*stride]. */
void ci_interp_gather(CiDtype dtype, void *block, const void *memory, int64_t offset,
                      int64_t stride, int64_t count);
void ci_interp_scatter(CiDtype dtype, const void *block, void *memory, int64_t offset,
                       int64_t stride, int64_t count);

#endif
