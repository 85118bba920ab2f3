/* The text of a graph's nodes. Every node that is read goes through inference, and what the text declares
 * is compared with what was inferred, so a wrong golden file is an error and not another graph. */
#include "ir/graph_text.h"

#include <string.h>

/* ---- values ---- */

static CiNode *
find_value(const CiGraphForm *p, CiLexer lex)
{
    if (lex.kind == CI_TOKEN_name)
        return ci_map_find(p->values, CI_KEY(lex.string));
    if (!ci_lexer_accept(&lex, "%") || lex.kind != CI_TOKEN_int)
        return NULL;
    return ci_map_find(p->values, (uint64_t)lex.int_value + 1);
}

CiNode *
ci_graph_form_value(CiGraphForm *p, CiNode *node)
{
    CiForm *f = &p->form;
    if (f->out && node->op == CI_OP_input) {
        ci_form_word(f, node->name);
    } else if (f->out) {
        ci_form_text(f, "%");
        ci_form_int(f, node->id);
    } else {
        node = find_value(p, f->lex);
        if (!node)
            ci_lexer_fail(&f->lex, "no such value");
        ci_lexer_accept(&f->lex, "%");
        ci_lexer_next(&f->lex);
    }
    return node;
}

typedef struct Declared {
    int64_t id;
    CiFormType type;
} Declared;

/* %3: f32[4] order [1,0] */
static Declared
form_declared(CiGraphForm *p, const CiNode *node)
{
    CiForm *f = &p->form;
    Declared declared = {0};
    if (f->out)
        declared = (Declared){node->id,
                              {.kind = node->kind,
                               .dtype = node->dtype,
                               .rank = node->rank,
                               .sizes = node->sizes,
                               .order = node->order}};
    ci_form_text(f, "%");
    declared.id = ci_form_int(f, declared.id);
    if (!f->out && ci_map_find(p->values, (uint64_t)declared.id + 1))
        ci_lexer_fail(&f->lex, "%%%d is defined twice", (int)declared.id);
    ci_form_text(f, ": ");
    ci_form_type(f, &declared.type);
    return declared;
}

static void
define(CiGraphForm *p, int64_t id, CiNode *node)
{
    ci_map_put(p->values, (uint64_t)id + 1, node);
}

static void
check_declared(CiGraphForm *p, const CiNode *node, const CiFormType *type)
{
    bool fits = node->dtype == type->dtype && node->rank == type->rank;
    for (int k = 0; fits && k < node->rank; k++)
        fits = node->sizes[k] == type->sizes[k];
    if (fits)
        return;
    CiText text = ci_text_new(p->g->ctx);
    CiForm shown = ci_form_printer(p->g->ctx, p->g->sym, &text);
    CiFormType made = {.kind = node->kind, .dtype = node->dtype, .rank = node->rank, .sizes = node->sizes};
    ci_form_type(&shown, &made);
    ci_lexer_fail(&p->form.lex, "%s is %s, not what is declared before this", ci_op_name(node->op),
                  text.data);
}

/* The order of a value in memory of its own is what the text says; that of a view follows. */
static void
take_declared(CiGraphForm *p, CiNode *node, const CiFormType *type)
{
    check_declared(p, node, type);
    node->kind = type->kind;
    if (!ci_node_is_view(node) && node->op != CI_OP_assign && node->op != CI_OP_scatter) {
        node->order = type->order;
        return;
    }
    if (memcmp(node->order, type->order, (size_t)node->rank) != 0)
        ci_lexer_fail(&p->form.lex, "a view has the order of the memory it sees");
}

/* ---- calls ---- */

/* [1, 0] */
static const int *
form_axes(CiForm *f, const int *axes, int *count)
{
    int *read = f->out ? NULL : CI_NEW_ARRAY(f->ctx, int, CI_MAX_RANK);
    bool has_any = f->out || !ci_form_is(f, "[]");
    ci_form_text(f, "[");
    for (int k = 0; has_any && ci_form_more(f, k, *count, NULL); k++) {
        if (k == CI_MAX_RANK)
            ci_lexer_fail(&f->lex, "more than %d axes", CI_MAX_RANK);
        int axis = ci_form_count(f, f->out ? axes[k] : 0, 0);
        if (!f->out)
            read[k] = axis, *count = k + 1;
    }
    ci_form_text(f, "]");
    return f->out ? axes : read;
}

static const CiExpr *const *
form_list(CiForm *f, int rank, const CiExpr *const *exprs)
{
    int count = rank;
    if (f->out) {
        for (int k = 0; ci_form_more(f, k, rank, NULL); k++) {
            const CiExpr *e = exprs[k];
            ci_form_expr(f, "", &e, "");
        }
        ci_form_text(f, "]");
        return exprs;
    }
    ci_form_exprs(f, &count, &exprs, "]");
    if (count != rank)
        ci_lexer_fail(&f->lex, "%d entries for %d axes", count, rank);
    return exprs;
}

/* The one expression that a node has. */
static const CiExpr *const *
form_only(CiForm *f, const CiExpr *const *exprs, const char *after)
{
    const CiExpr **only = CI_NEW(f->ctx, const CiExpr *);
    *only = f->out ? exprs[0] : NULL;
    ci_form_expr(f, "", only, after);
    return only;
}

/* [1, 0], inner=1, chunk=8192; or [1, 0], inner=0, alone=1 where s1 */
static CiPairwise *
form_pairwise(CiForm *f, const CiNode *node)
{
    CiPairwise *pairwise = CI_NEW(f->ctx, CiPairwise);
    int count = node->naxes;
    if (f->out)
        *pairwise = *node->pairwise;
    pairwise->axes = form_axes(f, pairwise->axes, &count);
    ci_form_text(f, ", inner=");
    pairwise->ninner = ci_form_count(f, pairwise->ninner, 0);
    ci_form_if(f, ", chunk=", &pairwise->chunk, "");
    if (ci_form_flag(f, ", alone=", pairwise->alone != NULL)) {
        pairwise->nalone = ci_form_count(f, pairwise->nalone, 0);
        ci_form_expr(f, " where ", &pairwise->alone, "");
    }
    if (count != node->naxes)
        ci_lexer_fail(&f->lex, "an order of %d axes for %d", count, node->naxes);
    return pairwise;
}

static bool
has_axes(const CiNode *node)
{
    CiOpKind kind = ci_op_kind(node->op);
    return node->naxes || kind == CI_OPKIND_reduce || kind == CI_OPKIND_argreduce ||
           node->op == CI_OP_permute;
}

/* After the operands, or first of all if there are none. */
static bool
has_attribute(CiForm *f, const CiNode *node, const char *name, bool is)
{
    if (f->out && !is)
        return false;
    return ci_form_flag(f, node->nargs ? ci_format(f->ctx, ", %s", name) : name, is);
}

static void
form_attributes(CiForm *f, CiNode *node)
{
    bool is_one_axis = node->op == CI_OP_iota || node->op == CI_OP_concat ||
                       node->op == CI_OP_window || ci_op_kind(node->op) == CI_OPKIND_scan;
    if (!f->out && ci_lexer_is(&f->lex, ")"))
        return;
    if (has_attribute(f, node, "axis=", is_one_axis)) {
        int *axis = CI_NEW(f->ctx, int);
        *axis = ci_form_count(f, f->out ? node->axes[0] : 0, 0);
        node->axes = axis;
        node->naxes = 1;
    } else if (has_attribute(f, node, "axes=", !is_one_axis && has_axes(node))) {
        node->axes = form_axes(f, node->axes, &node->naxes);
    }
    if (has_attribute(f, node, "pairwise=", node->pairwise != NULL))
        node->pairwise = form_pairwise(f, node);
    if (has_attribute(f, node, "by=numpy", ci_op_kind(node->op) == CI_OPKIND_ufunc)) {
        if (!f->out && ci_op_by_numpy(node->op) == CI_OP_none)
            ci_lexer_fail(&f->lex, "no loop of NumPy's computes %s", ci_op_name(node->op));
        node->op = f->out ? node->op : ci_op_by_numpy(node->op);
    }
    bool is_scatter = node->op == CI_OP_scatter;
    if (has_attribute(f, node, "combine=", is_scatter && node->is_combined)) {
        node->combine = ci_form_op(f, node->combine);
        node->is_combined = true;
    }
    node->is_distinct = has_attribute(f, node, "distinct", is_scatter && node->is_distinct);
    if (has_attribute(f, node, "starts=[", node->op == CI_OP_slice))
        node->starts = form_list(f, node->rank, node->starts);
    if (has_attribute(f, node, "steps=[", node->op == CI_OP_slice))
        node->steps = form_list(f, node->rank, node->steps);
    if (has_attribute(f, node, "offset=", node->op == CI_OP_diagonal))
        node->starts = form_only(f, node->starts, "");
}

static bool
has_argument(CiGraphForm *p, int k, int count)
{
    CiLexer ahead = p->form.lex;
    if (!p->form.out && !(k ? ci_lexer_accept(&ahead, ",") && find_value(p, ahead)
                            : ci_lexer_is(&ahead, "%") || find_value(p, ahead)))
        return k && ci_lexer_is(&ahead, "%");
    return ci_form_more(&p->form, k, count, NULL);
}

static void
form_arguments(CiGraphForm *p, CiNode *node)
{
    int capacity = 0;
    ci_form_text(&p->form, "(");
    for (int k = 0; has_argument(p, k, node->nargs); k++) {
        CiNode *value = ci_graph_form_value(p, p->form.out ? node->args[k] : NULL);
        if (!p->form.out)
            CI_PUSH(p->form.ctx, node->args, node->nargs, capacity, value);
    }
    form_attributes(&p->form, node);
    ci_form_text(&p->form, ")");
}

/* check(%1, %2) "why": there is no such value as %2 for a condition alone. */
static void
form_check(CiGraphForm *p, const CiNode *node)
{
    CiForm *f = &p->form;
    CiNode *condition = ci_graph_form_value(p, f->out ? node->args[0] : NULL), *value = NULL;
    if (ci_form_flag(f, ", ", f->out && node->nargs > 1))
        value = ci_graph_form_value(p, f->out ? node->args[1] : NULL);
    ci_form_text(f, ") ");
    const char *why = ci_form_string(f, f->out ? node->name : NULL);
    CiLoc loc = ci_form_loc(f, "  ", f->out ? node->loc : (CiLoc){0});
    ci_form_text(f, "\n");
    if (!f->out)
        ci_graph_check_of(p->g, condition, value, why, loc);
}

static void
form_operation(CiGraphForm *p, CiNode *node)
{
    CiForm *f = &p->form;
    CiExtern *ext = (CiExtern *)(uintptr_t)node->ext;
    const char *name = ci_form_word(f, f->out ? ci_op_name(ci_op_public(node->op)) : NULL);
    node->op = f->out ? node->op : ci_op_find(name);
    if (!f->out && (node->op == CI_OP_none || ci_op_public(node->op) != node->op))
        ci_lexer_fail(&f->lex, "no operation is called '%s'", name);
    if (node->op == CI_OP_expr) {
        ci_form_text(f, "(");
        node->starts = form_only(f, node->starts, ")");
        return;
    }
    if (node->op == CI_OP_extern) {
        ci_form_text(f, " ");
        name = ci_form_name(f, ext ? ext->name : "");
    }
    form_arguments(p, node);
    const char *why = f->out ? NULL : ci_node_why_not(f->ctx, node);
    if (why)
        ci_lexer_fail(&f->lex, "%s", why);
    if (ci_op_kind(node->op) == CI_OPKIND_extern) {
        const char *key = ext && ext->key ? ext->key : "";
        if (ci_form_flag(f, " key ", *key))
            key = ci_form_string(f, key);
        if (!f->out) {
            ext = CI_NEW(f->ctx, CiExtern);
            ext->name = name;
            ext->key = key;
            node->ext = ext;
        }
    } else if (node->op == CI_OP_define) { /* define(%3) u0 in [0, s0): the symbol is declared here */
        const CiExpr **starts = CI_NEW_ARRAY(f->ctx, const CiExpr *, 2);
        starts[0] = f->out ? node->starts[0] : NULL;
        starts[1] = f->out ? node->starts[1] : NULL;
        ci_form_text(f, " ");
        starts[0] = ci_form_bounded(f, starts[0], &starts[1]);
        node->starts = starts;
    }
}

/* const 1.5; add(%1, %2); and its place */
static CiNode *
form_call(CiGraphForm *p, CiNode *node, const CiFormType *type)
{
    CiForm *f = &p->form;
    CiNode made = {.op = CI_OP_none, .dtype = type->dtype, .kind = type->kind, .rank = type->rank,
                   .sizes = type->sizes, .order = type->order};
    made = f->out ? *node : made;
    if (ci_form_flag(f, "const ", made.op == CI_OP_const)) {
        made.op = CI_OP_const;
        made.value = ci_form_const(f, made.dtype, made.value);
    } else {
        form_operation(p, &made);
    }
    made.loc = ci_form_loc(f, "  ", made.loc);
    ci_form_text(f, "\n");
    if (f->out)
        return node;
    node = ci_graph_add(p->g, &made);
    take_declared(p, node, type);
    return node;
}

/* ---- regions ---- */

void
ci_graph_form_results(CiGraphForm *p, CiBlock *block, const char *word)
{
    CiForm *f = &p->form;
    bool has_any = f->out ? block->nresults : ci_form_is(f, ci_format(f->ctx, "%s %%", word));
    ci_form_indent(f);
    ci_form_text(f, word);
    has_any = has_any || (!f->out && find_value(p, f->lex));
    ci_form_text(f, has_any ? " " : "");
    for (int k = 0; has_any && ci_form_more(f, k, block->nresults, NULL); k++) {
        CiNode *value = ci_graph_form_value(p, f->out ? block->results[k] : NULL);
        if (!f->out)
            ci_graph_block_result(p->g, block, value);
    }
    ci_form_text(f, "\n");
}

static void
form_block(CiGraphForm *p, CiBlock *block, const char *word, const char *close)
{
    CiBlock *before = p->form.out ? NULL : ci_graph_enter(p->g, block);
    ci_form_enter(&p->form, " {\n");
    ci_graph_form_nodes(p, block);
    ci_graph_form_results(p, block, word);
    if (!p->form.out)
        ci_graph_enter(p->g, before);
    ci_form_leave(&p->form, close);
}

/* carry (%7: python i64[], %8: f32[4] = %3): returns the initial values; the induction has none. */
static CiNode **
form_carried(CiGraphForm *p, CiBlock *block, CiNode *const *initial, int *nargs)
{
    CiForm *f = &p->form;
    CiNode **args = NULL;
    int capacity = 0, skip = f->out ? block->nparams - *nargs : 0;
    ci_form_text(f, " carry (");
    bool has_any = f->out || !ci_lexer_is(&f->lex, ")");
    for (int k = 0; has_any && ci_form_more(f, k, block->nparams, NULL); k++) {
        Declared one = form_declared(p, f->out ? block->params[k] : NULL);
        const CiFormType *type = &one.type;
        if (!f->out)
            define(p, one.id, ci_graph_param(p->g, block, type->dtype, type->kind, type->rank,
                                             type->sizes, type->order));
        if (!ci_form_flag(f, " = ", k >= skip))
            continue;
        CiNode *value = ci_graph_form_value(p, f->out ? initial[k - skip] : NULL);
        if (!f->out)
            CI_PUSH(f->ctx, args, *nargs, capacity, value);
    }
    ci_form_text(f, ")");
    return args;
}

static void
form_region(CiGraphForm *p, const CiNode *node)
{
    CiForm *f = &p->form;
    CiBlock *blocks[2];
    for (int b = 0; b < 2; b++)
        blocks[b] = !f->out ? ci_graph_block(p->g) : b < node->nblocks ? node->blocks[b] : NULL;
    CiOp op = ci_form_op(f, f->out ? node->op : CI_OP_none);
    CiNode **args = NULL, *condition;
    const CiExpr *trip = f->out && op == CI_OP_for ? node->starts[0] : NULL, *induction = NULL;
    int nargs = f->out ? node->nargs : op == CI_OP_if;
    if (op == CI_OP_if) {
        ci_form_text(f, " ");
        condition = ci_graph_form_value(p, f->out ? node->args[0] : NULL);
        args = &condition;
    } else {
        if (op == CI_OP_for) {
            ci_form_text(f, " ");
            const char *name = ci_form_word(f, f->out ? node->starts[1]->name : NULL);
            ci_form_expr(f, "<", &trip, "");
            induction = f->out ? NULL : ci_expr_index(f->sym, name, trip);
        }
        args = form_carried(p, blocks[0], f->out ? node->args : NULL, &nargs);
    }
    CiLoc loc = ci_form_loc(f, " ", f->out ? node->loc : (CiLoc){0});
    form_block(p, blocks[0], op == CI_OP_if ? "yield" : op == CI_OP_for ? "next" : "test", "}");
    if (op != CI_OP_for) {
        ci_form_text(f, op == CI_OP_if ? " else" : " do");
        form_block(p, blocks[1], op == CI_OP_if ? "yield" : "next", "}");
    }
    ci_form_text(f, "\n");
    if (!f->out)
        ci_graph_region(p->g, op, nargs, args, trip, induction, op == CI_OP_for ? 1 : 2, blocks, loc);
}

static bool
is_region_word(const CiLexer *lex)
{
    return ci_lexer_is(lex, "for") || ci_lexer_is(lex, "while") || ci_lexer_is(lex, "if");
}

static void
bind_results(CiGraphForm *p, int count, const Declared *declared)
{
    const CiBlock *block = p->g->at;
    int made = 0;
    while (made < block->nnodes && block->nodes[block->nnodes - 1 - made]->op == CI_OP_result &&
           made < count)
        made++;
    if (made != count)
        ci_lexer_fail(&p->form.lex, "the region makes another number of results");
    for (int k = 0; k < count; k++) {
        CiNode *node = block->nodes[block->nnodes - count + k];
        check_declared(p, node, &declared[k].type);
        node->kind = declared[k].type.kind;
        define(p, declared[k].id, node);
    }
}

static void
read_definition(CiGraphForm *p)
{
    CiForm *f = &p->form;
    Declared *declared = NULL;
    int count = 0, capacity = 0;
    do
        CI_PUSH(f->ctx, declared, count, capacity, form_declared(p, NULL));
    while (ci_form_flag(f, ",", false));
    ci_form_text(f, "=");
    if (is_region_word(&f->lex)) {
        form_region(p, NULL);
        bind_results(p, count, declared);
        return;
    }
    if (count != 1)
        ci_lexer_fail(&f->lex, "one result is declared for each operation");
    define(p, declared[0].id, form_call(p, NULL, &declared[0].type));
}

static void
read_nodes(CiGraphForm *p)
{
    for (;;) {
        if (ci_lexer_is(&p->form.lex, "%"))
            read_definition(p);
        else if (is_region_word(&p->form.lex))
            form_region(p, NULL);
        else if (ci_form_flag(&p->form, "check(", false))
            form_check(p, NULL);
        else
            return;
    }
}

/* The results of a region, which follow it, are in its line. */
void
ci_graph_form_nodes(CiGraphForm *p, const CiBlock *block)
{
    CiForm *f = &p->form;
    if (!f->out) {
        read_nodes(p);
        return;
    }
    for (int k = 0; k < block->nnodes; k++) {
        CiNode *node = block->nodes[k];
        int count = node->dtype != CI_DTYPE_none && !node->nblocks, first = k + (node->nblocks > 0);
        while (node->nblocks && first + count < block->nnodes && block->nodes[first + count]->op == CI_OP_result)
            count++;
        ci_form_indent(f);
        for (int n = 0; ci_form_more(f, n, count, NULL); n++)
            form_declared(p, block->nodes[first + n]);
        ci_form_text(f, count ? " = " : "");
        k += node->nblocks ? count : 0;
        if (node->nblocks)
            form_region(p, node);
        else if (ci_form_flag(f, "check(", node->op == CI_OP_check))
            form_check(p, node);
        else
            form_call(p, node, &(CiFormType){.kind = CI_KIND_array});
    }
}
