/* The memory accesses of a fusion group, and the gain of fusing two groups. */
#ifndef CI_SCHEDULE_GROUP_H
#define CI_SCHEDULE_GROUP_H

#include "schedule/plan.h"

typedef struct CiGroupUse {
    CiBuffer *buffer;
    CiAmount bytes; /* bytes of it that the group accesses */
    int nreaders, nwriters;
} CiGroupUse;

/* Uses in order of the buffers' numbers. */
typedef struct CiGroup {
    CiGroupUse *uses;
    int nuses, capuses;
} CiGroup;

CiGroup ci_group_of_nest(CiScheduler *s, const CiFusionNest *nest);
CiGroup ci_group_join(CiScheduler *s, const CiGroup *a, const CiGroup *b);
/* The gain of fusing two groups: bytes of memory traffic saved, plus a launch's worth of bytes, less the bytes by which the
 * peak memory grows because both run at the same time. 0: no gain. */
int64_t ci_group_score(const CiScheduler *s, const CiGroup *a, const CiGroup *b, bool moves);
CiAmount ci_group_bytes(const CiGroup *group);
/* True if one more pair of groups may be fused. */
bool ci_may_join(const CiScheduler *s);
/* Counts a pair that fits in a kernel and records its bytes; false if the option `apart` forbids the fusion. */
bool ci_note_join(CiScheduler *s, const CiFusion *a, const CiFusion *b, int64_t saved, int64_t bytes);

#endif
