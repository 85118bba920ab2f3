/* In-place reuse of buffers. If a kernel is the last reader of a value and stores another one of
 * the same shape (or a shorter contiguous one), the new value overwrites the old one element by
 * element.
 *
 * Both are one buffer from then on. If one of them is a result of the program, the buffer is the
 * result from its first store on.
 *
 * Invariants: within the kernel, an element is not read after it was overwritten, except as the
 * stored value. Values of different iterations are never merged. Arguments are never reused,
 * because the caller can still see them. */
#include "schedule/in_place.h"

#include "analysis/live_ranges.h"

static bool
has_same_shape(const CiBuffer *from, const CiBuffer *to)
{
    for (int k = 0; k < from->rank; k++)
        if (from->sizes[k] != to->sizes[k] || from->strides[k] != to->strides[k])
            return false;
    return true;
}

/* One run of elements that begins as the other does, and is no longer. A result is the first elements
 * of its memory only where data decide how many it has. */
static bool
fits_into(CiScheduler *s, const CiBuffer *from, const CiBuffer *to)
{
    if (from->rank != 1 || s->is_in_loop)
        return false;
    bool may_be_part = !to->is_result || (!s->machine->has_memory &&
                                          to->sizes[0]->symbol_kind == CI_SYMBOL_unbacked);
    return may_be_part && ci_expr_equals_const(from->strides[0], 1) &&
           ci_expr_equals_const(to->strides[0], 1) &&
           ci_sym_known_le(s->sym, to->sizes[0], from->sizes[0]);
}

/* One element is worth nothing, and may be what a loop goes on for, or a variable of a tree: these keep
 * their names. */
static bool
may_be_one(const CiScheduler *s, const CiBuffer *from, const CiBuffer *to)
{
    return from != to && from->kind == CI_BUFFER_temp && to->kind == CI_BUFFER_temp &&
           !from->is_result && !from->is_swapped && !to->is_swapped && from->dtype == to->dtype &&
           from->rank == to->rank && from->device == to->device && !ci_is_one_element(s->sym, from) &&
           !ci_is_one_element(s->sym, to);
}

/* Every element once. */
static bool
stores_all(CiScheduler *s, const CiNest *nest)
{
    const CiExpr *count = ci_expr_const(s->sym, 1);
    const CiBuffer *target = nest->target;
    for (int k = 0; k < nest->npoint; k++)
        count = ci_expr_mul(s->sym, count, nest->axes[k].extent);
    return !ci_nest_is_indirect(nest) && !ci_nest_is_serial(nest) && !nest->is_combined &&
           count == ci_expr_product_of(s->sym, target->sizes, target->rank);
}

/* ---- in one kernel ---- */

static bool
is_flat(const CiKernel *kernel)
{
    return ci_kernel_has_loops(kernel) && !ci_kernel_tree(kernel);
}

/* Finds the only nest that stores the buffer. Stage -1: there is none, or it stores only a part. */
static CiNestAt
find_store(CiScheduler *s, const CiKernel *kernel, const CiBuffer *buffer)
{
    CiNestAt found = {-1, -1}, at = CI_BEFORE_NESTS;
    for (const CiNest *nest; (nest = ci_kernel_next_nest(kernel, &at));) {
        if (nest->target != buffer)
            continue;
        if (found.stage >= 0 || !stores_all(s, nest))
            return (CiNestAt){-1, -1};
        found = at;
    }
    return found;
}

/* True if the load comes before the store, or in the same iteration of one loop. On a GPU an
 * earlier load does not count, because another thread may execute it. */
static bool
is_read_in_time(CiScheduler *s, const CiKernel *kernel, CiNestAt load, const CiExpr *index,
                CiNestAt store)
{
    const CiNest *maker = kernel->stages[store.stage].nests[store.nest];
    if (load.stage < store.stage)
        return !s->machine->reads_by_many &&
               !ci_why_not_local(s, kernel, maker->store, index);
    return load.stage == store.stage && load.nest <= store.nest && index == maker->store;
}

static bool
may_take_over(CiScheduler *s, const CiKernel *kernel, const CiBuffer *from, CiNestAt store)
{
    CiNestAt at = CI_BEFORE_NESTS;
    for (const CiNest *nest; (nest = ci_kernel_next_nest(kernel, &at));) {
        if (nest->target == from)
            return false;
        for (const CiScalar *load = NULL; (load = ci_nest_next_load(nest, load));)
            if (load->buffer == from && !is_read_in_time(s, kernel, at, load->index, store))
                return false;
    }
    return true;
}

/* True if the storing nest or one before it loads the buffer. */
static bool
is_read_before(const CiKernel *kernel, const CiBuffer *buffer, CiNestAt store)
{
    CiNestAt at = CI_BEFORE_NESTS;
    for (const CiNest *nest; (nest = ci_kernel_next_nest(kernel, &at));) {
        if (ci_nest_loads(nest, buffer))
            return true;
        if (at.stage == store.stage && at.nest == store.nest)
            return false;
    }
    return false;
}

int
ci_find_donations(CiScheduler *s, const CiKernel *kernel, CiDonation *found)
{
    int count = 0;
    if (!is_flat(kernel) || kernel->kind)
        return 0;
    for (int b = 0; b < kernel->nbuffers; b++) {
        CiBuffer *to = kernel->buffers[b];
        if (!kernel->is_stored[b] || to->kind != CI_BUFFER_temp)
            continue;
        CiNestAt store = find_store(s, kernel, to);
        for (int a = 0; a < kernel->nbuffers && store.stage >= 0; a++) {
            CiBuffer *from = kernel->buffers[a];
            if (!kernel->is_stored[a] && may_be_one(s, from, to) &&
                (has_same_shape(from, to) || fits_into(s, from, to)) &&
                may_take_over(s, kernel, from, store) && count < CI_MAX_DONATIONS)
                found[count++] = (CiDonation){from, to};
        }
    }
    return count && ci_labels(s->ctx, s->sym, s->machine, kernel).chunks ? 0 : count;
}

/* ---- in a list of kernels ---- */

typedef struct Coalesce {
    CiScheduler *s; /* of the list */
    CiLiveRanges *ranges;
    int block;         /* of the list */
    CiBuffer **became;   /* by buffer id: the one that it has become */
    CiBuffer **begun;  /* buffers of the list, in order of first use */
    bool *is_begun;    /* by buffer id */
    int nbegun, capbegun;
} Coalesce;

static CiBuffer *
what_became(const Coalesce *c, CiBuffer *buffer)
{
    while (c->became[buffer->id] != buffer)
        buffer = c->became[buffer->id];
    return buffer;
}

static bool
makes_whole(const Coalesce *c, const CiExternItem *ext, const CiBuffer *buffer)
{
    int result = ext->noperands;
    CiSym *sym = c->s->sym;
    return ext->result == buffer &&
           ci_expr_product_of(sym, ext->sizes[result], ext->ranks[result]) ==
               ci_expr_product_of(sym, buffer->sizes, buffer->rank);
}

/* True if the first kernel that accesses the buffer overwrites all of it, so that no value of the
 * previous iteration is read. */
static bool
is_made_in_iteration(const Coalesce *c, const CiBuffer *buffer)
{
    const CiKernel *kernel = c->ranges->kernels[c->ranges->of[buffer->id].first];
    if (kernel->ext)
        return makes_whole(c, kernel->ext, buffer);
    if (!is_flat(kernel))
        return false;
    CiNestAt store = find_store(c->s, kernel, buffer);
    return store.stage >= 0 && !is_read_before(kernel, buffer, store);
}

/* True if all uses of the buffer are in the list, except the return. */
static bool
is_of_list(const Coalesce *c, const CiBuffer *buffer)
{
    return c->ranges->of[buffer->id].block == c->block &&
           (!c->s->is_in_loop || is_made_in_iteration(c, buffer));
}

static void
make_one(Coalesce *c, CiBuffer *from, CiBuffer *to)
{
    CiKernels *kernels = c->s->kernels;
    c->became[to->id] = from;
    c->ranges->of[from->id].last = c->ranges->of[to->id].last;
    from->is_result |= to->is_result;
    to->is_result = false;
    from->is_private = false;
    CI_PUSH(c->s->ctx, kernels->notes, kernels->nnotes, kernels->capnotes,
            ci_format(c->s->ctx, "%s is stored where %s was", to->name, from->name));
}

static void
donate(Coalesce *c, const CiKernel *kernel)
{
    CiDonation found[CI_MAX_DONATIONS];
    int count = ci_find_donations(c->s, kernel, found);
    int step = count ? ci_live_step_of(c->ranges, kernel) : -1;
    for (int k = 0; k < count; k++) {
        CiBuffer *to = found[k].to, *from = what_became(c, found[k].from);
        CiLife own = c->ranges->of[to->id], life = c->ranges->of[from->id];
        bool ends_here = life.first < step && life.last == step;
        if (c->became[to->id] == to && own.first == step && own.last > step && ends_here &&
            is_of_list(c, found[k].from) && is_of_list(c, to))
            make_one(c, from, to);
    }
}

static void
note_begin(void *arg, CiBuffer *buffer, bool is_stored)
{
    Coalesce *c = arg;
    (void)is_stored;
    if (c->is_begun[buffer->id] || c->ranges->of[buffer->id].block != c->block)
        return;
    c->is_begun[buffer->id] = true;
    CI_PUSH(c->s->ctx, c->begun, c->nbegun, c->capbegun, buffer);
}

static bool
may_follow(const Coalesce *c, const CiBuffer *from, const CiBuffer *to)
{
    return may_be_one(c->s, from, to) && has_same_shape(from, to) &&
           c->ranges->of[from->id].last < c->ranges->of[to->id].first;
}

/* Within a loop, gives a value the memory of another one whose life ended earlier in the same
 * iteration. Outside of loops, wrapper lines pass memory on (wrapper/reuse.c). */
static void
share(Coalesce *c)
{
    const CiKernels *list = c->s->kernels;
    c->nbegun = 0;
    for (int k = 0; k < list->nkernels; k++)
        ci_kernel_visit_uses(list->kernels[k], note_begin, c);
    CiBuffer **free_ones = CI_NEW_ARRAY(c->s->ctx, CiBuffer *, c->nbegun + 1);
    int nfree = 0;
    for (int k = 0; k < c->nbegun; k++) {
        CiBuffer *to = c->begun[k];
        if (c->became[to->id] != to || to->kind != CI_BUFFER_temp || !is_of_list(c, to))
            continue;
        int h = 0;
        while (h < nfree && !may_follow(c, free_ones[h], to))
            h++;
        if (h < nfree)
            make_one(c, free_ones[h], to);
        else
            free_ones[nfree++] = to;
    }
}

static void
coalesce_list(Coalesce *c, CiScheduler *s)
{
    for (int d = 0; d < s->nfusions; d++) {
        for (int k = 0; k < 2 && !s->fusions[d].is_tree; k++)
            if (s->fusions[d].inner[k])
                coalesce_list(c, s->fusions[d].inner[k]);
    }
    c->s = s;
    c->block = ci_live_block_of(c->ranges, s->kernels);
    for (int at = 0; at < s->kernels->nkernels; at++)
        donate(c, s->kernels->kernels[at]);
    if (s->is_in_loop)
        share(c);
}

/* ---- one name for each ---- */

static void
rename_nest(const Coalesce *c, CiNest *nest)
{
    nest->target = what_became(c, nest->target);
    for (int k = 0; k < nest->body.nops; k++)
        if (nest->body.ops[k].buffer)
            nest->body.ops[k].buffer = what_became(c, nest->body.ops[k].buffer);
}

static void rename_kernel(const Coalesce *c, CiKernel *kernel);

static void
rename_tree(const Coalesce *c, const CiKernels *tree)
{
    for (int k = 0; tree && k < tree->nkernels; k++) {
        if (ci_kernel_has_loops(tree->kernels[k]))
            rename_kernel(c, tree->kernels[k]);
        rename_tree(c, tree->kernels[k]->inner[0]);
        rename_tree(c, tree->kernels[k]->inner[1]);
    }
}

static void
rename_arguments(const Coalesce *c, CiKernel *kernel)
{
    int count = kernel->nbuffers;
    kernel->nbuffers = 0;
    for (int k = 0; k < count; k++) {
        CiBuffer *buffer = what_became(c, kernel->buffers[k]);
        int position = ci_kernel_buffer_position(kernel, buffer);
        if (position < 0) {
            position = kernel->nbuffers++;
            kernel->buffers[position] = buffer;
            kernel->is_stored[position] = kernel->is_stored[k];
        } else {
            kernel->is_stored[position] |= kernel->is_stored[k];
        }
    }
}

static void
rename_kernel(const Coalesce *c, CiKernel *kernel)
{
    CiNestAt at = CI_BEFORE_NESTS;
    for (CiNest *nest; (nest = ci_kernel_next_nest(kernel, &at));)
        rename_nest(c, nest);
    if (ci_kernel_tree(kernel))
        rename_tree(c, ci_kernel_tree(kernel));
    rename_arguments(c, kernel);
    for (int k = 0; kernel->ext && k < kernel->ext->noperands; k++)
        kernel->ext->operands[k] = what_became(c, kernel->ext->operands[k]);
    if (kernel->ext)
        kernel->ext->result = what_became(c, kernel->ext->result);
    for (int k = 0; k < 2; k++)
        for (int n = 0; kernel->inner[k] && n < kernel->inner[k]->nkernels; n++)
            rename_kernel(c, kernel->inner[k]->kernels[n]);
}

void
ci_coalesce(CiScheduler *s)
{
    CiLoops *loops = s->loops;
    Coalesce c = {.s = s};
    c.ranges = ci_live_of_kernels(s->kernels);
    c.is_begun = CI_NEW_ARRAY(s->ctx, bool, loops->nbuffers + 1);
    c.became = CI_NEW_ARRAY(s->ctx, CiBuffer *, loops->nbuffers + 1);
    for (int k = 0; k < loops->nbuffers; k++)
        c.became[k] = loops->buffers[k];
    coalesce_list(&c, s);
    for (int k = 0; k < s->kernels->nkernels; k++)
        rename_kernel(&c, s->kernels->kernels[k]);
    for (int k = 0; k < loops->nresults; k++) {
        CiResult *result = &loops->results[k];
        const CiBuffer *was = result->buffer;
        result->buffer = what_became(&c, result->buffer);
        result->is_whole &= has_same_shape(result->buffer, was);
    }
}
