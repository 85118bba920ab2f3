/* Statements that a thread runs for several neighbours. The lanes of a value are members of a
 * struct, and a run of statements is one loop over them, which the compiler unrolls. Accesses that
 * move all lanes at once come before or after the loop, values of one lane before it.
 *
 * The struct is a template, `ci_lanes`, which the language of the dialect must have.
 *
 * Invariant: a run does not read its own stores, and does not store to an element that an earlier
 * lane reads later. So the lanes may run in sequence. */
#include "target/gpu/print.h"

typedef struct Run {
    CiCPrinter *p;
    const CiStmt *first, *last;
    int lanes;
    int *uses;       /* per value: of those in the run */
    CiMap *declared; /* symbols that have their lane's value in the loop */
} Run;

static CiType
type_of(const CiCPrinter *p, const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_store ? p->proc->types[stmt->args[0]] : stmt->type;
}

/* The one of two lanes. */
void
ci_gpu_print_choice(CiCPrinter *p, const CiStmt *let)
{
    ci_text_line(p->out, "const %s v%d = v%d.v[%d];", ci_emit_type(let->type.dtype), let->value,
                 let->args[0], let->op == CI_OP_high);
}

bool
ci_gpu_is_in_lanes(const CiCPrinter *p, const CiStmt *stmt)
{
    bool is_known = stmt->kind == CI_STMT_let || stmt->kind == CI_STMT_store ||
                    stmt->kind == CI_STMT_call;
    return is_known && type_of(p, stmt).lanes > 1;
}

static void
note_lane_symbol(void *arg, const CiStmt *stmt)
{
    if (stmt->op == CI_OP_bind && stmt->type.lanes > 1)
        ci_map_put(arg, CI_KEY(stmt->expr), (void *)(uintptr_t)stmt);
}

CiMap *
ci_gpu_lane_symbols(CiContext *ctx, const CiProc *proc)
{
    CiMap *symbols = ci_map_new(ctx);
    ci_stmts_visit(&proc->body, note_lane_symbol, symbols);
    return symbols;
}

static bool
has_lanes(const CiMap *lane_symbols, const CiExpr *e)
{
    for (int k = 0; k < e->nsymbols; k++)
        if (ci_map_find(lane_symbols, CI_KEY(e->symbols[k])))
            return true;
    return false;
}

bool
ci_gpu_moves_at_once(CiSym *sym, const CiMap *lane_symbols, const CiStmt *stmt, CiType type)
{
    const CiAccess *at = &stmt->at;
    bool is_store = stmt->kind == CI_STMT_store && stmt->op == CI_OP_none,
         is_access = at->memory && (stmt->kind == CI_STMT_let || is_store);
    return is_access && at->memory->space == CI_SPACE_global && type.lanes > 1 && !at->stride &&
           !has_lanes(lane_symbols, at->index) &&
           ci_sym_known_multiple_of(sym, at->index, ci_expr_const(sym, type.lanes));
}

static bool
has_values(const CiMemory *memory)
{
    return memory->space == CI_SPACE_register || memory->space == CI_SPACE_thread ||
           memory->lanes > 1;
}

static bool
is_at_once(const Run *r, const CiStmt *stmt)
{
    return ci_gpu_moves_at_once(r->p->sym, r->p->lane_symbols, stmt, type_of(r->p, stmt));
}

/* The load of the run that moves the neighbours of the first lane from `distance` elements before it on;
 * NULL if there is none. */
static const CiStmt *
find_moved(const Run *r, const CiStmt *load, int64_t distance)
{
    CiSym *sym = r->p->sym;
    const CiExpr *from = ci_expr_sub(sym, load->at.index, ci_expr_const(sym, distance));
    for (const CiStmt *stmt = r->first; stmt != r->last->next; stmt = stmt->next)
        if (stmt->kind == CI_STMT_let && stmt->op == CI_OP_load && is_at_once(r, stmt) &&
            stmt->at.memory == load->at.memory && stmt->type.lanes == r->lanes &&
            stmt->at.index == from)
            return stmt;
    return NULL;
}

/* Elements of a load that is not aligned, from two aligned loads of the run which together have them;
 * NULL if there are none. */
static const char *
shifted(const Run *r, const CiStmt *load)
{
    if (load->at.stride || load->at.memory->space != CI_SPACE_global ||
        has_lanes(r->p->lane_symbols, load->at.index))
        return NULL;
    for (int64_t distance = 1; distance < r->lanes; distance++) {
        const CiStmt *early = find_moved(r, load, distance),
                     *late = early ? find_moved(r, load, distance - r->lanes) : NULL;
        if (late)
            return ci_format(r->p->ctx, "(l + %d < %d ? x%d : x%d).v[(l + %d) %% %d]", (int)distance,
                             r->lanes, early->value, late->value, (int)distance, r->lanes);
    }
    return NULL;
}

/* ---- how far a run goes ---- */

/* Of lanes, one half. */
static bool
is_choice(CiOp op)
{
    return op == CI_OP_low || op == CI_OP_high;
}

/* Registers are each thread's and each lane's own. */
static bool
may_conflict(const Run *r, const CiStmt *stmt)
{
    const CiMemory *memory = stmt->at.memory;
    if (!memory || memory->lanes > 1)
        return false;
    for (const CiStmt *other = r->first; other != stmt; other = other->next)
        if (other->at.memory == memory &&
            (other->kind == CI_STMT_store ||
             (stmt->kind == CI_STMT_store && !(is_at_once(r, stmt) && is_at_once(r, other)))))
            return true;
    return false;
}

static void
find_run(Run *r)
{
    CiCPrinter *p = r->p;
    r->last = NULL;
    for (const CiStmt *stmt = r->first; stmt; stmt = stmt->next) {
        bool is_one = stmt->kind == CI_STMT_let && stmt->type.lanes == 1 && !stmt->cell &&
                      !is_choice(stmt->op);
        if (r->last && is_choice(stmt->op)) /* it reads lanes of which others have the turn */
            return;
        bool is_in_lanes = ci_gpu_is_in_lanes(p, stmt) && type_of(p, stmt).lanes == r->lanes;
        if ((!is_one && !is_in_lanes) || (r->last && may_conflict(r, stmt)))
            return;
        r->last = is_in_lanes ? stmt : r->last;
        for (int a = 0; a < stmt->nargs && !is_choice(stmt->op); a++)
            r->uses[stmt->args[a]]++;
    }
}

/* ---- names ---- */

/* True if the value is used only within the run, so that it can be a variable of one lane. */
static bool
is_inner(const Run *r, const CiStmt *let)
{
    return let->op != CI_OP_bind && r->uses[let->value] == r->p->uses[let->value];
}

static bool
is_of_run(const Run *r, int value)
{
    for (const CiStmt *stmt = r->first; stmt != r->last->next; stmt = stmt->next)
        if (stmt->kind == CI_STMT_let && stmt->value == value)
            return is_inner(r, stmt);
    return false;
}

static const char *
lane_of(const Run *r, int value)
{
    bool is_plain = r->p->proc->types[value].lanes == 1 || is_of_run(r, value);
    return ci_format(r->p->ctx, is_plain ? "v%d" : "v%d.v[l]", value);
}

const char *
ci_gpu_lanes_type(CiCPrinter *p, const char *element, int lanes)
{
    return ci_format(p->ctx, "%s<%s, %d>", ci_emit_use(p->base, "ci_lanes"), element, lanes);
}

static const char *
type_text(const Run *r, const char *element)
{
    return ci_gpu_lanes_type(r->p, element, r->lanes);
}

static const char *
place_text(const Run *r, const CiStmt *stmt)
{
    return ci_format(r->p->ctx, "&%s", ci_c_element(r->p, stmt->at.memory, stmt->at.index));
}

/* The name of the value that collects all lanes of a store. */
static const char *
made_name(const Run *r, const CiStmt *store)
{
    return ci_format(r->p->ctx, "y%d_%s", store->args[0], ci_c_memory(r->p, store->at.memory));
}

/* Symbols that have a value in each lane, in this one. */
static void
declare_symbols(Run *r, const CiExpr *e)
{
    for (int k = 0; e && k < e->nsymbols; k++) {
        const CiStmt *bind = ci_map_find(r->p->lane_symbols, CI_KEY(e->symbols[k]));
        if (!bind || ci_map_find(r->declared, CI_KEY(e->symbols[k])))
            continue;
        ci_map_put(r->declared, CI_KEY(e->symbols[k]), r);
        ci_text_line(r->p->out, "const %s %s = %s;", r->p->index_type, e->symbols[k]->name,
                     lane_of(r, bind->value));
    }
}

/* ---- one lane ---- */

static const char *
element(Run *r, const CiStmt *stmt)
{
    CiCPrinter *p = r->p;
    const CiAccess *at = &stmt->at;
    if (at->memory->lanes > 1)
        return ci_format(p->ctx, "%s.v[l]", ci_c_element(p, at->memory, at->index));
    declare_symbols(r, at->index);
    const char *index = ci_emit_index_text(p->base, at->index);
    if (!at->stride || !ci_expr_equals_const(at->stride, 0))
        index = ci_format(p->ctx, "%s + l*(%s)", index,
                          at->stride ? ci_emit_index_text(p->base, at->stride) : "1");
    return ci_format(p->ctx, "%s[%s]", ci_c_memory(p, at->memory), index);
}

/* The lane's element in its memory form. */
static const char *
loaded(Run *r, const CiStmt *load)
{
    if (is_at_once(r, load))
        return ci_format(r->p->ctx, "x%d.v[l]", load->value);
    const char *text = shifted(r, load);
    return text ? text : element(r, load);
}

static const char *
value_text(Run *r, const CiStmt *let)
{
    CiCPrinter *p = r->p;
    CiText text = ci_text_new(p->ctx);
    const char *names[CI_MAX_OPERANDS] = {"", "", "", ""};
    for (int a = 0; a < let->nargs; a++)
        names[a] = lane_of(r, let->args[a]);
    if (let->op == CI_OP_load && has_values(let->at.memory))
        ci_text_add(&text, "%s", element(r, let));
    else if (ci_stmt_is_running(let))
        ci_text_add(&text, "%s", ci_c_element(p, let->cell, ci_expr_const(p->sym, 0)));
    else if (let->op == CI_OP_load)
        ci_emit_widen(p->base, &text, let->type.dtype, loaded(r, let));
    else if (let->op == CI_OP_iota)
        ci_text_add(&text, "%s + l", ci_emit_index_text(p->base, let->expr));
    else if (let->op == CI_OP_index)
        ci_emit_index(p->base, &text, (declare_symbols(r, let->expr), let->expr));
    else if (is_choice(let->op))
        ci_text_add(&text, "v%d.v[l + %d]", let->args[0],
                    let->op == CI_OP_high ? let->type.lanes : 0);
    else if (let->op == CI_OP_splat || let->op == CI_OP_bind)
        ci_text_add(&text, "%s", names[0]);
    else
        ci_text_add(&text, "%s", ci_c_operation(p, let, names));
    return text.data;
}

/* Lanes have their turns in order: what the cell holds is what those before have left. */
static void
print_running(Run *r, const CiStmt *let)
{
    CiCPrinter *p = r->p;
    CiText text = ci_text_new(p->ctx);
    const char *cell = ci_c_element(p, let->cell, ci_expr_const(p->sym, 0)),
               *value = lane_of(r, let->args[0]);
    if (let->expr->low <= 0)
        ci_text_add(&text, "%s + l > 0 ? ", ci_emit_index_text(p->base, let->expr));
    ci_emit_combine(p->base, &text, let->op, let->type.dtype, cell, value);
    if (let->expr->low <= 0)
        ci_text_add(&text, " : %s", value);
    ci_text_line(p->out, "%s = %s;", cell, text.data);
}

static void
print_let(Run *r, const CiStmt *let)
{
    if (ci_stmt_is_running(let))
        print_running(r, let);
    if (is_inner(r, let))
        ci_text_line(r->p->out, "const %s v%d = %s;", ci_emit_type(let->type.dtype), let->value,
                     value_text(r, let));
    else
        ci_text_line(r->p->out, "v%d.v[l] = %s;", let->value, value_text(r, let));
}

static bool
is_in_loop(const Run *r, const CiStmt *stmt)
{
    return type_of(r->p, stmt).lanes > 1;
}

static void
print_store(Run *r, const CiStmt *store)
{
    CiText text = ci_text_new(r->p->ctx);
    const char *value = lane_of(r, store->args[0]);
    if (has_values(store->at.memory))
        ci_text_add(&text, "%s", value);
    else
        ci_emit_narrow(r->p->base, &text, store->at.memory->dtype, value);
    ci_text_line(r->p->out, "%s = %s;",
                 is_at_once(r, store) ? ci_format(r->p->ctx, "%s.v[l]", made_name(r, store))
                                      : element(r, store),
                 text.data);
}

static void
print_pack(Run *r, const CiStmt *call)
{
    CiCPrinter *p = r->p;
    const char *cell = ci_c_element(p, call->cell, ci_expr_const(p->sym, 0));
    CiText value = ci_text_new(p->ctx);
    ci_emit_narrow(p->base, &value, call->at.memory->dtype, lane_of(r, call->args[0]));
    ci_text_line(p->out, "if (%s && %s < %s)", lane_of(r, call->args[1]), cell,
                 ci_emit_index_text(p->base, call->limit));
    ci_text_line(p->out, "    %s[%s + (%s)*%s++] = %s;", ci_c_memory(p, call->at.memory),
                 ci_emit_index_text(p->base, call->at.index),
                 call->at.stride ? ci_emit_index_text(p->base, call->at.stride) : "1", cell,
                 value.data);
}

/* ---- runs ---- */

/* Prints the accesses before the loop, or those after it. */
static void
print_moves(Run *r, bool is_following)
{
    CiCPrinter *p = r->p;
    for (const CiStmt *stmt = r->first; stmt != r->last->next; stmt = stmt->next) {
        bool is_store = stmt->kind == CI_STMT_store, moves = is_at_once(r, stmt);
        if (!is_following && stmt != r->first)
            ci_emit_declare_names(p->base, p->out, stmt);
        if (!is_in_loop(r, stmt)) {
            if (!is_following)
                ci_c_print_let(p, stmt);
            continue;
        }
        const char *type = moves ? type_text(r, ci_dtype_storage(stmt->at.memory->dtype)) : "";
        if (is_store && moves && is_following)
            ci_text_line(p->out, "*(%s *)%s = %s;", type, place_text(r, stmt), made_name(r, stmt));
        else if (is_store && moves)
            ci_text_line(p->out, "%s %s;", type, made_name(r, stmt));
        else if (moves && !is_following)
            ci_text_line(p->out, "const %s x%d = *(const %s *)%s;", type, stmt->value, type,
                         place_text(r, stmt));
        if (stmt->kind == CI_STMT_let && !is_following && !is_inner(r, stmt))
            ci_text_line(p->out, "%s v%d;", type_text(r, ci_emit_type(stmt->type.dtype)),
                         stmt->value);
    }
}

const CiStmt *
ci_gpu_print_lanes(CiCPrinter *p, const CiStmt *first)
{
    Run r = {.p = p,
             .first = first,
             .lanes = type_of(p, first).lanes,
             .uses = CI_NEW_ARRAY(p->ctx, int, p->proc->nvalues + 1),
             .declared = ci_map_new(p->ctx)};
    find_run(&r);
    print_moves(&r, false);
    ci_text_line(p->out, "#pragma unroll");
    ci_text_open(p->out, "for (int l = 0; l < %d; l++) {", r.lanes);
    for (const CiStmt *stmt = r.first; stmt != r.last->next; stmt = stmt->next) {
        if (is_in_loop(&r, stmt) && stmt->kind == CI_STMT_let)
            print_let(&r, stmt);
        else if (is_in_loop(&r, stmt) && stmt->kind == CI_STMT_call)
            print_pack(&r, stmt);
        else if (is_in_loop(&r, stmt))
            print_store(&r, stmt);
    }
    ci_text_close(p->out);
    print_moves(&r, true);
    return r.last;
}
