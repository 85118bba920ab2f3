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

typedef struct Place {
    CiWrapper *wrapper;
    CiContext *ctx;
    CiLives *lives;    /* steps are lines */
    CiMap *symbols;    /* made by loops and data -> number of the block they are of, and one */
    Chain *chains;     /* per buffer */
    int *born, *dying; /* per line: heads of the chains */
    CiLine *lines;     /* what is being made */
    int nlines, caplines;
} Place;

static void
note_use(void *arg, const CiBuffer *buffer, bool is_stored)
{
    (void)is_stored;
    if (buffer->kind == CI_BUFFER_temp)
        ci_lives_use(arg, buffer->id);
}

static void
add_lines(Place *place)
{
    CiWrapper *w = place->wrapper;
    for (int i = 0; i < w->nlines; i++) {
        const CiLine *line = &w->lines[i];
        CiLineBlock kind = ci_line_row(line->kind)->block;
        ci_lives_add_step(place->lives);
        if (kind == CI_BLOCK_turns)
            ci_lives_turn(place->lives);
        if (kind == CI_BLOCK_closes)
            ci_lives_close(place->lives);
        ci_line_visit(w, line, note_use, place->lives);
        if (kind == CI_BLOCK_opens)
            ci_lives_open(place->lives, line->kind == CI_LINE_for || line->kind == CI_LINE_while,
                          line->is_parallel);
        if (line->kind == CI_LINE_for || line->kind == CI_LINE_define)
            ci_map_put(place->symbols, CI_KEY(line->symbol),
                       (void *)((intptr_t)place->lives->block + 1));
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

static void
move_out_of_loops(Place *place)
{
    for (int i = 0; i < place->wrapper->nbuffers; i++) {
        const CiBuffer *buffer = place->wrapper->buffers[i];
        CiLife *life = &place->lives->of[i];
        for (int b = life->block; b > 0; b = place->lives->blocks[b].parent)
            if (size_depends_on(place, buffer, b)) {
                if (buffer->is_result)
                    ci_fail(place->ctx, CI_ERR_UNSUPPORTED,
                            "the size of result %s is only known inside a loop", buffer->name);
                break;
            } else if (buffer->is_result ||
                       (place->lives->blocks[b].is_loop && !place->lives->blocks[b].is_parallel)) {
                life->block = place->lives->blocks[b].parent;
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
        const CiLife *life = &place->lives->of[i];
        if (life->block < 0)
            continue;
        place->chains[i] = (Chain){place->born[life->first], place->dying[life->last]};
        place->born[life->first] = place->dying[life->last] = i;
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
    int *moved = CI_NEW_ARRAY(place->ctx, int, w->nlines + 1);
    for (int i = 0; i < w->nlines; i++) {
        for (int b = place->born[i]; b >= 0; b = place->chains[b].next_first)
            add_memory_line(place, w->buffers[b]->is_result ? CI_LINE_alloc_result : CI_LINE_alloc,
                            w->buffers[b]);
        moved[i] = place->nlines;
        CI_PUSH(place->ctx, place->lines, place->nlines, place->caplines, w->lines[i]);
        for (int b = place->dying[i]; b >= 0; b = place->chains[b].next_last)
            if (!w->buffers[b]->is_result)
                add_memory_line(place, CI_LINE_free, w->buffers[b]);
    }
    w->lines = place->lines;
    w->nlines = place->nlines;
    w->caplines = place->caplines;
    ci_lives_move(place->lives, moved, w->nlines);
}

static Place
find_lives(CiWrapper *wrapper)
{
    CiContext *ctx = wrapper->ctx;
    Place place = {.wrapper = wrapper, .ctx = ctx, .symbols = ci_map_new(ctx)};
    place.lives = wrapper->lives = ci_lives_new(ctx, wrapper->nbuffers);
    add_lines(&place);
    ci_lives_find_blocks(place.lives);
    move_out_of_loops(&place);
    ci_lives_find_ranges(place.lives);
    return place;
}

/* Results are held until the end. */
static void
keep_results(CiWrapper *w)
{
    for (int b = 0; b < w->nbuffers; b++)
        if (w->buffers[b]->is_result && w->lives->of[b].first >= 0)
            w->lives->of[b].last = w->nlines - 1;
}

void
ci_wrapper_find_lives(CiWrapper *wrapper)
{
    (void)find_lives(wrapper);
    keep_results(wrapper);
}

void
ci_wrapper_place(CiWrapper *wrapper)
{
    CiContext *ctx = wrapper->ctx;
    Place place = find_lives(wrapper);
    place.born = CI_NEW_ARRAY(ctx, int, wrapper->nlines);
    place.dying = CI_NEW_ARRAY(ctx, int, wrapper->nlines);
    place.chains = CI_NEW_ARRAY(ctx, Chain, wrapper->nbuffers + 1);
    chain_lives(&place);
    write_lines(&place);
    keep_results(wrapper);
}
