/* Memory around the lines: allocated just before the first use, freed right after the last.
 *
 * Lines form blocks: the program, and the bodies of regions. A buffer lives in the innermost block
 * that holds all its uses, moved out of loops on whose variable its size does not depend; a use
 * inside a deeper block counts as a use by the whole region. What leaves the program lives in the
 * outermost block and is never freed. */
#include "wrapper/place.h"

#include "base/map.h"
#include "ir/cost.h"

/* Of one buffer, in a sum of all. */
#define MOST_BYTES ((int64_t)1 << 48)

typedef struct Block {
    int parent;      /* -1: the program itself */
    int open, close; /* lines of the region it belongs to */
    bool is_loop, is_parallel; /* parallel: each turn has memory of its own */
} Block;

typedef struct Life {
    int block;       /* -1: not used yet */
    int first, last; /* lines of that block (a region counts from its first line to its end) */
    int next_first, next_last; /* chains of buffers born before, dying after one line; -1 ends */
} Life;

typedef struct Place {
    CiWrapper *wrapper;
    CiContext *ctx;
    Block *blocks;
    int nblocks, capblocks;
    int *block_of;     /* per line */
    CiMap *symbols;    /* made by loops and data -> number of the block they are of, and one */
    Life *lives;       /* per buffer */
    int *born, *dying; /* per line: heads of the chains */
    CiLine *lines;     /* what is being made */
    int nlines, caplines;
} Place;

static void
find_blocks(Place *place)
{
    CiWrapper *w = place->wrapper;
    int current = 0;
    CI_PUSH(place->ctx, place->blocks, place->nblocks, place->capblocks,
            ((Block){-1, -1, -1, false, false}));
    for (int i = 0; i < w->nlines; i++) {
        const CiLine *line = &w->lines[i];
        Block block = {current, i, -1, false, line->is_parallel};
        if (ci_line_closes(line)) {
            place->blocks[current].close = i;
            block.open = place->blocks[current].open;
            block.parent = current = place->blocks[current].parent;
        }
        place->block_of[i] = current;
        if (ci_line_opens(line)) {
            block.is_loop = line->kind == CI_LINE_for || line->kind == CI_LINE_while;
            CI_PUSH(place->ctx, place->blocks, place->nblocks, place->capblocks, block);
            current = place->nblocks - 1;
        }
        if (line->kind == CI_LINE_for || line->kind == CI_LINE_define)
            ci_map_put(place->symbols, CI_KEY(line->symbol), (void *)((intptr_t)current + 1));
    }
    /* The branches of one `if` both end where the last does. */
    for (int b = place->nblocks - 1; b > 0; b--)
        for (int i = place->blocks[b].close; w->lines[i].kind == CI_LINE_else;)
            for (int c = b + 1; c < place->nblocks; c++)
                if (place->blocks[c].open == place->blocks[b].open)
                    i = place->blocks[b].close = place->blocks[c].close;
}

static bool
block_contains(const Place *place, int outer, int block)
{
    while (block > outer)
        block = place->blocks[block].parent;
    return block == outer; /* parents come before their children */
}

/* The line of `block` that stands for a use at `line`: the region around it, seen from there. */
static void
line_seen_from(const Place *place, int block, int line, int *first, int *last)
{
    int at = place->block_of[line];
    *first = *last = line;
    while (at != block) {
        *first = place->blocks[at].open;
        *last = place->blocks[at].close;
        at = place->blocks[at].parent;
    }
}

/* On a symbol of this block. */
static bool
size_depends_on(const Place *place, const CiBuffer *buffer, int block)
{
    for (int axis = 0; axis < buffer->rank; axis++)
        for (int k = 0; k < buffer->sizes[axis]->nsymbols; k++)
            if ((intptr_t)ci_map_find(place->symbols, CI_KEY(buffer->sizes[axis]->symbols[k])) ==
                (intptr_t)block + 1)
                return true;
    return false;
}

static bool
is_ours(const CiBuffer *buffer)
{
    return buffer->kind == CI_BUFFER_temp;
}

typedef struct Use {
    Place *place;
    int line;
    bool counts_lines; /* second round: blocks are known */
} Use;

static void
note_use(void *arg, const CiBuffer *buffer, bool is_stored)
{
    (void)is_stored;
    Use *use = arg;
    Place *place = use->place;
    Life *life = &place->lives[buffer->id];
    int block = place->block_of[use->line];
    if (!is_ours(buffer))
        return;
    if (!use->counts_lines) {
        if (life->block < 0)
            life->block = block;
        while (!block_contains(place, life->block, block))
            life->block = place->blocks[life->block].parent;
        return;
    }
    int first, last;
    line_seen_from(place, life->block, use->line, &first, &last);
    /* What a region tests is not freed inside it. */
    for (int b = 1; b < place->nblocks; b++)
        if (place->blocks[b].open == last)
            last = place->blocks[b].close;
    if (life->first < 0 || first < life->first)
        life->first = first;
    if (last > life->last)
        life->last = last;
}

static void
visit_all_lines(Place *place, bool counts_lines)
{
    for (int i = 0; i < place->wrapper->nlines; i++) {
        Use use = {place, i, counts_lines};
        ci_line_visit(place->wrapper, &place->wrapper->lines[i], note_use, &use);
    }
}

static void
move_out_of_loops(Place *place)
{
    for (int i = 0; i < place->wrapper->nbuffers; i++) {
        const CiBuffer *buffer = place->wrapper->buffers[i];
        Life *life = &place->lives[i];
        if (life->block < 0)
            continue;
        for (int b = life->block; b > 0; b = place->blocks[b].parent)
            if (size_depends_on(place, buffer, b)) {
                if (buffer->is_result)
                    ci_fail(place->ctx, CI_ERR_UNSUPPORTED,
                            "the size of result %s is only known inside a loop", buffer->name);
                break;
            } else if (buffer->is_result ||
                       (place->blocks[b].is_loop && !place->blocks[b].is_parallel)) {
                life->block = place->blocks[b].parent;
            } else {
                break;
            }
    }
}

/* Chains in order of buffer number, so that lines come out the same every time. */
static void
chain_lives(Place *place)
{
    for (int i = 0; i < place->wrapper->nlines; i++)
        place->born[i] = place->dying[i] = -1;
    for (int i = place->wrapper->nbuffers - 1; i >= 0; i--) {
        Life *life = &place->lives[i];
        if (life->block < 0)
            continue;
        life->next_first = place->born[life->first];
        place->born[life->first] = i;
        life->next_last = place->dying[life->last];
        place->dying[life->last] = i;
    }
}

static void
add_memory_line(Place *place, CiLineKind kind, const CiBuffer *buffer)
{
    CiLine line = {.kind = kind, .buffer = buffer, .match = -1, .open = -1, .loc = {.file = ""}};
    line.bytes = ci_buffer_bytes(place->wrapper->kernels->loops->sym, buffer);
    line.at = ci_wrapper_side(place->wrapper, buffer);
    CI_PUSH(place->ctx, place->lines, place->nlines, place->caplines, line);
}

static void
write_lines(Place *place)
{
    CiWrapper *w = place->wrapper;
    for (int i = 0; i < w->nlines; i++) {
        for (int b = place->born[i]; b >= 0; b = place->lives[b].next_first)
            add_memory_line(place, w->buffers[b]->is_result ? CI_LINE_alloc_result : CI_LINE_alloc,
                            w->buffers[b]);
        for (int b = place->born[i]; b >= 0; b = place->lives[b].next_first)
            w->lives[b].first = place->nlines;
        for (int b = place->dying[i]; b >= 0; b = place->lives[b].next_last)
            w->lives[b].last = place->nlines;
        CI_PUSH(place->ctx, place->lines, place->nlines, place->caplines, w->lines[i]);
        for (int b = place->dying[i]; b >= 0; b = place->lives[b].next_last)
            if (!w->buffers[b]->is_result)
                add_memory_line(place, CI_LINE_free, w->buffers[b]);
    }
    for (int b = 0; b < w->nbuffers; b++)
        if (w->buffers[b]->is_result && w->lives[b].first >= 0)
            w->lives[b].last = place->nlines - 1;
    w->lines = place->lines;
    w->nlines = place->nlines;
    w->caplines = place->caplines;
}

static bool
is_of_each_turn(const Place *place, int buffer)
{
    for (int b = place->lives[buffer].block; b > 0; b = place->blocks[b].parent)
        if (place->blocks[b].is_parallel)
            return true;
    return false;
}

/* The most of what is of use at the same time; of those buffers that each turn of a parallel loop has
 * of its own, or of all. */
static int64_t
most_held(const Place *place, bool of_turns, bool *is_known)
{
    const CiWrapper *w = place->wrapper;
    int64_t *taken = CI_NEW_ARRAY(w->ctx, int64_t, w->nlines + 2), held = 0, most = 0;
    for (int b = 0; b < w->nbuffers; b++) {
        CiAmount cost = ci_cost_of_buffer(w->buffers[b]);
        int64_t bytes = ci_amount_likely(cost);
        if (w->lives[b].first < 0 || (of_turns && !is_of_each_turn(place, b)))
            continue;
        bytes = bytes < MOST_BYTES ? bytes : MOST_BYTES;
        *is_known &= !cost.unknowns;
        taken[w->lives[b].first] += bytes;
        taken[w->lives[b].last + 1] -= bytes;
    }
    for (int i = 0; i < w->nlines; i++) {
        held += taken[i];
        most = held > most ? held : most;
    }
    return most;
}

/* What the program holds at its worst, and what each thread more adds that runs turns of a loop. */
static void
note_peak(const Place *place)
{
    CiWrapper *w = place->wrapper;
    bool is_known = true;
    int64_t most = most_held(place, false, &is_known), more = most_held(place, true, &is_known);
    if (most)
        w->lines[0].text = ci_format(w->ctx, "%s, %s %lld bytes", w->lines[0].text,
                                     is_known ? "at most" : "about", (long long)most);
    if (more)
        w->lines[0].text = ci_format(w->ctx, "%s, %lld more for each other thread",
                                     w->lines[0].text, (long long)more);
}

void
ci_wrapper_place(CiWrapper *wrapper)
{
    CiContext *ctx = wrapper->ctx;
    Place place = {.wrapper = wrapper, .ctx = ctx, .symbols = ci_map_new(ctx)};
    place.block_of = CI_NEW_ARRAY(ctx, int, wrapper->nlines);
    place.born = CI_NEW_ARRAY(ctx, int, wrapper->nlines);
    place.dying = CI_NEW_ARRAY(ctx, int, wrapper->nlines);
    place.lives = CI_NEW_ARRAY(ctx, Life, wrapper->nbuffers + 1);
    for (int i = 0; i < wrapper->nbuffers; i++)
        place.lives[i] = (Life){-1, -1, -1, -1, -1};
    wrapper->lives = CI_NEW_ARRAY(ctx, CiLife, wrapper->nbuffers + 1);
    for (int i = 0; i < wrapper->nbuffers; i++)
        wrapper->lives[i] = (CiLife){-1, -1};
    find_blocks(&place);
    visit_all_lines(&place, false);
    move_out_of_loops(&place);
    visit_all_lines(&place, true);
    chain_lives(&place);
    write_lines(&place);
    if (!wrapper->options.has_no_reuse)
        ci_wrapper_reuse(wrapper);
    note_peak(&place);
}

CiSide
ci_wrapper_side(const CiWrapper *wrapper, const CiBuffer *buffer)
{
    return wrapper->side_of[buffer->id];
}

bool
ci_wrapper_is_on_host(const CiWrapper *wrapper, const CiBuffer *buffer)
{
    return !wrapper->options.has_device_memory || ci_wrapper_side(wrapper, buffer) == CI_SIDE_host;
}

static void
drop_buffer(CiLine *test, const CiBuffer *buffer)
{
    int kept = 0;
    for (int k = 0; k < test->nfrees; k++)
        if (test->frees[k] != buffer)
            test->frees[kept++] = test->frees[k];
    test->nfrees = kept;
}

/* What the lines of the loop's own block have taken and not given back when they reach the test. */
static void
find_frees(CiWrapper *wrapper, int position)
{
    CiLine *test = &wrapper->lines[position];
    int capacity = 0, depth = 0;
    for (int i = test->open + 1; i < position; i++) {
        const CiLine *line = &wrapper->lines[i];
        const CiLineRow *row = ci_line_row(line->kind);
        depth += ci_line_opens(line) - ci_line_closes(line);
        if (depth)
            continue;
        if (row->buffer == CI_USE_dies || row->other == CI_USE_dies)
            drop_buffer(test, row->buffer == CI_USE_dies ? line->buffer : line->other);
        if (row->buffer == CI_USE_born && line->kind != CI_LINE_alloc_result)
            CI_PUSH(wrapper->ctx, test->frees, test->nfrees, capacity, line->buffer);
    }
}

void
ci_wrapper_match(CiWrapper *wrapper)
{
    int *open = CI_NEW_ARRAY(wrapper->ctx, int, wrapper->nlines + 1);
    int depth = 0;
    for (int i = 0; i < wrapper->nlines; i++) {
        CiLine *line = &wrapper->lines[i];
        if (ci_line_closes(line)) {
            CI_REQUIRE(wrapper->ctx, depth > 0);
            int start = open[--depth];
            wrapper->lines[start].match = i;
            line->open = start;
        }
        if (line->kind == CI_LINE_test) {
            CI_REQUIRE(wrapper->ctx, depth > 0);
            line->open = open[depth - 1];
            find_frees(wrapper, i);
        }
        if (ci_line_opens(line))
            open[depth++] = i;
    }
    CI_REQUIRE(wrapper->ctx, depth == 0);
}
