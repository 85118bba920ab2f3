/* Functions around the elements: which thread has which point, the loops of stages, parameters.
 *
 * Parameters, in order: the kernel's buffers, its sizes, the values of the scalar inputs it reads,
 * for a split fold the partial results and the number of chunks, for a tree with checks where to
 * say which one failed. The launch (backend.c) fills the same list. */
#include "device/cuda/emit_cuda.h"

/* ---- groups ---- */

static void
emit_point(CiCudaEmitter *c)
{
    const CiKernel *kernel = c->plan->kernel;
    const char *type = ci_cuda_index_type(c);
    bool fits =
        c->shape.points == 1 ||
        ci_sym_known_multiple_of(c->sym, c->plan->npoints, ci_expr_const(c->sym, c->shape.points));
    c->has_idle = !fits;
    ci_text_line(c->out, "const int tid = (int)threadIdx.x;");
    if (c->shape.lanes_inside)
        ci_text_line(c->out, "const int g = tid %% %d, p = tid / %d;", c->shape.group,
                     c->shape.group);
    else
        ci_text_line(c->out, "const int g = tid / %d, p = tid %% %d;", c->shape.points,
                     c->shape.points);
    ci_text_line(c->out, "const %s npoints = %s;", type,
                 ci_emit_index_text(c->base, c->plan->npoints));
    ci_text_line(c->out, "const %s block_point = (%s)blockIdx.x*%d + p;", type, type,
                 c->shape.points);
    if (c->has_idle) /* an idle group walks the last point too, for others wait for it, and stores
                        nothing */
        ci_text_line(c->out, "const bool is_active = block_point < npoints;");
    ci_text_line(c->out, "const %s point = %s;", type,
                 c->has_idle ? "is_active ? block_point : npoints - 1" : "block_point");
    ci_cuda_emit_axes(c, kernel->outer, kernel->nouter, 1, "point");
}

static void
emit_group(CiCudaEmitter *c)
{
    emit_point(c);
    if (c->plan->is_split)
        ci_text_line(c->out, "const int chunk = (int)blockIdx.y;");
    ci_cuda_emit_declarations(c);
    ci_cuda_emit_stages(c);
}

/* Folds the chunks and runs what follows the fold. */
static void
emit_finish(CiCudaEmitter *c)
{
    const CiCudaStage *first = &c->plan->stages[0];
    emit_point(c);
    ci_cuda_emit_declarations(c);
    ci_text_open(c->out, "{");
    ci_cuda_emit_partials_in(c, first);
    ci_cuda_emit_fold_group(c, first);
    ci_cuda_emit_fold_results(c, first);
    ci_text_close(c->out);
    for (int t = 1; t < c->plan->nstages; t++)
        ci_cuda_emit_stage(c, &c->plan->stages[t]);
}

/* ---- parameters ---- */

typedef struct Loaded {
    const CiBuffer *buffer;
    bool is_loaded;
} Loaded;

typedef struct Slots {
    CiContext *ctx;
    const CiBuffer **list;
    int count, capacity;
} Slots;

static void
add_slot(Slots *slots, const CiBuffer *buffer)
{
    bool is_known = !buffer || buffer->kind != CI_BUFFER_scalar;
    for (int j = 0; j < slots->count; j++)
        is_known |= slots->list[j] == buffer;
    if (!is_known)
        CI_PUSH(slots->ctx, slots->list, slots->count, slots->capacity, buffer);
}

static void
add_slots_of_nest(void *arg, const CiNest *nest)
{
    for (int k = 0; k < nest->body.nops; k++)
        if (nest->body.ops[k].op == CI_OP_load)
            add_slot(arg, nest->body.ops[k].buffer);
}

static void
add_slots_of_tree(Slots *slots, const CiLoopTree *tree)
{
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        add_slot(slots, node->check ? node->check->buffer : NULL);
        add_slot(slots, node->region ? node->region->condition : NULL);
        add_slots_of_tree(slots, &node->body);
        add_slots_of_tree(slots, &node->other);
    }
}

int
ci_cuda_slots(CiContext *ctx, const CiKernel *kernel, const CiBuffer ***list)
{
    Slots slots = {.ctx = ctx};
    ci_kernel_visit_nests(kernel, add_slots_of_nest, &slots);
    if (ci_kernel_tree(kernel))
        add_slots_of_tree(&slots, ci_kernel_tree(kernel));
    *list = slots.list;
    return slots.count;
}

static void
note_load(void *arg, const CiNest *nest)
{
    Loaded *loaded = arg;
    for (int k = 0; k < nest->body.nops; k++)
        loaded->is_loaded |=
            nest->body.ops[k].op == CI_OP_load && nest->body.ops[k].buffer == loaded->buffer;
    loaded->is_loaded |= nest->is_combined && nest->target == loaded->buffer;
}

/* `restrict` on memory that is stored says that this thread alone stores there: behind a barrier
 * the compiler would not load again what other threads have stored before it. */
static bool
is_restrict(const CiCudaEmitter *c, const CiBuffer *buffer, bool is_stored)
{
    Loaded loaded = {buffer, false};
    const CiLoopTree *tree = ci_kernel_tree(c->plan->kernel);
    if (tree && ci_tree_swaps(tree))
        return false;
    ci_kernel_visit_nests(c->plan->kernel, note_load, &loaded);
    return !is_stored || c->shape.group == 1 || (!tree && !loaded.is_loaded);
}

/* A launch gives all sizes 64 bits, of which the lower half may be taken. */
static const char *
size_type(const CiCudaEmitter *c, const CiExpr *size)
{
    return !c->plan->is_wide && ci_cuda_is_small(size) ? "int32_t" : "int64_t";
}

static void
emit_parameters(CiCudaEmitter *c)
{
    const CiKernel *kernel = c->plan->kernel;
    const CiBuffer **slots;
    const char *separator = "";
    for (int k = 0; k < kernel->nbuffers; k++, separator = ", ")
        ci_text_add(c->out, "%s%s%s *%s%s", separator, kernel->is_stored[k] ? "" : "const ",
                    ci_emit_storage(kernel->buffers[k]->dtype),
                    is_restrict(c, kernel->buffers[k], kernel->is_stored[k]) ? "__restrict__ " : "",
                    ci_emit_buffer(c->base, kernel->buffers[k]));
    for (int k = 0; k < kernel->nsize_args; k++, separator = ", ")
        ci_text_add(c->out, "%sconst %s size%d", separator, size_type(c, kernel->size_args[k]), k);
    int nslots = ci_cuda_slots(c->ctx, kernel, &slots);
    for (int k = 0; k < nslots; k++, separator = ", ") {
        bool is_complex = ci_dtype_class(slots[k]->dtype) == CI_CLASS_complex;
        const char *type = is_complex                              ? "ci_c128"
                           : ci_dtype_is_integral(slots[k]->dtype) ? "int64_t"
                                                                   : "double";
        ci_text_add(c->out, "%sconst %s slot%d", separator, type,
                    ci_emit_scalar_slot(c->base->kernels->loops, slots[k]));
    }
    if (c->plan->is_split)
        ci_text_add(c->out, "%sunsigned char *__restrict__ partials, const int chunks", separator);
    if (kernel->nchecks)
        ci_text_add(c->out, "%sint *__restrict__ fault", separator);
}

/* Loops that wait for memory alone gain from a full multiprocessor; rows kept in registers need the
 * registers. */
static const char *
blocks_at_once(const CiCudaEmitter *c, const CiCudaShape *shape)
{
    int threads = shape->group * shape->points;
    bool is_loop =
        shape == &c->plan->shape && shape->group > 1 && (c->plan->is_split || !shape->lanes_inside);
    return is_loop && threads <= 1024 ? ci_format(c->ctx, ", %d", 2048 / threads) : "";
}

static void
emit_function(CiCudaEmitter *c, const char *suffix, const CiCudaShape *shape,
              void (*body)(CiCudaEmitter *c))
{
    c->shape = *shape;
    c->fold_memory_used = false;
    c->has_idle = false;
    ci_text_add(c->out, "\nextern \"C\" __global__ void __launch_bounds__(%d%s)\n%s%s(",
                shape->group * shape->points, blocks_at_once(c, shape), c->plan->kernel->name,
                suffix);
    emit_parameters(c);
    ci_text_add(c->out, ")\n");
    ci_text_open(c->out, "{");
    body(c);
    ci_text_close(c->out);
}

void
ci_cuda_emit_kernel(CiCudaEmitter *c, const CiCudaPlan *plan)
{
    c->plan = plan;
    c->base->kernel = plan->kernel;
    ci_text_add(c->out, "\n");
    ci_emit_locations(c->out, plan->kernel);
    emit_function(c, "", &plan->shape, plan->is_tree ? ci_cuda_emit_tree : emit_group);
    if (plan->is_split)
        emit_function(c, "_finish", &plan->finish, emit_finish);
}
