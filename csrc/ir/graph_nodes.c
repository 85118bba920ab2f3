/* The text of a graph's nodes. Every node that is read goes through inference, and what the text declares
 * is compared with what was inferred, so a wrong golden file is an error and not another graph. */
#include "ir/graph_text.h"

#include <string.h>

/* ---- values ---- */

static CiNode *
find_value(const CiGraphIo *p, CiLexer lex)
{
    if (lex.kind == CI_TOKEN_name)
        return ci_map_find(p->values, CI_KEY(lex.string));
    if (!ci_lexer_accept(&lex, "%") || lex.kind != CI_TOKEN_int)
        return NULL;
    return ci_map_find(p->values, (uint64_t)lex.int_value + 1);
}

CiNode *
ci_graph_io_value(CiGraphIo *p, CiNode *node)
{
    CiTextIo *f = &p->io;
    if (f->out && node->op == CI_OP_input) {
        ci_io_word(f, node->name);
    } else if (f->out) {
        ci_io_text(f, "%");
        ci_io_int(f, node->id);
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
    CiTextType type;
} Declared;

/* %3: f32[4] order [1,0] */
static Declared
io_declared(CiGraphIo *p, const CiNode *node)
{
    CiTextIo *f = &p->io;
    Declared declared = {0};
    if (f->out)
        declared = (Declared){node->id,
                              {.kind = node->kind,
                               .dtype = node->dtype,
                               .rank = node->rank,
                               .sizes = node->sizes,
                               .order = node->order}};
    ci_io_text(f, "%");
    declared.id = ci_io_int(f, declared.id);
    if (!f->out && ci_map_find(p->values, (uint64_t)declared.id + 1))
        ci_lexer_fail(&f->lex, "%%%d is defined twice", (int)declared.id);
    ci_io_text(f, ": ");
    ci_io_type(f, &declared.type);
    return declared;
}

static void
define(CiGraphIo *p, int64_t id, CiNode *node)
{
    ci_map_put(p->values, (uint64_t)id + 1, node);
}

static void
check_declared(CiGraphIo *p, const CiNode *node, const CiTextType *type)
{
    bool fits = node->dtype == type->dtype && node->rank == type->rank;
    for (int k = 0; fits && k < node->rank; k++)
        fits = node->sizes[k] == type->sizes[k];
    if (fits)
        return;
    CiText text = ci_text_new(p->g->ctx);
    CiTextIo shown = ci_io_printer(p->g->ctx, p->g->sym, &text);
    CiTextType made = {.kind = node->kind, .dtype = node->dtype, .rank = node->rank, .sizes = node->sizes};
    ci_io_type(&shown, &made);
    ci_lexer_fail(&p->io.lex, "%s is %s, not what is declared before this", ci_op_name(node->op),
                  text.data);
}

/* The order of a value in memory of its own is what the text says; that of a view follows. */
static void
take_declared(CiGraphIo *p, CiNode *node, const CiTextType *type)
{
    check_declared(p, node, type);
    node->kind = type->kind;
    if (!ci_node_is_view(node) && node->op != CI_OP_assign && node->op != CI_OP_scatter) {
        node->order = type->order;
        return;
    }
    if (memcmp(node->order, type->order, (size_t)node->rank) != 0)
        ci_lexer_fail(&p->io.lex, "a view has the order of the memory it sees");
}

/* ---- calls ---- */

/* [1, 0] */
static const int *
io_axes(CiTextIo *f, const int *axes, int *count)
{
    int *read = f->out ? NULL : CI_NEW_ARRAY(f->ctx, int, CI_MAX_RANK);
    bool has_any = f->out || !ci_io_is(f, "[]");
    ci_io_text(f, "[");
    for (int k = 0; has_any && ci_io_more(f, k, *count, NULL); k++) {
        if (k == CI_MAX_RANK)
            ci_lexer_fail(&f->lex, "more than %d axes", CI_MAX_RANK);
        int axis = (int)ci_io_int(f, f->out ? axes[k] : 0);
        if (!f->out)
            read[k] = axis, *count = k + 1;
    }
    ci_io_text(f, "]");
    return f->out ? axes : read;
}

static const CiExpr *const *
io_list(CiTextIo *f, int rank, const CiExpr *const *exprs)
{
    int count = rank;
    if (f->out) {
        for (int k = 0; ci_io_more(f, k, rank, NULL); k++) {
            const CiExpr *e = exprs[k];
            ci_io_expr(f, "", &e, "");
        }
        ci_io_text(f, "]");
        return exprs;
    }
    ci_io_exprs(f, &count, &exprs, "]");
    if (count != rank)
        ci_lexer_fail(&f->lex, "%d entries for %d axes", count, rank);
    return exprs;
}

/* The one expression that a node has. */
static const CiExpr *const *
io_only(CiTextIo *f, const CiExpr *const *exprs, const char *after)
{
    const CiExpr **only = CI_NEW(f->ctx, const CiExpr *);
    *only = f->out ? exprs[0] : NULL;
    ci_io_expr(f, "", only, after);
    return only;
}

/* [1, 0], inner=1, chunk=8192; or [1, 0], inner=0, alone=1 where s1 */
static CiPairwise *
io_pairwise(CiTextIo *f, const CiNode *node)
{
    CiPairwise *pairwise = CI_NEW(f->ctx, CiPairwise);
    int count = node->naxes;
    if (f->out)
        *pairwise = *node->pairwise;
    pairwise->axes = io_axes(f, pairwise->axes, &count);
    ci_io_text(f, ", inner=");
    pairwise->ninner = (int)ci_io_int(f, pairwise->ninner);
    ci_io_if(f, ", chunk=", &pairwise->chunk, "");
    if (ci_io_flag(f, ", alone=", pairwise->alone != NULL)) {
        pairwise->nalone = (int)ci_io_int(f, pairwise->nalone);
        ci_io_expr(f, " where ", &pairwise->alone, "");
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
has_attribute(CiTextIo *f, const CiNode *node, const char *name, bool is)
{
    if (f->out && !is)
        return false;
    return ci_io_flag(f, node->nargs ? ci_format(f->ctx, ", %s", name) : name, is);
}

static void
io_attributes(CiTextIo *f, CiNode *node)
{
    bool is_one_axis = node->op == CI_OP_iota || node->op == CI_OP_concat ||
                       node->op == CI_OP_window || ci_op_kind(node->op) == CI_OPKIND_scan;
    if (!f->out && ci_lexer_is(&f->lex, ")"))
        return;
    if (has_attribute(f, node, "axis=", is_one_axis)) {
        int *axis = CI_NEW(f->ctx, int);
        *axis = (int)ci_io_int(f, f->out ? node->axes[0] : 0);
        node->axes = axis;
        node->naxes = 1;
    } else if (has_attribute(f, node, "axes=", !is_one_axis && has_axes(node))) {
        node->axes = io_axes(f, node->axes, &node->naxes);
    }
    if (has_attribute(f, node, "pairwise=", node->pairwise != NULL))
        node->pairwise = io_pairwise(f, node);
    if (has_attribute(f, node, "by=numpy", ci_op_kind(node->op) == CI_OPKIND_ufunc)) {
        if (!f->out && ci_op_by_numpy(node->op) == CI_OP_none)
            ci_lexer_fail(&f->lex, "no loop of NumPy's computes %s", ci_op_name(node->op));
        node->op = f->out ? node->op : ci_op_by_numpy(node->op);
    }
    bool is_scatter = node->op == CI_OP_scatter;
    if (has_attribute(f, node, "combine=", is_scatter && node->is_combined)) {
        node->combine = ci_io_op(f, node->combine);
        node->is_combined = true;
    }
    node->is_distinct = has_attribute(f, node, "distinct", is_scatter && node->is_distinct);
    if (has_attribute(f, node, "starts=[", node->op == CI_OP_slice))
        node->starts = io_list(f, node->rank, node->starts);
    if (has_attribute(f, node, "steps=[", node->op == CI_OP_slice))
        node->steps = io_list(f, node->rank, node->steps);
    if (has_attribute(f, node, "offset=", node->op == CI_OP_diagonal))
        node->starts = io_only(f, node->starts, "");
}

static bool
has_argument(CiGraphIo *p, int k, int count)
{
    CiLexer ahead = p->io.lex;
    if (!p->io.out && !(k ? ci_lexer_accept(&ahead, ",") && find_value(p, ahead)
                            : ci_lexer_is(&ahead, "%") || find_value(p, ahead)))
        return k && ci_lexer_is(&ahead, "%");
    return ci_io_more(&p->io, k, count, NULL);
}

static void
io_arguments(CiGraphIo *p, CiNode *node)
{
    int capacity = 0;
    ci_io_text(&p->io, "(");
    for (int k = 0; has_argument(p, k, node->nargs); k++) {
        CiNode *value = ci_graph_io_value(p, p->io.out ? node->args[k] : NULL);
        if (!p->io.out)
            CI_PUSH(p->io.ctx, node->args, node->nargs, capacity, value);
    }
    io_attributes(&p->io, node);
    ci_io_text(&p->io, ")");
}

/* check(%1, %2) "why": there is no such value as %2 for a condition alone. */
static void
io_check(CiGraphIo *p, const CiNode *node)
{
    CiTextIo *f = &p->io;
    CiNode *condition = ci_graph_io_value(p, f->out ? node->args[0] : NULL), *value = NULL;
    if (ci_io_flag(f, ", ", f->out && node->nargs > 1))
        value = ci_graph_io_value(p, f->out ? node->args[1] : NULL);
    ci_io_text(f, ") ");
    const char *why = ci_io_string(f, f->out ? node->name : NULL);
    CiLoc loc = ci_io_loc(f, "  ", f->out ? node->loc : (CiLoc){0});
    ci_io_text(f, "\n");
    if (!f->out)
        ci_graph_check_of(p->g, condition, value, why, loc);
}

static void
io_operation(CiGraphIo *p, CiNode *node)
{
    CiTextIo *f = &p->io;
    CiExtern *ext = (CiExtern *)(uintptr_t)node->ext;
    const char *name = ci_io_word(f, f->out ? ci_op_name(ci_op_public(node->op)) : NULL);
    node->op = f->out ? node->op : ci_op_find(name);
    if (!f->out && (node->op == CI_OP_none || ci_op_public(node->op) != node->op))
        ci_lexer_fail(&f->lex, "no operation is called '%s'", name);
    if (node->op == CI_OP_expr) {
        ci_io_text(f, "(");
        node->starts = io_only(f, node->starts, ")");
        return;
    }
    if (node->op == CI_OP_extern) {
        ci_io_text(f, " ");
        name = ci_io_name(f, ext ? ext->name : "");
    }
    io_arguments(p, node);
    const char *why = f->out ? NULL : ci_node_why_not(f->ctx, node);
    if (why)
        ci_lexer_fail(&f->lex, "%s", why);
    if (ci_op_kind(node->op) == CI_OPKIND_extern) {
        const char *key = ext && ext->key ? ext->key : "";
        if (ci_io_flag(f, " key ", *key))
            key = ci_io_string(f, key);
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
        ci_io_text(f, " ");
        starts[0] = ci_io_bounded(f, starts[0], &starts[1]);
        node->starts = starts;
    }
}

/* const 1.5; add(%1, %2); and its place */
static CiNode *
io_call(CiGraphIo *p, CiNode *node, const CiTextType *type)
{
    CiTextIo *f = &p->io;
    CiNode made = {.op = CI_OP_none, .dtype = type->dtype, .kind = type->kind, .rank = type->rank,
                   .sizes = type->sizes, .order = type->order};
    made = f->out ? *node : made;
    if (ci_io_flag(f, "const ", made.op == CI_OP_const)) {
        made.op = CI_OP_const;
        made.value = ci_io_const(f, made.dtype, made.value);
    } else {
        io_operation(p, &made);
    }
    made.loc = ci_io_loc(f, "  ", made.loc);
    ci_io_text(f, "\n");
    if (f->out)
        return node;
    node = ci_graph_add(p->g, &made);
    take_declared(p, node, type);
    return node;
}

/* ---- regions ---- */

void
ci_graph_io_results(CiGraphIo *p, CiBlock *block, const char *word)
{
    CiTextIo *f = &p->io;
    bool has_any = f->out ? block->nresults : ci_io_is(f, ci_format(f->ctx, "%s %%", word));
    ci_io_indent(f);
    ci_io_text(f, word);
    has_any = has_any || (!f->out && find_value(p, f->lex));
    ci_io_text(f, has_any ? " " : "");
    for (int k = 0; has_any && ci_io_more(f, k, block->nresults, NULL); k++) {
        CiNode *value = ci_graph_io_value(p, f->out ? block->results[k] : NULL);
        if (!f->out)
            ci_graph_block_result(p->g, block, value);
    }
    ci_io_text(f, "\n");
}

static void
io_block(CiGraphIo *p, CiBlock *block, const char *word, const char *close)
{
    CiBlock *before = p->io.out ? NULL : ci_graph_enter(p->g, block);
    ci_io_enter(&p->io, " {\n");
    ci_graph_io_nodes(p, block);
    ci_graph_io_results(p, block, word);
    if (!p->io.out)
        ci_graph_enter(p->g, before);
    ci_io_leave(&p->io, close);
}

/* carry (%7: python i64[], %8: f32[4] = %3): returns the initial values; the induction has none. */
static CiNode **
io_carried(CiGraphIo *p, CiBlock *block, CiNode *const *initial, int *nargs)
{
    CiTextIo *f = &p->io;
    CiNode **args = NULL;
    int capacity = 0, skip = f->out ? block->nparams - *nargs : 0;
    ci_io_text(f, " carry (");
    bool has_any = f->out || !ci_lexer_is(&f->lex, ")");
    for (int k = 0; has_any && ci_io_more(f, k, block->nparams, NULL); k++) {
        Declared one = io_declared(p, f->out ? block->params[k] : NULL);
        const CiTextType *type = &one.type;
        if (!f->out)
            define(p, one.id, ci_graph_param(p->g, block, type->dtype, type->kind, type->rank,
                                             type->sizes, type->order));
        if (!ci_io_flag(f, " = ", k >= skip))
            continue;
        CiNode *value = ci_graph_io_value(p, f->out ? initial[k - skip] : NULL);
        if (!f->out)
            CI_PUSH(f->ctx, args, *nargs, capacity, value);
    }
    ci_io_text(f, ")");
    return args;
}

static void
io_region(CiGraphIo *p, const CiNode *node)
{
    CiTextIo *f = &p->io;
    CiBlock *blocks[2];
    for (int b = 0; b < 2; b++)
        blocks[b] = !f->out ? ci_graph_block(p->g) : b < node->nblocks ? node->blocks[b] : NULL;
    CiOp op = ci_io_op(f, f->out ? node->op : CI_OP_none);
    CiNode **args = NULL, *condition;
    const CiExpr *trip_count = f->out && op == CI_OP_for ? node->starts[0] : NULL, *induction = NULL;
    int nargs = f->out ? node->nargs : op == CI_OP_if;
    if (op == CI_OP_if) {
        ci_io_text(f, " ");
        condition = ci_graph_io_value(p, f->out ? node->args[0] : NULL);
        args = &condition;
    } else {
        if (op == CI_OP_for) {
            ci_io_text(f, " ");
            const char *name = ci_io_word(f, f->out ? node->starts[1]->name : NULL);
            ci_io_expr(f, "<", &trip_count, "");
            induction = f->out ? NULL : ci_expr_index(f->sym, name, trip_count);
        }
        args = io_carried(p, blocks[0], f->out ? node->args : NULL, &nargs);
    }
    CiLoc loc = ci_io_loc(f, " ", f->out ? node->loc : (CiLoc){0});
    io_block(p, blocks[0], op == CI_OP_if ? "yield" : op == CI_OP_for ? "next" : "test", "}");
    if (op != CI_OP_for) {
        ci_io_text(f, op == CI_OP_if ? " else" : " do");
        io_block(p, blocks[1], op == CI_OP_if ? "yield" : "next", "}");
    }
    ci_io_text(f, "\n");
    if (!f->out)
        ci_graph_region(p->g, op, nargs, args, trip_count, induction, op == CI_OP_for ? 1 : 2, blocks, loc);
}

static bool
is_region_word(const CiLexer *lex)
{
    return ci_lexer_is(lex, "for") || ci_lexer_is(lex, "while") || ci_lexer_is(lex, "if");
}

static void
bind_results(CiGraphIo *p, int count, const Declared *declared)
{
    const CiBlock *block = p->g->at;
    int made = 0;
    while (made < block->nnodes && block->nodes[block->nnodes - 1 - made]->op == CI_OP_result &&
           made < count)
        made++;
    if (made != count)
        ci_lexer_fail(&p->io.lex, "the region makes another number of results");
    for (int k = 0; k < count; k++) {
        CiNode *node = block->nodes[block->nnodes - count + k];
        check_declared(p, node, &declared[k].type);
        node->kind = declared[k].type.kind;
        define(p, declared[k].id, node);
    }
}

static void
read_definition(CiGraphIo *p)
{
    CiTextIo *f = &p->io;
    Declared *declared = NULL;
    int count = 0, capacity = 0;
    do
        CI_PUSH(f->ctx, declared, count, capacity, io_declared(p, NULL));
    while (ci_io_flag(f, ",", false));
    ci_io_text(f, "=");
    if (is_region_word(&f->lex)) {
        io_region(p, NULL);
        bind_results(p, count, declared);
        return;
    }
    if (count != 1)
        ci_lexer_fail(&f->lex, "one result is declared for each operation");
    define(p, declared[0].id, io_call(p, NULL, &declared[0].type));
}

static void
read_nodes(CiGraphIo *p)
{
    for (;;) {
        if (ci_lexer_is(&p->io.lex, "%"))
            read_definition(p);
        else if (is_region_word(&p->io.lex))
            io_region(p, NULL);
        else if (ci_io_flag(&p->io, "check(", false))
            io_check(p, NULL);
        else
            return;
    }
}

/* The results of a region, which follow it, are in its line. */
void
ci_graph_io_nodes(CiGraphIo *p, const CiBlock *block)
{
    CiTextIo *f = &p->io;
    if (!f->out) {
        read_nodes(p);
        return;
    }
    for (int k = 0; k < block->nnodes; k++) {
        CiNode *node = block->nodes[k];
        int count = node->dtype != CI_DTYPE_none && !node->nblocks, first = k + (node->nblocks > 0);
        while (node->nblocks && first + count < block->nnodes && block->nodes[first + count]->op == CI_OP_result)
            count++;
        ci_io_indent(f);
        for (int n = 0; ci_io_more(f, n, count, NULL); n++)
            io_declared(p, block->nodes[first + n]);
        ci_io_text(f, count ? " = " : "");
        k += node->nblocks ? count : 0;
        if (node->nblocks)
            io_region(p, node);
        else if (ci_io_flag(f, "check(", node->op == CI_OP_check))
            io_check(p, node);
        else
            io_call(p, node, &(CiTextType){.kind = CI_KIND_array});
    }
}
