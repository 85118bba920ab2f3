/* Data-dependent sizes and indices. A value is defined as a symbol; the program checks that it
 * is in range. A relation that cannot be proved is checked at run time.
 *
 * The same value used with the same size is one symbol, so that equal slices have equal extents.
 * This is remembered as long as the symbol's node may be used. */
#include "value/index.h"

struct CxDefined {
    CxStorage *value, *symbol; /* owned references */
    const CiExpr *size;
    bool is_bound;
};

typedef struct Define {
    CxBuilding building;
    CxTracer *tracer;
    CxTraced *value;
    const CiExpr *size, *limit, *symbol;
    bool is_bound;
    int number;
} Define;

static void
body_symbol(CiContext *ctx, void *arg)
{
    Define *d = arg;
    CiSym *sym = d->tracer->sym;

    if (d->size != NULL)
        d->limit = d->is_bound ? ci_expr_add(sym, d->size, d->tracer->one) : d->size;
    d->symbol = ci_expr_unbacked(sym, ci_format(ctx, "u%d", d->number), 0, d->limit);
}

static CiNode *
apply(Define *d, CiOp op, int nargs, CiNode *const *args)
{
    CiNode *node = ci_graph_pointwise(d->building.graph, op, nargs, args, d->building.loc);
    return ci_node_set_kind(node, CI_KIND_python);
}

/* where(v < 0, v + n, v), and clamped for a slice bound. */
static void
body_define(CiContext *ctx, void *arg)
{
    Define *d = arg;
    CiGraph *g = d->building.graph;
    CiLoc loc = d->building.loc;
    CiConst none = {0, 0.0, 0.0};
    CiNode *v = ci_graph_cast(g, cx_node(d->value), CI_DTYPE_i64, loc);
    const CiExpr *symbol = cx_graph_expr(d->tracer, d->symbol);

    (void)ctx;
    if (d->size == NULL) {
        d->building.result = ci_graph_define(g, v, symbol, 0, NULL, loc);
        return;
    }
    CiNode *zero = ci_graph_const(g, CI_DTYPE_i64, CI_KIND_python, none, loc);
    CiNode *n = ci_graph_expr(g, cx_graph_expr(d->tracer, d->size), loc);
    CiNode *is_negative = apply(d, CI_OP_less, 2, (CiNode *[]){v, zero});
    CiNode *moved = apply(d, CI_OP_add, 2, (CiNode *[]){v, n});
    CiNode *at = apply(d, CI_OP_where, 3, (CiNode *[]){is_negative, moved, v});
    if (d->is_bound) {
        at = apply(d, CI_OP_maximum, 2, (CiNode *[]){at, zero});
        at = apply(d, CI_OP_minimum, 2, (CiNode *[]){at, n});
    }
    d->building.result = ci_graph_define(g, at, symbol, 0, symbol->limit, loc);
}

static const CiExpr *
find_defined(const CxTracer *t, const CxStorage *value, const CiExpr *size, bool is_bound)
{
    for (int k = t->ndefined - 1; k >= 0; k--) {
        const CxDefined *d = &t->defined[k];
        if (d->value == value && d->size == size && d->is_bound == is_bound &&
            cx_storage_is_current(d->symbol))
            return d->symbol->expr;
    }
    return NULL;
}

int
cx_defined_add(CxTracer *t, CxStorage *value, CxStorage *symbol, const CiExpr *size, bool is_bound)
{
    CxDefined *grown = PyMem_Realloc(t->defined, sizeof *grown * ((size_t)t->ndefined + 1));
    if (grown == NULL) {
        cx_storage_release(symbol);
        PyErr_NoMemory();
        return -1;
    }
    t->defined = grown;
    value->refs++;
    t->defined[t->ndefined++] = (CxDefined){value, symbol, size, is_bound};
    return 0;
}

void
cx_defined_release(CxTracer *t)
{
    for (int k = 0; k < t->ndefined; k++) {
        cx_storage_release(t->defined[k].value);
        cx_storage_release(t->defined[k].symbol);
    }
    PyMem_Free(t->defined);
    t->defined = NULL;
    t->ndefined = 0;
}

const CiExpr *
cx_defined_symbol(const CxTracer *t, int number)
{
    return t->defined[number].symbol->expr;
}

CxStorage *
cx_defined_storage(const CxTracer *t, int number)
{
    return t->defined[number].symbol;
}

bool
cx_view_depends_on(const CxView *v, const CiExpr *symbol)
{
    bool depends = ci_expr_depends_on(v->offset, symbol);
    for (int k = 0; k < v->rank; k++)
        depends |=
            ci_expr_depends_on(v->sizes[k], symbol) || ci_expr_depends_on(v->strides[k], symbol);
    return depends;
}

/* size NULL: the value is itself a size. */
static const CiExpr *
define(CxTraced *value, const CiExpr *size, bool is_bound)
{
    CxTracer *t = value->tracer;
    Define job = {.tracer = t, .value = value, .size = size, .is_bound = is_bound};
    const CiExpr *known = find_defined(t, value->storage, size, is_bound);

    if (known != NULL)
        return known;
    job.number = t->nsymbols++;
    if (cx_traced_prepare(value) < 0 || cx_protect(t->state, t->sym_ctx, body_symbol, &job) < 0 ||
        cx_build_custom(t, body_define, &job.building) == NULL)
        return NULL;
    CxStorage *s = cx_storage_from_node(t, job.building.result, CI_KIND_python);
    if (s == NULL)
        return NULL;
    s->expr = job.symbol;
    return cx_defined_add(t, value->storage, s, job.size, is_bound) < 0 ? NULL : job.symbol;
}

const CiExpr *
cx_index_define(CxTraced *value, const CiExpr *size, bool is_bound)
{
    size = cx_size_resolve(value->tracer, size);
    return size == NULL ? NULL : define(value, size, is_bound);
}

/* The symbol of a value that is a size, a non-negative int. */
const CiExpr *
cx_size_define(CxTraced *value)
{
    return define(value, NULL, false);
}

/* True if the object is a data-dependent int that can be used as an index. */
bool
cx_is_data_int(PyObject *o)
{
    if (!cx_is_traced(o) || !cx_may_check(((CxTraced *)o)->tracer))
        return false;
    const CxTraced *x = (CxTraced *)o;
    const CxStorage *s = x->storage;
    if (x->view != NULL || s->expr != NULL)
        return false;
    CiClass kind = ci_dtype_class(s->dtype);
    if (s->kind == CI_KIND_python)
        return s->dtype == CI_DTYPE_i64 && s->value == NULL;
    bool is_int = kind == CI_CLASS_int || (kind == CI_CLASS_uint && s->dtype != CI_DTYPE_u64);
    return s->kind == CI_KIND_scalar && is_int && s->source != CX_SOURCE_constant;
}
