/* Prints loops over lanes (proc_lane_loops.c). The lanes of a value are members of a struct, and the
 * compiler unrolls the loop. The struct is a template, `ci_lanes`, which the language of the dialect
 * must have. */
#include "target/gpu/print.h"

typedef struct Run {
    CiCPrinter *p;
    const CiStmt *first, *last;
    int lanes;
    int *uses;       /* per value: of those in the run */
    CiMap *declared; /* symbols that have their lane's value in the loop */
} Run;

/* The one of two lanes. */
void
ci_gpu_print_choice(CiCPrinter *p, const CiStmt *let)
{
    ci_text_line(p->out, "const %s v%d = v%d.v[%d];", ci_emit_type(let->type.dtype), let->value,
                 let->args[0], let->op == CI_OP_high);
}

static bool
has_values(const CiMemory *memory)
{
    return memory->space == CI_SPACE_register || memory->space == CI_SPACE_thread ||
           memory->lanes > 1;
}

/* An element of a load that is not aligned, from the two aligned loads that have its lanes. */
static const char *
shifted(const Run *r, const CiStmt *load)
{
    CiShift shift = ci_lane_loop_shift(r->p->sym, r->p->lane_symbols, r->first, load);
    return ci_format(r->p->ctx, "(l + %d < %d ? x%d : x%d).v[(l + %d) %% %d]", shift.distance, r->lanes,
                     shift.early->value, shift.late->value, shift.distance, r->lanes);
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
    if (load->at.is_aligned)
        return ci_format(r->p->ctx, "x%d.v[l]", load->value);
    return load->at.is_shifted ? shifted(r, load) : element(r, load);
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
    else if (ci_stmt_is_half(let))
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
                 store->at.is_aligned ? ci_format(r->p->ctx, "%s.v[l]", made_name(r, store))
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
        bool is_store = stmt->kind == CI_STMT_store, moves = stmt->at.is_aligned;
        if (!is_following && stmt != r->first)
            ci_emit_declare_names(p->base, p->out, stmt);
        if (!ci_stmt_is_in_lanes(p->proc, stmt)) {
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
    const CiStmt *last = first;
    while (last->next && last->next->in_lane_loop)
        last = last->next;
    CiType type = first->kind == CI_STMT_store ? p->proc->types[first->args[0]] : first->type;
    Run r = {p, first, last, type.lanes, CI_NEW_ARRAY(p->ctx, int, p->proc->nvalues + 1), ci_map_new(p->ctx)};
    for (const CiStmt *stmt = first; stmt != last->next; stmt = stmt->next)
        for (int a = 0; a < stmt->nargs; a++)
            r.uses[stmt->args[a]]++;
    print_moves(&r, false);
    ci_text_line(p->out, "#pragma unroll");
    ci_text_open(p->out, "for (int l = 0; l < %d; l++) {", r.lanes);
    for (const CiStmt *stmt = first; stmt != last->next; stmt = stmt->next) {
        if (!ci_stmt_is_in_lanes(p->proc, stmt))
            continue;
        if (stmt->kind == CI_STMT_let)
            print_let(&r, stmt);
        else if (stmt->kind == CI_STMT_call)
            print_pack(&r, stmt);
        else
            print_store(&r, stmt);
    }
    ci_text_close(p->out);
    print_moves(&r, true);
    return last;
}
