/* Varying sizes in the guards of one specialization: symbols in a CiSym of their own, the places
 * in a call where their values are found, and the table of expressions computed from them.
 *
 * A symbol is the extent of the axis for which it was declared. If no array has the symbol as an
 * extent, an extent that is linear in it and in known symbols determines it. That extent then is
 * the symbol of the table, and the original symbol an expression of it. */
#include "replay/guards_private.h"

typedef struct Sizes {
    CxGuards *guards;
    const CxTracer *tracer;
    const CiExpr *e;
    int number;
} Sizes;

static void
body_open(CiContext *ctx, void *arg)
{
    Sizes *s = arg;
    CxGuards *g = s->guards;
    const CiShapeEnv *env = s->tracer->env;

    g->sym = ci_sym_new(ctx);
    g->known = CI_NEW_ARRAY(ctx, CxKnown, env->nsources + 1);
    for (int k = 0; k < env->nsources; k++) {
        const CiSymbolSource *source = &env->sources[k];
        if (source->symbol->symbol_kind != CI_SYMBOL_unbacked) /* known in this call only */
            g->known[g->nknown++] = (CxKnown){.symbol = ci_expr_copy(g->sym, source->symbol),
                                              .source = source->input,
                                              .axis = source->axis,
                                              .hint = source->hint};
    }
}

int
cx_guards_open_sizes(CxGuards *g, const CxTracer *tracer)
{
    Sizes s = {.guards = g, .tracer = tracer};

    if (tracer->env->nsources == 0)
        return 0;
    g->ctx = ci_context_open();
    if (g->ctx == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return cx_protect(g->state, g->ctx, body_open, &s);
}

static void
body_take(CiContext *ctx, void *arg)
{
    Sizes *s = arg;
    (void)ctx;
    s->e = ci_expr_copy(s->guards->sym, s->e);
}

int
cx_guards_take(CxGuards *g, const CiExpr **e)
{
    Sizes s = {.guards = g, .e = *e};

    if (g->ctx == NULL) {
        PyErr_SetString(PyExc_ValueError, "a size varies, and no symbol was declared");
        return -1;
    }
    int result = cx_protect(g->state, g->ctx, body_take, &s);
    *e = s.e;
    return result;
}

/* ---- origins of values ---- */

/* Calls visit for each varying size of an array or int, until it returns true. */
static CxExtent *
find_extent(CxGuards *g, bool (*visit)(const CxKnown *, const CxCheck *, int, const CxExtent *),
            const CxKnown *known)
{
    for (int k = 0; k < g->nchecks; k++) {
        const CxCheck *c = &g->checks[k];
        for (int axis = 0; axis < c->rank; axis++)
            if (c->sizes[axis].expr != NULL && visit(known, c, axis, &c->sizes[axis]))
                return &c->sizes[axis];
    }
    return NULL;
}

static bool
is_declared(const CxKnown *known, const CxCheck *c, int axis, const CxExtent *extent)
{
    return extent->expr == known->symbol && c->source == known->source &&
           known->axis == (c->kind == CHECK_size ? -1 : axis);
}

static bool
is_bare(const CxKnown *known, const CxCheck *c, int axis, const CxExtent *extent)
{
    (void)c;
    (void)axis;
    return extent->expr == known->symbol;
}

static bool
is_known(const CxGuards *g, const CiExpr *symbol)
{
    for (int k = 0; k < g->nknown; k++)
        if (g->known[k].symbol == symbol)
            return g->known[k].is_defined || g->known[k].solved != NULL;
    return false;
}

/* e with solved symbols replaced by their solutions. */
static const CiExpr *
resolved(CxGuards *g, const CiExpr *e)
{
    for (int k = 0; k < g->nknown; k++)
        if (g->known[k].solved != NULL && ci_expr_depends_on(e, g->known[k].symbol))
            e = ci_expr_substitute(g->sym, e, 1, &g->known[k].symbol, &g->known[k].solved);
    return e;
}

static void
add_relation(CxGuards *g, CiShapeGuard guard)
{
    CxRelation *r = &g->relations[g->nrelations++];
    r->guard = guard;
    r->left = ci_values_number(&g->builder, resolved(g, guard.left));
    r->right = ci_values_number(&g->builder, resolved(g, guard.right));
}

static bool
is_padding(const CxKnown *known)
{
    return known->axis <= CX_PADDING_AXIS;
}

/* Solves extent = coef*symbol + rest for the symbol, where rest is known. The expression of a
 * padding does not hold for a stride that is less than dense, and the stride of an axis of size
 * 1 has no meaning. */
static bool
solve_from(CiContext *ctx, CxGuards *g, CxKnown *known, CxExtent *extent)
{
    const CiExpr *coef = NULL, *rest = NULL;
    int64_t factor = 0;

    if (extent->is_definition ||
        !ci_expr_split_linear(g->sym, extent->expr, known->symbol, &coef, &rest) ||
        !ci_expr_is_const(coef, &factor) || factor == 0)
        return false;
    for (int k = 0; k < rest->nsymbols; k++)
        if (!is_known(g, rest->symbols[k]))
            return false;
    const char *name = ci_format(ctx, "extent%d", (int)(known - g->known));
    const CiExpr *stand_in = ci_expr_symbol(g->sym, name, CI_SYMBOL_size,
                                            is_padding(known) ? CI_MINUS_INFINITY : 0, CI_INFINITY);
    int number = ci_values_add_symbol(&g->builder, stand_in, false);
    known->solved =
        ci_expr_floordiv(g->sym, ci_expr_sub(g->sym, stand_in, resolved(g, rest)), coef);
    if (is_padding(known))
        known->solved = ci_expr_max(g->sym, known->solved, ci_expr_const(g->sym, 0));
    extent->is_definition = true;
    *(is_padding(known) ? &extent->shown : &extent->number) = number;
    return true;
}

static bool
solve(CiContext *ctx, CxGuards *g, CxKnown *known)
{
    for (int k = 0; k < g->nchecks; k++) {
        CxCheck *c = &g->checks[k];
        CxExtent *extents = is_padding(known) ? c->strides : c->sizes;
        for (int axis = 0; axis < c->rank; axis++)
            if (extents[axis].expr != NULL && solve_from(ctx, g, known, &extents[axis]))
                return true;
    }
    return false;
}

static void
define_symbols(CiContext *ctx, CxGuards *g)
{
    int left = 0, before = -1;

    for (int k = 0; k < g->nknown; k++) {
        CxKnown *known = &g->known[k];
        CxExtent *extent = find_extent(g, is_declared, known);
        if (extent == NULL)
            extent = find_extent(g, is_bare, known);
        left += extent == NULL;
        if (extent == NULL)
            continue;
        known->is_defined = extent->is_definition = true;
        extent->number = ci_values_add_symbol(&g->builder, known->symbol, false);
    }
    for (; left != 0 && left != before;) {
        before = left;
        for (int k = 0; k < g->nknown; k++)
            if (!is_known(g, g->known[k].symbol))
                left -= solve(ctx, g, &g->known[k]);
    }
    for (int k = 0; left != 0 && k < g->nknown; k++)
        if (!is_known(g, g->known[k].symbol))
            ci_fail(ctx, CI_ERR_VALUE, "no argument shows the value of the size %s",
                    g->known[k].symbol->name);
}

/* ---- the table ---- */

static void
number_size(CxGuards *g, CxExtent *extent)
{
    if (extent->expr != NULL && !extent->is_definition)
        extent->number = ci_values_number(&g->builder, resolved(g, extent->expr));
}

static void
number_stride(CxGuards *g, CxExtent *extent)
{
    if (extent->expr != NULL)
        extent->number = ci_values_number(&g->builder, resolved(g, extent->expr));
}

static void
number_ranges(CxGuards *g)
{
    CiLoc nowhere = {.file = ""};
    for (int k = 0; k < g->nknown; k++) {
        const CiExpr *s = g->known[k].symbol;
        bool is_below = g->known[k].solved != NULL || g->known[k].axis < 0;
        int64_t low = is_below && !is_padding(&g->known[k]) ? CI_MINUS_INFINITY : 0;
        if (s->low > low)
            add_relation(
                g, (CiShapeGuard){CI_REL_le, ci_expr_const(g->sym, s->low), s, nowhere, false});
        if (s->high != CI_INFINITY)
            add_relation(
                g, (CiShapeGuard){CI_REL_le, s, ci_expr_const(g->sym, s->high), nowhere, false});
    }
}

/* An extent from which a symbol was solved equals its expression only for multiples of the
 * coefficient, so it is checked. */
static void
number_solved(CxGuards *g)
{
    CiLoc nowhere = {.file = ""};
    for (int k = 0; k < g->nchecks; k++) {
        CxCheck *c = &g->checks[k];
        for (int axis = 0; axis < c->rank; axis++) {
            CxExtent *extent = &c->sizes[axis];
            if (!extent->is_definition || extent->expr->kind == CI_EXPR_symbol)
                continue;
            CxRelation *r = &g->relations[g->nrelations++];
            r->guard = (CiShapeGuard){CI_REL_eq, extent->expr, extent->expr, nowhere, false};
            r->left = extent->number;
            r->right = ci_values_number(&g->builder, resolved(g, extent->expr));
        }
    }
}

/* Rewrites a guard on the magnitude of one symbol as bound <= symbol or symbol <= bound. */
static bool
as_bound(CxGuards *g, CiShapeGuard *guard)
{
    if (guard->relation != CI_REL_le && guard->relation != CI_REL_lt)
        return false;
    const CiExpr *slack = ci_expr_sub(g->sym, guard->right, guard->left);
    int64_t spare = guard->relation == CI_REL_lt; /* room >= spare */
    bool is_symbol = slack->kind == CI_EXPR_symbol,
         is_one = slack->kind == CI_EXPR_linear && slack->nargs == 1;
    const CiExpr *symbol = is_symbol ? slack : is_one ? slack->args[0] : NULL;
    int64_t coef = is_symbol ? 1 : is_one ? slack->coefs[0] : 0, value = is_symbol ? 0 : slack->value;
    if ((coef != 1 && coef != -1) || symbol->kind != CI_EXPR_symbol)
        return false;
    guard->relation = CI_REL_le;
    guard->left = coef == 1 ? ci_expr_const(g->sym, spare - value) : symbol;
    guard->right = coef == 1 ? symbol : ci_expr_const(g->sym, value - spare);
    return true;
}

/* True if an earlier guard implies this one. A weaker earlier guard is replaced. Not for guards
 * that only usually hold. */
static bool
is_implied(CiShapeGuard *guards, int count, const CiShapeGuard *guard, bool is_bound)
{
    for (int k = 0; k < count; k++) {
        CiShapeGuard *old = &guards[k];
        bool is_same = old->left == guard->left && old->right == guard->right;
        bool is_mirror = old->left == guard->right && old->right == guard->left &&
                         (guard->relation == CI_REL_eq || guard->relation == CI_REL_ne);
        if (old->relation == guard->relation && (is_same || is_mirror)) {
            old->is_usual = old->is_usual && guard->is_usual;
            return true;
        }
        if (!is_bound || old->relation != CI_REL_le)
            continue;
        int64_t before = 0, now = 0;
        bool is_low = old->right == guard->right && ci_expr_is_const(old->left, &before) &&
                      ci_expr_is_const(guard->left, &now);
        bool is_high = old->left == guard->left && ci_expr_is_const(old->right, &before) &&
                       ci_expr_is_const(guard->right, &now);
        if (!is_low && !is_high)
            continue;
        bool says_more = is_low ? now > before : now < before;
        if (old->is_usual != guard->is_usual && says_more != old->is_usual && now != before)
            continue;
        if (says_more || (old->is_usual && !guard->is_usual))
            *old = *guard;
        return true;
    }
    return false;
}

static void
number_guards(CiContext *ctx, CxGuards *g, const CiShapeEnv *env)
{
    CiShapeGuard *kept = CI_NEW_ARRAY(ctx, CiShapeGuard, env->nguards + 1);
    int nkept = 0;

    for (int k = 0; k < env->nguards; k++) {
        CiShapeGuard guard = env->guards[k];
        guard.left = ci_expr_copy(g->sym, guard.left);
        guard.right = ci_expr_copy(g->sym, guard.right);
        /* Outlives its owner. */
        guard.loc.file = ci_intern(ctx, guard.loc.file ? guard.loc.file : "");
        bool is_bound = as_bound(g, &guard);
        if (!is_implied(kept, nkept, &guard, is_bound))
            kept[nkept++] = guard;
    }
    for (int usual = 0; usual < 2; usual++)
        for (int k = 0; k < nkept; k++)
            if (kept[k].is_usual == (usual == 1))
                add_relation(g, kept[k]);
}

static void
body_number(CiContext *ctx, void *arg)
{
    Sizes *s = arg;
    CxGuards *g = s->guards;
    const CiShapeEnv *env = s->tracer->env;

    ci_values_begin(&g->builder, ctx, &g->values);
    define_symbols(ctx, g);
    g->relations = CI_NEW_ARRAY(ctx, CxRelation, env->nguards + 3 * g->nknown + 1);
    for (int k = 0; k < g->nchecks; k++) {
        CxCheck *c = &g->checks[k];
        for (int axis = 0; axis < c->rank; axis++) {
            number_size(g, &c->sizes[axis]);
            if (c->kind == CHECK_array)
                number_stride(g, &c->strides[axis]);
        }
    }
    number_ranges(g);
    number_solved(g);
    g->nown = g->nrelations;
    number_guards(ctx, g, env);
    g->ncode = g->values.segments[0].ncode;
}

int
cx_guards_number_sizes(CxGuards *g, const CxTracer *tracer)
{
    Sizes s = {.guards = g, .tracer = tracer};
    return g->ctx == NULL ? 0 : cx_protect(g->state, g->ctx, body_number, &s);
}

static void
body_number_one(CiContext *ctx, void *arg)
{
    Sizes *s = arg;
    CxGuards *g = s->guards;
    (void)ctx;
    s->number = ci_values_number(&g->builder, resolved(g, ci_expr_copy(g->sym, s->e)));
}

int
cx_guards_number(CxGuards *g, const CiExpr *e)
{
    Sizes s = {.guards = g, .e = e};

    if (g->ctx == NULL)
        return cx_raise_status(g->state, CI_ERR_INTERNAL,
                               "a size varies and no symbol was declared");
    return cx_protect(g->state, g->ctx, body_number_one, &s) < 0 ? -1 : s.number;
}

/* ---- dense arrays ---- */

typedef struct Dense {
    CxGuards *guards;
    const CxCheck *check;
    int64_t itemsize;
    bool is_fortran, answer;
} Dense;

static const CiExpr *
expr_of(CiSym *sym, const CxExtent *extent)
{
    return extent->expr != NULL ? extent->expr : ci_expr_const(sym, extent->constant);
}

static void
body_dense(CiContext *ctx, void *arg)
{
    Dense *d = arg;
    const CxCheck *c = d->check;
    CiSym *sym = d->guards->sym;
    const CiExpr *step = ci_expr_const(sym, d->itemsize);

    (void)ctx;
    d->answer = true;
    for (int k = 0; k < c->rank; k++) {
        int axis = d->is_fortran ? k : c->rank - 1 - k;
        const CiExpr *size = expr_of(sym, &c->sizes[axis]);
        if (!ci_expr_equals_const(size, 1) && expr_of(sym, &c->strides[axis]) != step)
            d->answer = false;
        step = ci_expr_mul(sym, step, size);
    }
}

bool
cx_guards_is_dense(CxGuards *g, const CxCheck *c, int64_t itemsize, bool is_fortran)
{
    Dense d = {g, c, itemsize, is_fortran, false};
    int64_t step = itemsize;

    if (c->count < 0)
        return cx_protect(g->state, g->ctx, body_dense, &d) == 0 && d.answer;
    for (int k = 0; k < c->rank; k++) {
        int axis = is_fortran ? k : c->rank - 1 - k;
        if (c->count != 0 && c->sizes[axis].constant > 1 && c->strides[axis].constant != step)
            return false;
        step *= c->sizes[axis].constant;
    }
    return true;
}

static int64_t
hint_of(void *arg, const CiExpr *symbol)
{
    const CxGuards *g = arg;
    for (int k = 0; k < g->nknown; k++)
        if (g->known[k].symbol == symbol)
            return g->known[k].hint;
    return 1;
}

static int64_t
value_seen(CxGuards *g, CiContext *ctx, const CxExtent *extent)
{
    return extent->expr ? ci_expr_evaluate(ctx, extent->expr, hint_of, g) : extent->constant;
}

static void
body_c_order(CiContext *ctx, void *arg)
{
    Dense *d = arg;
    const CxCheck *c = d->check;
    int64_t inner = 0;

    d->answer = true;
    for (int k = c->rank - 1; k >= 0; k--) {
        if (value_seen(d->guards, ctx, &c->sizes[k]) == 1)
            continue;
        int64_t step = value_seen(d->guards, ctx, &c->strides[k]);
        step = step < 0 ? -step : step;
        d->answer &= inner <= step;
        inner = step;
    }
}

bool
cx_guards_is_c_order(CxGuards *g, const CxCheck *c)
{
    Dense d = {g, c, 0, false, false};
    return cx_protect(g->state, g->ctx, body_c_order, &d) == 0 && d.answer;
}
