/* The operands of statements: their texts, passes over them, copies. */
#include "ir/proc_private.h"

#include <stddef.h>
#include <string.h>

/* ---- rows ---- */

typedef struct StmtRow {
    const char *text;
    int blocks;
    CiTouch access;
} StmtRow;

static const StmtRow rows[] = {
#define STMT(name, blocks, access, text) {text, blocks, CI_TOUCH_##access},
#include "ir/proc.def"
};

int
ci_stmt_blocks(const CiStmt *stmt)
{
    return rows[stmt->kind].blocks;
}

static const char *
let_pattern(const CiStmt *let)
{
    switch (let->op) {
#define LET(operation, text)                                                                       \
    case CI_OP_##operation:                                                                        \
        return text;
#include "ir/proc.def"
    default:
        return ci_stmt_is_running(let) ? "{args} in {cell} from {expr}[ live {live}]"
                                       : "{args}[ live {live}]";
    }
}

const char *
ci_stmt_pattern(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_let ? let_pattern(stmt) : rows[stmt->kind].text;
}

static const CiOperand operands[] = {
#define OPERAND(name, type, member) {#name, CI_OPERAND_##type, offsetof(CiStmt, member)},
    CI_STMT_OPERANDS(OPERAND)
#undef OPERAND
};
enum { OPERAND_COUNT = (int)(sizeof operands / sizeof *operands) };

const CiOperand *
ci_stmt_operand(const char *text)
{
    const char *name = strchr(text, '{') + 1;
    size_t length = strcspn(name, "}");
    int k = 0;
    while (strlen(operands[k].name) != length || memcmp(operands[k].name, name, length) != 0)
        k++; /* proc.def names no other */
    return &operands[k];
}

const char *
ci_pattern_next(const char *text)
{
    if (*text == '{')
        return strchr(text, '}') + 1;
    int depth = 0;
    do
        depth += *text == '[' ? 1 : *text == ']' ? -1 : 0;
    while (text++, depth > 0);
    return text;
}

/* ---- index expressions ---- */

static void
visit_access(const CiAccess *at, CiVisitExpr *visit, void *arg)
{
    CiAccess *own = (CiAccess *)(uintptr_t)at;
    if (at->index)
        visit(arg, &own->index);
    if (at->stride)
        visit(arg, &own->stride);
}

void
ci_stmt_each_expr(const CiStmt *stmt, CiVisitExpr *visit, void *arg)
{
    for (int k = 0; k < stmt->nvars; k++)
        visit(arg, &stmt->extents[k]);
    for (int k = 0; k < OPERAND_COUNT; k++) {
        const CiExpr **e = (const CiExpr **)((char *)(uintptr_t)stmt + operands[k].offset);
        bool is_made = e == &stmt->expr && stmt->op == CI_OP_bind;
        if (operands[k].type == CI_OPERAND_expr && *e && !is_made)
            visit(arg, e);
    }
    visit_access(&stmt->at, visit, arg);
    for (int k = 0; k < stmt->nin; k++)
        visit_access(&stmt->in[k], visit, arg);
    for (int k = 0; k < stmt->ntests; k++) {
        if (stmt->tests[k].compare >= CI_COMPARE_is)
            continue;
        visit(arg, &stmt->tests[k].left);
        visit(arg, &stmt->tests[k].right);
    }
}

/* ---- memories ---- */

static CiTouch
access_of(const CiStmt *stmt)
{
    bool combines = stmt->kind == CI_STMT_store && stmt->op != CI_OP_none;
    return combines ? CI_TOUCH_updates : rows[stmt->kind].access;
}

void
ci_stmt_each_memory(const CiStmt *stmt, CiVisitMemory *visit, void *arg)
{
    CiStmt *own = (CiStmt *)(uintptr_t)stmt;
    if (stmt->at.memory)
        visit(arg, &own->at.memory, access_of(stmt));
    for (int k = 0; k < stmt->nin; k++)
        visit(arg, &own->in[k].memory, CI_TOUCH_loads);
    if (stmt->cell)
        visit(arg, &own->cell, CI_TOUCH_updates);
    for (int k = 0; k < stmt->ninto; k++)
        visit(arg, &stmt->into[k], CI_TOUCH_stores);
    if (stmt->memory)
        visit(arg, &own->memory, stmt->partner ? CI_TOUCH_updates : CI_TOUCH_allocs);
    if (stmt->partner)
        visit(arg, &own->partner, CI_TOUCH_updates);
}

static void
note_touch(void *arg, CiMemory **memory, CiTouch touch)
{
    CiTouched *touched = arg;
    bool is_it = *memory == touched->memory;
    touched->is_loaded |= is_it && ci_touch_loads(touch);
    touched->is_stored |= is_it && ci_touch_stores(touch);
}

static void
note_touches(void *arg, const CiStmt *stmt)
{
    ci_stmt_each_memory(stmt, note_touch, arg);
}

CiTouched
ci_stmts_touch(const CiStmts *stmts, const CiMemory *memory)
{
    CiTouched touched = {memory, false, false};
    ci_stmts_visit(stmts, note_touches, &touched);
    return touched;
}

/* ---- copies ---- */

static void *
copy_array(CiContext *ctx, const void *array, int count, size_t size)
{
    void *copy = ci_new(ctx, size * (size_t)(count + 1));
    if (count)
        memcpy(copy, array, size * (size_t)count);
    return copy;
}

CiStmt *
ci_build_copy(CiBuild *b, const CiStmt *stmt)
{
    CiStmt *made = ci_build_add(b, stmt->kind);
    *made = *stmt;
    made->next = NULL;
    made->body = made->other = (CiStmts){0};
    made->args = copy_array(b->ctx, stmt->args, stmt->nargs, sizeof *stmt->args);
    made->tests = copy_array(b->ctx, stmt->tests, stmt->ntests, sizeof *stmt->tests);
    made->vars = copy_array(b->ctx, stmt->vars, stmt->nvars, sizeof *stmt->vars);
    made->extents = copy_array(b->ctx, stmt->extents, stmt->nvars, sizeof *stmt->extents);
    made->into = copy_array(b->ctx, stmt->into, stmt->ninto, sizeof *stmt->into);
    return made;
}
