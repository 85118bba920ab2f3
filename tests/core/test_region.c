/* Runs graphs with loops and branches on every CPU backend and compares the results with values
 * computed by hand. */
#include "graph_run.h"

/* ---- for ---- */

static void
counting(Run *run)
{
    for (int64_t n = 0; n < 6; n++) {
        CiSlot slot = {.i = n};
        double sum = 3;
        for (int64_t k = 0; k < n; k++)
            sum = sum * 2 + (double)k;
        call(run, (void *[]){NULL}, NULL, &slot);
        CHECK(got(run, 0, 0) == sum);
        CHECK_INT(run->results[1] ? *(int64_t *)run->results[1] : -1, n * (n - 1) / 2);
    }
}

TEST(counting_loop_and_no_trips)
{
    for_each_backend("symbols {argument n in [0, inf) from in0 hint 3}\n"
                     "graph f(in0: python i64[]) {\n"
                     "  %0: f64[] = const 3.0\n"
                     "  %1: f64[] = const 2.0\n"
                     "  %2: i64[] = const 0\n"
                     "  %3: f64[], %4: i64[] = for k<n carry (%5: python i64[], %6: f64[] = %0, "
                     "%7: i64[] = %2) {\n"
                     "    %8: f64[] = multiply(%6, %1)\n"
                     "    %9: f64[] = cast(%5)\n"
                     "    %10: f64[] = add(%8, %9)\n"
                     "    %11: i64[] = cast(%9)\n"
                     "    %12: i64[] = add(%7, %11)\n"
                     "    next %10, %12\n"
                     "  }\n"
                     "  return %3, %4\n"
                     "}\n",
                     counting);
}

/* Two arrays that rotate; the edges stay as they were. */
static void
jacobi(Run *run)
{
    double a[6] = {1, 0, 0, 8, 0, 2}, b[6] = {1, 0, 0, 0, 0, 2}, want[2][6];
    memcpy(want[0], a, sizeof a);
    memcpy(want[1], b, sizeof b);
    for (int t = 0; t < 5; t++)
        for (int i = 1; i < 5; i++)
            want[(t + 1) % 2][i] = 0.5 * (want[t % 2][i - 1] + want[t % 2][i + 1]);
    call(run, (void *[]){a, b}, NULL, NULL);
    for (int i = 0; i < 6; i++) {
        CHECK(got(run, 0, i) == want[1][i]);
        CHECK(got(run, 1, i) == want[0][i]);
        CHECK(a[i] == (i == 0 ? 1 : i == 3 ? 8 : i == 5 ? 2 : 0));
    }
}

TEST(jacobi_with_two_rotating_arrays)
{
    for_each_backend("graph f(in0: f64[6], in1: f64[6]) {\n"
                     "  %0: f64[] = const 0.5\n"
                     "  %1: f64[6], %2: f64[6] = for k<5 carry (%3: python i64[], %4: f64[6] = "
                     "in0, %5: f64[6] = in1) {\n"
                     "    %6: f64[4] = slice(%4, starts=[0], steps=[1])\n"
                     "    %7: f64[4] = slice(%4, starts=[2], steps=[1])\n"
                     "    %8: f64[4] = add(%6, %7)\n"
                     "    %9: f64[4] = multiply(%0, %8)\n"
                     "    %10: f64[4] = slice(%5, starts=[1], steps=[1])\n"
                     "    %11: f64[6] = assign(%5, %10, %9)\n"
                     "    next %11, %4\n"
                     "  }\n"
                     "  return %1, %2\n"
                     "}\n",
                     jacobi);
}

/* x = f(x) at neighbours: the new array is separate memory, not a version of the old one. */
static void
smoothing(Run *run)
{
    double x[5] = {4, 0, 2, 0, 6}, old[5], want[5];
    memcpy(want, x, sizeof x);
    for (int t = 0; t < 3; t++) {
        memcpy(old, want, sizeof old);
        for (int i = 0; i < 5; i++)
            want[i] = old[i] + old[4 - i];
    }
    call(run, (void *[]){x}, NULL, NULL);
    for (int i = 0; i < 5; i++)
        CHECK(got(run, 0, i) == want[i]);
}

TEST(next_value_reads_other_elements)
{
    for_each_backend("graph f(in0: f64[5]) {\n"
                     "  %1: f64[5] = for k<3 carry (%2: python i64[], %3: f64[5] = in0) {\n"
                     "    %4: f64[5] = slice(%3, starts=[4], steps=[-1])\n"
                     "    %5: f64[5] = add(%3, %4)\n"
                     "    next %5\n"
                     "  }\n"
                     "  return %1\n"
                     "}\n",
                     smoothing);
}

/* A[k+1:, :] -= A[k+1:, k] * A[k, :], in place in the argument: sizes shrink from iteration to
 * iteration. */
static void
elimination(Run *run)
{
    double a[4][4] = {{2, 1, 1, 0}, {4, 3, 3, 1}, {8, 7, 9, 5}, {6, 7, 9, 8}}, want[4][4];
    memcpy(want, a, sizeof a);
    for (int k = 0; k < 4; k++)
        for (int i = k + 1; i < 4; i++) {
            want[i][k] = want[i][k] / want[k][k];
            for (int j = k + 1; j < 4; j++)
                want[i][j] = want[i][j] - want[i][k] * want[k][j];
        }
    call(run, (void *[]){a}, NULL, NULL);
    for (int i = 0; i < 16; i++)
        CHECK(a[i / 4][i % 4] == want[i / 4][i % 4]);
}

TEST(slices_that_shrink_from_trip_to_trip)
{
    for_each_backend(
        "graph f(in0: f64[4,4]) {\n"
        "  %1: f64[4,4] = for k<4 carry (%2: python i64[], %3: f64[4,4] = in0) {\n"
        "    %4: f64[3 - k,1] = slice(%3, starts=[k + 1, k], steps=[1, 1])\n"
        "    %5: f64[1,1] = slice(%3, starts=[k, k], steps=[1, 1])\n"
        "    %6: f64[3 - k,1] = divide(%4, %5)\n"
        "    %7: f64[4,4] = assign(%3, %4, %6)\n"
        "    %8: f64[3 - k,1] = slice(%7, starts=[k + 1, k], steps=[1, 1])\n"
        "    %9: f64[1,3 - k] = slice(%7, starts=[k, k + 1], steps=[1, 1])\n"
        "    %10: f64[3 - k,3 - k] = multiply(%8, %9)\n"
        "    %11: f64[3 - k,3 - k] = slice(%7, starts=[k + 1, k + 1], steps=[1, 1])\n"
        "    %12: f64[3 - k,3 - k] = subtract(%11, %10)\n"
        "    %13: f64[4,4] = assign(%7, %11, %12)\n"
        "    next %13\n"
        "  }\n"
        "  write in0 = %1\n"
        "  return\n"
        "}\n",
        elimination);
}

static void
windows(Run *run)
{
    double x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, want[8];
    memcpy(want, x, sizeof x);
    for (int t = 0; t < 5; t++) {
        double sum = 0;
        for (int i = 0; i < 4; i++)
            sum += want[t + i];
        for (int i = 0; i < 4; i++)
            want[t + i] += sum;
    }
    call(run, (void *[]){x}, NULL, NULL);
    for (int i = 0; i < 8; i++)
        CHECK(got(run, 0, i) == want[i]);
}

TEST(windows_of_constant_size)
{
    for_each_backend("graph f(in0: f64[8]) {\n"
                     "  %0: f64[8] = copy(in0)\n"
                     "  %1: f64[8] = for i0<5 carry (%2: python i64[], %3: f64[8] = %0) {\n"
                     "    %4: f64[4] = slice(%3, starts=[i0], steps=[1])\n"
                     "    %5: scalar f64[] = sum(%4, axes=[0])\n"
                     "    %6: f64[4] = add(%4, %5)\n"
                     "    %7: f64[8] = assign(%3, %4, %6)\n"
                     "    next %7\n"
                     "  }\n"
                     "  return %1\n"
                     "}\n",
                     windows);
}

static void
nested(Run *run)
{
    double x[5] = {1, 1, 1, 1, 1}, want[5] = {1, 1, 1, 1, 1}, last = 0;
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < i; j++) {
            want[i] += want[j] * (i + 10 * j);
            last = want[i];
        }
    call(run, (void *[]){x}, NULL, NULL);
    for (int i = 0; i < 5; i++)
        CHECK(got(run, 0, i) == want[i]);
    CHECK(got(run, 1, 0) == last);
}

TEST(nested_loops)
{
    for_each_backend(
        "graph f(in0: f64[5]) {\n"
        "  %0: f64[] = const 0.0\n"
        "  %1: f64[5], %2: f64[] = for i<5 carry (%3: python i64[], %4: f64[5] = in0, "
        "%5: f64[] = %0) {\n"
        "    %6: f64[5], %7: f64[] = for j<i carry (%8: python i64[], %9: f64[5] = %4, "
        "%10: f64[] = %5) {\n"
        "      %11: f64[1] = slice(%9, starts=[i], steps=[1])\n"
        "      %12: f64[1] = slice(%9, starts=[j], steps=[1])\n"
        "      %13: f64[] = cast(%3)\n"
        "      %14: f64[] = cast(%8)\n"
        "      %15: f64[] = const 10.0\n"
        "      %16: f64[] = multiply(%14, %15)\n"
        "      %17: f64[] = add(%13, %16)\n"
        "      %18: f64[1] = multiply(%12, %17)\n"
        "      %19: f64[1] = add(%11, %18)\n"
        "      %20: f64[5] = assign(%9, %11, %19)\n"
        "      %21: f64[] = reshape(%19)\n"
        "      next %20, %21\n"
        "    }\n"
        "    next %6, %7\n"
        "  }\n"
        "  return %1, %2\n"
        "}\n",
        nested);
}

static void
symbolic(Run *run)
{
    double x[7] = {1, 2, 3, 4, 5, 6, 7}, want = 0;
    for (int64_t n = 0; n < 8; n++) {
        int64_t size[1] = {n};
        call(run, (void *[]){x}, (const int64_t *[]){size}, NULL);
        want = 0;
        for (int k = 0; k < n; k++)
            for (int i = k; i < n; i++)
                want += x[i];
        CHECK(got(run, 0, 0) == want);
    }
}

TEST(sizes_known_at_the_call)
{
    for_each_backend("symbols {s0 in [0, inf) from in0.sizes 0 hint 7}\n"
                     "graph f(in0: f64[s0]) {\n"
                     "  %0: f64[] = const 0.0\n"
                     "  %1: f64[] = for k<s0 carry (%2: python i64[], %3: f64[] = %0) {\n"
                     "    %4: f64[s0 - k] = slice(in0, starts=[k], steps=[1])\n"
                     "    %5: f64[] = sum(%4, axes=[0])\n"
                     "    %6: f64[] = add(%3, %5)\n"
                     "    next %6\n"
                     "  }\n"
                     "  return %1\n"
                     "}\n",
                     symbolic);
}

/* ---- while ---- */

static void
convergence(Run *run)
{
    double x[4] = {1, 2, 3, 100}, want[4], error = 1, root[4] = {1, 1, 1, 1};
    CiSlot slot = {.f = 1e-9};
    int trips = 0;
    memcpy(want, x, sizeof x);
    for (; error > 1e-9; trips++) {
        error = 0;
        for (int i = 0; i < 4; i++) {
            double next = 0.5 * (root[i] + want[i] / root[i]);
            error = fmax(error, fabs(next - root[i]));
            root[i] = next;
        }
    }
    call(run, (void *[]){x, NULL}, NULL, &slot);
    for (int i = 0; i < 4; i++)
        CHECK(got(run, 0, i) == root[i] && fabs(root[i] * root[i] - x[i]) < 1e-9);
    CHECK(got(run, 1, 0) == error);
    slot.f = 2; /* no iteration at all */
    call(run, (void *[]){x, NULL}, NULL, &slot);
    for (int i = 0; i < 4; i++)
        CHECK(got(run, 0, i) == 1);
    CHECK(got(run, 1, 0) == 1);
}

TEST(while_an_error_is_large)
{
    for_each_backend(
        "graph f(in0: f64[4], in1: python f64[]) {\n"
        "  %0: f64[] = const 1.0\n"
        "  %1: f64[] = const 0.5\n"
        "  %2: f64[4] = expand(%0)\n"
        "  %3: f64[4] = copy(%2)\n"
        "  %4: f64[4], %5: scalar f64[] = while carry (%6: f64[4] = %3, %7: scalar f64[] = %0) {\n"
        "    %8: f64[] = cast(in1)\n"
        "    %9: scalar bool[] = greater(%7, %8)\n"
        "    test %9\n"
        "  } do {\n"
        "    %10: f64[4] = divide(in0, %6)\n"
        "    %11: f64[4] = add(%6, %10)\n"
        "    %12: f64[4] = multiply(%1, %11)\n"
        "    %13: f64[4] = subtract(%12, %6)\n"
        "    %14: f64[4] = absolute(%13)\n"
        "    %15: scalar f64[] = max(%14, axes=[0])\n"
        "    next %12, %15\n"
        "  }\n"
        "  return %4, %5\n"
        "}\n",
        convergence);
}

/* The condition computes the next value. Its last evaluation must not be visible. */
static void
condition_makes(Run *run)
{
    double x[2] = {1, 3};
    call(run, (void *[]){x}, NULL, NULL);
    CHECK(got(run, 0, 0) == 16 && got(run, 0, 1) == 48);
}

TEST(body_uses_what_the_condition_made)
{
    for_each_backend("graph f(in0: f64[2]) {\n"
                     "  %0: f64[2] = add(in0, in0)\n"
                     "  %1: f64[2] = while carry (%2: f64[2] = %0) {\n"
                     "    %3: f64[2] = add(%2, %2)\n"
                     "    %4: f64[1] = slice(%3, starts=[1], steps=[1])\n"
                     "    %5: f64[2] = assign(%3, %4, %4)\n"
                     "    %6: scalar f64[] = sum(%5, axes=[0])\n"
                     "    %7: f64[] = const 100.0\n"
                     "    %8: scalar bool[] = less(%6, %7)\n"
                     "    test %8\n"
                     "  } do {\n"
                     "    next %5\n"
                     "  }\n"
                     "  return %1\n"
                     "}\n",
                     condition_makes);
}

/* ---- if ---- */

static void
branches(Run *run)
{
    for (int sign = -1; sign < 2; sign += 2) {
        double x[4] = {1, 2, 3, 4.0 * sign}, b[4] = {1, 10, 100, 1000};
        bool is_positive = x[0] + x[1] + x[2] + x[3] > 3;
        call(run, (void *[]){x, b}, NULL, NULL);
        for (int i = 0; i < 4; i++) {
            double sum = x[i] + b[i];
            CHECK(got(run, 0, i) == (is_positive && (i == 1 || i == 2) ? 0 : sum));
            CHECK(got(run, 1, i) == (is_positive ? b[i] * b[i] : sum));
            CHECK(got(run, 2, i) == sum + 1);
        }
    }
}

TEST(if_with_two_branches)
{
    for_each_backend("graph f(in0: f64[4], in1: f64[4]) {\n"
                     "  %0: scalar f64[] = sum(in0, axes=[0])\n"
                     "  %1: f64[] = const 0.0\n"
                     "  %2: f64[] = const 3.0\n"
                     "  %3: scalar bool[] = greater(%0, %2)\n"
                     "  %4: f64[4] = add(in0, in1)\n"
                     "  %5: f64[4] = assign(%4, %4, %4)\n"
                     "  %15: f64[] = const 1.0\n"
                     "  %16: f64[4] = add(%5, %15)\n"
                     "  %6: f64[4], %7: f64[4] = if %3 {\n"
                     "    %8: f64[2] = slice(%5, starts=[1], steps=[1])\n"
                     "    %9: f64[4] = assign(%5, %8, %1)\n"
                     "    %10: f64[4] = multiply(in1, in1)\n"
                     "    yield %9, %10\n"
                     "  } else {\n"
                     "    yield %5, %5\n"
                     "  }\n"
                     "  return %6, %7, %16\n"
                     "}\n",
                     branches);
}

static void
conditional_updates(Run *run)
{
    double x[6] = {3, -1, 4, -1, 5, -9}, want[6], sum = 0;
    memcpy(want, x, sizeof x);
    for (int i = 0; i < 6; i++)
        if (want[i] < 0) {
            want[i] = 0;
            sum += i;
        } else if (i > 0) {
            want[i] += want[i - 1];
        }
    call(run, (void *[]){x}, NULL, NULL);
    for (int i = 0; i < 6; i++)
        CHECK(x[i] == want[i]);
    CHECK(got(run, 0, 0) == sum);
}

TEST(branches_inside_a_loop)
{
    for_each_backend(
        "graph f(in0: f64[6]) {\n"
        "  %0: f64[] = const 0.0\n"
        "  %1: f64[6], %2: f64[] = for i<6 carry (%3: python i64[], %4: f64[6] = in0, "
        "%5: f64[] = %0) {\n"
        "    %6: f64[1] = slice(%4, starts=[i], steps=[1])\n"
        "    %7: f64[] = reshape(%6)\n"
        "    %8: bool[] = less(%7, %0)\n"
        "    %9: f64[6], %10: f64[] = if %8 {\n"
        "      %11: f64[6] = assign(%4, %6, %0)\n"
        "      %12: f64[] = cast(%3)\n"
        "      %13: f64[] = add(%5, %12)\n"
        "      yield %11, %13\n"
        "    } else {\n"
        "      %14: i64[] = const 0\n"
        "      %30: f64[] = cast(%3)\n"
        "      %31: i64[] = cast(%30)\n"
        "      %15: bool[] = greater(%31, %14)\n"
        "      %16: f64[6] = if %15 {\n"
        "        %17: f64[1] = slice(%4, starts=[i - 1], steps=[1])\n"
        "        %18: f64[1] = add(%6, %17)\n"
        "        %19: f64[6] = assign(%4, %6, %18)\n"
        "        yield %19\n"
        "      } else {\n"
        "        yield %4\n"
        "      }\n"
        "      yield %16, %5\n"
        "    }\n"
        "    next %9, %10\n"
        "  }\n"
        "  write in0 = %1\n"
        "  return %2\n"
        "}\n",
        conditional_updates);
}
