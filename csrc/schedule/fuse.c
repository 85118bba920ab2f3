/* Vertical fusion: which nests become one kernel.
 *
 * Initially each nest is a group. Groups that access the same data are candidates, found from the
 * users of buffers. The pair that saves most memory traffic is fused first, if a kernel can contain
 * both and one of the two can be moved past everything between them. This repeats until no pair
 * gains. Nothing moves across a region. Every refusal between two groups that share data is
 * recorded with its reason.
 *
 * Near-linear in nests: a use has few candidates, a pair of groups is planned once, and no group
 * moves far. */
#include <string.h>

#include "base/map.h"
#include "schedule/group.h"

/* Number of earlier users of a buffer that are candidates, besides the nest that stored it. */
#define MAX_LATEST_USERS 4
#define CI_MAX_REFUSALS 200

typedef struct Pair {
    int64_t score;
    int first, second; /* indices of fusions, in their initial order */
    bool is_retried;
} Pair;

typedef struct Users {
    int latest[MAX_LATEST_USERS]; /* the latest users, latest first; -1: none */
    int writer;
} Users;

typedef struct Fuser {
    CiScheduler *s;
    int *joined;           /* by fusion: the one it was fused into, or itself (union-find) */
    int *next, *previous;  /* by fusion: linked list of groups in order; -1: none */
    int *version;          /* by fusion: a new number whenever its nests change */
    int nversions;
    CiGroup *groups;       /* by fusion */
    Pair *heap, *refused;  /* candidates, best first; pairs that no kernel can contain */
    int count, capacity, nrefused, caprefused;
    CiMap *seen;           /* pairs of versions that have been tried */
} Fuser;

static void
refuse(CiScheduler *s, const CiFusion *a, const CiFusion *b, const char *why)
{
    CiKernels *kernels = s->kernels;
    if (kernels->nrefusals == CI_MAX_REFUSALS)
        return;
    const char *text =
        ci_format(s->ctx, "%s and %s are not fused: %s", a->nests[a->nnests - 1].nest->target->name,
                  b->nests[b->nnests - 1].nest->target->name, why);
    for (int k = 0; k < kernels->nrefusals; k++)
        if (!strcmp(kernels->refusals[k], text))
            return;
    CI_PUSH(s->ctx, kernels->refusals, kernels->nrefusals, kernels->caprefusals, text);
}

/* ---- candidates ---- */

static bool
is_better(const Pair *a, const Pair *b)
{
    if (a->score != b->score)
        return a->score > b->score;
    int here = a->second - a->first, there = b->second - b->first;
    return here != there ? here < there : a->first < b->first;
}

static void
push(Fuser *f, Pair pair)
{
    int at = f->count;
    CI_PUSH(f->s->ctx, f->heap, f->count, f->capacity, pair);
    for (int up = (at - 1) / 2; at > 0 && is_better(&pair, &f->heap[up]); up = (at - 1) / 2) {
        f->heap[at] = f->heap[up];
        at = up;
    }
    f->heap[at] = pair;
}

static Pair
pop(Fuser *f)
{
    const Pair best = f->heap[0], last = f->heap[--f->count];
    int at = 0;
    for (int down = 1; down < f->count; down = 2 * at + 1) {
        if (down + 1 < f->count && is_better(&f->heap[down + 1], &f->heap[down]))
            down++;
        if (!is_better(&f->heap[down], &last))
            break;
        f->heap[at] = f->heap[down];
        at = down;
    }
    f->heap[at] = last;
    return best;
}

static int
group_of(Fuser *f, int fusion)
{
    while (f->joined[fusion] != fusion)
        fusion = f->joined[fusion] = f->joined[f->joined[fusion]];
    return fusion;
}

static int64_t
score_of(const Fuser *f, int a, int b)
{
    return ci_group_score(f->s, &f->groups[a], &f->groups[b], f->next[a] != b);
}

static void
add_candidate(Fuser *f, int first, int second)
{
    if (first >= 0 && first != second)
        push(f, (Pair){score_of(f, first, second), first, second, false});
}

static void
add_user(Fuser *f, CiMap *users, const CiGroupUse *use, int fusion)
{
    Users *of = ci_map_find(users, CI_KEY(use->buffer));
    if (!of) {
        of = CI_NEW(f->s->ctx, Users);
        ci_map_put(users, CI_KEY(use->buffer), of);
        for (int k = 0; k < MAX_LATEST_USERS; k++)
            of->latest[k] = -1;
        of->writer = -1;
    }
    bool is_writer_latest = false;
    for (int k = 0; k < MAX_LATEST_USERS; k++) {
        add_candidate(f, of->latest[k], fusion);
        is_writer_latest = is_writer_latest || of->latest[k] == of->writer;
    }
    if (!is_writer_latest)
        add_candidate(f, of->writer, fusion);
    for (int k = MAX_LATEST_USERS - 1; k > 0; k--)
        of->latest[k] = of->latest[k - 1];
    of->latest[0] = fusion;
    of->writer = use->nwriters ? fusion : of->writer;
}

static void
find_candidates(Fuser *f)
{
    CiMap *users = ci_map_new(f->s->ctx);
    for (int d = 0; d < f->s->nfusions; d++) {
        const CiFusion *fusion = &f->s->fusions[d];
        if (fusion->region)
            users = ci_map_new(f->s->ctx);
        if (!fusion->nnests)
            continue;
        f->groups[d] = ci_group_of_nest(f->s, &fusion->nests[0]);
        for (int k = 0; k < f->groups[d].nuses; k++)
            add_user(f, users, &f->groups[d].uses[k], d);
    }
}

/* ---- moving ---- */

static bool
is_before(const Fuser *f, int a, int b)
{
    int farthest = (int)CI_CHOOSE(f->s, fused_distance);
    while (a >= 0 && a != b && farthest-- > 0)
        a = f->next[a];
    return a == b;
}

static bool
may_pass(CiScheduler *s, const CiFusion *over, const CiFusion *moved)
{
    if (over->region)
        return false;
    for (int k = 0; k < moved->nnests; k++)
        if (ci_why_not_before(s, over, &moved->nests[k]))
            return false;
    return true;
}

/* The later one moves up to the earlier one. */
static bool
may_move_up(const Fuser *f, int a, int b)
{
    for (int over = f->next[a]; over != b; over = f->next[over])
        if (!may_pass(f->s, &f->s->fusions[over], &f->s->fusions[b]))
            return false;
    return true;
}

/* The earlier one moves down to the later one. What fails finds arguments as they were: nothing
 * but kernels are passed. */
static bool
may_move_down(const Fuser *f, int a, int b)
{
    for (int over = f->next[a]; over != b; over = f->next[over]) {
        const CiFusion *fusion = &f->s->fusions[over];
        if (!fusion->nnests || !may_pass(f->s, &f->s->fusions[a], fusion))
            return false;
    }
    return true;
}

/* ---- joining ---- */

/* Nests of both in the order of the program. */
static CiFusion
join_fusions(CiScheduler *s, const CiFusion *a, const CiFusion *b)
{
    CiFusion both = {0};
    for (int i = 0, j = 0; i < a->nnests || j < b->nnests;) {
        bool is_first = j == b->nnests ||
                        (i < a->nnests && a->nests[i].position < b->nests[j].position);
        CI_PUSH(s->ctx, both.nests, both.nnests, both.capnests,
                is_first ? a->nests[i++] : b->nests[j++]);
    }
    return both;
}

static const char *
why_not_joined(CiScheduler *s, const CiFusion *a, const CiFusion *b, CiFusion *both)
{
    const char *why = NULL;
    if (a->nnests + b->nnests > s->machine->max_fused_nests)
        return "the kernel is full";
    if (a->nests[0].nest->device != b->nests[0].nest->device)
        return "they run on different devices";
    if ((why = ci_why_too_large(s, a, b)) != NULL)
        return why;
    *both = join_fusions(s, a, b);
    return ci_plan_joined(s, a, both, &why) ? NULL : why;
}

/* Merges b into a. If a moves down, it takes the position of b. */
static void
join(Fuser *f, int a, int b, const CiFusion *both, bool is_up)
{
    int gone = is_up ? b : a, left = is_up ? a : b;
    int before = f->previous[gone], after = f->next[gone];
    if (before >= 0)
        f->next[before] = after;
    if (after >= 0)
        f->previous[after] = before;
    f->groups[left] = ci_group_join(f->s, &f->groups[a], &f->groups[b]);
    f->s->fusions[left] = *both;
    f->joined[gone] = left;
    f->version[left] = ++f->nversions;
}

static bool
was_tried(Fuser *f, int a, int b)
{
    uint64_t key = (uint64_t)f->version[a] << 32 | (uint64_t)f->version[b];
    bool is_known = ci_map_find(f->seen, key) != NULL;
    ci_map_put(f->seen, key, f);
    return is_known;
}

static void
try_pair(Fuser *f, const Pair *pair, int a, int b)
{
    CiScheduler *s = f->s;
    CiFusion both;
    if (!ci_may_join(s))
        return;
    bool is_up = may_move_up(f, a, b);
    if (!is_up && !may_move_down(f, a, b))
        return;
    const char *why = why_not_joined(s, &s->fusions[a], &s->fusions[b], &both);
    if (!why) {
        CiAmount bytes =
            ci_amount_plus(ci_group_bytes(&f->groups[a]), ci_group_bytes(&f->groups[b]));
        if (ci_note_join(s, &s->fusions[a], &s->fusions[b], pair->score, ci_amount_likely(bytes)))
            join(f, a, b, &both, is_up);
        else
            refuse(s, &s->fusions[a], &s->fusions[b], "the option apart names their join");
        return;
    }
    if (!pair->is_retried)
        refuse(s, &s->fusions[a], &s->fusions[b], why);
    CI_PUSH(s->ctx, f->refused, f->nrefused, f->caprefused, *pair);
}

/* The best pair that there is; what has changed since it was counted is counted again. */
static void
join_best(Fuser *f)
{
    Pair pair = pop(f);
    int a = group_of(f, pair.first), b = group_of(f, pair.second);
    if (a == b)
        return;
    bool is_first = is_before(f, a, b);
    if (!is_first && !is_before(f, b, a))
        return;
    if (!is_first) {
        int other = a;
        a = b;
        b = other;
    }
    int64_t score = score_of(f, a, b);
    if (score < pair.score && score > 0) {
        pair.score = score;
        push(f, pair);
    } else if (score > 0 && !was_tried(f, a, b)) {
        try_pair(f, &pair, a, b);
    }
}

/* A pair that was refused is tried once more when one of its groups has become another. */
static bool
retry(Fuser *f)
{
    int count = f->nrefused, before = f->count;
    f->nrefused = 0;
    for (int k = 0; k < count; k++) {
        Pair pair = f->refused[k];
        int a = group_of(f, pair.first), b = group_of(f, pair.second);
        bool has_changed = a != pair.first || b != pair.second || f->version[a] >= f->s->nfusions ||
                           f->version[b] >= f->s->nfusions;
        if (pair.is_retried || a == b || !has_changed)
            continue;
        pair.is_retried = true;
        push(f, pair);
    }
    return f->count > before;
}

static void
keep_groups(Fuser *f)
{
    CiScheduler *s = f->s;
    CiFusion *kept = CI_NEW_ARRAY(s->ctx, CiFusion, s->nfusions + 1);
    int count = 0, first = group_of(f, 0);
    while (f->previous[first] >= 0)
        first = f->previous[first];
    for (int d = first; d >= 0; d = f->next[d])
        kept[count++] = s->fusions[d];
    s->fusions = kept;
    s->nfusions = s->capfusions = count;
}

void
ci_fuse(CiScheduler *s)
{
    int n = s->nfusions;
    Fuser f = {.s = s, .seen = ci_map_new(s->ctx), .nversions = n};
    if (n < 2)
        return;
    f.joined = CI_NEW_ARRAY(s->ctx, int, n);
    f.next = CI_NEW_ARRAY(s->ctx, int, n);
    f.previous = CI_NEW_ARRAY(s->ctx, int, n);
    f.version = CI_NEW_ARRAY(s->ctx, int, n);
    f.groups = CI_NEW_ARRAY(s->ctx, CiGroup, n);
    for (int d = 0; d < n; d++) {
        f.joined[d] = f.version[d] = d;
        f.previous[d] = d - 1;
        f.next[d] = d + 1 < n ? d + 1 : -1;
        for (int k = 0; k < s->fusions[d].nnests; k++)
            s->fusions[d].nests[k].position = d;
    }
    find_candidates(&f);
    do
        while (f.count)
            join_best(&f);
    while (retry(&f));
    keep_groups(&f);
}
