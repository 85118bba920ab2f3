/* Bodies of loops, taken out of them to be instantiated elsewhere. */
#include "kernels/kernels.h"

/* ---- values ---- */

static void mark_index(const CiStmts *body, bool *needed, const CiExpr *index);

static void
mark(const CiStmts *body, bool *needed, int value)
{
    const CiStmt *stmt = body->first;
    while (stmt && stmt->value != value)
        stmt = stmt->next;
    if (!stmt || needed[value])
        return;
    needed[value] = true;
    for (int a = 0; a < stmt->nargs; a++)
        mark(body, needed, stmt->args[a]);
    if (stmt->op == CI_OP_load)
        mark_index(body, needed, stmt->at.index);
    if (stmt->op == CI_OP_index)
        mark_index(body, needed, stmt->expr);
}

/* Values whose symbols it names. */
static void
mark_index(const CiStmts *body, bool *needed, const CiExpr *index)
{
    for (const CiStmt *stmt = body->first; stmt; stmt = stmt->next)
        if (stmt->op == CI_OP_bind && ci_expr_depends_on(index, stmt->expr))
            mark(body, needed, stmt->value);
}

CiHole
ci_hole_of_value(CiBuild *b, const CiStmts *body, int value)
{
    CiHole hole = {0};
    bool *needed = CI_NEW_ARRAY(b->ctx, bool, b->proc->nvalues + 1);
    int count = 0;
    mark(body, needed, value);
    CiStmts *outside = ci_build_enter(b, &hole.body);
    for (const CiStmt *stmt = body->first; stmt; stmt = stmt->next) {
        if (stmt->value < 0 || !needed[stmt->value])
            continue;
        CiStmt *copy = ci_build_copy(b, stmt);
        count++;
        hole.load = stmt->op == CI_OP_load ? copy : NULL;
    }
    ci_build_yield(b, &value, 1);
    ci_build_leave(b, outside);
    hole.load = count == 1 ? hole.load : NULL;
    return hole;
}

bool
ci_hole_has_stride_one(const CiBuild *b, const CiHole *hole, const CiExpr *var)
{
    return hole->load && ci_expr_has_stride(b->sym, hole->load->at.index, var, 1);
}

/* ---- products ---- */

static void
find_points(CiBuild *b, CiProductLoops *loops)
{
    CiStmt *loop = b->proc->body.first;
    for (; loops->npoints < b->proc->head.naxes; loop = loop->body.first) {
        CI_REQUIRE(b->ctx, loop && loop->kind == CI_STMT_for && loops->npoints < CI_MAX_FOLD_AXES);
        loops->points[loops->npoints++] = loop;
    }
    CI_REQUIRE(b->ctx, loops->npoints > 1);
}

typedef struct Varying {
    const CiExpr *symbol;
    bool depends;
} Varying;

static void
look_for(void *arg, const CiExpr **e)
{
    Varying *v = arg;
    v->depends |= ci_expr_depends_on(*e, v->symbol);
}

bool
ci_hole_varies(const CiHole *hole, const CiExpr *symbol)
{
    Varying v = {symbol, false};
    for (const CiStmt *stmt = hole->body.first; stmt; stmt = stmt->next)
        ci_stmt_each_expr(stmt, look_for, &v);
    return v.depends;
}

static CiStmt *
find_fold(CiBuild *b, const CiStmts *body)
{
    CiStmt *stmt = body->first;
    while (stmt && stmt->kind != CI_STMT_fold)
        stmt = stmt->next;
    CI_REQUIRE(b->ctx, stmt && stmt->nops == 1 && stmt->nvars == 1);
    return stmt;
}

int
ci_find_narrow(const CiBuild *b, const CiStmts *body, int value)
{
    for (const CiStmt *stmt = body->first; stmt; stmt = stmt->next)
        if (stmt->value == value && stmt->op == CI_OP_cast && stmt->type.dtype == CI_DTYPE_f32)
            return ci_dtype_size(b->proc->types[stmt->args[0]].dtype) == 2 &&
                           ci_dtype_class(b->proc->types[stmt->args[0]].dtype) == CI_CLASS_float
                       ? stmt->args[0]
                       : -1;
    return -1;
}

static void
take_narrow_factors(CiBuild *b, CiProductLoops *loops, const CiStmts *body, int left, int right)
{
    const CiType *types = b->proc->types;
    int first = ci_find_narrow(b, body, left), second = ci_find_narrow(b, body, right);
    loops->narrow = CI_DTYPE_f32;
    if (first < 0 || second < 0 || types[first].dtype != types[second].dtype)
        return;
    loops->narrow = types[first].dtype;
    loops->narrow_left = ci_hole_of_value(b, body, first);
    loops->narrow_right = ci_hole_of_value(b, body, second);
}

/* The right factor varies along the last axis, which is that of columns; rows are the last one along
 * which the left one varies alone. */
static void
take_factors(CiBuild *b, CiProductLoops *loops, const CiStmt *fold)
{
    const CiStmt *times = NULL;
    for (const CiStmt *stmt = fold->body.first; stmt; stmt = stmt->next)
        if (stmt->value >= 0 && stmt->value == fold->body.last->args[0])
            times = stmt;
    CI_REQUIRE(b->ctx, times && times->op == CI_OP_multiply);
    CiHole first = ci_hole_of_value(b, &fold->body, times->args[0]),
           second = ci_hole_of_value(b, &fold->body, times->args[1]);
    loops->row_at = loops->column_at = loops->npoints - 1;
    bool is_turned = ci_hole_varies(&first, loops->points[loops->column_at]->vars[0]);
    loops->left = is_turned ? second : first;
    loops->right = is_turned ? first : second;
    take_narrow_factors(b, loops, &fold->body, times->args[is_turned], times->args[!is_turned]);
    const CiExpr *row;
    do {
        CI_REQUIRE(b->ctx, loops->row_at-- > 0);
        row = loops->points[loops->row_at]->vars[0];
    } while (!ci_hole_varies(&loops->left, row) || ci_hole_varies(&loops->right, row));
}

CiProductLoops
ci_product_split(CiBuild *b)
{
    CiProductLoops loops = {0};
    find_points(b, &loops);
    loops.column = loops.points[loops.npoints - 1];
    CiStmt *fold = find_fold(b, &loops.column->body);
    take_factors(b, &loops, fold);
    loops.row = loops.points[loops.row_at];
    loops.row_var = loops.row->vars[0];
    loops.column_var = loops.column->vars[0];
    loops.row_extent = loops.row->extents[0];
    loops.column_extent = loops.column->extents[0];
    loops.step = fold->vars[0];
    loops.length = fold->extents[0];
    loops.sum = fold->into[0];
    CiStmts *outside = ci_build_enter(b, &loops.behind);
    for (CiStmt *next, *stmt = loops.column->body.first; stmt; stmt = next) {
        next = stmt->next;
        if (stmt != fold && !(stmt->kind == CI_STMT_alloc && stmt->memory == loops.sum))
            ci_build_move(b, stmt);
    }
    ci_build_leave(b, outside);
    loops.column->body = (CiStmts){0};
    loops.inside = &loops.column->body;
    return loops;
}

void
ci_read_from(CiStmts *block, const CiMemory *old, CiMemory *memory, const CiExpr *index)
{
    for (CiStmt *stmt = block->first; stmt; stmt = stmt->next)
        if (stmt->op == CI_OP_load && (stmt->at.memory == old || stmt->at.memory == memory)) {
            stmt->at.memory = memory;
            stmt->at.index = index;
        }
}

void
ci_product_put_after(CiBuild *b, CiProductLoops *loops, CiMemory *sums, const CiExpr *position,
                     const CiSymbols *symbols)
{
    ci_read_from(&loops->behind, loops->sum, sums, position);
    loops->sum = sums;
    ci_build_with(b, &loops->behind, symbols);
}
