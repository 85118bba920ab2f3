/* Pools: packs the allocations of one block of lines into one allocation, at offsets. Buffers with
 * disjoint lifetimes share bytes. One allocation and one free replace many, and a small buffer can
 * reuse the space of a larger one.
 *
 * The size of a pool is that of the buffers that are live at its fullest line. They are laid out
 * one after another; buffers that live earlier or later reuse their space. A pool lives from its
 * first buffer to its last, and must not raise peak memory: at every line of its life, the program
 * holds no more than at the program's fullest line. With constant sizes this is computed. With
 * symbolic sizes it is proved line by line, and so is the disjointness of buffers that are live
 * together. Buffers are aligned to cache lines. The symbols in a pool's size must be known where it
 * begins. A buffer with a data-dependent size reuses the space of another one, or its pool begins
 * after the size is known.
 *
 * Never pooled: results, buffers that are swapped, and memory that devices access directly. */
#include "analysis/cost.h"
#include "wrapper/allocate.h"

/* Allocations of one block that are looked at, the largest: finding places takes time with their cube.
 * Of expressions it takes longer. */
#define MAX_STORAGES 128
#define MAX_OPEN_STORAGES 48
/* A guess of one buffer's bytes, in a sum of all. */
#define MAX_BYTES ((int64_t)1 << 40)

/* One physical allocation, shared by all buffers that reuse it in turn. */
typedef struct Storage {
    const CiBuffer *first;
    int birth, death; /* its lines */
    const CiExpr *bytes, *capacity, *offset; /* room: rounded up */
    int64_t likely;
    int pool;  /* -1: none */
    bool is_left; /* not looked at any more */
} Storage;

typedef struct Pool {
    const CiBuffer *buffer;
    CiSide side;
    int birth, death; /* lines of its first part's begin and its last one's end */
    int fullest;      /* line */
    const CiExpr *bytes, *capacity; /* room: where the next part beside the others would begin */
    int nparts;
} Pool;

typedef struct Pools {
    CiWrapper *w;
    CiContext *ctx;
    CiSym *sym;
    Storage *storages;
    int nstorages, capstorages;
    int *storage_of, *next; /* per buffer; -1: none. next: who takes its memory over */
    Pool *pools;
    int npools, cappools;
    bool is_known;   /* all sizes are numbers */
    /* Bytes where they are, pools and what is in none: all, and what each turn of a parallel loop has
     * of its own. */
    CiWatermark watermark[2];
    int64_t *most;       /* per block: at its lines, without pools */
    int64_t most_of_iterations;
    int block;        /* of the group */
    bool is_of_iterations; /* the block */
    CiMap *made;     /* symbols of data and loops -> their line and one */
    int *members;    /* of the group: storages */
    int nmembers;
} Pools;

/* ---- storages ---- */

/* The line that makes the last symbol of it; -1: it is known from the start. */
static int
known_at(const Pools *p, const CiExpr *bytes)
{
    int known = -1;
    for (int k = 0; k < bytes->nsymbols; k++) {
        int line = (int)(intptr_t)ci_map_find(p->made, CI_KEY(bytes->symbols[k])) - 1;
        known = line > known ? line : known;
    }
    return known;
}

static void
add_storage(Pools *p, const CiLine *line, int number)
{
    const CiBuffer *buffer = line->buffer;
    int64_t likely = ci_amount_likely(ci_cost_of_buffer(buffer));
    Storage storage = {.first = buffer,
                       .birth = number,
                       .death = -1,
                       .bytes = line->bytes,
                       .capacity = ci_pool_capacity(p->sym, line->bytes),
                       .likely = likely < MAX_BYTES ? likely : MAX_BYTES,
                       .pool = -1,
                       .is_left = buffer->is_swapped || p->w->pinned[buffer->id]};
    p->storage_of[buffer->id] = p->nstorages;
    CI_PUSH(p->ctx, p->storages, p->nstorages, p->capstorages, storage);
}

static void
find_storages(Pools *p)
{
    const CiWrapper *w = p->w;
    for (int b = 0; b < w->nbuffers; b++)
        p->storage_of[b] = p->next[b] = -1;
    for (int i = 0; i < w->nlines; i++) {
        const CiLine *line = &w->lines[i];
        if (line->kind == CI_LINE_for || line->kind == CI_LINE_define)
            ci_map_put(p->made, CI_KEY(line->symbol), (void *)((intptr_t)i + 1));
        if (line->kind == CI_LINE_alloc)
            add_storage(p, line, i);
        if (line->kind == CI_LINE_reuse) {
            int storage = p->storage_of[line->buffer->id] = p->storage_of[line->other->id];
            p->next[line->other->id] = line->buffer->id;
            p->storages[storage].is_left |= line->buffer->is_swapped;
        }
        if (line->kind == CI_LINE_free)
            p->storages[p->storage_of[line->buffer->id]].death = i;
    }
}

/* ---- what is held ---- */

static int64_t
number_of(const CiExpr *bytes)
{
    int64_t value = 0;
    (void)ci_expr_is_const(bytes, &value);
    return value;
}

static void
count_life(Pools *p, CiLife life, bool is_of_iterations, int64_t bytes)
{
    ci_watermark_add(&p->watermark[0], life.first, life.last, bytes);
    if (is_of_iterations)
        ci_watermark_add(&p->watermark[1], life.first, life.last, bytes);
}

/* Devices have memory of their own, of which each has its own worst. */
static void
find_watermark(Pools *p)
{
    const CiWrapper *w = p->w;
    p->is_known = !w->machine->has_memory;
    for (int k = 0; k < 2; k++)
        p->watermark[k] = ci_watermark_new(p->ctx, w->nlines);
    for (int b = 0; b < w->nbuffers && p->is_known; b++) {
        const CiExpr *bytes = ci_buffer_bytes(p->sym, w->buffers[b]);
        CiLife life = w->ranges->of[b];
        if (life.block < 0)
            continue;
        p->is_known = ci_expr_is_const(bytes, NULL);
        count_life(p, life, ci_live_is_of_iterations(w->ranges, life.block), number_of(bytes));
    }
    p->most = CI_NEW_ARRAY(p->ctx, int64_t, w->ranges->nblocks);
    for (int i = 0; i < w->nlines && p->is_known; i++) {
        int64_t own = ci_watermark_peak(&p->watermark[0], i, i), *most = &p->most[w->ranges->block_of[i]];
        *most = own > *most ? own : *most;
    }
    p->most_of_iterations = ci_watermark_peak(&p->watermark[1], 0, w->nlines - 1);
}

/* All that hold the storage, one after the other. */
static void
count_storage(Pools *p, int storage, int64_t sign)
{
    int64_t bytes = sign * number_of(p->storages[storage].bytes);
    for (int b = p->storages[storage].first->id; b >= 0 && p->is_known; b = p->next[b])
        count_life(p, p->w->ranges->of[b], p->is_of_iterations, bytes);
}

static bool
is_live_at(CiLife life, int line)
{
    return life.block >= 0 && life.first <= line && line <= life.last;
}

/* Bytes at a line without any pool. */
static const CiExpr *
separate_size(const Pools *p, int line, CiSide side)
{
    const CiWrapper *w = p->w;
    const CiExpr *sum = ci_expr_const(p->sym, 0);
    for (int b = 0; b < w->nbuffers; b++)
        if (w->side_of[b] == side && is_live_at(w->ranges->of[b], line))
            sum = ci_expr_add(p->sym, sum, ci_buffer_bytes(p->sym, w->buffers[b]));
    return sum;
}

/* With those there are, and this one. */
static const CiExpr *
bytes_pooled(const Pools *p, int line, const Pool *pool)
{
    const CiWrapper *w = p->w;
    const CiExpr *sum = pool->bytes;
    for (int b = 0; b < w->nbuffers; b++)
        if (w->side_of[b] == pool->side && is_live_at(w->ranges->of[b], line) &&
            (p->storage_of[b] < 0 || p->storages[p->storage_of[b]].pool < 0))
            sum = ci_expr_add(p->sym, sum, ci_buffer_bytes(p->sym, w->buffers[b]));
    for (int k = 0; k < p->npools; k++)
        if (p->pools[k].side == pool->side && p->pools[k].birth <= line && line <= p->pools[k].death)
            sum = ci_expr_add(p->sym, sum, p->pools[k].bytes);
    return sum;
}

static CiLineUse
use_of(const Pools *p, int line)
{
    return ci_line_row(p->w->lines[line].kind)->buffer;
}

/* Where memory has just begun to be held: elsewhere no more is. */
static bool
is_full_again(const Pools *p, int line)
{
    return line > 0 && use_of(p, line - 1) == CI_USE_defines && use_of(p, line) != CI_USE_defines;
}

static bool
is_below(const CiWatermark *watermark, const Pool *pool, int64_t most)
{
    return ci_watermark_peak(watermark, pool->birth, pool->death) + number_of(pool->bytes) <= most;
}

/* Of expressions: as much is held without it on this line, or on the fullest. */
static bool
is_no_more_at(const Pools *p, const Pool *pool, int line)
{
    const CiExpr *bytes = bytes_pooled(p, line, pool);
    return ci_sym_known_le(p->sym, bytes, separate_size(p, line, pool->side)) ||
           ci_sym_known_le(p->sym, bytes, separate_size(p, pool->fullest, pool->side));
}

/* Of numbers: as much is held without it on some line of the program's own, or of the block's, which
 * runs where the pool is. */
static bool
is_no_more(const Pools *p, const Pool *pool)
{
    int64_t most = p->most[p->most[p->block] > p->most[0] ? p->block : 0];
    if (p->is_known)
        return is_below(&p->watermark[0], pool, most) &&
               (!p->is_of_iterations || is_below(&p->watermark[1], pool, p->most_of_iterations));
    bool is_less = true;
    for (int line = pool->birth; line <= pool->death && is_less; line++)
        is_less = !is_full_again(p, line) || is_no_more_at(p, pool, line);
    return is_less;
}

/* ---- one pool ---- */

static bool
are_disjoint(const Pools *p, const Storage *a, const Storage *b)
{
    if (a->death < b->birth || b->death < a->birth)
        return true;
    const CiExpr *a_end = ci_expr_add(p->sym, a->offset, a->capacity),
                 *b_end = ci_expr_add(p->sym, b->offset, b->capacity);
    return ci_sym_known_le(p->sym, a_end, b->offset) || ci_sym_known_le(p->sym, b_end, a->offset);
}

/* True if the storage may be at its offset, which must be known where the storage is born. */
static bool
fits(const Pools *p, const Storage *storage, const Pool *pool, int number)
{
    if (known_at(p, storage->offset) >= storage->birth)
        return false;
    const CiExpr *end = ci_expr_add(p->sym, storage->offset, storage->bytes),
                 *capacity = ci_expr_add(p->sym, storage->offset, storage->capacity);
    if (!ci_sym_known_le(p->sym, end, pool->bytes) && !ci_sym_known_le(p->sym, capacity, pool->bytes))
        return false;
    for (int k = 0; k < p->nmembers; k++) {
        const Storage *other = &p->storages[p->members[k]];
        if (other->pool == number && other != storage && !are_disjoint(p, storage, other))
            return false;
    }
    return true;
}

/* Finds an offset in the pool: at its begin, or after one of the other buffers. */
static bool
find_location(const Pools *p, Storage *storage, const Pool *pool, int number)
{
    storage->offset = ci_expr_const(p->sym, 0);
    if (fits(p, storage, pool, number))
        return true;
    for (int k = 0; k < p->nmembers; k++) {
        const Storage *other = &p->storages[p->members[k]];
        if (other->pool != number)
            continue;
        storage->offset = ci_expr_add(p->sym, other->offset, other->capacity);
        if (fits(p, storage, pool, number))
            return true;
    }
    return false;
}

/* Adds the buffer to the pool if it fits. A gap of unknown size could raise peak memory, so it is
 * not allowed. */
static bool
add_part(Pools *p, int member, Pool *pool, int number, bool as_owner)
{
    Storage *storage = &p->storages[member];
    bool has_gap = !p->is_known && pool->capacity != pool->bytes;
    if (as_owner ? has_gap : !find_location(p, storage, pool, number))
        return false;
    if (as_owner) {
        storage->offset = pool->capacity;
        pool->bytes = ci_expr_add(p->sym, pool->capacity, storage->bytes);
        pool->capacity = ci_expr_add(p->sym, pool->capacity, storage->capacity);
    }
    pool->birth = pool->nparts && pool->birth < storage->birth ? pool->birth : storage->birth;
    pool->death = pool->death > storage->death ? pool->death : storage->death;
    pool->nparts++;
    storage->pool = number;
    count_storage(p, member, -1);
    return true;
}

static void
drop_part(Pools *p, int member)
{
    p->storages[member].pool = -1;
    count_storage(p, member, 1);
}

static bool
is_allowed(const Pools *p, const Pool *pool)
{
    return known_at(p, pool->bytes) < pool->birth && is_no_more(p, pool);
}

static bool
is_free(const Storage *storage)
{
    return storage->pool < 0 && !storage->is_left;
}

/* Of the group's own allocations; -1: none is left. */
static int
fullest_line(const Pools *p)
{
    CiWatermark watermark = ci_watermark_new(p->ctx, p->w->nlines);
    int at = -1;
    int64_t most = -1;
    for (int k = 0; k < p->nmembers; k++) {
        const Storage *s = &p->storages[p->members[k]];
        if (is_free(s))
            ci_watermark_add(&watermark, s->birth, s->death, s->likely);
    }
    for (int k = 0; k < p->nmembers; k++) {
        const Storage *s = &p->storages[p->members[k]];
        int line = s->birth + 1; /* where others are born, too, the last of them counts */
        while (use_of(p, line) == CI_USE_defines)
            line++;
        int64_t own = is_free(s) ? ci_watermark_peak(&watermark, line, line) : -1;
        if (own > most) {
            most = own;
            at = line;
        }
    }
    return at;
}

static bool
is_at(const Storage *storage, int line)
{
    return storage->birth < line && line < storage->death;
}

static Pool
new_pool(const Pools *p, int line, CiSide side)
{
    const CiExpr *nothing = ci_expr_const(p->sym, 0);
    return (Pool){.side = side, .fullest = line, .death = -1, .bytes = nothing, .capacity = nothing};
}

/* Members are in order of size: the fullest line's side by side, then who fits where they are. one_by_one:
 * each only where that is allowed. */
static Pool
fill_pool(Pools *p, int line, CiSide side, bool one_by_one)
{
    Pool pool = new_pool(p, line, side);
    for (int as_owner = 1; as_owner >= 0; as_owner--)
        for (int k = 0; k < p->nmembers; k++) {
            const Storage *s = &p->storages[p->members[k]];
            Pool before = pool;
            if (!is_free(s) || as_owner != is_at(s, line) ||
                !add_part(p, p->members[k], &pool, p->npools, as_owner))
                continue;
            if (one_by_one && !is_allowed(p, &pool)) {
                drop_part(p, p->members[k]);
                pool = before;
            }
        }
    return pool;
}

static void
empty_pool(Pools *p)
{
    for (int k = 0; k < p->nmembers; k++)
        if (p->storages[p->members[k]].pool == p->npools)
            drop_part(p, p->members[k]);
}

/* All that fit, or those that may be there one by one. This was the fullest line of those that are in no
 * pool then. */
static void
make_pool(Pools *p, int line, CiSide side)
{
    Pool pool = fill_pool(p, line, side, false);
    if (!is_allowed(p, &pool)) {
        empty_pool(p);
        pool = fill_pool(p, line, side, true);
    }
    if (pool.nparts > 1) {
        CiLife life = {.block = 0, .first = pool.birth, .last = pool.death};
        count_life(p, life, p->is_of_iterations, number_of(pool.bytes));
        CI_PUSH(p->ctx, p->pools, p->npools, p->cappools, pool);
    } else {
        empty_pool(p);
    }
    for (int k = 0; k < p->nmembers; k++) {
        Storage *s = &p->storages[p->members[k]];
        s->is_left |= s->pool < 0 && is_at(s, line);
    }
}

/* ---- groups ---- */

/* The largest first; of equal ones the one that begins first. */
static void
add_member(Pools *p, int member)
{
    int most = p->is_known ? MAX_STORAGES : MAX_OPEN_STORAGES, at = p->nmembers;
    while (at && p->storages[p->members[at - 1]].likely < p->storages[member].likely)
        at--;
    if (at == most)
        return;
    p->nmembers += p->nmembers < most;
    for (int k = p->nmembers - 1; k > at; k--)
        p->members[k] = p->members[k - 1];
    p->members[at] = member;
}

/* Pools the allocations of one block and side. A loop with an exit in its middle is left out,
 * because it may not reach its fullest line. */
static void
pool_group(Pools *p, int block, CiSide side)
{
    const CiWrapper *w = p->w;
    int open = w->ranges->blocks[block].open, line;
    if (open >= 0 && w->lines[open].kind == CI_LINE_while)
        return;
    p->nmembers = 0;
    p->block = block;
    p->is_of_iterations = ci_live_is_of_iterations(w->ranges, block);
    for (int k = 0; k < p->nstorages; k++) {
        const Storage *s = &p->storages[k];
        if (!s->is_left && w->ranges->block_of[s->birth] == block &&
            ci_wrapper_side(w, s->first) == side)
            add_member(p, k);
    }
    while (p->nmembers > 1 && (line = fullest_line(p)) >= 0)
        make_pool(p, line, side);
}

/* ---- lines ---- */

static CiLine
memory_line(CiLineKind kind, const Pool *pool)
{
    return (CiLine){.kind = kind,
                    .buffer = pool->buffer,
                    .at = pool->side,
                    .bytes = pool->bytes,
                    .match = -1,
                    .open = -1,
                    .loc = {.file = ""},
                    .side = CI_SIDE_device};
}

/* From the first use of one of its parts to the last one. */
static CiLife
life_of_pool(const Pools *p, int number)
{
    CiLife life = {-1, -1, -1};
    for (int k = 0; k < p->nstorages; k++)
        for (int b = p->storages[k].first->id; b >= 0 && p->storages[k].pool == number;
             b = p->next[b]) {
            CiLife own = p->w->ranges->of[b];
            life.first = life.block < 0 || own.first < life.first ? own.first : life.first;
            life.last = own.last > life.last ? own.last : life.last;
            life.block = own.block;
        }
    return life;
}

static void
add_buffers(Pools *p)
{
    CiWrapper *w = p->w;
    for (int k = 0; k < p->npools; k++) {
        ci_live_add_buffer(w->ranges, life_of_pool(p, k));
        p->pools[k].buffer = ci_wrapper_add_pool(w, p->pools[k].bytes, p->pools[k].side);
    }
    for (int k = 0; k < p->nstorages; k++)
        for (int b = p->storages[k].first->id; b >= 0 && p->storages[k].pool >= 0; b = p->next[b])
            w->pool_of[b] = p->pools[p->storages[k].pool].buffer;
}

static CiLine
part_line(const Pools *p, const CiLine *line)
{
    CiLine part = *line;
    const CiBuffer *pool = line->buffer ? p->w->pool_of[line->buffer->id] : NULL;
    if (pool && line->kind == CI_LINE_alloc) {
        part.kind = CI_LINE_part;
        part.other = pool;
        part.value = p->storages[p->storage_of[line->buffer->id]].offset;
    }
    if (pool && line->kind == CI_LINE_free)
        part.kind = CI_LINE_leave;
    return part;
}

static void
write_lines(Pools *p)
{
    CiWrapper *w = p->w;
    int *moved = CI_NEW_ARRAY(p->ctx, int, w->nlines + 1), *at = CI_NEW_ARRAY(p->ctx, int, w->nlines);
    CiLine *lines = NULL;
    int nlines = 0, caplines = 0;
    for (int k = 0; k < p->npools; k++) {
        at[p->pools[k].birth] = k + 1;
        at[p->pools[k].death] = -k - 1;
    }
    for (int i = 0; i < w->nlines; i++) {
        if (at[i] > 0)
            CI_PUSH(p->ctx, lines, nlines, caplines,
                    memory_line(CI_LINE_alloc, &p->pools[at[i] - 1]));
        moved[i] = nlines;
        CI_PUSH(p->ctx, lines, nlines, caplines, part_line(p, &w->lines[i]));
        if (at[i] < 0)
            CI_PUSH(p->ctx, lines, nlines, caplines,
                    memory_line(CI_LINE_free, &p->pools[-at[i] - 1]));
    }
    ci_live_move(w->ranges, moved, nlines);
    w->lines = lines;
    w->nlines = nlines;
    w->caplines = caplines;
}

void
ci_wrapper_pool(CiWrapper *wrapper)
{
    Pools p = {.w = wrapper, .ctx = wrapper->ctx, .sym = wrapper->kernels->loops->sym};
    p.storage_of = CI_NEW_ARRAY(p.ctx, int, wrapper->nbuffers + 1);
    p.next = CI_NEW_ARRAY(p.ctx, int, wrapper->nbuffers + 1);
    p.made = ci_map_new(p.ctx);
    find_storages(&p);
    find_watermark(&p);
    p.members = CI_NEW_ARRAY(p.ctx, int, MAX_STORAGES);
    for (int block = 0; block < wrapper->ranges->nblocks; block++)
        for (CiSide side = 0; side < wrapper->nsides; side++)
            pool_group(&p, block, side);
    add_buffers(&p);
    write_lines(&p);
}
