/* Interning, symbols, and the ring operations. Invariant: a node is reached by one pointer only,
 * its args are canonical and older than it, and its bounds and symbols are filled in before
 * anyone sees it. */
#include "sym/expr.h"

#include <string.h>

#include "base/hash.h"
#include "sym/expr_private.h"

/* Beyond this many terms a product of sums is kept as a product. */
#define EXPAND_LIMIT 64

typedef struct Node {
    CiExpr expr; /* first: a node is its expression */
    struct Node *next;
} Node;

CiSym *
ci_sym_new(CiContext *ctx)
{
    CiSym *sym = CI_NEW(ctx, CiSym);
    sym->ctx = ctx;
    sym->nodes = ci_map_new(ctx);
    sym->symbols = ci_map_new(ctx);
    sym->quotients = ci_map_new(ctx);
    sym->remainders = ci_map_new(ctx);
    sym->minima = ci_map_new(ctx);
    sym->maxima = ci_map_new(ctx);
    sym->recombined = ci_map_new(ctx);
    sym->points = ci_map_new(ctx);
    sym->unproved = ci_map_new(ctx);
    return sym;
}

bool
ci_sym_attempt(CiSym *sym, void (*body)(CiContext *ctx, void *arg), void *arg)
{
    int depth = sym->proof_depth;
    CiStatus status = ci_protect(sym->ctx, body, arg);
    sym->proof_depth = depth;
    if (status != CI_OK && status != CI_ERR_VALUE && status != CI_ERR_UNSUPPORTED)
        ci_fail(sym->ctx, status, "%s", ci_context_message(sym->ctx));
    return status == CI_OK;
}

int64_t
ci_checked_add(CiContext *ctx, int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        ci_fail(ctx, CI_ERR_UNSUPPORTED, "a size or an index does not fit in 64 bits: %lld + %lld",
                (long long)a, (long long)b);
    return sum;
}

int64_t
ci_checked_mul(CiContext *ctx, int64_t a, int64_t b)
{
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        ci_fail(ctx, CI_ERR_UNSUPPORTED, "a size or an index does not fit in 64 bits: %lld * %lld",
                (long long)a, (long long)b);
    return product;
}

int64_t
ci_checked_floordiv(CiContext *ctx, int64_t a, int64_t b)
{
    if (b == -1)
        return ci_checked_mul(ctx, a, -1);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t
ci_floor_mod(int64_t a, int64_t b)
{
    if (b == -1)
        return 0; /* INT64_MIN % -1 traps */
    int64_t rest = a % b;
    return rest && (rest < 0) != (b < 0) ? rest + b : rest;
}

static bool
same(const CiExpr *a, const CiExpr *b)
{
    if (a->kind != b->kind || a->nargs != b->nargs || a->value != b->value || a->name != b->name ||
        a->limit != b->limit)
        return false;
    for (int k = 0; k < a->nargs; k++)
        if (a->args[k] != b->args[k] || (a->coefs && a->coefs[k] != b->coefs[k]))
            return false;
    return true;
}

static uint64_t
hash_of(const CiExpr *e)
{
    uint64_t hash = ci_hash_mix((uint64_t)e->kind, (uint64_t)e->value);
    if (e->kind == CI_EXPR_symbol)
        hash =
            ci_hash_mix(ci_hash_bytes(hash, e->name, strlen(e->name)), e->limit ? e->limit->id : 0);
    for (int k = 0; k < e->nargs; k++) {
        hash = ci_hash_mix(hash, e->args[k]->id);
        if (e->coefs)
            hash = ci_hash_mix(hash, (uint64_t)e->coefs[k]);
    }
    return hash;
}

/* The union of the args' symbols, merged in order of id; shared with an arg that has them all. */
static void
collect_symbols(CiSym *sym, CiExpr *e)
{
    for (int k = 0; k < e->nargs; k++) {
        const CiExpr *const *theirs = e->args[k]->symbols, *const *mine = e->symbols;
        int n = e->nsymbols, m = e->args[k]->nsymbols, count = 0;
        const CiExpr **all = CI_NEW_ARRAY(sym->ctx, const CiExpr *, n + m);
        for (int i = 0, j = 0; i < n || j < m;) {
            bool take_mine = j == m || (i < n && mine[i]->id <= theirs[j]->id);
            bool both = i < n && j < m && mine[i] == theirs[j];
            all[count++] = take_mine ? mine[i] : theirs[j];
            i += take_mine;
            j += !take_mine || both;
        }
        bool grew = count > n;
        e->symbols = !grew ? mine : count == m ? theirs : all;
        e->nsymbols = count;
    }
}

/* How the node prints. An extremum in C names each operand several times. */
static void
measure(CiExpr *e)
{
    bool divides = e->kind == CI_EXPR_floordiv || e->kind == CI_EXPR_mod;
    e->length = e->nargs == 0;
    for (int k = 0; k < e->nargs; k++) {
        const CiExpr *arg = e->args[k];
        e->length += ci_expr_is_long(arg) ? 1 : arg->length;
        e->has_long |= arg->has_long;
        e->calls_floordiv |= arg->calls_floordiv;
        e->calls_mod |= arg->calls_mod;
        e->may_divide_by_zero |= arg->may_divide_by_zero;
    }
    if (e->kind == CI_EXPR_min || e->kind == CI_EXPR_max)
        e->length *= e->nargs;
    e->has_long |= ci_expr_is_long(e);
    if (divides) {
        bool is_plain = e->args[0]->low >= 0 && e->args[1]->low >= 0;
        e->calls_floordiv |= e->kind == CI_EXPR_floordiv && !is_plain;
        e->calls_mod |= e->kind == CI_EXPR_mod && !is_plain;
        e->may_divide_by_zero |= e->args[1]->low <= 0 && e->args[1]->high >= 0;
    }
}

/* The one node equal to shape, whose arrays may be on the stack. */
static const CiExpr *
intern(CiSym *sym, const CiExpr *shape)
{
    uint64_t hash = hash_of(shape);
    Node *first = ci_map_find(sym->nodes, hash);
    sym->work++;
    for (Node *node = first; node; node = node->next)
        if (same(&node->expr, shape))
            return &node->expr;
    CI_REQUIRE(sym->ctx, sym->next_id < UINT32_MAX);
    Node *node = CI_NEW(sym->ctx, Node);
    node->expr = *shape;
    node->next = first;
    CiExpr *e = &node->expr;
    if (shape->nargs) {
        size_t size = (size_t)shape->nargs;
        e->args = ci_grow(sym->ctx, shape->args, size * sizeof *e->args, size * sizeof *e->args);
        if (shape->coefs)
            e->coefs =
                ci_grow(sym->ctx, shape->coefs, size * sizeof *e->coefs, size * sizeof *e->coefs);
    }
    if (e->kind == CI_EXPR_symbol) {
        const CiExpr **self = CI_NEW(sym->ctx, const CiExpr *);
        *self = e;
        e->symbols = self;
        e->nsymbols = 1;
    } else {
        CiBounds range = ci_bounds_compute(e);
        e->low = range.low;
        e->high = range.high;
        collect_symbols(sym, e);
    }
    measure(e);
    e->id = sym->next_id;
    ci_map_put(sym->nodes, hash, node);
    sym->next_id++;
    return e;
}

const CiExpr *
ci_expr_node(CiSym *sym, CiExprKind kind, int nargs, const CiExpr *const *args)
{
    CiExpr shape = {.kind = kind, .nargs = nargs, .args = args};
    const CiExpr *e = intern(sym, &shape);
    bool folds = kind != CI_EXPR_product && ci_bounds_is_point(ci_bounds_of(e));
    return folds ? ci_expr_const(sym, e->low) : e;
}

/* Most expressions are constants, and most of those are asked for again and again. */
const CiExpr *
ci_expr_const(CiSym *sym, int64_t value)
{
    const CiExpr **recent = &sym->recent[((uint64_t)value * 0x9E3779B97F4A7C15u) >> 58];
    if (*recent && (*recent)->value == value)
        return *recent;
    CiExpr shape = {.kind = CI_EXPR_const, .value = value};
    *recent = intern(sym, &shape);
    return *recent;
}

const CiExpr *
ci_expr_symbol(CiSym *sym, const char *name, CiSymbolKind kind, int64_t low, int64_t high)
{
    name = ci_intern(sym->ctx, name);
    const CiExpr *known = ci_map_find(sym->symbols, CI_KEY(name));
    if (known) {
        if (known->symbol_kind != kind || known->low != low || known->high != high || known->limit)
            ci_fail(sym->ctx, CI_ERR_VALUE, "symbol %s exists with another kind or range", name);
        return known;
    }
    if (low > high)
        ci_fail(sym->ctx, CI_ERR_VALUE, "the range of symbol %s is empty", name);
    CiExpr shape = {
        .kind = CI_EXPR_symbol, .name = name, .symbol_kind = kind, .low = low, .high = high};
    const CiExpr *e = intern(sym, &shape);
    ci_map_put(sym->symbols, CI_KEY(name), (void *)e);
    return e;
}

const CiExpr *
ci_expr_limit(const CiExpr *extent)
{
    int64_t other = 1;
    if (extent->kind != CI_EXPR_max || extent->nargs != 2)
        return extent;
    for (int k = 0; k < 2; k++)
        if (ci_expr_is_const(extent->args[k], &other) && other <= 0)
            return extent->args[1 - k];
    return extent;
}

const CiExpr *
ci_expr_extent(CiSym *sym, const CiExpr *limit)
{
    return ci_expr_max(sym, limit, ci_expr_const(sym, 0));
}

const CiExpr *
ci_expr_index(CiSym *sym, const char *name, const CiExpr *extent)
{
    extent = ci_expr_limit(extent);
    name = ci_intern(sym->ctx, name);
    const CiExpr *known = ci_map_find(sym->symbols, CI_KEY(name));
    if (known && known->symbol_kind != CI_SYMBOL_index)
        ci_fail(sym->ctx, CI_ERR_VALUE, "symbol %s exists and is no loop variable", name);
    int64_t high = extent->high == CI_INFINITY ? CI_INFINITY
                   : extent->high < 1          ? 0
                                               : extent->high - 1;
    CiExpr shape = {.kind = CI_EXPR_symbol,
                    .name = name,
                    .symbol_kind = CI_SYMBOL_index,
                    .high = high,
                    .limit = extent};
    const CiExpr *e = intern(sym, &shape);
    ci_map_put(sym->symbols, CI_KEY(name), (void *)e);
    return e;
}

const CiExpr *
ci_expr_unbacked(CiSym *sym, const char *name, int64_t low, const CiExpr *limit)
{
    int64_t high = !limit || limit->high == CI_INFINITY ? CI_INFINITY
                   : limit->high <= low                 ? low
                                                        : limit->high - 1;
    name = ci_intern(sym->ctx, name);
    const CiExpr *known = ci_map_find(sym->symbols, CI_KEY(name));
    if (known) {
        if (known->symbol_kind != CI_SYMBOL_unbacked || known->low != low || known->limit != limit)
            ci_fail(sym->ctx, CI_ERR_VALUE, "symbol %s exists with another kind or range", name);
        return known;
    }
    CiExpr shape = {.kind = CI_EXPR_symbol,
                    .name = name,
                    .symbol_kind = CI_SYMBOL_unbacked,
                    .low = low,
                    .high = high,
                    .limit = limit};
    const CiExpr *e = intern(sym, &shape);
    ci_map_put(sym->symbols, CI_KEY(name), (void *)e);
    return e;
}

void
ci_sym_set_alias(CiSym *sym, const char *name, const CiExpr *e)
{
    name = ci_intern(sym->ctx, name);
    if (ci_map_find(sym->symbols, CI_KEY(name)))
        ci_fail(sym->ctx, CI_ERR_VALUE, "symbol %s exists already", name);
    ci_map_put(sym->symbols, CI_KEY(name), (void *)e);
}

const CiExpr *
ci_sym_find_symbol(CiSym *sym, const char *name)
{
    return ci_map_find(sym->symbols, CI_KEY(ci_intern(sym->ctx, name)));
}

int
ci_expr_nterms(const CiExpr *e)
{
    return e->kind == CI_EXPR_const ? 0 : e->kind == CI_EXPR_linear ? e->nargs : 1;
}

const CiExpr *
ci_expr_term(const CiExpr *e, int k, int64_t *coef)
{
    *coef = e->kind == CI_EXPR_linear ? e->coefs[k] : 1;
    return e->kind == CI_EXPR_linear ? e->args[k] : e;
}

int64_t
ci_expr_value(const CiExpr *e)
{
    return e->kind == CI_EXPR_const || e->kind == CI_EXPR_linear ? e->value : 0;
}

int
ci_expr_nfactors(const CiExpr *atom)
{
    return atom->kind == CI_EXPR_product ? atom->nargs : 1;
}

const CiExpr *
ci_expr_factor(const CiExpr *atom, int k)
{
    return atom->kind == CI_EXPR_product ? atom->args[k] : atom;
}

static bool
has_mod(const CiExpr *e)
{
    for (int k = 0; k < e->nargs; k++)
        for (int j = 0; j < ci_expr_nfactors(e->args[k]); j++)
            if (ci_expr_factor(e->args[k], j)->kind == CI_EXPR_mod)
                return true;
    return false;
}

/* atoms in order of id without repetition, coefs not zero. */
static const CiExpr *
linear(CiSym *sym, int64_t value, int count, const CiExpr *const *atoms, const int64_t *coefs)
{
    if (count == 0)
        return ci_expr_const(sym, value);
    if (count == 1 && coefs[0] == 1 && value == 0)
        return atoms[0];
    CiExpr shape = {
        .kind = CI_EXPR_linear, .nargs = count, .value = value, .args = atoms, .coefs = coefs};
    const CiExpr *e = intern(sym, &shape);
    if (count == 1 || !has_mod(e))
        return e;
    const CiExpr *simpler = ci_map_find(sym->recombined, e->id);
    if (!simpler) {
        simpler = ci_expr_recombine(sym, e);
        simpler = simpler ? simpler : e;
        ci_map_put(sym->recombined, e->id, (void *)simpler);
    }
    return simpler;
}

/* Storage for the terms of one linear: on the stack while there are few. */
typedef struct Terms {
    const CiExpr **atoms;
    int64_t *coefs;
    const CiExpr *few_atoms[16];
    int64_t few_coefs[16];
} Terms;

static void
terms_open(CiSym *sym, Terms *terms, int count)
{
    bool few = count <= 16;
    terms->atoms = few ? terms->few_atoms : CI_NEW_ARRAY(sym->ctx, const CiExpr *, count);
    terms->coefs = few ? terms->few_coefs : CI_NEW_ARRAY(sym->ctx, int64_t, count);
}

const CiExpr *
ci_expr_add(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    int n = ci_expr_nterms(a), m = ci_expr_nterms(b), count = 0;
    int64_t value = ci_checked_add(sym->ctx, ci_expr_value(a), ci_expr_value(b));
    if (n + m == 0)
        return ci_expr_const(sym, value);
    Terms terms;
    terms_open(sym, &terms, n + m);
    for (int i = 0, j = 0; i < n || j < m;) {
        int64_t ca = 0, cb = 0;
        const CiExpr *x = i < n ? ci_expr_term(a, i, &ca) : NULL;
        const CiExpr *y = j < m ? ci_expr_term(b, j, &cb) : NULL;
        bool from_a = x && (!y || x->id <= y->id), from_b = y && (!x || y->id <= x->id);
        int64_t coef = ci_checked_add(sym->ctx, from_a ? ca : 0, from_b ? cb : 0);
        terms.atoms[count] = from_a ? x : y;
        terms.coefs[count] = coef;
        count += coef != 0;
        i += from_a;
        j += from_b;
    }
    return linear(sym, value, count, terms.atoms, terms.coefs);
}

const CiExpr *
ci_expr_scale(CiSym *sym, const CiExpr *e, int64_t by)
{
    if (by == 1)
        return e;
    if (e->kind == CI_EXPR_const)
        return ci_expr_const(sym, ci_checked_mul(sym->ctx, e->value, by));
    int n = by ? ci_expr_nterms(e) : 0;
    Terms terms;
    terms_open(sym, &terms, n);
    for (int k = 0; k < n; k++) {
        int64_t coef;
        terms.atoms[k] = ci_expr_term(e, k, &coef);
        terms.coefs[k] = ci_checked_mul(sym->ctx, coef, by);
    }
    return linear(sym, ci_checked_mul(sym->ctx, ci_expr_value(e), by), n, terms.atoms, terms.coefs);
}

const CiExpr *
ci_expr_neg(CiSym *sym, const CiExpr *a)
{
    return ci_expr_scale(sym, a, -1);
}

const CiExpr *
ci_expr_sub(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    return ci_expr_add(sym, a, ci_expr_scale(sym, b, -1));
}

/* The product of two things that are neither const nor a sum to be multiplied out. */
static const CiExpr *
multiply_atoms(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    int n = ci_expr_nfactors(a), m = ci_expr_nfactors(b), count = 0;
    const CiExpr *few[16], **factors = few;
    if (n + m > 16)
        factors = CI_NEW_ARRAY(sym->ctx, const CiExpr *, n + m);
    for (int i = 0, j = 0; i < n || j < m;) {
        bool from_a = j == m || (i < n && ci_expr_factor(a, i)->id <= ci_expr_factor(b, j)->id);
        factors[count++] = from_a ? ci_expr_factor(a, i) : ci_expr_factor(b, j);
        i += from_a;
        j += !from_a;
    }
    return ci_expr_node(sym, CI_EXPR_product, count, factors);
}

const CiExpr *
ci_expr_mul(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    if (a->kind == CI_EXPR_const)
        return ci_expr_scale(sym, b, a->value);
    if (b->kind == CI_EXPR_const)
        return ci_expr_scale(sym, a, b->value);
    int n = ci_expr_nterms(a), m = ci_expr_nterms(b);
    if (n * m > EXPAND_LIMIT)
        return multiply_atoms(sym, a, b);
    const CiExpr *sum = ci_expr_scale(sym, b, ci_expr_value(a));
    for (int i = 0; i < n; i++) {
        int64_t ca, cb;
        const CiExpr *x = ci_expr_term(a, i, &ca);
        sum = ci_expr_add(sym, sum,
                          ci_expr_scale(sym, x, ci_checked_mul(sym->ctx, ca, ci_expr_value(b))));
        for (int j = 0; j < m; j++) {
            const CiExpr *y = ci_expr_term(b, j, &cb);
            int64_t coef = ci_checked_mul(sym->ctx, ca, cb);
            sum = ci_expr_add(sym, sum, ci_expr_scale(sym, multiply_atoms(sym, x, y), coef));
        }
    }
    return sum;
}

const CiExpr *
ci_expr_product_of(CiSym *sym, const CiExpr *const *exprs, int count)
{
    const CiExpr *product = ci_expr_const(sym, 1);
    for (int k = 0; k < count; k++)
        product = ci_expr_mul(sym, product, exprs[k]);
    return product;
}

bool
ci_expr_is_const(const CiExpr *e, int64_t *value)
{
    if (e->kind == CI_EXPR_const && value)
        *value = e->value;
    return e->kind == CI_EXPR_const;
}

bool
ci_expr_equals_const(const CiExpr *e, int64_t value)
{
    return e->kind == CI_EXPR_const && e->value == value;
}

bool
ci_expr_depends_on(const CiExpr *e, const CiExpr *symbol)
{
    int low = 0, high = e->nsymbols;
    while (low < high) {
        int middle = (low + high) / 2;
        if (e->symbols[middle] == symbol)
            return true;
        if (e->symbols[middle]->id < symbol->id)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool
ci_expr_shares_symbol(const CiExpr *a, const CiExpr *b)
{
    for (int k = 0; k < a->nsymbols; k++)
        if (ci_expr_depends_on(b, a->symbols[k]))
            return true;
    return false;
}

void
ci_expr_visit_symbols(const CiExpr *e, void (*visit)(void *arg, const CiExpr *symbol), void *arg)
{
    for (int k = 0; k < e->nsymbols; k++)
        visit(arg, e->symbols[k]);
}
