/* One compilation while it runs, and who looks at it: dumps, and observers of passes. */
#ifndef CI_API_JOB_H
#define CI_API_JOB_H

#include "api/compile.h"
#include "base/text.h"
#include "codegen/codegen.h"
#include "loops/loops.h"
#include "passes/pass.h"

typedef struct CiJob {
    CiRequest *request;
    CiContext *ctx;
    CiProgramDevice devices[CI_MAX_DEVICES]; /* what is built for each */
    int ndevices;
    int64_t level_start; /* when the level being timed began */
    int64_t pass_began;
    CiPassPlan proc_plan;
} CiJob;

/* show.c: does anyone look at the level? */
bool ci_job_wants(const CiJob *job, const char *level);
void ci_job_show(CiJob *job, const char *level, const CiText *text);
/* Fails if the option dump names no level and no pass: a misspelt one would print nothing. */
void ci_job_check_dump(CiJob *job);

/* Texts are made only when someone looks. */
#define SHOW(job, level, print)                                                                    \
    do {                                                                                           \
        if (ci_job_wants((job), (level))) {                                                        \
            CiText text = ci_text_new((job)->ctx);                                                 \
            print;                                                                                 \
            ci_job_show((job), (level), &text);                                                    \
        }                                                                                          \
    } while (0)

/* Plans of passes that leave out what the option skip_passes names, and show what dumps and
 * observers want. They begin with the level as it is. Fail for names that cannot be left out. */
CiPassPlan ci_job_graph_plan(CiJob *job, CiGraph *graph);
CiPassPlan ci_job_loop_plan(CiJob *job, const CiLoops *loops);
/* Lowers the kernels once more if someone looks at the passes over procs. */
void ci_job_show_procs(CiJob *job, CiKernels *kernels);

#endif
