/* Products on a processor consist of panels and tiles of registers. A panel has a factor, step by step, a
 * few vectors at a time. A tile has sums in registers: each row multiplies those vectors by one number. */
#include "kernels/kernels.h"

typedef struct Maker {
    CiBuild b;
} Maker;

#define BUILDER Maker
#include "codegen/arithmetic.def"

/* ---- sizes ---- */

int
ci_register_rows(const CiMachine *machine)
{
    int rows = (machine->vector_registers - 4) / 2;
    return rows > CI_PRODUCT_ROWS ? CI_PRODUCT_ROWS : rows;
}

/* A step takes as long as its rows' additions, and one more for the vectors that it loads. */
int
ci_register_rows_of(const CiExpr *extent, int most)
{
    int64_t count, best = most;
    if (!ci_expr_is_const(extent, &count))
        return most;
    if (count <= most)
        return count > 0 ? (int)count : 1;
    for (int64_t rows = most - 1; rows >= most - 2 && rows > 0; rows--)
        if ((count + rows - 1) / rows * (rows + 1) < (count + best - 1) / best * (best + 1))
            best = rows;
    return (int)best;
}

/* ---- factors ---- */

int
ci_factor_at(CiBuild *b, const CiHole *hole, const CiFactorAt *at, int lanes)
{
    const CiExpr *from[] = {at->var, at->step_var}, *to[] = {at->at, at->step};
    CiAt instance = {2, from, to, lanes > 1 ? at->var : NULL, lanes, NULL, 1};
    return ci_build_at(b, &hole->body, &instance)[0];
}

static int
width(const CiPanel *p)
{
    return p->lanes * p->vectors;
}

static int
value_at(CiBuild *b, const CiPanel *p, const CiExpr *at, const CiExpr *step)
{
    const CiFactorAt where = {p->side_var, at, p->step_var, step};
    return ci_factor_at(b, p->hole, &where, 1);
}

/* One step: those that there are, and the last one again. */
static void
fill_step(Maker *m, const CiPanel *p, const CiExpr *base, const CiExpr *first, const CiExpr *here, const CiExpr *step)
{
    CiBuild *b = &m->b;
    const CiExpr *rest = ci_expr_sub(b->sym, number(m, width(p)), here);
    base = plus(m, base, times(m, step, width(p)));
    CiStmt *along = ci_build_for(b, "c", here, CI_RUN_vector);
    CiStmts *outside = ci_build_enter(b, &along->body);
    int value = value_at(b, p, plus(m, first, along->vars[0]), step);
    ci_build_store(b, p->memory, plus(m, base, along->vars[0]), value);
    ci_build_leave(b, outside);
    if (rest->high <= 0)
        return;
    const CiExpr *last = plus(m, first, ci_expr_sub(b->sym, here, number(m, 1)));
    CiStmt *behind = ci_build_for(b, "c", rest, CI_RUN_serial);
    ci_build_enter(b, &behind->body);
    value = value_at(b, p, last, step);
    ci_build_store(b, p->memory, plus(m, plus(m, base, here), behind->vars[0]), value);
    ci_build_leave(b, outside);
}

/* As many steps as a vector has lanes, read along them and turned in registers. */
static void
fill_turned(Maker *m, const CiPanel *p, const CiExpr *base, const CiExpr *const *sides, const CiExpr *step)
{
    CiBuild *b = &m->b;
    int values[CI_TRANSPOSE_LANES];
    const CiExpr *from[] = {p->side_var, p->step_var};
    for (int v = 0; v < p->vectors; v++) {
        for (int k = 0; k < p->lanes; k++) {
            const CiExpr *to[] = {sides[v * p->lanes + k], step},
                         *index = ci_expr_substitute(b->sym, p->hole->load->at.index, 2, from, to);
            values[k] = ci_build_load(b, p->hole->load->at.memory, index, p->lanes);
        }
        ci_build_transpose(b, ci_type_of(p->memory->dtype, p->lanes), values);
        for (int k = 0; k < p->lanes; k++)
            ci_build_store(b, p->memory,
                           plus(m, plus(m, base, times(m, step, width(p))),
                                number(m, width(p) * k + p->lanes * v)),
                           values[k]);
    }
}

static void
fill_across(Maker *m, const CiPanel *p, const CiExpr *base, const CiExpr *first, const CiExpr *here)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    const CiExpr *sides[2 * CI_TRANSPOSE_LANES], *lanes = number(m, p->lanes),
                 *most = ci_expr_sub(b->sym, here, number(m, 1)),
                 *squares = ci_expr_floordiv(b->sym, p->length, lanes),
                 *done = times(m, squares, p->lanes);
    for (int k = 0; k < width(p); k++)
        sides[k] = ci_build_named(b, plus(m, first, ci_expr_min(b->sym, number(m, k), most)));
    CiStmt *loop = ci_build_for(b, "k", squares, CI_RUN_serial);
    ci_build_enter(b, &loop->body);
    fill_turned(m, p, base, sides, times(m, loop->vars[0], p->lanes));
    ci_build_leave(b, outside);
    CiStmt *rest = ci_build_for(b, "k", ci_expr_sub(b->sym, p->length, done), CI_RUN_serial);
    ci_build_enter(b, &rest->body);
    fill_step(m, p, base, first, here, plus(m, done, rest->vars[0]));
    ci_build_leave(b, outside);
}

void
ci_panel_fill(CiBuild *b, const CiPanel *p, const CiExpr *base, const CiExpr *first, const CiExpr *here)
{
    Maker m = {.b = *b};
    bool is_across = ci_hole_has_stride_one(b, p->hole, p->step_var) && !ci_hole_has_stride_one(b, p->hole, p->side_var) &&
                     p->lanes > 1 && p->hole->load->at.memory->dtype == p->memory->dtype;
    if (is_across) {
        fill_across(&m, p, base, first, here);
        return;
    }
    CiStmt *loop = ci_build_for(b, "k", p->length, CI_RUN_serial);
    ci_build_enter(&m.b, &loop->body);
    fill_step(&m, p, base, first, here, loop->vars[0]);
}

/* ---- sums ---- */

static int
splat(CiBuild *b, CiType type, int value)
{
    return type.lanes == 1 ? value : ci_build_let(b, type, CI_OP_splat, 1, &value);
}

static void
add_step(CiBuild *b, CiRegisterTile *t, const CiExpr *step)
{
    const CiExpr *zero = ci_expr_const(b->sym, 0);
    CiType type = ci_type_of(t->dtype, t->lanes);
    int right[2];
    for (int v = 0; v < t->vectors; v++)
        right[v] = t->right(t->maker, v, step);
    for (int r = 0; r < t->rows; r++) {
        int left = splat(b, type, t->left(t->maker, r, step));
        for (int v = 0; v < t->vectors; v++) {
            CiMemory *sum = t->sums[r * t->vectors + v];
            const int args[] = {left, right[v], ci_build_load(b, sum, zero, t->lanes)};
            ci_build_store(b, sum, zero, ci_build_let(b, type, CI_OP_fma, 3, args));
        }
    }
}

void
ci_register_tile_add_up(CiBuild *b, CiRegisterTile *t, const CiExpr *length)
{
    const CiExpr *zero = ci_expr_const(b->sym, 0);
    CiType type = ci_type_of(t->dtype, t->lanes);
    int nothing = splat(b, type, ci_build_const(b, ci_type_of(t->dtype, 1), (CiConst){0}));
    for (int k = 0; k < t->rows * t->vectors; k++) {
        t->sums[k] = ci_build_alloc(b, ci_build_name(b, "sum"), t->dtype, t->lanes, CI_SPACE_register,
                                    ci_expr_const(b->sym, 1));
        ci_build_store(b, t->sums[k], zero, nothing);
    }
    CiStmt *loop = ci_build_for(b, "k", length, CI_RUN_serial);
    CiStmts *outside = ci_build_enter(b, &loop->body);
    add_step(b, t, loop->vars[0]);
    ci_build_leave(b, outside);
}

int
ci_register_tile_sum(CiBuild *b, const CiRegisterTile *t, int row, int vector)
{
    return ci_build_load(b, t->sums[row * t->vectors + vector], ci_expr_const(b->sym, 0), t->lanes);
}
