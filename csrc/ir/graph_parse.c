/* Reading a graph's text form. Every node goes through inference, and what the text declares is
 * compared with what was inferred, so a wrong golden file is an error and not another graph. */
#include "ir/text_common.h"
#include "ir/layout.h"

#include <string.h>

typedef struct Parser {
    CiLexer lex;
    CiGraph *g;
    CiMap *values; /* id + 1 of a node, or the address of an interned input name -> CiNode */
    int depth;     /* of blocks inside of each other */
} Parser;

static CiNode *
find_value(Parser *p)
{
    CiLexer *lex = &p->lex;
    CiNode *node = NULL;
    if (ci_lexer_accept(lex, "%")) {
        if (lex->kind == CI_TOKEN_int)
            node = ci_map_find(p->values, (uint64_t)lex->int_value + 1);
    } else if (lex->kind == CI_TOKEN_name) {
        node = ci_map_find(p->values, CI_KEY(lex->string));
    }
    if (!node)
        ci_lexer_fail(lex, "no such value");
    ci_lexer_next(lex);
    return node;
}

static int64_t
parse_id(Parser *p)
{
    ci_lexer_expect(&p->lex, "%");
    int64_t id = ci_lexer_expect_int(&p->lex);
    if (ci_map_find(p->values, (uint64_t)id + 1))
        ci_lexer_fail(&p->lex, "%%%d is defined twice", (int)id);
    return id;
}

static void
define(Parser *p, int64_t id, CiNode *node)
{
    ci_map_put(p->values, (uint64_t)id + 1, node);
}

static void
check_declared(Parser *p, const CiNode *node, const CiFormType *type)
{
    bool fits = node->dtype == type->dtype && node->rank == type->rank;
    for (int k = 0; fits && k < node->rank; k++)
        fits = node->sizes[k] == type->sizes[k];
    if (fits)
        return;
    CiText text = ci_text_new(p->g->ctx);
    ci_form_print_type(&text, node->kind, node->dtype, node->rank, node->sizes, NULL, NULL);
    ci_lexer_fail(&p->lex, "%s is %s, not what is declared before this", ci_op_name(node->op),
                  text.data);
}

/* The order of a value in memory of its own is what the text says; that of a view follows. */
static void
take_declared(Parser *p, CiNode *node, const CiFormType *type)
{
    check_declared(p, node, type);
    node->kind = type->kind;
    if (!ci_node_is_view(node) && node->op != CI_OP_assign && node->op != CI_OP_scatter) {
        node->order = type->order;
        return;
    }
    if (memcmp(node->order, type->order, (size_t)node->rank) != 0)
        ci_lexer_fail(&p->lex, "a view has the order of the memory it sees");
}

/* ---- calls ---- */

static const int *
parse_axes(Parser *p, int *count)
{
    CiLexer *lex = &p->lex;
    int *axes = CI_NEW_ARRAY(lex->ctx, int, CI_MAX_RANK);
    *count = 0;
    ci_lexer_expect(lex, "[");
    while (!ci_lexer_accept(lex, "]")) {
        if (*count)
            ci_lexer_expect(lex, ",");
        if (*count == CI_MAX_RANK)
            ci_lexer_fail(lex, "more than %d axes", CI_MAX_RANK);
        axes[(*count)++] = (int)ci_lexer_expect_int(lex);
    }
    return axes;
}

static const CiExpr *const *
parse_list(Parser *p, int rank)
{
    int count;
    ci_lexer_expect(&p->lex, "[");
    const CiExpr *const *exprs = ci_form_parse_exprs(p->g->sym, &p->lex, "]", &count);
    ci_lexer_expect(&p->lex, "]");
    if (count != rank)
        ci_lexer_fail(&p->lex, "%d entries for %d axes", count, rank);
    return exprs;
}

/* , name= */
static bool
accept_next(CiLexer *lex, const char *name)
{
    CiLexer ahead = *lex;
    ci_lexer_next(&ahead);
    if (!ci_lexer_is(lex, ",") || !ci_lexer_is(&ahead, name))
        return false;
    *lex = ahead;
    ci_lexer_next(lex);
    ci_lexer_expect(lex, "=");
    return true;
}

/* pairwise=[1, 0], inner=1, chunk=8192; or inner=0, alone=1 where s1 */
static void
parse_pairwise(Parser *p, CiNode *node)
{
    CiLexer *lex = &p->lex;
    CiPairwise *pairwise = CI_NEW(lex->ctx, CiPairwise);
    int count;
    ci_lexer_expect(lex, "=");
    pairwise->axes = parse_axes(p, &count);
    ci_lexer_expect(lex, ",");
    ci_lexer_expect(lex, "inner");
    ci_lexer_expect(lex, "=");
    pairwise->ninner = (int)ci_lexer_expect_int(lex);
    if (accept_next(lex, "chunk"))
        pairwise->chunk = ci_expr_parse(p->g->sym, lex);
    if (accept_next(lex, "alone")) {
        pairwise->nalone = (int)ci_lexer_expect_int(lex);
        ci_lexer_expect(lex, "where");
        pairwise->alone = ci_expr_parse(p->g->sym, lex);
    }
    if (count != node->naxes)
        ci_lexer_fail(lex, "an order of %d axes for %d", count, node->naxes);
    node->pairwise = pairwise;
}

static bool
parse_attribute(Parser *p, CiNode *node)
{
    CiLexer *lex = &p->lex;
    if (ci_lexer_accept(lex, "axes")) {
        ci_lexer_expect(lex, "=");
        node->axes = parse_axes(p, &node->naxes);
    } else if (ci_lexer_accept(lex, "axis")) {
        int *axis = CI_NEW(lex->ctx, int);
        ci_lexer_expect(lex, "=");
        *axis = (int)ci_lexer_expect_int(lex);
        node->axes = axis;
        node->naxes = 1;
    } else if (ci_lexer_accept(lex, "pairwise")) {
        parse_pairwise(p, node);
    } else if (ci_lexer_accept(lex, "starts")) {
        ci_lexer_expect(lex, "=");
        node->starts = parse_list(p, node->rank);
    } else if (ci_lexer_accept(lex, "steps")) {
        ci_lexer_expect(lex, "=");
        node->steps = parse_list(p, node->rank);
    } else if (ci_lexer_accept(lex, "offset")) {
        const CiExpr **offset = CI_NEW(lex->ctx, const CiExpr *);
        ci_lexer_expect(lex, "=");
        *offset = ci_expr_parse(p->g->sym, lex);
        node->starts = offset;
    } else if (ci_lexer_accept(lex, "combine")) {
        ci_lexer_expect(lex, "=");
        node->combine = ci_op_find(ci_lexer_expect_name(lex));
        node->is_combined = true;
        if (node->combine == CI_OP_none)
            ci_lexer_fail(lex, "no operation combines so");
    } else if (ci_lexer_accept(lex, "by")) {
        ci_lexer_expect(lex, "=");
        ci_lexer_expect(lex, "numpy");
        if (ci_op_by_numpy(node->op) == CI_OP_none)
            ci_lexer_fail(lex, "no loop of NumPy's computes %s", ci_op_name(node->op));
        node->op = ci_op_by_numpy(node->op);
    } else if (ci_lexer_accept(lex, "distinct")) {
        node->is_distinct = true;
    } else {
        return false;
    }
    return true;
}

static void
parse_arguments(Parser *p, CiNode *node)
{
    int capacity = 0;
    ci_lexer_expect(&p->lex, "(");
    for (int k = 0; !ci_lexer_accept(&p->lex, ")"); k++) {
        if (k)
            ci_lexer_expect(&p->lex, ",");
        if (parse_attribute(p, node))
            continue;
        CiNode *value = find_value(p);
        CI_PUSH(p->g->ctx, node->args, node->nargs, capacity, value);
    }
}

static void
parse_extern(Parser *p, CiNode *node, const char *name)
{
    CiExtern *ext = CI_NEW(p->g->ctx, CiExtern);
    ext->name = name;
    ext->key = "";
    if (ci_lexer_accept(&p->lex, "key"))
        ext->key = ci_form_parse_name(&p->lex);
    node->ext = ext;
}

/* define(%3) u0 in [0, s0): the symbol is declared here. */
static void
parse_defined(Parser *p, CiNode *node)
{
    const CiExpr **starts = CI_NEW_ARRAY(p->g->ctx, const CiExpr *, 2);
    const char *name = ci_lexer_expect_name(&p->lex);
    starts[0] = ci_form_parse_range(p->g->sym, &p->lex, name, &starts[1]);
    node->starts = starts;
}

static void
parse_check(Parser *p)
{
    ci_lexer_expect(&p->lex, "check");
    ci_lexer_expect(&p->lex, "(");
    CiNode *condition = find_value(p);
    CiNode *value = ci_lexer_accept(&p->lex, ",") ? find_value(p) : NULL;
    ci_lexer_expect(&p->lex, ")");
    const char *why = ci_form_parse_name(&p->lex);
    ci_graph_check_of(p->g, condition, value, why, ci_form_parse_loc(&p->lex));
}

static void
parse_operation(Parser *p, CiNode *node)
{
    CiLexer *lex = &p->lex;
    const char *name = ci_lexer_expect_name(lex);
    node->op = ci_op_find(name);
    if (node->op == CI_OP_none || ci_op_public(node->op) != node->op)
        ci_lexer_fail(lex, "no operation is called '%s'", name);
    if (node->op == CI_OP_expr) {
        const CiExpr **e = CI_NEW(lex->ctx, const CiExpr *);
        ci_lexer_expect(lex, "(");
        *e = ci_expr_parse(p->g->sym, lex);
        ci_lexer_expect(lex, ")");
        node->starts = e;
        return;
    }
    if (node->op == CI_OP_extern)
        name = ci_form_parse_name(lex);
    parse_arguments(p, node);
    const char *why = ci_node_why_not(lex->ctx, node);
    if (why)
        ci_lexer_fail(lex, "%s", why);
    if (ci_op_kind(node->op) == CI_OPKIND_extern)
        parse_extern(p, node, name);
    if (node->op == CI_OP_define)
        parse_defined(p, node);
}

static CiNode *
parse_call(Parser *p, const CiFormType *type)
{
    CiLexer *lex = &p->lex;
    CiNode node = {.dtype = type->dtype,
                   .kind = type->kind,
                   .rank = type->rank,
                   .sizes = type->sizes,
                   .order = type->order};
    if (ci_lexer_accept(lex, "const")) {
        node.op = CI_OP_const;
        node.value = ci_const_parse(lex, type->dtype);
    } else {
        parse_operation(p, &node);
    }
    node.loc = ci_form_parse_loc(lex);
    CiNode *made = ci_graph_add(p->g, &node);
    take_declared(p, made, type);
    return made;
}

/* ---- regions ---- */

static void parse_nodes(Parser *p);

static void
parse_results(Parser *p, CiBlock *block, const char *word)
{
    ci_lexer_expect(&p->lex, word);
    if (!ci_lexer_is(&p->lex, "%") &&
        !(p->lex.kind == CI_TOKEN_name && ci_map_find(p->values, CI_KEY(p->lex.string))))
        return;
    do
        ci_graph_block_result(p->g, block, find_value(p));
    while (ci_lexer_accept(&p->lex, ","));
}

static void
parse_block(Parser *p, CiBlock *block, const char *word)
{
    ci_form_enter(&p->lex, &p->depth);
    CiBlock *before = ci_graph_enter(p->g, block);
    parse_nodes(p);
    parse_results(p, block, word);
    ci_graph_enter(p->g, before);
    ci_form_leave(&p->lex, &p->depth);
}

/* carry (%7: python i64[], %8: f32[4] = %3): returns the initial values. */
static CiNode **
parse_carried(Parser *p, CiBlock *block, int *nargs)
{
    CiNode **args = NULL;
    int capacity = 0;
    *nargs = 0;
    ci_lexer_expect(&p->lex, "carry");
    ci_lexer_expect(&p->lex, "(");
    while (!ci_lexer_accept(&p->lex, ")")) {
        if (block->nparams)
            ci_lexer_expect(&p->lex, ",");
        int64_t id = parse_id(p);
        ci_lexer_expect(&p->lex, ":");
        CiFormType type = ci_form_parse_type(p->g->sym, &p->lex);
        define(
            p, id,
            ci_graph_param(p->g, block, type.dtype, type.kind, type.rank, type.sizes, type.order));
        if (ci_lexer_accept(&p->lex, "=")) {
            CiNode *value = find_value(p);
            CI_PUSH(p->g->ctx, args, *nargs, capacity, value);
        }
    }
    return args;
}

static CiNode *
parse_region(Parser *p)
{
    CiLexer *lex = &p->lex;
    CiBlock *blocks[2] = {ci_graph_block(p->g), ci_graph_block(p->g)};
    CiOp op = ci_op_find(ci_lexer_expect_name(lex));
    CiNode **args = NULL, *condition;
    const CiExpr *trip = NULL, *induction = NULL;
    int nargs = 1;
    if (op == CI_OP_if) {
        condition = find_value(p);
        args = &condition;
    } else {
        if (op == CI_OP_for) {
            const char *name = ci_lexer_expect_name(lex);
            ci_lexer_expect(lex, "<");
            trip = ci_expr_parse(p->g->sym, lex);
            induction = ci_expr_index(p->g->sym, name, trip);
        }
        args = parse_carried(p, blocks[0], &nargs);
    }
    CiLoc loc = ci_form_parse_loc(lex);
    parse_block(p, blocks[0], op == CI_OP_if ? "yield" : op == CI_OP_for ? "next" : "test");
    if (op != CI_OP_for) {
        ci_lexer_expect(lex, op == CI_OP_if ? "else" : "do");
        parse_block(p, blocks[1], op == CI_OP_if ? "yield" : "next");
    }
    return ci_graph_region(p->g, op, nargs, args, trip, induction, op == CI_OP_for ? 1 : 2, blocks,
                           loc);
}

static bool
is_region_word(const CiLexer *lex)
{
    return ci_lexer_is(lex, "for") || ci_lexer_is(lex, "while") || ci_lexer_is(lex, "if");
}

typedef struct Declared {
    int64_t id;
    CiFormType type;
} Declared;

static void
bind_results(Parser *p, int count, const Declared *declared)
{
    const CiBlock *block = p->g->at;
    int made = 0;
    while (made < block->nnodes && block->nodes[block->nnodes - 1 - made]->op == CI_OP_result &&
           made < count)
        made++;
    if (made != count)
        ci_lexer_fail(&p->lex, "the region makes another number of results");
    for (int k = 0; k < count; k++) {
        CiNode *node = block->nodes[block->nnodes - count + k];
        check_declared(p, node, &declared[k].type);
        node->kind = declared[k].type.kind;
        define(p, declared[k].id, node);
    }
}

static void
parse_definition(Parser *p)
{
    Declared *declared = NULL;
    int count = 0, capacity = 0;
    do {
        Declared one = {.id = parse_id(p)};
        ci_lexer_expect(&p->lex, ":");
        one.type = ci_form_parse_type(p->g->sym, &p->lex);
        CI_PUSH(p->g->ctx, declared, count, capacity, one);
    } while (ci_lexer_accept(&p->lex, ","));
    ci_lexer_expect(&p->lex, "=");
    if (is_region_word(&p->lex)) {
        parse_region(p);
        bind_results(p, count, declared);
        return;
    }
    if (count != 1)
        ci_lexer_fail(&p->lex, "one result is declared for each operation");
    define(p, declared[0].id, parse_call(p, &declared[0].type));
}

static void
parse_nodes(Parser *p)
{
    for (;;) {
        if (ci_lexer_is(&p->lex, "%"))
            parse_definition(p);
        else if (is_region_word(&p->lex))
            parse_region(p);
        else if (ci_lexer_is(&p->lex, "check"))
            parse_check(p);
        else
            return;
    }
}

/* ---- head ---- */

static void
parse_source(CiGraph *g, CiLexer *lex, const CiExpr *symbol)
{
    CiSymbolSource source = {symbol, 0, -1, 0, true};
    const char *name = ci_lexer_expect_name(lex);
    for (const char *c = name + 2; strncmp(name, "in", 2) == 0 && *c; c++)
        source.input = 10 * source.input + (*c - '0');
    if (ci_lexer_accept(lex, ".")) {
        ci_lexer_expect(lex, "sizes");
        source.axis = (int)ci_lexer_expect_int(lex);
    }
    if (ci_lexer_accept(lex, "hint")) {
        source.hint = ci_lexer_expect_int(lex);
        source.is_unbacked = false;
    }
    CI_PUSH(g->ctx, g->env->sources, g->env->nsources, g->env->capsources, source);
}

const CiExpr *
ci_graph_parse_symbol(CiGraph *g, CiLexer *lex)
{
    const CiExpr *symbol = ci_form_parse_symbol(g->sym, lex);
    if (ci_lexer_accept(lex, "from"))
        parse_source(g, lex, symbol);
    return symbol;
}

static void
parse_symbols(Parser *p)
{
    if (!ci_lexer_accept(&p->lex, "symbols"))
        return;
    ci_lexer_expect(&p->lex, "{");
    do
        ci_graph_parse_symbol(p->g, &p->lex);
    while (ci_lexer_accept(&p->lex, ","));
    ci_lexer_expect(&p->lex, "}");
}

static void
parse_guard(Parser *p)
{
    CiLexer *lex = &p->lex;
    CiShapeGuard guard = {.left = ci_expr_parse(p->g->sym, lex)};
    if (ci_lexer_accept(lex, "<=")) {
        guard.relation = CI_REL_le;
    } else if (ci_lexer_accept(lex, "<")) {
        guard.relation = CI_REL_lt;
    } else if (ci_lexer_accept(lex, "!")) {
        ci_lexer_expect(lex, "=");
        guard.relation = CI_REL_ne;
    } else if (ci_lexer_accept(lex, "!=")) {
        guard.relation = CI_REL_ne;
    } else {
        ci_lexer_expect(lex, "==");
    }
    guard.right = ci_expr_parse(p->g->sym, lex);
    guard.loc = ci_form_parse_loc(lex);
    CI_PUSH(p->g->ctx, p->g->env->guards, p->g->env->nguards, p->g->env->capguards, guard);
}

CiNode *
ci_graph_parse_input(CiGraph *g, CiLexer *lex)
{
    CiFormType type = ci_form_parse_type(g->sym, lex);
    if (type.has_order)
        type.strides = ci_layout_dense_strides(g->ctx, g->sym, type.rank, type.sizes, type.order);
    CiNode *input = ci_graph_input(g, type.dtype, type.kind, type.rank, type.sizes, type.strides);
    input->device = ci_form_parse_device(lex);
    return input;
}

static void
parse_inputs(Parser *p)
{
    ci_lexer_expect(&p->lex, "(");
    while (!ci_lexer_accept(&p->lex, ")")) {
        if (p->g->ninputs)
            ci_lexer_expect(&p->lex, ",");
        const char *name = ci_lexer_expect_name(&p->lex);
        ci_lexer_expect(&p->lex, ":");
        CiNode *input = ci_graph_parse_input(p->g, &p->lex);
        if (strcmp(name, input->name) != 0)
            ci_lexer_fail(&p->lex, "input number %d is called %s", input->index, input->name);
        ci_map_put(p->values, CI_KEY(input->name), input);
    }
}

static void
parse_graph(CiContext *ctx, void *arg)
{
    Parser *p = arg;
    (void)ctx;
    parse_symbols(p);
    while (ci_lexer_accept(&p->lex, "guard"))
        parse_guard(p);
    ci_lexer_expect(&p->lex, "graph");
    p->g->name = ci_form_parse_name(&p->lex);
    parse_inputs(p);
    ci_lexer_expect(&p->lex, "{");
    parse_nodes(p);
    while (ci_lexer_accept(&p->lex, "write")) {
        CiNode *input = find_value(p);
        ci_lexer_expect(&p->lex, "=");
        ci_graph_write(p->g, input, find_value(p));
    }
    parse_results(p, p->g->body, "return");
    ci_lexer_expect(&p->lex, "}");
    if (p->lex.kind != CI_TOKEN_end)
        ci_lexer_fail(&p->lex, "text after the graph");
}

CiGraph *
ci_graph_parse(CiContext *ctx, const char *text)
{
    Parser parser = {.g = ci_graph_new(ctx, ""), .values = ci_map_new(ctx)};
    ci_lexer_init(&parser.lex, ctx, text);
    ci_lexer_run(ctx, &parser.lex, parse_graph, &parser);
    return parser.g;
}
