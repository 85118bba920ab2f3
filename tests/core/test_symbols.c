/* Tests sizes that come from data, sizes that change in a loop, and checks. Runs on every CPU
 * backend and compares with results computed by hand. */
#include "graph_run.h"

#define N 6

/* ---- a size from data ---- */

static void
prefix_sum(Run *run)
{
    double x[N] = {1, 2, 3, 4, 5, 6};
    for (int64_t n = -1; n <= N + 1; n++) {
        call_any(run, (void *[]){x, &n}, NULL, NULL);
        bool is_inside = n >= 0 && n <= N;
        CHECK_INT(run->status, is_inside ? CI_OK : CI_ERR_CHECK);
        CHECK(is_inside == !run->reason);
        if (!is_inside)
            continue;
        CHECK_INT(run->counts[0], n);
        CHECK_INT(run->counts[2], n + 1);
        double sum = 0;
        for (int i = 0; i < n; i++) {
            CHECK(got(run, 0, i) == -x[i]);
            CHECK(got(run, 2, i) == 1);
            sum += x[i];
        }
        CHECK(got(run, 1, 0) == sum);
        CHECK_INT(run->symbols[0], n);
    }
}

TEST(a_size_from_data)
{
    for_each_backend("graph f(in0: f64[6], in1: i64[]) {\n"
                     "  %0: python i64[] = define(in1) u0 in [0, 7)\n"
                     "  %1: f64[u0] = slice(in0, starts=[0], steps=[1])\n"
                     "  %2: f64[u0] = negative(%1)\n"
                     "  %3: scalar f64[] = sum(%1, axes=[0])\n"
                     "  %4: f64[] = const 1.0\n"
                     "  %5: f64[u0 + 1] = expand(%4)\n"
                     "  %6: f64[u0 + 1] = copy(%5)\n"
                     "  return %2, %3, %6\n"
                     "}\n",
                     prefix_sum);
}

static void
layout_of_a_result(Run *run)
{
    double x[N] = {0, 1, 2, 3, 4, 5};
    int64_t n = 4, storage[2 * CI_MAX_RANK];
    CiReturn back;
    call(run, (void *[]){x, &n}, NULL, NULL);
    ci_program_return_at(run->program, 0, run->symbols, storage, &back);
    CHECK_INT(back.rank, 1);
    CHECK_INT(back.sizes[0], 4);
    CHECK_INT(back.offset, 2);
    CHECK_INT(back.input, 0);
}

TEST(a_returned_view_of_a_size_from_data)
{
    for_each_backend("graph f(in0: f64[6], in1: i64[]) {\n"
                     "  %0: python i64[] = define(in1) u0 in [0, 7)\n"
                     "  %1: f64[u0] = slice(in0, starts=[6 - u0], steps=[1])\n"
                     "  return %1\n"
                     "}\n",
                     layout_of_a_result);
}

/* ---- a failed check changes nothing ---- */

static void
nothing_is_changed(Run *run)
{
    for (int64_t bad = 0; bad < 4; bad++) {
        double x[N] = {1, 2, 3, 4, 5, 6};
        int64_t index[3] = {1, 4, 5};
        double most = bad == 3 ? -9 : 100;
        if (bad && bad < 3)
            index[bad] = bad == 1 ? -1 : 6;
        call_any(run, (void *[]){x, index, &most}, NULL, NULL);
        CHECK_INT(run->status, bad ? CI_ERR_CHECK : CI_OK);
        if (bad == 3)
            CHECK(run->reason && !strcmp(run->reason, "the sum is too large"));
        for (int i = 0; i < N; i++)
            CHECK(x[i] == (bad ? i + 1 : i == 1 || i == 4 || i == 5 ? -(i + 1) : i + 1));
    }
}

TEST(a_failed_check_in_a_loop_changes_no_argument)
{
    for_each_backend("graph f(in0: f64[6], in1: i64[3], in2: f64[]) {\n"
                     "  %0: f64[6] = for t0<3 carry (%1: python i64[], %2: f64[6] = in0) {\n"
                     "    %3: i64[1] = slice(in1, starts=[t0], steps=[1])\n"
                     "    %4: i64[] = reshape(%3)\n"
                     "    %5: python i64[] = define(%4) u0 in [0, 6)\n"
                     "    %6: f64[1] = slice(%2, starts=[u0], steps=[1])\n"
                     "    %7: f64[1] = negative(%6)\n"
                     "    %8: f64[6] = assign(%2, %6, %7)\n"
                     "    next %8\n"
                     "  }\n"
                     "  %9: scalar f64[] = sum(%0, axes=[0])\n"
                     "  %10: scalar bool[] = less(%9, in2)\n"
                     "  check(%10) \"the sum is too large\"\n"
                     "  write in0 = %0\n"
                     "  return %9\n"
                     "}\n",
                     nothing_is_changed);
}

/* ---- sizes that move with a loop ---- */

static void
factors(Run *run)
{
    for (int n = 0; n <= 9; n++) {
        double a[81], lu[81];
        for (int k = 0; k < n * n; k++)
            a[k] = lu[k] = (k * 37 % 19) * 0.25 + (k % (n + 1) == 0) * 4 * n;
        for (int k = 0; k < n; k++)
            for (int i = k + 1; i < n; i++) {
                lu[i * n + k] /= lu[k * n + k];
                for (int j = k + 1; j < n; j++)
                    lu[i * n + j] -= lu[i * n + k] * lu[k * n + j];
            }
        const int64_t sizes[2] = {n, n};
        call(run, (void *[]){a}, (const int64_t *[]){sizes}, NULL);
        for (int k = 0; k < n * n; k++)
            CHECK(a[k] == lu[k]);
    }
}

TEST(triangles_that_shrink)
{
    for_each_backend(
        "symbols {s0 in [0, inf) from in0.sizes 0 hint 8}\n"
        "graph f(in0: f64[s0,s0]) {\n"
        "  %0: f64[s0,s0] = for t0<s0 carry (%1: python i64[], %2: f64[s0,s0] = in0) {\n"
        "    %3: f64[s0 - t0 - 1,1] = slice(%2, starts=[t0 + 1, t0], steps=[1, 1])\n"
        "    %4: f64[1,1] = slice(%2, starts=[t0, t0], steps=[1, 1])\n"
        "    %5: f64[s0 - t0 - 1,1] = divide(%3, %4)\n"
        "    %6: f64[s0,s0] = assign(%2, %3, %5)\n"
        "    %7: f64[s0 - t0 - 1,s0 - t0 - 1] = slice(%6, starts=[t0 + 1, t0 + 1], steps=[1, 1])\n"
        "    %8: f64[s0 - t0 - 1,1] = slice(%6, starts=[t0 + 1, t0], steps=[1, 1])\n"
        "    %9: f64[1,s0 - t0 - 1] = slice(%6, starts=[t0, t0 + 1], steps=[1, 1])\n"
        "    %10: f64[s0 - t0 - 1,s0 - t0 - 1] = multiply(%8, %9)\n"
        "    %11: f64[s0 - t0 - 1,s0 - t0 - 1] = subtract(%7, %10)\n"
        "    %12: f64[s0,s0] = assign(%6, %7, %11)\n"
        "    next %12\n"
        "  }\n"
        "  write in0 = %0\n"
        "  return\n"
        "}\n",
        factors);
}

/* Sizes grow with the outer loop and shrink with the inner one. Buffers have the iteration's own
 * size. */
static void
nested(Run *run)
{
    double x[N], y[N];
    for (int n = 0; n <= N; n++) {
        const int64_t sizes[1] = {n};
        for (int k = 0; k < n; k++)
            x[k] = y[k] = k + 1;
        for (int i = 0; i < n; i++)
            for (int j = 0; j <= i; j++) {
                double sums[N], sum = 0;
                for (int k = 0; k < i - j; k++)
                    sums[k] = sum += y[k];
                for (int k = 0; k < i - j; k++)
                    y[k + j] = sums[k];
            }
        call(run, (void *[]){x}, (const int64_t *[]){sizes}, NULL);
        CHECK_INT(run->counts[0], n);
        for (int k = 0; k < n; k++)
            CHECK(got(run, 0, k) == y[k] && x[k] == k + 1);
    }
}

TEST(sizes_of_two_loops)
{
    for_each_backend("symbols {s0 in [0, inf) from in0.sizes 0 hint 8}\n"
                     "graph f(in0: f64[s0]) {\n"
                     "  %0: f64[s0] = for a<s0 carry (%1: python i64[], %2: f64[s0] = in0) {\n"
                     "    %3: f64[s0] = for b<a + 1 carry (%4: python i64[], %5: f64[s0] = %2) {\n"
                     "      %6: f64[a - b] = slice(%5, starts=[0], steps=[1])\n"
                     "      %7: f64[a - b] = cumsum(%6, axis=0)\n"
                     "      %8: f64[a - b] = slice(%5, starts=[b], steps=[1])\n"
                     "      %9: f64[s0] = assign(%5, %8, %7)\n"
                     "      next %9\n"
                     "    }\n"
                     "    next %3\n"
                     "  }\n"
                     "  return %0\n"
                     "}\n",
                     nested);
}

/* ---- conditions and branches that define ---- */

static void
halving(Run *run)
{
    double x[N] = {3, 1, 4, 1, 5, 9};
    int64_t n = N, steps = 0;
    double total = 0;
    for (;; steps++) {
        double running = 0, product = 0;
        for (int k = 0; k < n; k++)
            product += running += x[k];
        if (!(product > 4))
            break;
        total += product;
        n = n / 2;
    }
    int64_t start = N;
    call(run, (void *[]){x, &start}, NULL, NULL);
    CHECK(got(run, 0, 0) == total);
    CHECK_INT(run->results[1] ? *(int64_t *)run->results[1] : -1, n);
    start = 7;
    call_any(run, (void *[]){x, &start}, NULL, NULL);
    CHECK_INT(run->status, CI_ERR_CHECK);
    CHECK(steps == 2);
}

/* The buffer of cumsum has a different size in each evaluation of the condition, and the body
 * reads it. */
TEST(a_condition_that_defines_a_size)
{
    for_each_backend("graph f(in0: f64[6], in1: i64[]) {\n"
                     "  %0: f64[] = const 0.0\n"
                     "  %1: f64[], %2: i64[] = while carry (%3: f64[] = %0, %4: i64[] = in1) {\n"
                     "    %5: python i64[] = define(%4) u0 in [0, 7)\n"
                     "    %6: f64[u0] = slice(in0, starts=[0], steps=[1])\n"
                     "    %7: f64[u0] = cumsum(%6, axis=0)\n"
                     "    %8: scalar f64[] = sum(%7, axes=[0])\n"
                     "    %9: f64[] = const 4.0\n"
                     "    %10: scalar bool[] = greater(%8, %9)\n"
                     "    test %10\n"
                     "  } do {\n"
                     "    %11: scalar f64[] = sum(%7, axes=[0])\n"
                     "    %12: f64[] = add(%3, %11)\n"
                     "    %13: i64[] = expr(u0//2)\n"
                     "    next %12, %13\n"
                     "  }\n"
                     "  return %1, %2\n"
                     "}\n",
                     halving);
}

static void
branching(Run *run)
{
    double x[N] = {3, 1, 4, 1, 5, 9};
    for (int64_t n = 0; n < 2 * N; n++) {
        bool takes = n < N;
        double sum = 0;
        for (int k = 0; takes && k < n; k++)
            sum += x[k];
        call(run, (void *[]){x, &n}, NULL, NULL);
        CHECK(got(run, 0, 0) == (takes ? sum : x[0]));
    }
}

TEST(a_branch_that_is_not_taken_checks_nothing)
{
    for_each_backend("graph f(in0: f64[6], in1: i64[]) {\n"
                     "  %0: i64[] = const 6\n"
                     "  %1: bool[] = less(in1, %0)\n"
                     "  %2: f64[] = if %1 {\n"
                     "    %3: python i64[] = define(in1) u0 in [0, 6)\n"
                     "    %4: f64[u0] = slice(in0, starts=[0], steps=[1])\n"
                     "    %5: scalar f64[] = sum(%4, axes=[0])\n"
                     "    yield %5\n"
                     "  } else {\n"
                     "    %6: f64[1] = slice(in0, starts=[0], steps=[1])\n"
                     "    %7: f64[] = reshape(%6)\n"
                     "    yield %7\n"
                     "  }\n"
                     "  return %2\n"
                     "}\n",
                     branching);
}
