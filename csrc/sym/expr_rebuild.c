/* Rebuilds expressions: splitting, substitution, copies; and evaluates them. A rebuilt node goes through the
 * building functions, so it is canonical again. */
#include "sym/expr_private.h"

bool
ci_expr_split_linear(CiSym *sym, const CiExpr *e, const CiExpr *symbol, const CiExpr **coef,
                     const CiExpr **rest)
{
    *coef = ci_expr_const(sym, 0);
    *rest = ci_expr_const(sym, ci_expr_value(e));
    for (int k = 0; k < ci_expr_nterms(e); k++) {
        int64_t c;
        const CiExpr *atom = ci_expr_term(e, k, &c), *others = ci_expr_const(sym, c);
        bool taken = false;
        for (int j = 0; j < ci_expr_nfactors(atom); j++) {
            const CiExpr *f = ci_expr_factor(atom, j);
            if (f == symbol && !taken)
                taken = true;
            else if (ci_expr_depends_on(f, symbol))
                return false;
            else
                others = ci_expr_mul(sym, others, f);
        }
        const CiExpr **sum = taken ? coef : rest;
        *sum = ci_expr_add(sym, *sum, others);
    }
    return true;
}

bool
ci_expr_has_stride(CiSym *sym, const CiExpr *e, const CiExpr *symbol, int64_t stride)
{
    const CiExpr *coef, *rest;
    return ci_expr_split_linear(sym, e, symbol, &coef, &rest) && ci_expr_equals_const(coef, stride);
}

/* Rewrites e bottom-up; leaf gives the answer for a node, or NULL to look at its args. */
typedef struct Rebuild {
    CiSym *into;
    CiMap *done; /* node -> its answer */
    const CiExpr *(*leaf)(struct Rebuild *rebuild, const CiExpr *e);
    int count;
    const CiExpr *const *from, *const *to;
} Rebuild;

static const CiExpr *rebuild_expr(Rebuild *rebuild, const CiExpr *e);

static const CiExpr *
rebuild_args(Rebuild *rebuild, const CiExpr *e)
{
    CiSym *sym = rebuild->into;
    const CiExpr *out = e->kind == CI_EXPR_linear ? ci_expr_const(sym, e->value)
                                                  : rebuild_expr(rebuild, e->args[0]);
    for (int k = e->kind == CI_EXPR_linear ? 0 : 1; k < e->nargs; k++) {
        const CiExpr *arg = rebuild_expr(rebuild, e->args[k]);
        switch (e->kind) {
        case CI_EXPR_linear:
            out = ci_expr_add(sym, out, ci_expr_scale(sym, arg, e->coefs[k]));
            break;
        case CI_EXPR_product:
            out = ci_expr_mul(sym, out, arg);
            break;
        case CI_EXPR_floordiv:
            out = ci_expr_floordiv(sym, out, arg);
            break;
        case CI_EXPR_mod:
            out = ci_expr_mod(sym, out, arg);
            break;
        case CI_EXPR_min:
            out = ci_expr_min(sym, out, arg);
            break;
        case CI_EXPR_max:
            out = ci_expr_max(sym, out, arg);
            break;
        case CI_EXPR_const:
        case CI_EXPR_symbol:
            break;
        }
    }
    return out;
}

static const CiExpr *
rebuild_expr(Rebuild *rebuild, const CiExpr *e)
{
    const CiExpr *out = rebuild->leaf(rebuild, e);
    if (out)
        return out;
    out = ci_map_find(rebuild->done, CI_KEY(e));
    if (!out) {
        out = rebuild_args(rebuild, e);
        ci_map_put(rebuild->done, CI_KEY(e), (void *)out);
    }
    return out;
}

static const CiExpr *
replaced_leaf(Rebuild *rebuild, const CiExpr *e)
{
    bool touched = false;
    for (int k = 0; k < rebuild->count; k++) {
        if (rebuild->from[k] == e)
            return rebuild->to[k];
        touched |=
            rebuild->from[k]->kind != CI_EXPR_symbol || ci_expr_depends_on(e, rebuild->from[k]);
    }
    return !touched || e->nargs == 0 ? e : NULL;
}

const CiExpr *
ci_expr_substitute(CiSym *sym, const CiExpr *e, int count, const CiExpr *const *from,
                   const CiExpr *const *to)
{
    Rebuild rebuild = {.into = sym, .leaf = replaced_leaf, .count = count, .from = from, .to = to};
    const CiExpr *out = replaced_leaf(&rebuild, e);
    if (out)
        return out;
    rebuild.done = ci_map_new(sym->ctx);
    return rebuild_expr(&rebuild, e);
}

static const CiExpr *
copied_leaf(Rebuild *rebuild, const CiExpr *e)
{
    CiSym *into = rebuild->into;
    if (e->kind == CI_EXPR_const)
        return ci_expr_const(into, e->value);
    if (e->kind != CI_EXPR_symbol)
        return NULL;
    if (e->symbol_kind == CI_SYMBOL_index)
        return ci_expr_index(into, e->name, ci_expr_copy(into, e->limit));
    if (e->limit)
        return ci_expr_unbacked(into, e->name, e->low, ci_expr_copy(into, e->limit));
    return ci_expr_symbol(into, e->name, e->symbol_kind, e->low, e->high);
}

const CiExpr *
ci_expr_copy(CiSym *into, const CiExpr *e)
{
    if (e->kind == CI_EXPR_const)
        return ci_expr_const(into, e->value);
    Rebuild rebuild = {.into = into, .leaf = copied_leaf};
    const CiExpr *leaf = copied_leaf(&rebuild, e);
    if (leaf)
        return leaf;
    rebuild.done = ci_map_new(into->ctx);
    return rebuild_expr(&rebuild, e);
}

/* Values found last, by number of expression: what is shared is evaluated once, or nearly so. A
 * tree without this takes exponential time where each step uses the one before twice. */
enum { MAX_KNOWN = 64 };

typedef struct Evaluating {
    CiContext *ctx;
    int64_t (*value_of)(void *arg, const CiExpr *symbol);
    void *arg;
    const CiExpr *known[MAX_KNOWN];
    int64_t values[MAX_KNOWN];
} Evaluating;

static int64_t evaluate(Evaluating *v, const CiExpr *e);

static int64_t
evaluate_operation(Evaluating *v, const CiExpr *e)
{
    CiContext *ctx = v->ctx;
    bool sum = e->kind == CI_EXPR_linear;
    int64_t out = sum ? e->value : evaluate(v, e->args[0]);
    for (int k = sum ? 0 : 1; k < e->nargs; k++) {
        int64_t x = evaluate(v, e->args[k]);
        if ((e->kind == CI_EXPR_floordiv || e->kind == CI_EXPR_mod) && x == 0)
            ci_fail(ctx, CI_ERR_ZERO_DIVISION, "a size or an index is divided by zero");
        if (sum)
            out = ci_checked_add(ctx, out, ci_checked_mul(ctx, e->coefs[k], x));
        else if (e->kind == CI_EXPR_product)
            out = ci_checked_mul(ctx, out, x);
        else if (e->kind == CI_EXPR_floordiv)
            out = ci_checked_floordiv(ctx, out, x);
        else if (e->kind == CI_EXPR_mod)
            out = ci_floor_mod(out, x);
        else if ((x < out) == (e->kind == CI_EXPR_min))
            out = x;
    }
    return out;
}

static int64_t
evaluate(Evaluating *v, const CiExpr *e)
{
    if (e->kind == CI_EXPR_const)
        return e->value;
    if (e->kind == CI_EXPR_symbol)
        return v->value_of(v->arg, e);
    unsigned place = e->id % MAX_KNOWN;
    if (v->known[place] == e)
        return v->values[place];
    int64_t value = evaluate_operation(v, e);
    v->known[place] = e;
    v->values[place] = value;
    return value;
}

int64_t
ci_expr_evaluate(CiContext *ctx, const CiExpr *e,
                 int64_t (*value_of)(void *arg, const CiExpr *symbol), void *arg)
{
    Evaluating v = {.ctx = ctx, .value_of = value_of, .arg = arg};
    return evaluate(&v, e);
}
