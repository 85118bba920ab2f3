/* CUDA C++ from plans. The files go from the inside of a kernel outwards, and each calls only those
 * before it. */
#ifndef CI_DEVICE_CUDA_EMIT_CUDA_H
#define CI_DEVICE_CUDA_EMIT_CUDA_H

#include "device/cuda/cuda.h"

typedef struct CiCudaEmitter {
    CiEmitter *base;
    CiContext *ctx;
    CiSym *sym;
    CiText *out;
    const CiCudaPlan *plan;
    CiCudaShape shape;     /* of the function being printed */
    bool has_idle;         /* the last block may have more groups than points */
    bool fold_memory_used; /* shared memory of folds: used before in this function */
    bool has_vector[CI_DTYPE_COUNT][17];
    CiCudaCache *batch; /* loads of the rounds of a loop that are made together */
    int nbatch;
} CiCudaEmitter;

/* One element of a stage, or the one numbered `v` of a vector along var. */
typedef struct CiCudaElement {
    CiCudaEmitter *c;
    const CiCudaStage *s;
    const CiExpr *var;
    int vector;
} CiCudaElement;

/* emit_scalar.c */
void ci_cuda_emit_math(CiEmitter *base, CiText *out, const CiScalar *op, const char *const *names);

/* emit_place.c */
const char *ci_cuda_index_type(const CiCudaEmitter *c);
int ci_cuda_placement_number(const CiKernel *kernel, const CiBuffer *buffer); /* -1: in memory */
const char *ci_cuda_slot_text(CiCudaEmitter *c, const CiBuffer *buffer);   /* a run-time scalar */
const char *ci_cuda_scalar_name(CiCudaEmitter *c, const CiBuffer *buffer); /* its variable */
const char *ci_cuda_local_name(CiCudaEmitter *c, int placement);
const char *ci_cuda_row_element(CiCudaEmitter *c, int placement, const CiExpr *index);
/* Stores a value where its buffer lives; guarded where several threads hold it. */
void ci_cuda_emit_store(CiCudaEmitter *c, const CiCudaStage *s, const CiBuffer *buffer,
                        const CiExpr *index, const char *value);
void ci_cuda_store_with(CiCudaEmitter *c, const char *guard, const CiBuffer *buffer,
                        const char *place, const char *value);

/* emit_fold.c: accumulators. */
void ci_cuda_emit_fold_start(CiCudaEmitter *c, const CiCudaFold *fold, int vector);
void ci_cuda_emit_fold_step(CiCudaEmitter *c, const CiCudaStage *s, const CiCudaFold *fold,
                            const char *value, const char *lane);
/* Vectors of accumulators become one, then those of the group. */
void ci_cuda_emit_fold_lanes(CiCudaEmitter *c, const CiCudaStage *s);
void ci_cuda_emit_fold_group(CiCudaEmitter *c, const CiCudaStage *s);
void ci_cuda_emit_fold_results(CiCudaEmitter *c, const CiCudaStage *s);
void ci_cuda_emit_partials_out(CiCudaEmitter *c, const CiCudaStage *s);
void ci_cuda_emit_partials_in(CiCudaEmitter *c, const CiCudaStage *s);

/* emit_element.c */
void ci_cuda_emit_element(const CiCudaElement *e);
bool ci_cuda_is_vector_access(const CiCudaElement *e, const CiBuffer *buffer, const CiExpr *index);
int ci_cuda_cache_number(const CiCudaPlan *plan, const CiCudaCache *cache);
/* -1, or its number among the loads made together. */
int ci_cuda_batch_number(const CiCudaEmitter *c, const CiBuffer *buffer, const CiExpr *index);
/* Counts of the stage's packed values, at zero. */
void ci_cuda_emit_pack_starts(CiCudaEmitter *c, const CiCudaStage *s);

/* emit_vector.c: one element, or a vector of them. */
void ci_cuda_emit_elements(CiCudaEmitter *c, const CiCudaStage *s, int vector);
/* Chooses the loads of a loop's rounds that may be made before any of the rounds is computed, so
 * that they are under way together; the number of rounds, 1 for none. Until ci_cuda_end_batch
 * elements find them in b<n>[k]. */
int ci_cuda_start_batch(CiCudaEmitter *c, const CiCudaStage *s);
void ci_cuda_emit_batch_declarations(CiCudaEmitter *c, const CiCudaStage *s, int rounds);
void ci_cuda_emit_batch_loads(CiCudaEmitter *c, const CiCudaStage *s);
void ci_cuda_end_batch(CiCudaEmitter *c);
const char *ci_cuda_vector_type(CiCudaEmitter *c, CiDtype dtype, int vector);
void ci_cuda_emit_vector_types(CiCudaEmitter *c, CiText *out);

/* emit_stage.c */
/* Memory of a plan's locals and rows. */
void ci_cuda_emit_declarations(CiCudaEmitter *c);
/* The axes of the point whose number (in vectors of the last axis) is `number`. */
void ci_cuda_emit_axes(CiCudaEmitter *c, const CiKernelAxis *axes, int count, int vector,
                       const char *number);
void ci_cuda_emit_stage(CiCudaEmitter *c, const CiCudaStage *s);
void ci_cuda_emit_stages(CiCudaEmitter *c);

/* emit_tree.c: loops and branches around stages. */
void ci_cuda_emit_tree(CiCudaEmitter *c);

/* emit_kernel.c: the functions of one kernel. */
void ci_cuda_emit_kernel(CiCudaEmitter *c, const CiCudaPlan *plan);

#endif
