/* Patterns: text to terms, terms against nodes, terms to nodes. Nothing is kept between passes:
 * compiling a table costs some microseconds and needs no global state. */
#include "base/lexer.h"
#include "passes/rewrite.h"

#include <math.h>
#include <string.h>

#define MAX_VARIABLES 8
#define MAX_OPERANDS 3

typedef enum TermKind { TERM_variable, TERM_number, TERM_call, TERM_inverse, TERM_let } TermKind;

typedef struct Term Term;
struct Term {
    TermKind kind;
    int variable;     /* variable, let */
    const char *type; /* the text after the colon, or NULL */
    CiOp op;          /* call */
    double number;
    int nargs;
    Term *args[MAX_OPERANDS];
};

struct CiPattern {
    Term *pattern, *replacement;
    bool is_users;
};

typedef struct Compiler {
    CiLexer lex;
    const char *names[MAX_VARIABLES];
    int nnames;
    bool may_bind; /* a name that is new stands for something here */
    bool is_users, is_replacement;
} Compiler;

/* ---- compiling ---- */

static int
find_variable(Compiler *c, const char *name)
{
    for (int k = 0; k < c->nnames; k++)
        if (c->names[k] == name)
            return k;
    if (!c->may_bind)
        ci_lexer_fail(&c->lex, "%s stands for nothing", name);
    if (c->nnames == MAX_VARIABLES)
        ci_lexer_fail(&c->lex, "more than %d variables", MAX_VARIABLES);
    c->names[c->nnames] = name;
    return c->nnames++;
}

static bool
is_class(const char *type)
{
    static const char *const classes[] = {"int",     "real",   "float",
                                          "complex", "narrow", "power_of_two"};
    for (size_t k = 0; k < sizeof classes / sizeof *classes; k++)
        if (strcmp(type, classes[k]) == 0)
            return true;
    return false;
}

static const char *
compile_type(Compiler *c)
{
    if (!ci_lexer_accept(&c->lex, ":"))
        return NULL;
    const char *type = ci_lexer_expect_name(&c->lex);
    if (!is_class(type) && ci_dtype_find(type) == CI_DTYPE_none)
        ci_lexer_fail(&c->lex, "there is no type %s", type);
    return type;
}

/* A pattern can ask for any operation of a graph; a replacement can make those that need nothing
 * but operands. */
static void
check_op(Compiler *c, const Term *term)
{
    const char *name = ci_op_name(term->op);
    const char *why = c->is_users ? ci_op_why_never_in_graphs(term->op) : NULL;
    bool is_vague = !term->type || (is_class(term->type) && strcmp(term->type, "narrow"));

    if (why)
        ci_lexer_fail(&c->lex, "%s is in no pattern: %s", name, why);
    if (!c->is_replacement)
        return;
    if (term->op == CI_OP_cast && is_vague)
        ci_lexer_fail(&c->lex, "cast needs a dtype: cast:f32");
    if (term->op != CI_OP_cast && !ci_op_is_elementwise(term->op))
        ci_lexer_fail(&c->lex, "%s is no element-wise operation, so no replacement has it", name);
}

static Term *compile_term(Compiler *c);

static void
compile_call(Compiler *c, Term *term)
{
    const char *name = ci_lexer_expect_name(&c->lex);
    term->kind = strcmp(name, "let") == 0       ? TERM_let
                 : strcmp(name, "inverse") == 0 && !c->is_users ? TERM_inverse
                                                : TERM_call;
    term->type = compile_type(c);
    if (term->kind == TERM_let) {
        bool may_bind = c->may_bind;
        c->may_bind = true;
        term->variable = find_variable(c, ci_lexer_expect_name(&c->lex));
        c->may_bind = may_bind;
    }
    if (term->kind == TERM_call && (term->op = ci_op_find(name)) == CI_OP_none)
        ci_lexer_fail(&c->lex, "no operation is called %s", name);
    if (term->kind == TERM_call)
        check_op(c, term);
    while (!ci_lexer_accept(&c->lex, ")")) {
        if (term->nargs == MAX_OPERANDS)
            ci_lexer_fail(&c->lex, "more than %d operands", MAX_OPERANDS);
        term->args[term->nargs++] = compile_term(c);
    }
    int wanted = term->kind == TERM_let       ? 2
                 : term->kind == TERM_inverse ? 1
                                              : ci_op_arity(term->op);
    if (wanted >= 0 && term->nargs != wanted)
        ci_lexer_fail(&c->lex, "%s takes %d operands, not %d", name, wanted, term->nargs);
}

static Term *
compile_term(Compiler *c)
{
    CiLexer *lex = &c->lex;
    Term *term = CI_NEW(lex->ctx, Term);
    if (ci_lexer_accept(lex, "(")) {
        compile_call(c, term);
        return term;
    }
    if (lex->kind == CI_TOKEN_name) {
        term->kind = TERM_variable;
        term->variable = find_variable(c, ci_lexer_expect_name(lex));
    } else {
        bool is_negative = ci_lexer_accept(lex, "-");
        double value = lex->kind == CI_TOKEN_float ? lex->float_value : (double)lex->int_value;
        if (lex->kind != CI_TOKEN_float && lex->kind != CI_TOKEN_int)
            ci_lexer_fail(lex, "expected a number");
        ci_lexer_next(lex);
        term->kind = TERM_number;
        term->number = is_negative ? -value : value;
    }
    term->type = compile_type(c);
    return term;
}

static Term *
compile_text(Compiler *c, CiContext *ctx, const char *text)
{
    ci_lexer_init(&c->lex, ctx, text);
    Term *term = compile_term(c);
    if (c->lex.kind != CI_TOKEN_end)
        ci_lexer_fail(&c->lex, "unexpected text after it");
    return term;
}

CiPattern *
ci_pattern_compile(CiContext *ctx, const CiRule *rule)
{
    CiPattern *pattern = CI_NEW(ctx, CiPattern);
    Compiler c = {.may_bind = true, .is_users = rule->is_users};
    pattern->is_users = rule->is_users;
    pattern->pattern = compile_text(&c, ctx, rule->pattern);
    if (pattern->pattern->kind != TERM_call)
        ci_lexer_fail(&c.lex, "a pattern is an operation");
    c.may_bind = false;
    c.is_replacement = true;
    pattern->replacement = compile_text(&c, ctx, rule->replacement);
    return pattern;
}

CiOp
ci_pattern_root(const CiPattern *pattern)
{
    return pattern->pattern->op;
}

/* ---- matching ---- */

static CiConst
number_of(CiDtype dtype, double number)
{
    return ci_dtype_is_integral(dtype) ? ci_const_int(dtype, (int64_t)number)
                                       : ci_const_double(dtype, number);
}

static bool
is_power_of_two(const CiNode *node)
{
    int exponent;
    if (node->op != CI_OP_const || !ci_dtype_is_float(node->dtype) || !isfinite(node->value.re))
        return false;
    bool is_half = fabs(frexp(node->value.re, &exponent)) == 0.5;
    int limit = (1 << (ci_dtype_exponent(node->dtype) - 1)) - 2;
    return is_half && exponent > -limit && exponent <= limit;
}

static bool
has_type(const CiNode *node, const char *type)
{
    CiClass class = ci_dtype_class(node->dtype);
    if (!type)
        return true;
    if (strcmp(type, "int") == 0)
        return class == CI_CLASS_int || class == CI_CLASS_uint;
    if (strcmp(type, "real") == 0)
        return class != CI_CLASS_complex;
    if (strcmp(type, "float") == 0)
        return class == CI_CLASS_float;
    if (strcmp(type, "complex") == 0)
        return class == CI_CLASS_complex;
    if (strcmp(type, "narrow") == 0)
        return ci_dtype_is_narrow(node->dtype);
    if (strcmp(type, "power_of_two") == 0)
        return is_power_of_two(node);
    return strcmp(type, ci_dtype_name(node->dtype)) == 0;
}

typedef struct Bindings {
    CiNode *nodes[MAX_VARIABLES];
    bool is_users;
    bool has_numpys; /* NumPy's loop computes a function that has matched */
} Bindings;

static bool match(const Term *term, CiNode *node, Bindings *bindings);

static bool
match_args(const Term *term, const CiNode *node, bool is_swapped, Bindings *bindings)
{
    Bindings attempt = *bindings;
    for (int k = 0; k < term->nargs; k++)
        if (!match(term->args[k], node->args[is_swapped ? 1 - k : k], &attempt))
            return false;
    *bindings = attempt;
    return true;
}

static bool
match(const Term *term, CiNode *node, Bindings *bindings)
{
    if (!has_type(node, term->type))
        return false;
    while (term->kind == TERM_number && node->op == CI_OP_expand)
        node = node->args[0];
    if (term->kind == TERM_number)
        return node->op == CI_OP_const &&
               ci_const_equal(node->dtype, node->value, number_of(node->dtype, term->number));
    if (term->kind == TERM_variable) {
        if (!bindings->nodes[term->variable])
            bindings->nodes[term->variable] = node;
        return bindings->nodes[term->variable] == node;
    }
    CiOp op = bindings->is_users ? ci_op_public(node->op) : node->op;
    if (op != term->op || node->nargs != term->nargs)
        return false;
    bindings->has_numpys |= op != node->op;
    return match_args(term, node, false, bindings) ||
           (ci_op_has(term->op, CI_FACT_commutes) && match_args(term, node, true, bindings));
}

/* ---- building ---- */

typedef struct Builder {
    CiGraph *g;
    CiNode *root; /* what is replaced: gives location and kind, and the dtype of lone numbers */
    Bindings bindings;
} Builder;

/* A number beside an array is NumPy's; among Python's own it stays Python's. */
static CiNode *
build_number(Builder *b, double number, const CiNode *neighbour)
{
    CiKind kind = neighbour->kind == CI_KIND_python ? CI_KIND_python : CI_KIND_scalar;
    return ci_graph_const(b->g, neighbour->dtype, kind, number_of(neighbour->dtype, number),
                          b->root->loc);
}

static CiNode *build(Builder *b, const Term *term);

/* `narrow` names that of the node which is replaced. */
static CiDtype
named_dtype(const Builder *b, const char *type)
{
    return strcmp(type, "narrow") == 0 ? b->root->dtype : ci_dtype_find(type);
}

/* Numbers are built last, when the dtype of their neighbours is known. */
static CiNode *
build_call(Builder *b, const Term *term)
{
    CiNode *args[MAX_OPERANDS] = {NULL};
    CiNode *neighbour = NULL;
    for (int k = 0; k < term->nargs; k++) {
        if (term->args[k]->kind == TERM_number)
            continue;
        args[k] = build(b, term->args[k]);
        if (!neighbour && (term->op != CI_OP_where || k > 0))
            neighbour = args[k];
    }
    for (int k = 0; k < term->nargs; k++)
        if (!args[k])
            args[k] = build_number(b, term->args[k]->number, neighbour ? neighbour : b->root);
    if (term->op == CI_OP_cast)
        return ci_graph_cast(b->g, args[0], named_dtype(b, term->type), b->root->loc);
    CiOp numpys = b->bindings.has_numpys ? ci_op_by_numpy(term->op) : CI_OP_none;
    bool has_loop = numpys != CI_OP_none && !ci_op_why_not(numpys, args[0]->dtype);
    return ci_graph_pointwise(b->g, has_loop ? numpys : term->op, term->nargs, args, b->root->loc);
}

static CiNode *
build(Builder *b, const Term *term)
{
    switch (term->kind) {
    case TERM_variable:
        CI_REQUIRE(b->g->ctx, b->bindings.nodes[term->variable]);
        return b->bindings.nodes[term->variable];
    case TERM_number:
        return build_number(b, term->number, b->root);
    case TERM_inverse: {
        CiNode *constant = build(b, term->args[0]);
        CiConst value = ci_const_double(constant->dtype, 1.0 / constant->value.re);
        return ci_graph_const(b->g, constant->dtype, constant->kind, value, b->root->loc);
    }
    case TERM_let:
        b->bindings.nodes[term->variable] = build(b, term->args[0]);
        return build(b, term->args[1]);
    default:
        return build_call(b, term);
    }
}

CiNode *
ci_pattern_apply(CiGraph *g, const CiPattern *pattern, CiNode *node)
{
    Builder b = {.g = g, .root = node, .bindings = {.is_users = pattern->is_users}};
    return match(pattern->pattern, node, &b.bindings) ? build(&b, pattern->replacement) : NULL;
}
