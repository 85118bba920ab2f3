/* Memory allocation around the lines: allocated just before the first use, freed right after the
 * last.
 *
 * Lines form blocks: the program, and the bodies of regions. A buffer belongs to the innermost
 * block that contains all its uses, and is moved out of loops on whose variable its size does not
 * depend. A use inside a deeper block counts as a use by the whole region. Results of the program
 * belong to the outermost block and are never freed. */
#include "wrapper/allocate.h"

/* By buffer: chains of those born before, dying after one line; -1 ends. */
typedef struct Chain {
    int next_first, next_last;
} Chain;

typedef struct Allocation {
    CiWrapper *wrapper;
    CiContext *ctx;
    CiLiveRanges *ranges;    /* steps are lines */
    CiMap *symbols;    /* made by loops and data -> number of the block they are of, and one */
    Chain *chains;     /* per buffer */
    int *born, *dying; /* per line: heads of the chains */
    CiLine *lines;     /* what is being made */
    int nlines, caplines;
} Allocation;

static void
note_use(void *arg, const CiBuffer *buffer, bool is_stored)
{
    (void)is_stored;
    if (buffer->kind == CI_BUFFER_temp)
        ci_live_use(arg, buffer->id);
}

static void
add_lines(Allocation *allocation)
{
    CiWrapper *w = allocation->wrapper;
    for (int i = 0; i < w->nlines; i++) {
        const CiLine *line = &w->lines[i];
        CiLineBlock kind = ci_line_row(line->kind)->block;
        ci_live_add_step(allocation->ranges);
        if (kind == CI_BLOCK_reopens)
            ci_live_iteration(allocation->ranges);
        if (kind == CI_BLOCK_closes)
            ci_live_close(allocation->ranges);
        ci_line_visit(w, line, note_use, allocation->ranges);
        if (kind == CI_BLOCK_opens)
            ci_live_open(allocation->ranges, line->kind == CI_LINE_for || line->kind == CI_LINE_while,
                         line->is_parallel);
        if (line->kind == CI_LINE_for || line->kind == CI_LINE_define)
            ci_map_put(allocation->symbols, CI_KEY(line->symbol),
                       (void *)((intptr_t)allocation->ranges->block + 1));
    }
}

/* On a symbol of this block. */
static bool
size_depends_on(const Allocation *allocation, const CiBuffer *buffer, int block)
{
    for (int axis = 0; axis < buffer->rank; axis++)
        for (int k = 0; k < buffer->sizes[axis]->nsymbols; k++)
            if ((intptr_t)ci_map_find(allocation->symbols, CI_KEY(buffer->sizes[axis]->symbols[k])) ==
                (intptr_t)block + 1)
                return true;
    return false;
}

static void
move_out_of_loops(Allocation *allocation)
{
    for (int i = 0; i < allocation->wrapper->nbuffers; i++) {
        const CiBuffer *buffer = allocation->wrapper->buffers[i];
        CiLife *life = &allocation->ranges->of[i];
        for (int b = life->block; b > 0; b = allocation->ranges->blocks[b].parent)
            if (size_depends_on(allocation, buffer, b)) {
                if (buffer->is_result)
                    ci_fail(allocation->ctx, CI_ERR_UNSUPPORTED,
                            "the size of result %s is only known inside a loop", buffer->name);
                break;
            } else if (buffer->is_result ||
                       (allocation->ranges->blocks[b].is_loop && !allocation->ranges->blocks[b].is_parallel)) {
                life->block = allocation->ranges->blocks[b].parent;
            } else {
                break;
            }
    }
}

/* Chains in order of buffer number, so that lines come out the same every time. */
static void
chain_live_ranges(Allocation *allocation)
{
    for (int i = 0; i < allocation->wrapper->nlines; i++)
        allocation->born[i] = allocation->dying[i] = -1;
    for (int i = allocation->wrapper->nbuffers - 1; i >= 0; i--) {
        const CiLife *life = &allocation->ranges->of[i];
        if (life->block < 0)
            continue;
        allocation->chains[i] = (Chain){allocation->born[life->first], allocation->dying[life->last]};
        allocation->born[life->first] = allocation->dying[life->last] = i;
    }
}

static void
add_memory_line(Allocation *allocation, CiLineKind kind, const CiBuffer *buffer)
{
    CiLine line = {.kind = kind, .buffer = buffer, .match = -1, .open = -1, .loc = {.file = ""}};
    line.bytes = ci_buffer_bytes(allocation->wrapper->kernels->loops->sym, buffer);
    line.at = ci_wrapper_side(allocation->wrapper, buffer);
    CI_PUSH(allocation->ctx, allocation->lines, allocation->nlines, allocation->caplines, line);
}

static void
write_lines(Allocation *allocation)
{
    CiWrapper *w = allocation->wrapper;
    int *moved = CI_NEW_ARRAY(allocation->ctx, int, w->nlines + 1);
    for (int i = 0; i < w->nlines; i++) {
        for (int b = allocation->born[i]; b >= 0; b = allocation->chains[b].next_first)
            add_memory_line(allocation, w->buffers[b]->is_result ? CI_LINE_alloc_result : CI_LINE_alloc,
                            w->buffers[b]);
        moved[i] = allocation->nlines;
        CI_PUSH(allocation->ctx, allocation->lines, allocation->nlines, allocation->caplines, w->lines[i]);
        for (int b = allocation->dying[i]; b >= 0; b = allocation->chains[b].next_last)
            if (!w->buffers[b]->is_result)
                add_memory_line(allocation, CI_LINE_free, w->buffers[b]);
    }
    w->lines = allocation->lines;
    w->nlines = allocation->nlines;
    w->caplines = allocation->caplines;
    ci_live_move(allocation->ranges, moved, w->nlines);
}

static Allocation
find_live_ranges(CiWrapper *wrapper)
{
    CiContext *ctx = wrapper->ctx;
    Allocation allocation = {.wrapper = wrapper, .ctx = ctx, .symbols = ci_map_new(ctx)};
    allocation.ranges = wrapper->ranges = ci_live_new(ctx, wrapper->nbuffers);
    add_lines(&allocation);
    ci_live_find_blocks(allocation.ranges);
    move_out_of_loops(&allocation);
    ci_live_find_ranges(allocation.ranges);
    return allocation;
}

/* Results are held until the end. */
static void
keep_results(CiWrapper *w)
{
    for (int b = 0; b < w->nbuffers; b++)
        if (w->buffers[b]->is_result && w->ranges->of[b].first >= 0)
            w->ranges->of[b].last = w->nlines - 1;
}

void
ci_wrapper_find_live_ranges(CiWrapper *wrapper)
{
    (void)find_live_ranges(wrapper);
    keep_results(wrapper);
}

void
ci_wrapper_place(CiWrapper *wrapper)
{
    CiContext *ctx = wrapper->ctx;
    Allocation allocation = find_live_ranges(wrapper);
    allocation.born = CI_NEW_ARRAY(ctx, int, wrapper->nlines);
    allocation.dying = CI_NEW_ARRAY(ctx, int, wrapper->nlines);
    allocation.chains = CI_NEW_ARRAY(ctx, Chain, wrapper->nbuffers + 1);
    chain_live_ranges(&allocation);
    write_lines(&allocation);
    keep_results(wrapper);
}
