/* Copies of a kernel: one that outlives its compilation, and of that one copies for sizes of a
 * class, for which a plan knows as much as for known sizes: that indices fit 32 bits, that rows
 * start aligned and fit registers, how many threads a row is worth.
 *
 * The class of a size is the power of two that it does not exceed, and whether it is a multiple of
 * CI_CUDA_MULTIPLE. A size of such a copy is the size over its divisor (ci_cuda_class_divisor):
 * where 16*i0*s0 was, 128*i0*q0 shows the planner that vectors are aligned. Invariant: what a copy
 * computes is right for every size of its class, and the class is decided at each launch; so the
 * order of folds still depends on sizes and alignment alone. */
#include "device/cuda/cuda.h"

#include "ir/choices.h"
#include "schedule/schedule.h"

#include <string.h>

#define LARGEST 30 /* bits */

/* ---- classes ---- */

static bool
has_class(const CiExpr *symbol)
{
    return symbol->kind == CI_EXPR_symbol && symbol->symbol_kind == CI_SYMBOL_size;
}

bool
ci_cuda_find_class(const CiKernel *kernel, const int64_t *sizes, CiCudaClass *class)
{
    *class = (CiCudaClass){.is_set = true};
    for (int k = 0; k < kernel->nsize_args; k++) {
        int bits = 0;
        if (!has_class(kernel->size_args[k]))
            continue;
        while (bits <= LARGEST && (INT64_C(1) << bits) < sizes[k])
            bits++;
        if (sizes[k] < 1 || bits > LARGEST)
            return false;
        class->of[k] =
            (unsigned char)(2 * bits + (bits >= 3 && sizes[k] % CI_CUDA_MULTIPLE == 0) + 1);
    }
    return true;
}

int64_t
ci_cuda_class_divisor(const CiCudaClass *class, int k)
{
    return class->of[k] && (class->of[k] - 1) % 2 ? CI_CUDA_MULTIPLE : 1;
}

static bool
can_copy_body(const CiBody *body)
{
    for (int k = 0; k < body->nops; k++)
        if (body->ops[k].op == CI_OP_bind || body->ops[k].op == CI_OP_pack)
            return false;
    return true;
}

bool
ci_cuda_can_specialize(const CiKernel *kernel)
{
    bool has_any = false;
    if (ci_kernel_tree(kernel) || kernel->nchecks || kernel->nsize_args > CI_CUDA_MAX_SIZES)
        return false;
    for (int k = 0; k < kernel->nsize_args; k++) {
        has_any |= has_class(kernel->size_args[k]);
        if (kernel->size_args[k]->kind != CI_EXPR_symbol)
            return false;
    }
    for (int t = 0; t < kernel->nstages; t++)
        for (int n = 0; n < kernel->stages[t].nnests; n++)
            if (!can_copy_body(&kernel->stages[t].nests[n]->body))
                return false;
    return has_any;
}

/* ---- copies ---- */

typedef struct Copy {
    CiContext *ctx;
    CiSym *sym;
    CiLoops *loops; /* of the copy: its buffers have the numbers of the original's */
    CiKernel *kernel;
    const CiCudaClass *class;
    const CiExpr **old, **new;
    int count, capacity, capnew;
} Copy;

static const CiExpr *
copy_expr(const Copy *c, const CiExpr *e)
{
    return e ? ci_expr_substitute(c->sym, ci_expr_copy(c->sym, e), c->count, c->old, c->new) : NULL;
}

static void
replace(Copy *c, const CiExpr *old, const CiExpr *new)
{
    int count = c->count;
    old = ci_expr_copy(c->sym, old);
    CI_PUSH(c->ctx, c->old, c->count, c->capacity, old);
    CI_PUSH(c->ctx, c->new, count, c->capnew, new);
}

/* A symbol of the same kind whose range says what the class does. */
static const CiExpr *
copy_size(Copy *c, const CiExpr *old, int k)
{
    if (!c->class->is_set)
        return ci_expr_copy(c->sym, old);
    if (old->symbol_kind == CI_SYMBOL_index && old->limit) {
        const CiExpr *variable = ci_expr_index(c->sym, old->name, copy_expr(c, old->limit));
        replace(c, old, variable);
        return variable;
    }
    if (!has_class(old))
        return ci_expr_copy(c->sym, old);
    int bits = (c->class->of[k] - 1) / 2;
    int64_t divisor = ci_cuda_class_divisor(c->class, k), high = INT64_C(1) << bits,
            low = high / 2 + 1;
    const CiExpr *size =
        ci_expr_symbol(c->sym, ci_format(c->ctx, "%s_part", old->name), CI_SYMBOL_size,
                       (low + divisor - 1) / divisor, high / divisor);
    replace(c, old, ci_expr_mul(c->sym, size, ci_expr_const(c->sym, divisor)));
    return size;
}

/* Sizes first: variables of loops around the kernel have them for limits. */
static void
copy_sizes(Copy *c, const CiKernel *from)
{
    int count = from->nsize_args;
    c->kernel->nsize_args = count;
    c->kernel->size_args = CI_NEW_ARRAY(c->ctx, const CiExpr *, count + 1);
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < count; k++)
            if (has_class(from->size_args[k]) == (pass == 0))
                c->kernel->size_args[k] = copy_size(c, from->size_args[k], k);
}

static void
copy_buffers(Copy *c, const CiLoops *from)
{
    c->loops->buffers = CI_NEW_ARRAY(c->ctx, CiBuffer *, from->nbuffers + 1);
    for (int k = 0; k < from->nbuffers; k++) {
        CiBuffer *buffer = CI_NEW(c->ctx, CiBuffer);
        *buffer = *from->buffers[k];
        buffer->name = ci_format(c->ctx, "%s", buffer->name);
        buffer->rank = 0; /* kernels ask elements, not axes */
        buffer->sizes = buffer->strides = NULL;
        c->loops->buffers[k] = buffer;
    }
    c->loops->nbuffers = from->nbuffers;
    c->loops->ninputs = from->ninputs;
}

static CiBuffer *
copy_of(const Copy *c, const CiBuffer *buffer)
{
    return buffer ? c->loops->buffers[buffer->id] : NULL;
}

static void
copy_axes(Copy *c, const CiKernelAxis *from, int count, CiKernelAxis **into)
{
    *into = CI_NEW_ARRAY(c->ctx, CiKernelAxis, count + 1);
    for (int k = 0; k < count; k++) {
        (*into)[k] = from[k];
        (*into)[k].extent = copy_expr(c, from[k].extent);
        (*into)[k].var =
            ci_expr_index(c->sym, ci_format(c->ctx, "%s", from[k].var->name), (*into)[k].extent);
        replace(c, from[k].var, (*into)[k].var);
    }
}

static CiNest *
copy_nest(const Copy *c, const CiNest *from)
{
    CiNest *nest = CI_NEW(c->ctx, CiNest);
    *nest = *from;
    nest->axes = CI_NEW_ARRAY(c->ctx, CiAxis, from->naxes + 1);
    for (int k = 0; k < from->naxes; k++)
        nest->axes[k] = (CiAxis){from->axes[k].kind, copy_expr(c, from->axes[k].var),
                                 copy_expr(c, from->axes[k].extent)};
    nest->body.ops = CI_NEW_ARRAY(c->ctx, CiScalar, from->body.nops + 1);
    for (int k = 0; k < from->body.nops; k++) {
        nest->body.ops[k] = from->body.ops[k];
        nest->body.ops[k].buffer = copy_of(c, from->body.ops[k].buffer);
        nest->body.ops[k].index = copy_expr(c, from->body.ops[k].index);
    }
    nest->target = copy_of(c, from->target);
    nest->store = copy_expr(c, from->store);
    nest->locs = NULL;
    nest->nlocs = 0;
    return nest;
}

/* Axes of the stages have variables of their own, of equal names maybe. */
static void
copy_stages(Copy *c, const CiKernel *from)
{
    int outer = c->count;
    c->kernel->stages = CI_NEW_ARRAY(c->ctx, CiStage, from->nstages + 1);
    for (int t = 0; t < from->nstages; t++) {
        const CiStage *old = &from->stages[t];
        CiStage *stage = &c->kernel->stages[t];
        *stage = (CiStage){.naxes = old->naxes, .nnests = old->nnests};
        copy_axes(c, old->axes, old->naxes, &stage->axes);
        stage->nests = CI_NEW_ARRAY(c->ctx, CiNest *, old->nnests + 1);
        for (int n = 0; n < old->nnests; n++)
            stage->nests[n] = copy_nest(c, old->nests[n]);
        c->count = outer;
    }
}

static void
copy_memory(Copy *c, const CiKernel *from)
{
    c->kernel->buffers = CI_NEW_ARRAY(c->ctx, CiBuffer *, from->nbuffers + 1);
    c->kernel->is_stored = CI_NEW_ARRAY(c->ctx, bool, from->nbuffers + 1);
    for (int k = 0; k < from->nbuffers; k++) {
        c->kernel->buffers[k] = copy_of(c, from->buffers[k]);
        c->kernel->is_stored[k] = from->is_stored[k];
    }
    c->kernel->placements =
        CI_NEW_ARRAY(c->ctx, CiPlacement, from->nplacements + from->nbuffers + 1);
    for (int k = 0; k < from->nplacements; k++) {
        CiPlacement placement = from->placements[k];
        placement.buffer = copy_of(c, placement.buffer);
        placement.row_base = copy_expr(c, placement.row_base);
        placement.row_size = copy_expr(c, placement.row_size);
        placement.scratch_offset = NULL;
        c->kernel->placements[k] = placement;
    }
}

/* Buffers that nobody else sees and that the class bounds become rows; their memory stays the
 * kernel's argument and is left alone. */
static void
keep_rows(Copy *c, const CiTarget *target)
{
    int64_t bytes = 0;
    for (int k = 0; k < c->kernel->nbuffers; k++) {
        const CiBuffer *buffer = c->kernel->buffers[k];
        CiPlacement row;
        if (!buffer->is_private || !c->kernel->is_stored[k] ||
            !ci_kernel_find_row(c->sym, c->kernel, buffer, &row))
            continue;
        bytes += row.row_size->value * ci_dtype_size(buffer->dtype);
        if (bytes > target->row_bytes)
            return;
        c->kernel->placements[c->kernel->nplacements++] = row;
    }
}

CiKernels *
ci_cuda_copy_kernel(CiContext *ctx, const CiKernels *kernels, const CiKernel *from,
                    const CiCudaClass *class)
{
    Copy c = {.ctx = ctx, .sym = ci_sym_new(ctx), .class = class};
    CiKernels *copies = CI_NEW(ctx, CiKernels);
    CiTarget *target = CI_NEW(ctx, CiTarget);
    *target = *kernels->target;
    target->asked = NULL;
    target->choices = ci_choices_copy(ctx, target);
    c.loops = ci_loops_new(ctx, c.sym, "");
    c.kernel = CI_NEW(ctx, CiKernel);
    *c.kernel = (CiKernel){.name = ci_format(ctx, "%s", from->name),
                           .id = from->id,
                           .nouter = from->nouter,
                           .nparallel = from->nparallel,
                           .lanes_on_outer = from->lanes_on_outer,
                           .nstages = from->nstages,
                           .nbuffers = from->nbuffers,
                           .nplacements = from->nplacements};
    copy_buffers(&c, kernels->loops);
    copy_sizes(&c, from);
    copy_axes(&c, from->outer, from->nouter, &c.kernel->outer);
    copy_stages(&c, from);
    copy_memory(&c, from);
    if (class->is_set)
        keep_rows(&c, target);
    *copies = (CiKernels){.loops = c.loops, .target = target, .nkernels = 1, .capkernels = 1};
    copies->kernels = CI_NEW(ctx, CiKernel *);
    copies->kernels[0] = c.kernel;
    return copies;
}
