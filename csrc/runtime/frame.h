/* One call while it runs, and the memory that it takes (memory.c). */
#ifndef CI_RUNTIME_FRAME_H
#define CI_RUNTIME_FRAME_H

#include "runtime/plan.h"

typedef struct CiFrame {
    CiProgram *program;
    CiCall *call;
    void **slots;
    void **arguments;      /* of the launch or extern being made */
    const int64_t *values; /* the table, or the program's own when nothing varies */
    int64_t *table;        /* NULL when nothing varies */
    const int64_t **rows;
    unsigned flags;
    unsigned iterations;
    CiQueue queues[CI_MAX_DEVICES]; /* the program's, with the call's streams */
    bool in_batch;  /* calls of library functions leave their float flags, as kernels do */
    bool is_recording; /* its launches are recorded */
    bool is_shared; /* a thread of a batch: its call is a copy */
} CiFrame;

/* Of the device whose side it is; NULL: memory is the host's. */
const CiQueue *ci_frame_queue(const CiFrame *frame, CiSide side);
int32_t ci_frame_take(const CiFrame *frame, const CiPlanSlot *plan, int64_t bytes, void **block);
/* Frees the memory of one of the program's own slots. */
void ci_frame_give(const CiFrame *frame, int slot);
/* A step that copies, of any kind. */
int32_t ci_frame_copy(const CiFrame *frame, const CiStep *step);
/* A step that moves pointers between slots, without allocating or freeing. */
void ci_frame_move(const CiFrame *frame, const CiStep *step);
/* jump.c: a step of a loop or branch; *at becomes the one before the next to run. True if a loop has
 * another turn. */
bool ci_frame_jump(CiFrame *frame, const CiStep **at);
/* Starts a turn of a loop if there is one more; true when the body runs. */
bool ci_frame_begin_iteration(CiFrame *frame, const CiStep *step, int64_t iteration);
/* After a turn: not 0 if the call is interrupted. */
int32_t ci_frame_poll_iteration(CiFrame *frame);
/* dispatch.c: a launch, a library call. */
int32_t ci_frame_launch(CiFrame *frame, int number);
int32_t ci_frame_extern(CiFrame *frame, int number);
/* The device's later work waits for a collective; for all that the program may have started. */
int32_t ci_frame_join(const CiFrame *frame, int number);
void ci_frame_join_all(const CiFrame *frame);
/* Notes that a launch before stores to the slot. */
int32_t ci_frame_mark(const CiFrame *frame, int slot);
/* Waits for a copy that is on its way to the slot, or for what stores to it. */
int32_t ci_frame_finish_copy(const CiFrame *frame, int slot);

#endif
