/* Functions around the elements: which thread has which point, the loops of stages, parameters.
 *
 * Parameters, in order: the kernel's buffers, its sizes, the values of the scalar inputs it reads,
 * for a split fold the partial results and the number of chunks, for a tree with checks where to
 * say which one failed. The launch (backend.c) fills the same list. */
#include "device/cuda/cuda.h"

const char *
ci_cuda_index_type(const CiCudaEmitter *c)
{
    return c->plan->is_wide ? "int64_t" : "int32_t";
}

static const char *
bits_type(const CiCudaEmitter *c) /* for division: unsigned is cheaper */
{
    return c->plan->is_wide ? "uint64_t" : "uint32_t";
}

static const char *
index_text(CiCudaEmitter *c, const CiExpr *e)
{
    return ci_emit_index_text(c->base, e);
}

static const CiExpr *
in_vectors(CiCudaEmitter *c, const CiExpr *extent, int vector)
{
    return ci_expr_floordiv(c->sym, extent, ci_expr_const(c->sym, vector));
}

/* The axes of the point whose number (in vectors of the last axis) is `number`. */
void
ci_cuda_emit_axes(CiCudaEmitter *c, const CiKernelAxis *axes, int count, int vector,
                  const char *number)
{
    const char *type = ci_cuda_index_type(c),
               *scale = vector > 1 ? ci_format(c->ctx, "*%d", vector) : "";
    const char *suffix = vector > 1 ? "_base" : "";
    if (count == 1)
        ci_text_line(c->out, "const %s %s%s = (%s)%s%s;", type, axes[0].var->name, suffix, type,
                     number, scale);
    if (count < 2)
        return;
    const char *q = ci_format(c->ctx, "q_%s", axes[0].var->name);
    ci_text_line(c->out, "%s %s = (%s)(%s);", bits_type(c), q, bits_type(c), number);
    for (int k = count - 1; k > 0; k--) {
        bool is_last = k == count - 1;
        const char *extent =
            index_text(c, is_last ? in_vectors(c, axes[k].extent, vector) : axes[k].extent);
        ci_text_line(c->out, "const %s %s%s = (%s)(%s %% (%s)(%s))%s;", type, axes[k].var->name,
                     is_last ? suffix : "", type, q, bits_type(c), extent, is_last ? scale : "");
        ci_text_line(c->out, "%s /= (%s)(%s);", q, bits_type(c), extent);
    }
    ci_text_line(c->out, "const %s %s = (%s)%s;", type, axes[0].var->name, type, q);
}

static const CiExpr *
shared_count(CiCudaEmitter *c, const CiCudaStage *s)
{
    const CiExpr *product = ci_expr_const(c->sym, 1);
    for (int k = 0; k < s->nshared; k++)
        product = ci_expr_mul(c->sym, product, s->stage->axes[k].extent);
    return product;
}

/* ---- flat ---- */

static void
emit_flat(CiCudaEmitter *c)
{
    const CiKernel *kernel = c->plan->kernel;
    const CiCudaStage *s = &c->plan->stages[0];
    const char *type = ci_cuda_index_type(c);
    ci_text_line(c->out, "const %s t = (%s)blockIdx.x*%d + (%s)threadIdx.x;", type, type,
                 c->plan->shape.points, type);
    if (s->has_tail) {
        const char *name = kernel->outer[0].var->name,
                   *extent = index_text(c, kernel->outer[0].extent);
        ci_text_line(c->out, "const %s %s_base = t*%d;", type, name, s->vector);
        ci_text_open(c->out, "if (%s_base + %d <= %s) {", name, s->vector, extent);
        ci_cuda_emit_elements(c, s, s->vector);
        ci_text_close(c->out);
        ci_text_open(c->out, "else for (%s %s = %s_base; %s < %s; %s++) {", type, name, name, name,
                     extent, name);
        ci_cuda_emit_elements(c, s, 1);
        ci_text_close(c->out);
        return;
    }
    ci_text_line(c->out, "if (t >= %s)", index_text(c, in_vectors(c, c->plan->npoints, s->vector)));
    ci_text_line(c->out, "    return;");
    ci_cuda_emit_axes(c, kernel->outer, kernel->nouter, s->vector, "t");
    ci_cuda_emit_elements(c, s, s->vector);
}

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
    ci_text_line(c->out, "const %s npoints = %s;", type, index_text(c, c->plan->npoints));
    ci_text_line(c->out, "const %s block_point = (%s)blockIdx.x*%d + p;", type, type,
                 c->shape.points);
    if (c->has_idle) /* an idle group walks the last point too, for others wait for it, and stores
                        nothing */
        ci_text_line(c->out, "const bool is_active = block_point < npoints;");
    ci_text_line(c->out, "const %s point = %s;", type,
                 c->has_idle ? "is_active ? block_point : npoints - 1" : "block_point");
    ci_cuda_emit_axes(c, kernel->outer, kernel->nouter, 1, "point");
}

static int64_t
fold_memory(const CiCudaEmitter *c)
{
    int64_t most = 0;
    for (int t = 0; t < c->plan->nstages; t++)
        if (ci_cuda_fold_bytes(&c->shape, &c->plan->stages[t]) > most)
            most = ci_cuda_fold_bytes(&c->shape, &c->plan->stages[t]);
    return most;
}

static void
declare_row(CiCudaEmitter *c, int placement)
{
    const CiPlacement *row = &c->plan->kernel->placements[placement];
    const char *type = ci_emit_storage(row->buffer->dtype),
               *name = ci_emit_buffer(c->base, row->buffer);
    const CiKernel *kernel = c->plan->kernel;
    int64_t count = row->row_size->value /
                    (kernel->lanes_on_outer ? kernel->outer[kernel->nouter - 1].factor : 1);
    ci_text_line(c->out, "%s *const %s_row = (%s *)(rows + %lld) + %lldLL*p;", type, name, type,
                 (long long)c->plan->row_offset[placement],
                 (long long)(c->shape.lanes_inside || c->shape.points == 1 ? count : 1));
}

void
ci_cuda_emit_declarations(CiCudaEmitter *c)
{
    const CiCudaPlan *plan = c->plan;
    if (fold_memory(c))
        ci_text_line(c->out, "__shared__ __align__(16) unsigned char fold_memory[%lld];",
                     (long long)fold_memory(c));
    if (plan->shared_bytes)
        ci_text_line(c->out, "extern __shared__ __align__(16) unsigned char rows[];");
    for (int k = 0; k < plan->kernel->nplacements; k++) {
        const CiPlacement *placement = &plan->kernel->placements[k];
        const char *type = ci_emit_type(placement->buffer->dtype),
                   *name = ci_emit_buffer(c->base, placement->buffer);
        if (plan->row_offset[k] >= 0)
            declare_row(c, k);
        else if (plan->is_shared_local[k])
            ci_text_line(c->out, "__shared__ %s %s_shared[%d];", type, name, c->shape.points);
        else if (placement->place == CI_PLACE_local)
            ci_text_line(c->out, "%s %s_local;", type, name);
    }
    for (int k = 0; k < plan->ncaches; k++)
        ci_text_line(c->out, "%s r%d[%lld];",
                     ci_cuda_vector_type(c, plan->caches[k].buffer->dtype, plan->caches[k].vector),
                     k, (long long)plan->caches[k].trips);
}

/* Rounds known beforehand are unrolled, so that what is kept in r<n>[k] lies in registers. */
static void
emit_trips(CiCudaEmitter *c, const CiCudaStage *s, const char *count)
{
    const char *type = ci_cuda_index_type(c);
    ci_text_line(c->out, "#pragma unroll");
    ci_text_open(c->out, "for (int k = 0; k < %lld; k++) {", (long long)s->trips);
    ci_text_line(c->out, "const %s e = (%s)k*%d + g;", type, type, c->shape.group);
    if (!s->is_exact)
        ci_text_open(c->out, "if (e < %s) {", count);
    ci_cuda_emit_axes(c, s->stage->axes, s->nshared, s->vector, "e");
    ci_cuda_emit_elements(c, s, s->vector);
    if (!s->is_exact)
        ci_text_close(c->out);
    ci_text_close(c->out);
}

static void
emit_round(CiCudaEmitter *c, const CiCudaStage *s, int rounds, const char *count, const char *step,
           bool is_load)
{
    int64_t total;
    bool is_exact = ci_expr_is_const(shared_count(c, s), &total) && !c->plan->is_split &&
                    total % ((int64_t)s->vector * rounds * c->shape.group) == 0;
    const char *type = ci_cuda_index_type(c);
    ci_text_line(c->out, "#pragma unroll");
    ci_text_open(c->out, "for (int k = 0; k < %d; k++) {", rounds);
    ci_text_line(c->out, "const %s e = first + k*(%s);", type, step);
    ci_text_open(c->out, "%s", is_exact ? "{" : ci_format(c->ctx, "if (e < %s) {", count));
    ci_cuda_emit_axes(c, s->stage->axes, s->nshared, s->vector, "e");
    if (is_load)
        ci_cuda_emit_batch_loads(c, s);
    else
        ci_cuda_emit_elements(c, s, s->vector);
    ci_text_close(c->out);
    ci_text_close(c->out);
}

/* Several rounds at a time, their loads first: what hides the way to memory is loads under way. */
static void
emit_rounds(CiCudaEmitter *c, const CiCudaStage *s, const char *start, const char *count,
            const char *step)
{
    const char *type = ci_cuda_index_type(c);
    int rounds = ci_cuda_start_batch(c, s);
    if (rounds == 1) {
        ci_text_line(c->out, "#pragma unroll 4");
        ci_text_open(c->out, "for (%s e = %s; e < %s; e += %s) {", type, start, count, step);
        ci_cuda_emit_axes(c, s->stage->axes, s->nshared, s->vector, "e");
        ci_cuda_emit_elements(c, s, s->vector);
        ci_text_close(c->out);
        return;
    }
    ci_text_open(c->out, "for (%s first = %s; first < %s; first += %d*(%s)) {", type, start, count,
                 rounds, step);
    ci_cuda_emit_batch_declarations(c, s, rounds);
    emit_round(c, s, rounds, count, step, true);
    emit_round(c, s, rounds, count, step, false);
    ci_text_close(c->out);
    ci_cuda_end_batch(c);
}

static void
emit_shared_loop(CiCudaEmitter *c, const CiCudaStage *s)
{
    const char *type = ci_cuda_index_type(c),
               *count = index_text(c, in_vectors(c, shared_count(c, s), s->vector));
    const char *start =
        c->plan->is_split ? ci_format(c->ctx, "(%s)chunk*%d + g", type, c->shape.group) : "g";
    const char *step = c->plan->is_split ? ci_format(c->ctx, "(%s)chunks*%d", type, c->shape.group)
                                         : ci_format(c->ctx, "%d", c->shape.group);
    if (s->trips) {
        emit_trips(c, s, count);
        return;
    }
    emit_rounds(c, s, start, count, step);
    if (!s->has_tail)
        return;
    const char *name = s->stage->axes[0].var->name,
               *extent = index_text(c, s->stage->axes[0].extent);
    ci_text_open(c->out, "for (%s %s = (%s)(%s)*%d + %s; %s < %s; %s += %s) {", type, name, type,
                 count, s->vector, start, name, extent, name, step);
    ci_cuda_emit_elements(c, s, 1);
    ci_text_close(c->out);
}

static void
start_scans(CiCudaEmitter *c, const CiCudaStage *s)
{
    for (int n = 0; n < s->stage->nnests; n++) {
        const CiNest *nest = s->stage->nests[n];
        if (!ci_nest_is_scan(nest))
            continue;
        CiText start = ci_text_new(c->ctx);
        CiDtype dtype = s->code->values[s->code->results[n]].op.dtype;
        ci_emit_const(&start, dtype, ci_op_identity(nest->fold, dtype));
        ci_text_line(c->out, "%s scan%d = %s;", ci_emit_type(dtype), n, start.data);
    }
}

static void
emit_serial(CiCudaEmitter *c, const CiCudaStage *s)
{
    const char *type = ci_cuda_index_type(c);
    ci_text_open(c->out, "for (%s e = g; e < %s; e += %d) {", type,
                 index_text(c, shared_count(c, s)), c->shape.group);
    ci_cuda_emit_axes(c, s->stage->axes, s->nshared, 1, "e");
    for (int f = 0; f < s->nfolds; f++)
        ci_cuda_emit_fold_start(c, &s->folds[f], 1);
    start_scans(c, s);
    ci_cuda_emit_pack_starts(c, s);
    for (int k = s->nshared; k < s->stage->naxes; k++) {
        const char *name = s->stage->axes[k].var->name;
        ci_text_open(c->out, "for (%s %s = 0; %s < %s; %s++) {", type, name, name,
                     index_text(c, s->stage->axes[k].extent), name);
    }
    ci_cuda_emit_elements(c, s, 1);
    for (int k = s->nshared; k < s->stage->naxes; k++)
        ci_text_close(c->out);
    ci_cuda_emit_fold_results(c, s);
    ci_text_close(c->out);
}

static void
emit_barrier(CiCudaEmitter *c)
{
    if (c->shape.group == 1)
        return;
    ci_text_line(c->out, c->shape.lanes_inside && c->shape.group <= 32 ? "__syncwarp();"
                                                                       : "__syncthreads();");
}

static void
emit_stage(CiCudaEmitter *c, const CiCudaStage *s)
{
    if (s->has_barrier)
        emit_barrier(c);
    ci_text_open(c->out, "{");
    if (s->kind == CI_CUDA_once) {
        ci_cuda_emit_elements(c, s, 1);
    } else if (s->kind == CI_CUDA_serial) {
        emit_serial(c, s);
    } else {
        for (int f = 0; f < s->nfolds; f++)
            ci_cuda_emit_fold_start(c, &s->folds[f], s->vector);
        emit_shared_loop(c, s);
        ci_cuda_emit_fold_lanes(c, s);
    }
    if (s->kind == CI_CUDA_fold) {
        ci_cuda_emit_fold_group(c, s);
        if (c->plan->is_split)
            ci_cuda_emit_partials_out(c, s);
        else
            ci_cuda_emit_fold_results(c, s);
    }
    ci_text_close(c->out);
}

void
ci_cuda_emit_stages(CiCudaEmitter *c)
{
    for (int t = 0; t < (c->plan->is_split ? 1 : c->plan->nstages); t++)
        emit_stage(c, &c->plan->stages[t]);
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
        emit_stage(c, &c->plan->stages[t]);
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
    emit_function(c, "", &plan->shape,
                  plan->is_tree   ? ci_cuda_emit_tree
                  : plan->is_flat ? emit_flat
                                  : emit_group);
    if (plan->is_split)
        emit_function(c, "_finish", &plan->finish, emit_finish);
}
