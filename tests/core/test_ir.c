/* Tests dtypes, layouts, builders, text forms, verifiers and passes in the cases that a golden
 * file cannot express. */
#include "ci_test.h"

#include <math.h>
#include <time.h>

#include "base/map.h"
#include "ir/graph.h"
#include "ir/layout.h"
#include "ir/loop.h"
#include "passes/pass.h"

static const CiLoc NOWHERE = {.file = ""};

/* ---- bodies ---- */

typedef struct Linked {
    int nbinds, nargs;
} Linked;

/* An element whose index is a sum of `nargs` loaded values. */
static void
body_link(CiContext *ctx, void *arg)
{
    Linked *linked = arg;
    CiSym *sym = ci_sym_new(ctx);
    CiBody body = {.ops = CI_NEW_ARRAY(ctx, CiScalar, linked->nbinds + 1)};
    CiScalar load = {.op = CI_OP_load};
    const CiExpr *sum = ci_expr_const(sym, 0);
    for (; body.nops < linked->nbinds; body.nops++) {
        const char *name = ci_format(ctx, "b%d", body.nops);
        const CiExpr *symbol = ci_expr_symbol(sym, name, CI_SYMBOL_size, 0, 9);
        body.ops[body.nops] = (CiScalar){.op = CI_OP_bind, .index = symbol};
        sum = ci_expr_add(sym, sum, symbol);
    }
    ci_body_link(ctx, &body, &load, sum);
    linked->nargs = load.nargs;
}

TEST(an_index_depends_on_as_many_others_as_there_is_room_for)
{
    CiContext *own = ci_context_open();
    Linked most = {.nbinds = CI_MAX_OPERANDS}, more = {.nbinds = CI_MAX_OPERANDS + 1};
    CHECK(ci_protect(own, body_link, &most) == CI_OK);
    CHECK_INT(most.nargs, CI_MAX_OPERANDS);
    CHECK(ci_protect(own, body_link, &more) == CI_ERR_LOWERING);
    CHECK_TEXT(ci_context_message(own), "an index depends on more than 4 others");
    ci_context_close(own);
}

/* ---- dtypes ---- */

TEST(halves_round_trip)
{
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float value = ci_narrow_to_float(CI_DTYPE_f16, (uint16_t)bits);
        bool is_nan = (bits & 0x7fff) > 0x7c00;
        CHECK(isnan(value) ? is_nan : ci_narrow_from(CI_DTYPE_f16, value) == bits);
    }
}

TEST(halves_round_to_nearest_even)
{
    CHECK_INT(ci_narrow_from(CI_DTYPE_f16, 65519.0f), 0x7bff);
    CHECK_INT(ci_narrow_from(CI_DTYPE_f16, 65520.0f), 0x7c00);
    CHECK_INT(ci_narrow_from(CI_DTYPE_f16, 2049.0f), ci_narrow_from(CI_DTYPE_f16, 2048.0f));
    CHECK_INT(ci_narrow_from(CI_DTYPE_f16, 2051.0f), ci_narrow_from(CI_DTYPE_f16, 2052.0f));
    CHECK_INT(ci_narrow_from(CI_DTYPE_f16, 0x1p-25f), 0);
    CHECK_INT(ci_narrow_from(CI_DTYPE_f16, 0x1.8p-25f), 1);
    CHECK_INT(ci_narrow_from(CI_DTYPE_f16, -0x1p-24f), 0x8001);
    CHECK_INT(ci_narrow_from(CI_DTYPE_f16, 0x1.ffcp-15f), 0x3ff + 1);
    /* f64 is rounded to f16 once: rounding through f32 would produce a tie. */
    CHECK(ci_const_double(CI_DTYPE_f16, 1.0 + 0x1p-11 + 0x1p-40).re == 1.0 + 0x1p-10);
}

TEST(casts_are_those_of_c)
{
    CHECK_INT(ci_const_int(CI_DTYPE_i8, 200).i, -56);
    CHECK_INT(ci_const_int(CI_DTYPE_u8, -1).i, 255);
    CHECK_INT(ci_const_int(CI_DTYPE_bool, -7).i, 1);
    CHECK_INT(ci_const_double(CI_DTYPE_i32, -2.9).i, -2);
    CHECK_INT(ci_const_double(CI_DTYPE_i32, 1e10).i, INT32_MIN);
    CHECK_INT(ci_const_double(CI_DTYPE_i64, -1e300).i, INT64_MIN);
    CHECK_INT(ci_const_double(CI_DTYPE_bool, (double)NAN).i, 1);
    CHECK((uint64_t)ci_const_double(CI_DTYPE_u64, 0x1.8p63).i == UINT64_C(3) << 62);
    CHECK_INT(ci_const_double(CI_DTYPE_i16, (double)NAN).i, 0);
    /* 2^24 + 1 is a tie of f32; through double it would be the same, 2^53 + 2^29 + 1 would not. */
    CHECK(ci_const_int(CI_DTYPE_f32, (INT64_C(1) << 53) + (1 << 29) + 1).re == 0x1p53 + 0x1p30);
    CiConst big = {-1, 0.0, 0.0};
    CHECK(ci_const_cast(big, CI_DTYPE_u64, CI_DTYPE_f64).re == 0x1p64);
    CiConst complex = {0, 0.0, 2.0};
    CHECK_INT(ci_const_cast(complex, CI_DTYPE_c128, CI_DTYPE_bool).i, 1);
    CHECK(ci_const_double(CI_DTYPE_f32, 0.1).re == (double)0.1f);
}

TEST(constants_go_through_memory)
{
    char memory[16];
    for (int dtype = 0; dtype < CI_DTYPE_COUNT; dtype++) {
        CiConst value = ci_const_double((CiDtype)dtype, -3.0);
        ci_const_store((CiDtype)dtype, value, memory);
        CHECK(ci_const_equal((CiDtype)dtype, ci_const_load((CiDtype)dtype, memory), value));
    }
    CHECK(!ci_const_equal(CI_DTYPE_f64, ci_const_double(CI_DTYPE_f64, 0.0), ci_const_double(CI_DTYPE_f64, -0.0)));
    CHECK(ci_const_equal(CI_DTYPE_f64, ci_const_double(CI_DTYPE_f64, (double)NAN),
                         ci_const_double(CI_DTYPE_f64, -(double)NAN)));
}

/* ---- ops ---- */

TEST(operations_answer_for_their_rows)
{
    CHECK_TEXT(ci_op_why_not(CI_OP_subtract, CI_DTYPE_bool), "subtract of bool");
    CHECK(!ci_op_why_not(CI_OP_exp, CI_DTYPE_f16));
    CHECK_TEXT(ci_op_why_not(CI_OP_exp, CI_DTYPE_u8), "exp of unsigned integers");
    CHECK_TEXT(ci_op_why_not(CI_OP_max, CI_DTYPE_c64), "max of complex numbers");
    CHECK_INT(ci_op_result(CI_OP_less, CI_DTYPE_f32), CI_DTYPE_bool);
    CHECK_INT(ci_op_result(CI_OP_real, CI_DTYPE_c128), CI_DTYPE_f64);
    CHECK_INT(ci_op_result(CI_OP_argmax, CI_DTYPE_f16), CI_DTYPE_i64);
    CHECK_INT(ci_op_result(CI_OP_any, CI_DTYPE_bool), CI_DTYPE_bool);
    CHECK(signbit(ci_op_identity(CI_OP_sum, CI_DTYPE_f32).re));
    CHECK_INT(ci_op_identity(CI_OP_max, CI_DTYPE_i8).i, -128);
    CHECK_INT(ci_op_identity(CI_OP_min, CI_DTYPE_i64).i, INT64_MAX);
    CHECK_INT(ci_op_identity(CI_OP_min, CI_DTYPE_u16).i, 65535);
    CHECK(isnan(ci_op_identity(CI_OP_fmax_reduce, CI_DTYPE_f64).re));
    CHECK(ci_op_is_order_free(CI_OP_max, CI_DTYPE_f32) && !ci_op_is_order_free(CI_OP_sum, CI_DTYPE_f32));
    for (int op = 0; op < CI_OP_COUNT; op++)
        CHECK_INT(ci_op_find(ci_op_name((CiOp)op)), op);
}

/* ---- layouts ---- */

static CiNode *
input(CiGraph *g, int rank, const int64_t *sizes, const int64_t *strides)
{
    const CiExpr *size_exprs[CI_MAX_RANK], *stride_exprs[CI_MAX_RANK];
    for (int k = 0; k < rank; k++) {
        size_exprs[k] = ci_expr_const(g->sym, sizes[k]);
        stride_exprs[k] = ci_expr_const(g->sym, strides ? strides[k] : 0);
    }
    return ci_graph_input(g, CI_DTYPE_f32, CI_KIND_array, rank, size_exprs, strides ? stride_exprs : NULL);
}

#define INPUT(g, sizes, strides)                                                                   \
    input(g, (int)(sizeof(int64_t[]) sizes / sizeof(int64_t)), (int64_t[]) sizes, (int64_t[]) strides)
#define LIST(...) {__VA_ARGS__}

static const char *
order_of(const CiNode *node)
{
    static char text[CI_MAX_RANK + 1];
    for (int k = 0; k < node->rank; k++)
        text[k] = (char)('0' + node->order[k]);
    text[node->rank] = 0;
    return text;
}

static CiNode *
add(CiGraph *g, CiNode *a, CiNode *b)
{
    return ci_graph_pointwise(g, CI_OP_add, 2, (CiNode *[]){a, b}, NOWHERE);
}

/* Strides must equal those that NumPy 2 computes for the same operands. */
TEST(results_are_laid_out_as_by_numpy)
{
    CiGraph *g = ci_graph_new(ctx, "f");
    CiNode *c = INPUT(g, LIST(3, 4, 5), LIST(20, 5, 1));
    CiNode *f = INPUT(g, LIST(3, 4, 5), LIST(1, 3, 12));
    CiNode *column = INPUT(g, LIST(3, 1, 1), LIST(1, 1, 1));
    CiNode *still = INPUT(g, LIST(3, 4, 5), LIST(0, 0, 1));
    CiNode *flipped = INPUT(g, LIST(3, 4, 5), LIST(-1, -3, 12));
    CHECK_TEXT(order_of(add(g, c, c)), "012");
    CHECK_TEXT(order_of(add(g, f, f)), "210");
    CHECK_TEXT(order_of(add(g, c, f)), "012");
    CHECK_TEXT(order_of(add(g, f, column)), "210");
    CHECK_TEXT(order_of(add(g, f, still)), "210");
    CHECK_TEXT(order_of(add(g, still, still)), "012");
    CHECK_TEXT(order_of(add(g, flipped, flipped)), "210");
    CHECK_TEXT(order_of(ci_graph_reduce(g, CI_OP_sum, f, 1, (int[]){1}, NOWHERE)), "10");
    CHECK_TEXT(order_of(ci_graph_reduce(g, CI_OP_argmax, f, 1, (int[]){0}, NOWHERE)), "01");
    CHECK_TEXT(order_of(ci_graph_scan(g, CI_OP_cumsum, f, 0, NOWHERE)), "210");
    CHECK_TEXT(order_of(ci_graph_permute(g, f, (int[]){1, 0, 2}, NOWHERE)), "201");
    CHECK_TEXT(order_of(ci_graph_concat(g, 2, (CiNode *[]){f, f}, 1, NOWHERE)), "210");
    CHECK_TEXT(order_of(ci_graph_concat(g, 2, (CiNode *[]){f, c}, 1, NOWHERE)), "012");
    CHECK_TEXT(order_of(ci_graph_cast(g, f, CI_DTYPE_f64, NOWHERE)), "210");
}

static bool
can_reshape(CiGraph *g, CiNode *a, int rank, const CiExpr *const *sizes)
{
    const CiExpr *offset, *strides[CI_MAX_RANK];
    CiNode *view = ci_graph_reshape(g, a, rank, sizes, NOWHERE);
    return ci_layout_view_strides(g, view, a, ci_layout_strides(g, a), &offset, strides);
}

TEST(reshapes_are_views_where_numpy_has_views)
{
    CiGraph *g = ci_graph_new(ctx, "f");
    const CiExpr *s = ci_expr_symbol(g->sym, "s0", CI_SYMBOL_size, 0, CI_INFINITY);
    const CiExpr *n[13];
    for (int k = 0; k < 13; k++)
        n[k] = ci_expr_const(g->sym, k);
    CiNode *c = INPUT(g, LIST(3, 4), LIST(4, 1)), *f = INPUT(g, LIST(3, 4), LIST(1, 3));
    CiNode *cut = INPUT(g, LIST(3, 4), LIST(8, 2)), *wide = INPUT(g, LIST(3, 4), LIST(8, 1));
    CHECK(can_reshape(g, c, 1, (const CiExpr *[]){n[12]}));
    CHECK(can_reshape(g, c, 4, (const CiExpr *[]){n[1], n[2], n[1], n[6]}));
    CHECK(!can_reshape(g, f, 1, (const CiExpr *[]){n[12]}));
    CHECK(can_reshape(g, f, 3, (const CiExpr *[]){n[3], n[2], n[2]}));
    CHECK(can_reshape(g, cut, 1, (const CiExpr *[]){n[12]}));
    CHECK(!can_reshape(g, wide, 1, (const CiExpr *[]){n[12]}));
    CHECK(can_reshape(g, wide, 3, (const CiExpr *[]){n[3], n[2], n[2]}));
    CiNode *open = ci_graph_input(g, CI_DTYPE_f32, CI_KIND_array, 2, (const CiExpr *[]){s, n[4]}, NULL);
    const CiExpr *all = ci_expr_mul(g->sym, s, n[4]);
    CHECK(can_reshape(g, open, 1, &all));
    CHECK(can_reshape(g, open, 3, (const CiExpr *[]){s, n[2], n[2]}));
    CHECK(can_reshape(g, open, 4, (const CiExpr *[]){n[1], s, n[1], n[4]}));
}

/* ---- builders ---- */

typedef struct Failure {
    CiGraph *g;
    int number;
} Failure;

static void
fail_to_build(CiContext *ctx, void *arg)
{
    Failure *failure = arg;
    CiGraph *g = failure->g;
    const CiExpr *five = ci_expr_const(g->sym, 5);
    CiNode *three = INPUT(g, LIST(3), LIST(1)), *matrix = INPUT(g, LIST(3, 4), LIST(4, 1));
    CiNode *four = INPUT(g, LIST(4), LIST(1)), *empty = INPUT(g, LIST(0, 3), LIST(3, 1));
    switch (failure->number) {
    case 0:
        add(g, three, four);
        break;
    case 1:
        ci_graph_reshape(g, matrix, 1, &five, NOWHERE);
        break;
    case 2:
        ci_graph_reduce(g, CI_OP_sum, matrix, 1, (int[]){2}, NOWHERE);
        break;
    case 3:
        ci_graph_reduce(g, CI_OP_sum, matrix, 2, (int[]){1, -1}, NOWHERE);
        break;
    case 4:
        ci_graph_reduce(g, CI_OP_max, empty, 1, (int[]){0}, NOWHERE);
        break;
    case 5:
        ci_graph_reduce(g, CI_OP_argmax, empty, 1, (int[]){0}, NOWHERE);
        break;
    case 6:
        ci_graph_permute(g, matrix, (int[]){1, 1}, NOWHERE);
        break;
    case 7:
        ci_graph_expand(g, three, 1, four->sizes, NOWHERE);
        break;
    case 8:
        ci_graph_assign(g, four, four, three, NOWHERE);
        break;
    case 9:
        ci_graph_concat(g, 2, (CiNode *[]){three, matrix}, 0, NOWHERE);
        break;
    default:
        ci_graph_concat(g, 2, (CiNode *[]){matrix, empty}, 0, NOWHERE);
    }
    (void)ctx;
}

TEST(messages_are_those_of_numpy)
{
    static const char *const messages[] = {
        "operands could not be broadcast together with shapes (3,) (4,) ",
        "cannot reshape array of size 12 into shape (5,)",
        "axis 2 is out of bounds for array of dimension 2",
        "duplicate value in 'axis'",
        "zero-size array to reduction operation maximum which has no identity",
        "attempt to get argmax of an empty sequence",
        "repeated axis in transpose",
        "operands could not be broadcast together with remapped shapes [original->remapped]: (3,)  and requested "
        "shape (4,)",
        "could not broadcast input array from shape (3,) into shape (4,)",
        "all the input arrays must have same number of dimensions, but the array at index 0 has 1 dimension(s) and "
        "the array at index 1 has 2 dimension(s)",
        "all the input array dimensions except for the concatenation axis must match exactly, but along dimension "
        "1, the array at index 0 has size 4 and the array at index 1 has size 3"};
    for (int k = 0; k < (int)(sizeof messages / sizeof messages[0]); k++) {
        Failure failure = {ci_graph_new(ctx, "f"), k};
        CHECK(ci_protect(ctx, fail_to_build, &failure) != CI_OK);
        CHECK_TEXT(ci_context_message(ctx), messages[k]);
        CHECK_INT(failure.g->body->nnodes, 0); /* a failed build leaves the graph as it was */
    }
}

/* ---- text and verifiers ---- */

static void
parse_and_run(CiContext *ctx, void *arg)
{
    CiText text = ci_text_new(ctx);
    CiGraph *g = ci_graph_parse(ctx, arg);
    (void)ci_passes_run(g, &(CiPassPlan){.verify = true}, (CiExtraPasses){0});
    ci_graph_print(&text, g);
    ci_graph_print(&text, ci_graph_copy_to(ctx, g));
}

TEST(every_allocation_may_fail)
{
    ci_test_failing_allocations(parse_and_run, "graph f(in0: f32[3,4], in1: f32[4]) {\n"
                                               "  %0: f32[3,4] = logaddexp(in0, in1)\n"
                                               "  %1: f32[12] = reshape(%0)\n"
                                               "  %2: f32[12] = negative(%1)\n"
                                               "  %3: f32[12] = negative(%2)\n"
                                               "  return %3\n}\n");
}

/* The text of a graph, with other names for its data-dependent symbols and another hint of its
 * size. */
static const char *
form_of(CiContext *ctx, const char *first, const char *second, const char *part, int hint)
{
    CiText text = ci_text_new(ctx);
    const char *source = ci_format(ctx,
                                   "symbols {s0 in [2, inf) from in0.sizes 0 hint %d}\n"
                                   "graph u7(in0: f32[s0], in1: python i64[]) {\n"
                                   "  %%0: python i64[] = define(in1) %s in [0, s0 + 1)\n"
                                   "  %%1: python i64[] = define(in1) %s in [0, %s)\n"
                                   "  %%2: f32[%s] = slice(in0, starts=[%s], steps=[1])\n"
                                   "  return %%2\n}\n",
                                   hint, first, second, first, part, second);
    ci_graph_print_canonical(&text, ci_graph_parse(ctx, source));
    return text.data;
}

TEST(a_form_has_no_names_of_data_and_no_hints)
{
    const char *form = form_of(ctx, "u0", "u1", "-u1 + u0", 5);
    CHECK_TEXT(form_of(ctx, "u9", "u10", "-u10 + u9", 7), form);
    CHECK(strstr(form, "graph u7(") != NULL && strstr(form, "hint") == NULL);
    CHECK(strcmp(form_of(ctx, "u9", "u10", "-u10 + s0", 7), form) != 0);
}

static void
parse_loops(CiContext *ctx, void *arg)
{
    ci_loops_verify(ci_loops_parse(ctx, arg));
}

TEST(bad_text_is_refused)
{
    static char *const graphs[] = {
        "graph f() {", "graph f(in1: f32[]) { return }", "graph f() { return %0 }",
        "graph f(in0: f32[3]) { %0: f32[4] = negative(in0) return %0 }",
        "graph f(in0: f32[3]) { %0: f32[3] = negative(in0, in0) return %0 }",
        "graph f(in0: f32[3]) { %0: f32[3] = load(in0) return %0 }",
        "graph f(in0: f32[3]) { %0: f32[] = sum(in0, axes=[0, 0]) return %0 }",
        "graph f(in0: f32[3]) { %0: f32[9] = slice(in0, starts=[0], steps=[1]) return %0 }",
        "graph f(in0: f32[3]) { %0: i8[] = const 300 return %0 }",
        "graph f(in0: f32[3,3]) { %0: f32[3,3] = permute(in0, axes=[1, 0]) return %0 }",
        "graph f(in0: f32[3]) { %0: f32[3] = negative(in0) return %0 } more"};
    for (size_t k = 0; k < sizeof graphs / sizeof graphs[0]; k++)
        CHECK(ci_protect(ctx, parse_and_run, graphs[k]) != CI_OK);
    static char *const loops[] = {
        "loops f(in0: f32[3]) { buf0: f32[4] = for i0<4 { %0: f32 = load in0[i0] yield %0 } return buf0 }",
        "loops f(in0: f32[3]) { buf0: f32[3] = for i0<3 { %0: f64 = load in0[i0] yield %0 } return buf0 }",
        "loops f(in0: f32[3]) { buf0: i32[3] = for i0<3 { %0: f32 = load in0[i0] yield %0 } return buf0 }",
        "loops f() { buf1: f32[3] buf0: f32[3] = for i0<3 { %0: f32 = load buf1[i0] yield %0 } "
        "buf1[i0] = for i0<3 { %0: f32 = const 0.0 yield %0 } return buf0 }",
        "loops f(in0: f32[3]) { buf0: f32[3] = for i0<3 { %0: f32 = load in0[i0] %1: f32 = equal %0, %0 yield %1 } "
        "return buf0 }"};
    for (size_t k = 0; k < sizeof loops / sizeof loops[0]; k++)
        CHECK(ci_protect(ctx, parse_loops, loops[k]) != CI_OK);
}

/* Blocks nested in each other without an end. */
TEST(text_that_is_nested_too_deeply_is_refused)
{
    CiText graph = ci_text_new(ctx), loops = ci_text_new(ctx);
    ci_text_add(&graph, "graph f(in0: python bool[]) {\n");
    ci_text_add(&loops, "loops f(in0: python bool[]) {\n");
    for (int k = 0; k < 200000; k++) {
        ci_text_add(&graph, "if in0 {\n");
        ci_text_add(&loops, "if in0 {\n");
    }
    CHECK(ci_protect(ctx, parse_and_run, graph.data) != CI_OK);
    CHECK(strstr(ci_context_message(ctx), "blocks inside of each other") != NULL);
    CHECK(ci_protect(ctx, parse_loops, loops.data) != CI_OK);
    CHECK(strstr(ci_context_message(ctx), "blocks inside of each other") != NULL);
}

static void
verify(CiContext *ctx, void *arg)
{
    (void)ctx;
    ci_graph_verify(arg);
}

TEST(the_verifier_sees_broken_graphs)
{
    static const char text[] = "graph f(in0: f32[3,4]) {\n"
                               "  %0: f32[3,4] = negative(in0)\n"
                               "  %1: f32[4,3] order [1,0] = permute(%0, axes=[1, 0])\n"
                               "  return %1\n}\n";
    static const int8_t twice[] = {1, 1};
    for (int k = 0; k < 4; k++) {
        CiGraph *g = ci_graph_parse(ctx, text);
        CiNode *node = g->body->nodes[0];
        CHECK_INT(ci_protect(ctx, verify, g), CI_OK);
        if (k == 0)
            node->dtype = CI_DTYPE_f64;
        else if (k == 1)
            node->order = twice;
        else if (k == 2)
            node->args[0] = g->body->nodes[1];
        else
            g->body->nodes[1] = node;
        CHECK_FAILS(ctx, INTERNAL, verify, g);
    }
}

/* ---- passes run in near-linear time ---- */

static double
seconds_of_chain(int length)
{
    CiContext *ctx = ci_context_open();
    CiGraph *g = ci_graph_new(ctx, "f");
    CiNode *x = INPUT(g, LIST(8), LIST(1)), *one = INPUT(g, LIST(8), LIST(1));
    for (int k = 0; k < length; k++)
        x = k % 3 ? add(g, x, one) : ci_graph_pointwise(g, CI_OP_sign, 1, &x, NOWHERE);
    ci_graph_return(g, x);
    clock_t start = clock();
    (void)ci_passes_run(g, &(CiPassPlan){0}, (CiExtraPasses){0});
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    CHECK_INT(g->body->nnodes, length);
    ci_context_close(ctx);
    return seconds;
}

TEST(passes_are_near_linear)
{
    seconds_of_chain(1000);
    double shorter = seconds_of_chain(2000), longer = seconds_of_chain(40000);
    CHECK(longer < 100 * shorter + 0.05);
}

TEST(long_chains_of_views_collapse)
{
    CiGraph *g = ci_graph_new(ctx, "f");
    CiNode *x = INPUT(g, LIST(3, 4), LIST(4, 1));
    for (int k = 0; k < 10000; k++)
        x = ci_graph_permute(g, x, (int[]){1, 0}, NOWHERE);
    ci_graph_return(g, ci_graph_pointwise(g, CI_OP_negative, 1, &x, NOWHERE));
    (void)ci_passes_run(g, &(CiPassPlan){.verify = true}, (CiExtraPasses){0});
    CHECK_INT(g->body->nnodes, 1);
}
