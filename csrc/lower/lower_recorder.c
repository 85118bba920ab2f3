/* The recorder of one body: scalar ops numbered by value, so that equal ones are one. */
#include "lower/lowering.h"

#include <string.h>

#include "base/hash.h"

typedef struct CiValueEntry {
    int position;
    struct CiValueEntry *next;
} CiValueEntry;

CiRecorder
ci_recorder_new(CiLowering *low)
{
    CiRecorder rec = {.low = low, .values = ci_map_new(low->ctx), .memo = ci_map_new(low->ctx)};
    return rec;
}

static uint64_t
hash_scalar(const CiScalar *op)
{
    uint64_t hash = ci_hash_mix((uint64_t)op->op, (uint64_t)op->dtype);
    for (int k = 0; k < op->nargs; k++)
        hash = ci_hash_mix(hash, (uint64_t)op->args[k]);
    hash = ci_hash_mix(hash, CI_KEY(op->buffer));
    hash = ci_hash_mix(hash, CI_KEY(op->index));
    return ci_hash_bytes(hash, &op->value, sizeof op->value);
}

static bool
is_same_scalar(const CiScalar *a, const CiScalar *b)
{
    return a->op == b->op && a->dtype == b->dtype && a->nargs == b->nargs &&
           a->buffer == b->buffer && a->index == b->index &&
           memcmp(a->args, b->args, sizeof a->args) == 0 &&
           memcmp(&a->value, &b->value, sizeof a->value) == 0;
}

int
ci_recorder_add(CiRecorder *rec, CiScalar op)
{
    CiContext *ctx = rec->low->ctx;
    uint64_t hash = hash_scalar(&op);
    CiValueEntry *first = ci_map_find(rec->values, hash);
    for (CiValueEntry *e = first; e; e = e->next) {
        if (is_same_scalar(&rec->body.ops[e->position], &op))
            return e->position;
    }
    CiValueEntry *entry = CI_NEW(ctx, CiValueEntry);
    entry->position = ci_body_add(ctx, &rec->body, op);
    entry->next = first;
    ci_map_put(rec->values, hash, entry);
    return entry->position;
}

void
ci_recorder_note(CiRecorder *rec, CiLoc loc)
{
    if (loc.line == 0 || rec->nlocs == (int)(sizeof rec->locs / sizeof rec->locs[0]))
        return;
    for (int k = 0; k < rec->nlocs; k++) {
        if (rec->locs[k].line == loc.line && strcmp(rec->locs[k].file, loc.file) == 0)
            return;
    }
    rec->locs[rec->nlocs++] = loc;
}

const CiExpr *
ci_lowering_element(CiLowering *low, CiStorage storage, int rank, const CiExpr *const *index)
{
    const CiExpr *element = ci_expr_const(low->sym, 0);
    for (int k = 0; k < rank; k++)
        element = ci_expr_add(low->sym, element, ci_expr_mul(low->sym, storage.strides[k], index[k]));
    return element;
}
