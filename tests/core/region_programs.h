/* Random programs as texts of graphs: loops and branches around slices, writes in place and rotations.
 * make_program returns the one of a seed. */
#ifndef TEST_REGION_PROGRAMS_H
#define TEST_REGION_PROGRAMS_H

#include "base/text.h"

#define N 5 /* elements of a vector */
#define MAX_VALUES 400
#define MAX_DEPTH 3
#define NINPUTS 2

typedef struct Maker {
    CiText *out;
    uint64_t state;
    int next;              /* value number */
    int kinds[MAX_VALUES]; /* 0: scalar, 1: vector, 2: vector of one element */
    int ids[MAX_VALUES];
    int count;                        /* values in scope */
    int trips[MAX_DEPTH + 1], nloops; /* variables k0, k1, … in scope */
    int statements;
} Maker;

static int
pick(Maker *m, int below)
{
    m->state ^= m->state << 13;
    m->state ^= m->state >> 7;
    m->state ^= m->state << 17;
    return (int)((m->state >> 20) % (uint64_t)below);
}

static const char *
name(Maker *m, int value)
{
    int id = m->ids[value];
    return ci_format(m->out->ctx, id < 0 ? "in%d" : "%%%d", id < 0 ? -1 - id : id);
}

static const char *
type(int kind)
{
    static const char *const types[] = {"f64[]", "f64[5]", "f64[1]"};
    return types[kind];
}

static int
pick_kind(Maker *m)
{
    static const int kinds[] = {0, 0, 1, 1, 1, 1, 2};
    return kinds[pick(m, 7)];
}

static int
add_value(Maker *m, int kind)
{
    m->kinds[m->count] = kind;
    m->ids[m->count] = m->next++;
    return m->count++;
}

/* A value of the kind; later ones are more likely. */
static int
choose(Maker *m, int kind)
{
    for (;;) {
        int value =
            pick(m, 3) ? m->count - 1 - pick(m, m->count < 6 ? m->count : 6) : pick(m, m->count);
        if (m->kinds[value] == kind || pick(m, 200) == 0)
            for (int k = 0; k < m->count; k++, value = (value + 1) % m->count)
                if (m->kinds[value] == kind)
                    return value;
    }
}

static void make_statement(Maker *m, int depth);

static void
make_pointwise(Maker *m)
{
    static const char *const ops[] = {"add", "subtract", "maximum", "minimum"};
    int kind = pick_kind(m), a = choose(m, kind), b = choose(m, pick(m, 3) ? kind : 0);
    const char *left = name(m, a), *right = name(m, b), *op = ops[pick(m, 4)];
    int made = add_value(m, kind);
    ci_text_line(m->out, "%s: %s = %s(%s, %s)", name(m, made), type(kind), op, left, right);
}

/* Makes a scalar a symbol in [0, limit). The value is first reduced to that range, or checked,
 * which may fail. */
static const char *
make_symbol(Maker *m, int limit)
{
    const char *value = name(m, choose(m, 0));
    int id = m->next;
    m->next += 6;
    if (pick(m, 30)) {
        ci_text_line(m->out, "%%%d: f64[] = const 0.0", id);
        ci_text_line(m->out, "%%%d: f64[] = maximum(%s, %%%d)", id + 1, value, id);
        ci_text_line(m->out, "%%%d: f64[] = const %d.0", id + 2, limit - 1);
        ci_text_line(m->out, "%%%d: f64[] = minimum(%%%d, %%%d)", id + 3, id + 1, id + 2);
        value = ci_format(m->out->ctx, "%%%d", id + 3);
    }
    ci_text_line(m->out, "%%%d: i64[] = cast(%s)", id + 4, value);
    ci_text_line(m->out, "%%%d: python i64[] = define(%%%d) u%d in [0, %d)", id + 5, id + 4, id,
                 limit);
    return ci_format(m->out->ctx, "u%d", id);
}

/* Start and number of elements of a window, as text. */
typedef struct Window {
    const char *start, *size;
    int step;
} Window;

static Window
plain_window(Maker *m)
{
    int size = 1 + pick(m, N), step = pick(m, 3) ? 1 : -1;
    int start = step > 0 ? pick(m, N - size + 1) : size - 1 + pick(m, N - size + 1);
    return (Window){ci_format(m->out->ctx, "%d", start), ci_format(m->out->ctx, "%d", size), step};
}

/* A window that changes in a loop: its start moves, or its size shrinks or grows. */
static Window
moving_window(Maker *m)
{
    CiContext *ctx = m->out->ctx;
    int loop = pick(m, m->nloops), last = m->trips[loop] - 1, kind = pick(m, 3);
    if (kind == 0) {
        Window w = plain_window(m);
        int size = 1 + pick(m, N - last),
            first = pick(m, N - last - size + 1) + (w.step < 0 ? size - 1 : 0);
        return (Window){ci_format(ctx, "k%d + %d", loop, first), ci_format(ctx, "%d", size),
                        w.step};
    }
    int size = last + pick(m, N - last + 1), start = pick(m, N - size + 1);
    if (kind == 1)
        return (Window){ci_format(ctx, pick(m, 2) ? "k%d + %d" : "0*k%d + %d", loop, start),
                        ci_format(ctx, "%d - k%d", size, loop), 1};
    return (Window){ci_format(ctx, "%d", start), ci_format(ctx, "k%d + %d", loop, size - last), 1};
}

static Window
data_window(Maker *m)
{
    CiContext *ctx = m->out->ctx;
    int size = pick(m, N);
    if (pick(m, 2))
        return (Window){make_symbol(m, N - size + 1), ci_format(ctx, "%d", size), 1};
    const char *symbol = make_symbol(m, N + 1);
    return (Window){pick(m, 2) ? "0" : ci_format(ctx, "%d - %s", N, symbol), symbol, 1};
}

/* A window of a vector, of the given size or of any. */
static int
make_window(Maker *m, int vector, const char **size)
{
    CiContext *ctx = m->out->ctx;
    const char *from = name(m, vector);
    Window w;
    if (*size)
        w = (Window){pick(m, 2) ? "0" : ci_format(ctx, "%d - (%s)", N, *size), *size, 1};
    else if (m->nloops && pick(m, 2))
        w = moving_window(m);
    else
        w = pick(m, 4) ? plain_window(m) : data_window(m);
    int id = m->next++;
    ci_text_line(m->out, "%%%d: f64[%s] = slice(%s, starts=[%s], steps=[%d])", id, w.size, from,
                 w.start, w.step);
    *size = w.size;
    return id;
}

static void
make_assign(Maker *m)
{
    const char *size = NULL;
    int base = choose(m, 1), id = make_window(m, base, &size);
    const char *value = pick(m, 3)
                            ? ci_format(m->out->ctx, "%%%d",
                                        make_window(m, pick(m, 2) ? base : choose(m, 1), &size))
                            : name(m, choose(m, 0));
    if (pick(m, 2)) {
        int sum = m->next++;
        ci_text_line(m->out, "%%%d: f64[%s] = add(%%%d, %s)", sum, size, id, value);
        value = ci_format(m->out->ctx, "%%%d", sum);
    }
    const char *before = name(m, base);
    int made = add_value(m, 1);
    ci_text_line(m->out, "%s: f64[5] = assign(%s, %%%d, %s)", name(m, made), before, id, value);
}

/* An element of a vector as a vector, or a store to such a vector. */
static void
make_one_element(Maker *m)
{
    int base = choose(m, pick(m, 3) ? 1 : 2), id = m->next++;
    bool is_store = m->kinds[base] == 2;
    const char *before = name(m, base), *value = name(m, choose(m, 0));
    ci_text_line(m->out, "%%%d: f64[1] = slice(%s, starts=[%d], steps=[1])", id, before, is_store ? 0 : pick(m, N));
    int made = add_value(m, 2);
    if (is_store)
        ci_text_line(m->out, "%s: f64[1] = assign(%s, %%%d, %s)", name(m, made), before, id, value);
    else
        ci_text_line(m->out, "%s: f64[1] = copy(%%%d)", name(m, made), id);
}

static void
make_sum(Maker *m)
{
    if (pick(m, 4) == 0) {
        const char *from = name(m, choose(m, 2));
        int sum = add_value(m, 0);
        ci_text_line(m->out, "%s: f64[] = sum(%s, axes=[0])", name(m, sum), from);
        return;
    }
    const char *size = NULL;
    int id = make_window(m, choose(m, 1), &size);
    if (pick(m, 2)) {
        int next = m->next++;
        ci_text_line(m->out, "%%%d: f64[%s] = cumsum(%%%d, axis=0)", next, size, id);
        id = next;
    }
    int made = add_value(m, 0);
    ci_text_line(m->out, "%s: f64[] = sum(%%%d, axes=[0])", name(m, made), id);
}

static void
make_reversed(Maker *m)
{
    const char *from = name(m, choose(m, 1));
    int id = m->next++, made = add_value(m, 1);
    ci_text_line(m->out, "%%%d: f64[5] = slice(%s, starts=[4], steps=[-1])", id, from);
    ci_text_line(m->out, "%s: f64[5] = copy(%%%d)", name(m, made), id);
}

static int
make_condition(Maker *m)
{
    const char *a = name(m, choose(m, 0)), *b = name(m, choose(m, 0));
    int id = m->next++;
    ci_text_line(m->out, "%%%d: bool[] = greater(%s, %s)", id, a, b);
    return id;
}

static void
make_check(Maker *m)
{
    const char *a = name(m, choose(m, 0)), *b = name(m, choose(m, 0));
    int id = m->next++;
    ci_text_line(m->out, "%%%d: bool[] = %s(%s, %s)", id, pick(m, 8) ? "equal" : "less", a,
                 pick(m, 8) ? a : b);
    ci_text_line(m->out, "check(%%%d) \"%%%d\"", id, id);
}

static void
make_block(Maker *m, int depth)
{
    int count = 1 + pick(m, 5);
    for (int k = 0; k < count; k++)
        make_statement(m, depth);
}

static void
list_results(Maker *m, const char *word, int count, const int *kinds, const char *first)
{
    CiText line = ci_text_new(m->out->ctx);
    ci_text_add(&line, "%s%s", word, first);
    for (int k = 0; k < count; k++)
        ci_text_add(&line, "%s%s", k || *first ? ", " : " ", name(m, choose(m, kinds[k])));
    ci_text_line(m->out, "%s", line.data);
}

static const char *
list_declared(Maker *m, int count, const int *kinds, int first)
{
    CiText line = ci_text_new(m->out->ctx);
    for (int k = 0; k < count; k++)
        ci_text_add(&line, "%s%%%d: %s", k ? ", " : "", first + k, type(kinds[k]));
    return line.data;
}

static void
take_results(Maker *m, int outside, int count, const int *kinds, int first)
{
    m->count = outside;
    for (int k = 0; k < count; k++) {
        m->kinds[m->count] = kinds[k];
        m->ids[m->count++] = first + k;
    }
}

static void
make_loop(Maker *m, int depth)
{
    int kinds[4], count = 1 + pick(m, 3), outside = m->count, trips = pick(m, 4), counter = 0;
    bool is_for = pick(m, 2);
    CiText carried = ci_text_new(m->out->ctx);
    int first = m->next, entries[4];
    for (int k = 0; k < count; k++) {
        kinds[k] = pick_kind(m);
        entries[k] = choose(m, kinds[k]);
    }
    m->next += count + 1;
    if (is_for) {
        ci_text_add(&carried, "%%%d: python i64[]", counter = m->next++);
    } else {
        ci_text_line(m->out, "%%%d: f64[] = const 0.0", m->next);
        ci_text_add(&carried, "%%%d: f64[] = %%%d", m->next + 1, m->next);
        counter = m->next + 1;
        m->next += 2;
    }
    for (int k = 0; k < count; k++) {
        const char *entry = name(m, entries[k]);
        int param = add_value(m, kinds[k]);
        ci_text_add(&carried, ", %s: %s = %s", name(m, param), type(kinds[k]), entry);
    }
    const char *declared = list_declared(m, count, kinds, first + !is_for);
    if (is_for) {
        ci_text_line(m->out, "%s = for k%d<%d carry (%s) {", declared, m->nloops, trips,
                     carried.data);
        m->trips[m->nloops++] = trips ? trips : 1;
        m->out->indent += 2;
        int made = add_value(m, 0);
        ci_text_line(m->out, "%s: f64[] = cast(%%%d)", name(m, made), counter);
        make_block(m, depth + 1);
        list_results(m, "next", count, kinds, "");
        m->nloops--;
    } else {
        ci_text_line(m->out, "%%%d: f64[], %s = while carry (%s) {", first, declared, carried.data);
        m->out->indent += 2;
        make_block(m, MAX_DEPTH);
        int limit = m->next, test = m->next + 1, one = m->next + 2, next = m->next + 3;
        m->next += 4;
        ci_text_line(m->out, "%%%d: f64[] = const %d.0", limit, trips);
        ci_text_line(m->out, "%%%d: bool[] = less(%%%d, %%%d)", test, counter, limit);
        ci_text_line(m->out, "test %%%d", test);
        m->out->indent -= 2;
        ci_text_line(m->out, "} do {");
        m->out->indent += 2;
        ci_text_line(m->out, "%%%d: f64[] = const 1.0", one);
        ci_text_line(m->out, "%%%d: f64[] = add(%%%d, %%%d)", next, counter, one);
        make_block(m, depth + 1);
        list_results(m, "next", count, kinds, ci_format(m->out->ctx, " %%%d", next));
    }
    m->out->indent -= 2;
    ci_text_line(m->out, "}");
    take_results(m, outside, count, kinds, first + !is_for);
}

static void
make_branches(Maker *m, int depth)
{
    int kinds[3], count = 1 + pick(m, 3), outside = m->count, condition = make_condition(m),
                  first = m->next;
    for (int k = 0; k < count; k++)
        kinds[k] = pick_kind(m);
    m->next += count;
    ci_text_line(m->out, "%s = if %%%d {", list_declared(m, count, kinds, first), condition);
    for (int b = 0; b < 2; b++) {
        m->out->indent += 2;
        if (b == 0 || pick(m, 2))
            make_block(m, depth + 1);
        list_results(m, "yield", count, kinds, "");
        m->out->indent -= 2;
        m->count = outside;
        ci_text_line(m->out, b ? "}" : "} else {");
    }
    take_results(m, outside, count, kinds, first);
}

static void
make_statement(Maker *m, int depth)
{
    int kind = pick(m, depth < MAX_DEPTH && m->statements < 40 ? 13 : 9);
    m->statements++;
    if (pick(m, 40) == 0)
        make_check(m);
    else if (kind < 3)
        make_pointwise(m);
    else if (kind < 6)
        make_assign(m);
    else if (kind < 7)
        make_sum(m);
    else if (kind < 8)
        make_reversed(m);
    else if (kind < 9)
        make_one_element(m);
    else if (kind < 11)
        make_loop(m, depth);
    else
        make_branches(m, depth);
}

static const char *
make_program(CiContext *ctx, uint64_t seed)
{
    CiText out = ci_text_new(ctx);
    Maker m = {.out = &out, .state = seed * 2654435761u + 88172645463325252u};
    ci_text_add(&out, "graph f(in0: f64[5], in1: f64[5]) {\n");
    out.indent = 2;
    for (int k = 0; k < NINPUTS; k++) {
        m.kinds[m.count] = 1;
        m.ids[m.count++] = -1 - k;
    }
    for (int k = 0; k < 2; k++) {
        int made = add_value(&m, 0);
        ci_text_line(&out, "%s: f64[] = const %d.0", name(&m, made), k + 1);
    }
    int view = m.next++, first = add_value(&m, 2);
    ci_text_line(&out, "%%%d: f64[1] = slice(in0, starts=[0], steps=[1])", view);
    ci_text_line(&out, "%s: f64[1] = copy(%%%d)", name(&m, first), view);
    int count = 3 + pick(&m, 5);
    for (int k = 0; k < count; k++)
        make_statement(&m, 0);
    const char *results[3];
    for (int k = 0; k < 3;
         /* an input that is written is returned with its final contents, which this test does
          * not compare */
         k++) {
        int value = choose(&m, k < 2);
        results[k] = name(&m, value);
        if (m.ids[value] < 0)
            ci_text_line(&out, "%%%d: f64[5] = copy(%s)", m.next, results[k]);
        if (m.ids[value] < 0)
            results[k] = ci_format(ctx, "%%%d", m.next++);
    }
    for (int k = 0; k < NINPUTS; k++)
        if (pick(&m, 2))
            ci_text_line(&out, "write in%d = %s", k, name(&m, choose(&m, 1)));
    ci_text_line(&out, "return %s, %s, %s", results[0], results[1], results[2]);
    ci_text_add(&out, "}\n");
    return out.data;
}

#endif
