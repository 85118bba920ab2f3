/* Which values may be in one memory: asked by the order of kernels, which estimates with it, and by
 * the pass that makes them one. */
#ifndef CI_SCHEDULE_COALESCE_H
#define CI_SCHEDULE_COALESCE_H

#include "schedule/plan.h"

#define CI_MOST_DONATIONS 16

typedef struct CiDonation {
    CiBuffer *from, *to;
} CiDonation;

/* Pairs of the kernel's buffers of which `to` may be stored where `from` is read, if `from` is read
 * by nobody behind the kernel. Their number. */
int ci_find_donations(CiScheduler *s, const CiKernel *kernel, CiDonation *found);
/* needs: kernels in their last order. keeps: what each element is when it is read. */
void ci_coalesce(CiScheduler *s);

#endif
