/* Loops and branches. */
#include "device/stencil/translate.h"

/* Jumps to the label unless all tests hold. */
void
ci_stencil_test(Translator *t, const CiStmt *stmt, int label)
{
    static const char *const names[] = {[CI_COMPARE_less] = "skip_unless_less",
                                        [CI_COMPARE_less_equal] = "skip_unless_less_equal",
                                        [CI_COMPARE_equal] = "skip_unless_equal",
                                        [CI_COMPARE_is] = "skip_unless_is",
                                        [CI_COMPARE_is_not] = "skip_unless_is_not"};
    for (int k = 0; k < stmt->ntests; k++) {
        const CiCondition *condition = &stmt->tests[k];
        int slot = 0;
        if (condition->compare == CI_COMPARE_is || condition->compare == CI_COMPARE_is_not) {
            ci_stencil_to_acc(t, condition->value);
        } else {
            slot = ci_stencil_operand(t, condition->left);
            ci_stencil_make_x(t, condition->right);
        }
        ci_stencil_put_jump(t, names[condition->compare], slot, 0, label);
    }
}

void
ci_stencil_branch(Translator *t, const CiStmt *stmt)
{
    int otherwise = ci_stencil_label(t->code), end = ci_stencil_label(t->code);
    ci_stencil_test(t, stmt, otherwise);
    t->block(t, &stmt->body);
    if (stmt->other.first)
        ci_stencil_put_jump(t, "jump", 0, 0, end);
    ci_stencil_here(t, otherwise);
    t->block(t, &stmt->other);
    ci_stencil_here(t, end);
}

/* The uses of an innermost loop's variable. */
typedef struct Survey {
    Translator *t;
    const CiExpr *var;
    int64_t step; /* 0: not known yet */
    bool has_loop, is_full;
    int others; /* expressions that need the variable */
    CiMap *own; /* symbols that are bound, and memory that is taken, in the loop */
} Survey;

static void
note_access(Survey *s, const CiAccess *at)
{
    Translator *t = s->t;
    const CiExpr *coef, *rest;
    int64_t step;
    if (ci_stencil_is_register(at->memory))
        return;
    for (int k = 0; k < t->nfixed; k++)
        if (t->fixed[k].memory == at->memory && t->fixed[k].index == at->index)
            return;
    bool is_fixed = ci_map_find(t->memories, CI_KEY(at->memory)) != NULL && at->memory->lanes == 1 && t->nfixed < MAX_FIXED &&
                    !ci_map_find(s->own, CI_KEY(at->memory)) &&
                    ci_expr_split_linear(t->sym, at->index, s->var, &coef, &rest) &&
                    ci_expr_is_const(coef, &step) && (step == 0 || s->step == 0 || step == s->step);
    for (int k = 0; is_fixed && k < rest->nsymbols; k++)
        is_fixed = ci_map_find(t->slots, CI_KEY(rest->symbols[k])) != NULL &&
                   !ci_map_find(s->own, CI_KEY(rest->symbols[k]));
    if (!is_fixed) {
        s->others += ci_expr_depends_on(at->index, s->var);
        return;
    }
    s->step = step ? step : s->step;
    int width = ci_stencil_size(at->memory->dtype), slot = ci_stencil_slot(t, at->memory)->slot;
    int64_t constant = rest->kind == CI_EXPR_linear || rest->kind == CI_EXPR_const ? rest->value : 0;
    const CiExpr *base = ci_expr_sub(t->sym, rest, ci_expr_const(t->sym, constant));
    Fixed fixed = {at->memory, at->index, slot, constant * width, step != 0};
    for (int k = 0; k < t->nfixed && fixed.slot == slot; k++)
        if (t->fixed[k].memory == at->memory &&
            ci_expr_split_linear(t->sym, t->fixed[k].index, s->var, &coef, &rest) &&
            ci_expr_is_const(ci_expr_sub(t->sym, rest, base), NULL))
            fixed.slot = t->fixed[k].slot;
    if (!ci_expr_equals_const(base, 0) && fixed.slot == slot) {
        ci_stencil_make_x(t, base);
        ci_stencil_put(t, "x_times", width, 0);
        ci_stencil_put(t, "x_adds_slot", slot, 0);
        fixed.slot = ci_stencil_take_number(t);
        ci_stencil_x_to_slot(t, fixed.slot);
    }
    t->fixed[t->nfixed++] = fixed;
}

static void
note_expression(void *arg, const CiExpr **e)
{
    Survey *s = arg;
    s->others += *e && ci_expr_depends_on(*e, s->var);
}

static void
survey(void *arg, const CiStmt *stmt)
{
    Survey *s = arg;
    bool is_access = (stmt->kind == CI_STMT_let && stmt->op == CI_OP_load) || stmt->kind == CI_STMT_store;
    s->has_loop |= ci_stmt_is_loop(stmt);
    if (stmt->kind == CI_STMT_alloc)
        ci_map_put(s->own, CI_KEY(stmt->memory), s);
    if (stmt->kind == CI_STMT_let && stmt->op == CI_OP_bind)
        ci_map_put(s->own, CI_KEY(stmt->expr), s);
    if (!s->is_full)
        return;
    if (!is_access) {
        ci_stmt_each_expr(stmt, note_expression, s);
        return;
    }
    note_access(s, &stmt->at);
    if (stmt->live)
        s->others += ci_expr_depends_on(stmt->live, s->var);
    if (stmt->at.stride)
        s->others += ci_expr_depends_on(stmt->at.stride, s->var);
}

/* Statements that an exit among them leaves for the label. */
static void
enter_loop(Translator *t, const CiStmts *body, int leave)
{
    int outside = t->leave;
    t->leave = leave;
    t->block(t, body);
    t->leave = outside;
}

void
ci_stencil_serial(Translator *t, const CiStmt *stmt)
{
    int end = ci_stencil_label(t->code), again = ci_stencil_label(t->code),
        extent = ci_stencil_take_number(t), kept = t->nfixed;
    ci_stencil_make_x(t, stmt->extents[0]);
    ci_stencil_x_to_slot(t, extent);
    if (stmt->extents[0]->low < 1)
        ci_stencil_put_jump(t, "skip_unless_less", ZERO, 0, end);
    Survey s = {.t = t, .var = stmt->vars[0], .own = ci_map_new(t->ctx)};
    ci_stmts_visit(&stmt->body, survey, &s);
    bool is_innermost = !s.has_loop;
    if (is_innermost) {
        t->nfixed = 0;
        s.is_full = true;
        ci_stmts_visit(&stmt->body, survey, &s);
        ci_stencil_put(t, "i_is_0", 0, 0);
    }
    bool counts_i = is_innermost && s.step > 0, counts_var = s.others > 0 || !counts_i;
    int var = ci_stencil_new_symbol(t, stmt->vars[0]);
    if (counts_var) {
        ci_stencil_x_is(t, 0);
        ci_stencil_x_to_slot(t, var);
    } else if (s.step > 1) {
        ci_stencil_put(t, "x_is_slot", extent, 0);
        ci_stencil_put(t, "x_times", s.step, 0);
        ci_stencil_x_to_slot(t, extent);
    }
    ci_stencil_here(t, again);
    enter_loop(t, &stmt->body, end);
    if (counts_var && is_innermost && s.step)
        ci_stencil_put(t, "i_adds", s.step, 0);
    if (counts_var)
        ci_stencil_put_jump(t, "step", var, extent, again);
    else
        ci_stencil_put_jump(t, "step_i", s.step, extent, again);
    t->nfixed = is_innermost ? 0 : kept;
    ci_stencil_here(t, end);
}

static void
count_statement(void *arg, const CiStmt *stmt)
{
    (void)stmt;
    ++*(int *)arg;
}

int
ci_stencil_count_statements(const CiStmts *block)
{
    int count = 0;
    ci_stmts_visit(block, count_statement, &count);
    return count;
}

/* Numbers of iterations of loops that are one inside the other, the innermost one first. */
static void
decode_unit(Translator *t, int unit, const CiStmt *const *loops, const int *extents, int count)
{
    int rest = ci_stencil_take_number(t);
    ci_stencil_put(t, "x_is_slot", unit, 0);
    for (int k = count - 1; k > 0; k--) {
        ci_stencil_x_to_slot(t, rest);
        ci_stencil_put(t, "x_mod", extents[k], 0);
        ci_stencil_x_to_slot(t, ci_stencil_symbol(t, loops[k]->vars[0]));
        ci_stencil_put(t, "x_is_slot", rest, 0);
        ci_stencil_put(t, "x_floordiv", extents[k], 0);
    }
    ci_stencil_x_to_slot(t, ci_stencil_symbol(t, loops[0]->vars[0]));
}

void
ci_stencil_parallel(Translator *t, const CiStmt *outer)
{
    const CiStmt *loops[CI_MAX_FOLD_AXES];
    int extents[CI_MAX_FOLD_AXES], count = 0, unit = ci_stencil_take_number(t), runs = -1,
        end = ci_stencil_label(t->code), again = ci_stencil_label(t->code);
    for (const CiStmt *stmt = outer; stmt && stmt->kind == CI_STMT_for &&
                                     stmt->run == CI_RUN_parallel && count < CI_MAX_FOLD_AXES;) {
        if (stmt->extents[0]->high <= 0) { /* there are none, nor can a number be divided by it */
            t->number += ci_stencil_count_statements(&outer->body);
            return;
        }
        loops[count++] = stmt;
        stmt = stmt->body.first == stmt->body.last ? stmt->body.first : NULL;
    }
    const CiStmt *last = loops[count - 1];
    for (int k = 0; k < count; k++)
        extents[k] = ci_stencil_take_number(t);
    ci_stencil_put(t, "x_is_slot", BEGIN, 0);
    ci_stencil_x_to_slot(t, unit);
    ci_stencil_put(t, "x_is_slot", END, 0);
    ci_stencil_put_jump(t, "skip_unless_less", unit, 0, end);
    for (int k = 0; k < count; k++) {
        ci_stencil_make_x(t, loops[k]->extents[0]);
        ci_stencil_x_to_slot(t, extents[k]);
    }
    for (int k = 0; k < count; k++)
        ci_stencil_new_symbol(t, loops[k]->vars[0]);
    ci_stencil_here(t, again);
    decode_unit(t, unit, loops, extents, count);
    if (last->runs) {
        int left = ci_stencil_take_number(t);
        runs = ci_stencil_new_symbol(t, last->runs);
        ci_stencil_put(t, "x_is_slot", extents[count - 1], 0);
        ci_stencil_put(t, "x_adds_times", ci_stencil_symbol(t, last->vars[0]), -1);
        ci_stencil_x_to_slot(t, left);
        ci_stencil_put(t, "x_is_slot", END, 0);
        ci_stencil_put(t, "x_adds_times", unit, -1);
        ci_stencil_put(t, "x_min", left, 0);
        ci_stencil_x_to_slot(t, runs);
    }
    ci_stencil_forget(t);
    t->number += count - 1;
    enter_loop(t, &last->body, end);
    if (runs < 0) {
        ci_stencil_put_jump(t, "step", unit, END, again);
    } else {
        ci_stencil_put(t, "x_is_slot", unit, 0);
        ci_stencil_put(t, "x_adds_slot", runs, 0);
        ci_stencil_x_to_slot(t, unit);
        ci_stencil_put(t, "x_is_slot", END, 0);
        ci_stencil_put_jump(t, "skip_unless_less", unit, 0, end);
        ci_stencil_put_jump(t, "jump", 0, 0, again);
    }
    ci_stencil_here(t, end);
}

void
ci_stencil_endless(Translator *t, const CiStmt *stmt)
{
    int end = ci_stencil_label(t->code), again = ci_stencil_label(t->code);
    ci_stencil_here(t, again);
    enter_loop(t, &stmt->body, end);
    ci_stencil_put_jump(t, "jump", 0, 0, again);
    ci_stencil_here(t, end);
}

void
ci_stencil_leave(Translator *t, const CiStmt *stmt)
{
    int on = ci_stencil_label(t->code);
    ci_stencil_test(t, stmt, on);
    ci_stencil_put_jump(t, "jump", 0, 0, t->leave);
    ci_stencil_here(t, on);
}
