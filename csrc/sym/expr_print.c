/* Printing. The canonical order of args is that of creation, the printed order depends on content:
 * loop variables first and by name, then sizes. So the text of an expression does not depend on
 * what was built before it, and parsing it gives the same expression. */
#include <string.h>

#include "sym/expr_private.h"

/* Sums of more terms than this print in the order of creation. */
#define SORTED 64

typedef struct Printer {
    CiText *out;
    CiExprStyle style;
    CiPrintName *print_name;
    void *arg;
    const CiExpr *whole;
    bool is_declared; /* as the value of a name in C */
    CiMap *uses;   /* of text: long operand -> ONCE, TWICE or FIRST_NAME + its number */
    int nnames;
} Printer;

enum { ONCE = 1, TWICE, FIRST_NAME };

static int compare(const CiExpr *a, const CiExpr *b);

/* i2 before i10: runs of digits compare by length first. */
static int
compare_names(const char *a, const char *b)
{
    while (*a && *a == *b && !(*a >= '0' && *a <= '9')) {
        a++;
        b++;
    }
    size_t n = strspn(a, "0123456789"), m = strspn(b, "0123456789");
    if (n && m && n != m)
        return n < m ? -1 : 1;
    return strcmp(a, b);
}

static int
compare_symbols(const CiExpr *a, const CiExpr *b)
{
    bool a_index = a->symbol_kind == CI_SYMBOL_index, b_index = b->symbol_kind == CI_SYMBOL_index;
    if (a_index != b_index)
        return a_index ? -1 : 1;
    int order = compare_names(a->name, b->name);
    return order ? order : a->id < b->id ? -1 : a->id > b->id;
}

static const CiExpr *
first_symbol(const CiExpr *e)
{
    const CiExpr *first = NULL;
    for (int k = 0; k < e->nsymbols; k++)
        if (!first || compare_symbols(e->symbols[k], first) < 0)
            first = e->symbols[k];
    return first;
}

/* Of factors: sizes, then loop variables, then what is not a symbol. */
static int
rank(const CiExpr *e)
{
    const CiExpr *first = first_symbol(e);
    return 2 * (first && first->symbol_kind == CI_SYMBOL_index) + (e->kind != CI_EXPR_symbol);
}

/* The order in which e's args print; order has SORTED elements. An insertion sort, because there
 * are few. */
static void
sort_args(const CiExpr *e, int *order)
{
    bool fixed = e->kind == CI_EXPR_floordiv || e->kind == CI_EXPR_mod;
    for (int k = 0; k < e->nargs; k++) {
        int at = k;
        for (; !fixed && at > 0; at--) {
            const CiExpr *before = e->args[order[at - 1]], *it = e->args[k];
            int swap = e->kind == CI_EXPR_product ? rank(before) - rank(it) : 0;
            if (swap < 0 || (swap == 0 && compare(it, before) >= 0))
                break;
            order[at] = order[at - 1];
        }
        order[at] = k;
    }
}

/* A total order by content. */
static int
compare(const CiExpr *a, const CiExpr *b)
{
    const CiExpr *x = first_symbol(a), *y = first_symbol(b);
    if (a == b)
        return 0;
    if (x != y)
        return !x ? 1 : !y ? -1 : compare_symbols(x, y);
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->nargs != b->nargs)
        return a->nargs < b->nargs ? -1 : 1;
    int left[SORTED], right[SORTED], n = a->nargs <= SORTED ? a->nargs : 0;
    if (n) {
        sort_args(a, left);
        sort_args(b, right);
    }
    for (int k = 0; k < n; k++) {
        int i = left[k], j = right[k], order = compare(a->args[i], b->args[j]);
        if (order)
            return order;
        if (a->coefs && a->coefs[i] != b->coefs[j])
            return a->coefs[i] < b->coefs[j] ? -1 : 1;
    }
    return a->value < b->value ? -1 : a->value > b->value ? 1 : a->id < b->id ? -1 : 1;
}

int
ci_expr_first_printed(const CiExpr *e)
{
    int first = 0;
    for (int k = 1; k < e->nargs; k++)
        if (compare(e->args[k], e->args[first]) < 0)
            first = k;
    return first;
}

static void print_sum(Printer *p, const CiExpr *e);
static void print_content(Printer *p, const CiExpr *e);

static bool
is_c(const Printer *p)
{
    return p->style == CI_STYLE_c || p->style == CI_STYLE_program;
}

static void
print_const(Printer *p, int64_t value)
{
    const char *suffix = is_c(p) && (value > INT32_MAX || value < -INT32_MAX) ? "LL" : "";
    if (value == INT64_MIN && is_c(p))
        ci_text_add(p->out, "(-9223372036854775807LL - 1)");
    else
        ci_text_add(p->out, "%lld%s", (long long)value, suffix);
}

static void
print_call(Printer *p, const char *name, const CiExpr *e, const int *order)
{
    ci_text_add(p->out, "%s(", name);
    for (int k = 0; k < e->nargs; k++) {
        ci_text_add(p->out, "%s", k ? ", " : "");
        print_sum(p, e->args[order ? order[k] : k]);
    }
    ci_text_add(p->out, ")");
}

/* The arg that is at most (at least) each other one: a <= b && a <= c ? a : b <= c ? b : c. */
static void
print_c_extremum(Printer *p, const CiExpr *e, const int *order)
{
    ci_text_add(p->out, "(");
    for (int k = 0; k + 1 < e->nargs; k++) {
        for (int j = k + 1; j < e->nargs; j++) {
            ci_text_add(p->out, "%s", j > k + 1 ? " && " : "");
            print_sum(p, e->args[order ? order[k] : k]);
            ci_text_add(p->out, e->kind == CI_EXPR_min ? " <= " : " >= ");
            print_sum(p, e->args[order ? order[j] : j]);
        }
        ci_text_add(p->out, " ? ");
        print_sum(p, e->args[order ? order[k] : k]);
        ci_text_add(p->out, " : ");
    }
    print_sum(p, e->args[order ? order[e->nargs - 1] : e->nargs - 1]);
    ci_text_add(p->out, ")");
}

/* C's / and % round to zero: the same as Python's where both sides cannot be negative. By zero they end the process, and
 * the helpers return 0: a name may be declared where nothing of such a size is touched. */
static bool
is_plain_in_c(const Printer *p, const CiExpr *e)
{
    return p->style != CI_STYLE_program && e->args[0]->low >= 0 && e->args[1]->low >= p->is_declared;
}

static bool
is_primary(const Printer *p, const CiExpr *e)
{
    switch (e->kind) {
    case CI_EXPR_symbol:
    case CI_EXPR_min:
    case CI_EXPR_max:
        return true;
    case CI_EXPR_const:
        return e->value >= 0;
    case CI_EXPR_floordiv:
    case CI_EXPR_mod:
        return is_c(p) && !is_plain_in_c(p, e);
    case CI_EXPR_linear:
    case CI_EXPR_product:
        break;
    }
    return false;
}

static bool
is_named(const Printer *p, const CiExpr *e)
{
    return p->uses && (intptr_t)ci_map_find(p->uses, CI_KEY(e)) >= TWICE;
}

/* A name, or "(e0 := ...)" where the name is first used. */
static void
print_named(Printer *p, const CiExpr *e)
{
    intptr_t use = (intptr_t)ci_map_find(p->uses, CI_KEY(e));
    if (use >= FIRST_NAME) {
        ci_text_add(p->out, "e%d", (int)(use - FIRST_NAME));
        return;
    }
    int number = p->nnames++;
    ci_text_add(p->out, "(e%d := ", number);
    print_content(p, e);
    ci_text_add(p->out, ")");
    ci_map_put(p->uses, CI_KEY(e), (void *)((intptr_t)FIRST_NAME + number));
}

/* e as an operand of * // or %. */
static void
print_operand(Printer *p, const CiExpr *e)
{
    bool bare = is_primary(p, e) || is_named(p, e);
    ci_text_add(p->out, "%s", bare ? "" : "(");
    print_sum(p, e);
    ci_text_add(p->out, "%s", bare ? "" : ")");
}

static void
print_division(Printer *p, const CiExpr *e)
{
    bool quotient = e->kind == CI_EXPR_floordiv;
    if (is_c(p) && !is_plain_in_c(p, e)) {
        bool is_program = p->style == CI_STYLE_program;
        print_call(p,
                   quotient ? (is_program ? "ci_quotient" : "ci_floordiv")
                            : (is_program ? "ci_remainder" : "ci_mod"),
                   e, NULL);
        return;
    }
    print_operand(p, e->args[0]);
    ci_text_add(p->out, "%s", !quotient ? " % " : is_c(p) ? "/" : "//");
    print_operand(p, e->args[1]);
}

static void
print_atom(Printer *p, const CiExpr *e, const int *order)
{
    switch (e->kind) {
    case CI_EXPR_const:
        print_const(p, e->value);
        break;
    case CI_EXPR_symbol:
        if (!p->print_name(p->out, e, p->arg))
            ci_text_add(p->out, "%s", e->name);
        break;
    case CI_EXPR_product:
        for (int k = 0; k < e->nargs; k++) {
            ci_text_add(p->out, "%s", k ? "*" : "");
            print_operand(p, e->args[order ? order[k] : k]);
        }
        break;
    case CI_EXPR_floordiv:
    case CI_EXPR_mod:
        print_division(p, e);
        break;
    case CI_EXPR_min:
    case CI_EXPR_max:
        if (is_c(p))
            print_c_extremum(p, e, order);
        else
            print_call(p, e->kind == CI_EXPR_min ? "min" : "max", e, order);
        break;
    case CI_EXPR_linear:
        break;
    }
}

/* " + 4*i0", or at the start "4*i0" or "-4*i0". */
static void
print_term(Printer *p, const CiExpr *atom, int64_t coef, bool first)
{
    /* The smallest coefficient has no positive twin: it is added with its sign. */
    bool minus = coef < 0 && coef != INT64_MIN, one = coef == 1 || coef == -1;
    ci_text_add(p->out, "%s", minus ? (first ? "-" : " - ") : (first ? "" : " + "));
    if (!one) {
        print_const(p, minus ? -coef : coef);
        ci_text_add(p->out, "*");
    }
    if (atom->kind == CI_EXPR_product || coef == 1)
        print_sum(p, atom);
    else
        print_operand(p, atom);
}

/* Any expression; the caller puts the parentheses it needs. */
static void
print_sum(Printer *p, const CiExpr *e)
{
    if (is_named(p, e))
        print_named(p, e);
    else if (e == p->whole || !ci_expr_is_long(e) || !p->print_name(p->out, e, p->arg))
        print_content(p, e);
}

static void
print_content(Printer *p, const CiExpr *e)
{
    int sorted[SORTED], *order = e->nargs <= SORTED ? sorted : NULL;
    if (order)
        sort_args(e, order);
    if (e->kind != CI_EXPR_linear) {
        print_atom(p, e, order);
        return;
    }
    for (int k = 0; k < e->nargs; k++) {
        int at = order ? order[k] : k;
        print_term(p, e->args[at], e->coefs[at], k == 0);
    }
    if (e->value == INT64_MIN) {
        ci_text_add(p->out, " + ");
        print_const(p, e->value);
    } else if (e->value) {
        ci_text_add(p->out, e->value < 0 ? " - " : " + ");
        print_const(p, e->value < 0 ? -e->value : e->value);
    }
}

/* Counts the uses of each long operand. */
static void
count_uses(Printer *p, const CiExpr *e)
{
    for (int k = 0; k < e->nargs; k++) {
        const CiExpr *arg = e->args[k];
        if (!arg->has_long)
            continue;
        bool is_long = ci_expr_is_long(arg), is_known = is_long && ci_map_find(p->uses, CI_KEY(arg));
        if (is_long)
            ci_map_put(p->uses, CI_KEY(arg), (void *)(intptr_t)(is_known ? TWICE : ONCE));
        if (!is_known)
            count_uses(p, arg);
    }
}

static bool
print_nothing(CiText *out, const CiExpr *e, void *arg)
{
    (void)out, (void)e, (void)arg;
    return false;
}

void
ci_expr_print(CiText *out, const CiExpr *e, CiExprStyle style)
{
    ci_expr_print_with(out, e, style, print_nothing, NULL);
}

void
ci_expr_print_with(CiText *out, const CiExpr *e, CiExprStyle style, CiPrintName *print_name,
                   void *arg)
{
    Printer p = {.out = out, .style = style, .print_name = print_name, .arg = arg, .whole = e};
    if (e->has_long && !is_c(&p)) {
        p.uses = ci_map_new(out->ctx);
        count_uses(&p, e);
    }
    print_content(&p, e);
}

/* ---- names in C ---- */

static int
name_number(const CiExprNames *names, const CiExpr *e)
{
    for (int k = names->count - 1; k >= 0; k--)
        if (names->named[k] == e)
            return names->numbers[k];
    return -1;
}

bool
ci_expr_names_print(CiExprNames *names, CiText *out, const CiExpr *e, CiExprStyle style,
                    CiPrintName *print_name, void *arg)
{
    int number = name_number(names, e);
    if (number < 0) {
        if (!names->declarations)
            return false;
        CiText made = ci_text_new(out->ctx);
        Printer p = {.out = &made, .style = style, .print_name = print_name, .arg = arg, .whole = e, .is_declared = true};
        print_content(&p, e);
        number = names->made++;
        ci_text_line(names->declarations, "const int64_t e%d = %s;", number, made.data);
        int count = names->count;
        CI_PUSH(out->ctx, names->named, names->count, names->capacity, e);
        CI_PUSH(out->ctx, names->numbers, count, names->capnumbers, number);
    }
    ci_text_add(out, "e%d", number);
    return true;
}

static bool
print_long_name(CiText *out, const CiExpr *e, void *arg)
{
    return e->kind != CI_EXPR_symbol && ci_expr_names_print(arg, out, e, CI_STYLE_program, print_long_name, arg);
}

void
ci_expr_print_program(CiText *out, const CiExpr *e, CiExprNames *names)
{
    if (!ci_expr_is_long(e) || !print_long_name(out, e, names))
        ci_expr_print_with(out, e, CI_STYLE_program, print_long_name, names);
}
