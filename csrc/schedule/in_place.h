/* Values that may share one buffer. Used by the ordering of kernels for its estimates, and by the
 * pass that merges the buffers. */
#ifndef CI_SCHEDULE_IN_PLACE_H
#define CI_SCHEDULE_IN_PLACE_H

#include "schedule/plan.h"

#define CI_MAX_DONATIONS 16

typedef struct CiDonation {
    CiBuffer *from, *to;
} CiDonation;

/* Finds pairs of the kernel's buffers for which `to` may be stored in the memory of `from`,
 * provided that `from` is not read after the kernel. Returns their number. */
int ci_find_donations(CiScheduler *s, const CiKernel *kernel, CiDonation *found);
/* Merges buffers that may share memory. needs: the final order of kernels. keeps: the value of each element that is
 * read. */
void ci_coalesce(CiScheduler *s);

#endif
