/* Symbolic integers: every size, stride, offset, index and trip count at every level.
 *
 * Expressions are interned in a CiSym (one per compilation): equal means the same pointer. They are
 * kept in one canonical form, so building is simplifying:
 *   const      value.
 *   symbol     name, range, optional symbolic upper bound.
 *   linear     value + coef[0]*arg[0] + ...     args are atoms in order of id, coefs non-zero.
 *   product    arg[0]*arg[1]*...                args are non-const, in order of id, may repeat.
 *   floordiv   arg[0] // arg[1]                 Python's: rounds to minus infinity.
 *   mod        arg[0] % arg[1]                  Python's: sign of the divisor.
 *   min, max   of two or more args in order of id, at most one of them a const.
 * A linear with one term, coefficient 1 and value 0 is that term itself. ceildiv(a, b) is
 * (a + b - 1) // b for a const b > 0, else -((-a) // b). Range analysis is part of building: each
 * expression carries its bounds in int64, where INT64_MIN and INT64_MAX mean unbounded, and
 * floordiv/mod/min/max fold by it. Division by an expression that may be 0 keeps its form; by const
 * 0 fails with CI_ERR_VALUE. */
#ifndef CI_SYM_EXPR_H
#define CI_SYM_EXPR_H

#include "base/context.h"
#include "base/lexer.h"
#include "base/text.h"

typedef enum CiExprKind {
    CI_EXPR_const,
    CI_EXPR_symbol,
    CI_EXPR_linear,
    CI_EXPR_product,
    CI_EXPR_floordiv,
    CI_EXPR_mod,
    CI_EXPR_min,
    CI_EXPR_max
} CiExprKind;

typedef enum CiSymbolKind {
    CI_SYMBOL_size,     /* an extent of an argument, known at the call: s0, s1 */
    CI_SYMBOL_index,    /* a loop variable: i0, r0 */
    CI_SYMBOL_unbacked, /* defined while the program runs: u0 */
    CI_SYMBOL_argument  /* an integer argument of the user */
} CiSymbolKind;

#define CI_MINUS_INFINITY INT64_MIN
#define CI_INFINITY INT64_MAX

typedef struct CiExpr CiExpr;
struct CiExpr {
    CiExprKind kind;
    uint32_t id; /* creation order: the canonical order */
    int nargs;
    int64_t value; /* const; constant part of a linear */
    const CiExpr *const *args;
    const int64_t *coefs; /* linear */
    int64_t low, high;    /* inclusive range */
    const char *name;     /* symbol */
    CiSymbolKind symbol_kind;
    const CiExpr *limit;          /* symbol: exclusive upper bound, or NULL */
    const CiExpr *const *symbols; /* the distinct symbols inside, in order of id */
    int nsymbols;
    /* Of the text as printers write it: the number of its operands, where a long operand is a name. */
    int length;
    bool has_long;                       /* it is long, or an operand is */
    bool calls_floordiv, calls_mod;      /* C calls the helper, because an operand may be negative */
    bool may_divide_by_zero;
};

typedef struct CiSym CiSym;
CiSym *ci_sym_new(CiContext *ctx);

const CiExpr *ci_expr_const(CiSym *sym, int64_t value);
/* Interns a symbol by name; a name with a different kind or range is an error. */
const CiExpr *ci_expr_symbol(CiSym *sym, const char *name, CiSymbolKind kind, int64_t low,
                             int64_t high);
/* A loop variable in [0, extent): its range follows from the extent's, its limit is the extent.
 * Each call makes a new symbol unless name and extent are the same: an i0 of another extent is
 * another symbol that prints alike. That i0 exists says that its extent is at least 1: so of an
 * extent max(n, 0) the limit is n, which `ci_expr_limit` gives. */
const CiExpr *ci_expr_index(CiSym *sym, const char *name, const CiExpr *extent);
const CiExpr *ci_expr_limit(const CiExpr *extent);
/* The extent max(limit, 0), for code outside of the loop: there the limit may be negative. */
const CiExpr *ci_expr_extent(CiSym *sym, const CiExpr *limit);
/* A value known only while the program runs, in [low, limit); limit NULL: no upper bound. The same
 * name gives the same symbol; asking again with another range is an error. That it exists says that
 * its range is not empty. */
const CiExpr *ci_expr_unbacked(CiSym *sym, const char *name, int64_t low, const CiExpr *limit);

const CiExpr *ci_expr_add(CiSym *sym, const CiExpr *a, const CiExpr *b);
const CiExpr *ci_expr_sub(CiSym *sym, const CiExpr *a, const CiExpr *b);
const CiExpr *ci_expr_mul(CiSym *sym, const CiExpr *a, const CiExpr *b);
const CiExpr *ci_expr_neg(CiSym *sym, const CiExpr *a);
const CiExpr *ci_expr_floordiv(CiSym *sym, const CiExpr *a, const CiExpr *b);
/* a // b where b is not 0, whatever its range says: a*b // b is a. */
const CiExpr *ci_expr_quotient(CiSym *sym, const CiExpr *a, const CiExpr *b);
const CiExpr *ci_expr_mod(CiSym *sym, const CiExpr *a, const CiExpr *b);
const CiExpr *ci_expr_ceildiv(CiSym *sym, const CiExpr *a, const CiExpr *b);
const CiExpr *ci_expr_min(CiSym *sym, const CiExpr *a, const CiExpr *b);
const CiExpr *ci_expr_max(CiSym *sym, const CiExpr *a, const CiExpr *b);
const CiExpr *ci_expr_product_of(CiSym *sym, const CiExpr *const *exprs, int count);

bool ci_expr_is_const(const CiExpr *e, int64_t *value); /* value may be NULL */
bool ci_expr_equals_const(const CiExpr *e, int64_t value);
bool ci_expr_depends_on(const CiExpr *e, const CiExpr *symbol);
bool ci_expr_shares_symbol(const CiExpr *a, const CiExpr *b);
/* e = coef * symbol + rest with neither coef nor rest containing symbol; false when it has no such
 * form. coef is an expression (it may contain size symbols). */
bool ci_expr_split_linear(CiSym *sym, const CiExpr *e, const CiExpr *symbol, const CiExpr **coef,
                          const CiExpr **rest);
/* True if e is linear in the symbol, and grows by `stride` with it; 0: it does not depend on it. */
bool ci_expr_has_stride(CiSym *sym, const CiExpr *e, const CiExpr *symbol, int64_t stride);
/* Replaces from[k] by to[k] everywhere at once, rebuilding canonically. */
const CiExpr *ci_expr_substitute(CiSym *sym, const CiExpr *e, int count, const CiExpr *const *from,
                                 const CiExpr *const *to);
/* Re-interns e into another CiSym (another arena). */
const CiExpr *ci_expr_copy(CiSym *into, const CiExpr *e);
/* Calls visit for each distinct symbol, in order of id. */
void ci_expr_visit_symbols(const CiExpr *e, void (*visit)(void *arg, const CiExpr *symbol),
                           void *arg);
/* Exact value under values of its symbols; fails with CI_ERR_ZERO_DIVISION, or with
 * CI_ERR_UNSUPPORTED (overflow). */
int64_t ci_expr_evaluate(CiContext *ctx, const CiExpr *e,
                         int64_t (*value_of)(void *arg, const CiExpr *symbol), void *arg);

/* The number of expressions. Those made later have ids of at least this number. */
uint32_t ci_sym_count(const CiSym *sym);
/* The largest value that e can have, in terms of symbols that were there when ci_sym_count was
 * `before`; NULL where the limits of later symbols do not give one. */
const CiExpr *ci_expr_most(CiSym *sym, const CiExpr *e, uint32_t before);
/* The largest magnitude that e can have when no symbol is larger than most. */
double ci_expr_magnitude(const CiExpr *e, double most);

/* Proofs without guards: true means proved, false means not proved. */
bool ci_sym_known_eq(CiSym *sym, const CiExpr *a, const CiExpr *b);
bool ci_sym_known_ne(CiSym *sym, const CiExpr *a, const CiExpr *b);
bool ci_sym_known_le(CiSym *sym, const CiExpr *a, const CiExpr *b);
bool ci_sym_known_lt(CiSym *sym, const CiExpr *a, const CiExpr *b);
/* As known_le, given that each of the facts is at least 0. */
bool ci_sym_known_le_given(CiSym *sym, const CiExpr *a, const CiExpr *b, int nfacts,
                           const CiExpr *const *facts);
/* True if a and b are proved to differ. strides: a and b are sums of multiples of these, as offsets of
 * elements are. */
bool ci_sym_known_disjoint(CiSym *sym, const CiExpr *a, const CiExpr *b, int nstrides,
                        const CiExpr *const *strides, int nfacts, const CiExpr *const *facts);
bool ci_sym_known_multiple_of(CiSym *sym, const CiExpr *a, const CiExpr *b);

/* Runs body(ctx, arg); false when a constant overflowed on the way, which proves or simplifies
 * nothing but is no error of the caller. Other failures are passed on. */
bool ci_sym_attempt(CiSym *sym, void (*body)(CiContext *ctx, void *arg), void *arg);

/* Printers. Text parses back: `64*i0 + r0`, `(s0 + 3)//4`, `s0 % 8`, `min(s0, 4)`. C uses helper
 * functions ci_floordiv and ci_mod only where the operands may be negative. */
/* program: C outside of kernels, where quotients are calls that take a divisor of zero. */
typedef enum CiExprStyle {
    CI_STYLE_text,
    CI_STYLE_c,
    CI_STYLE_program,
    CI_STYLE_python
} CiExprStyle;
void ci_expr_print(CiText *out, const CiExpr *e, CiExprStyle style);
/* True if the expression is long. Operands are shared, so a text without names would double with each step that
 * uses the one before twice. Text and Python name a long operand where it is first printed, if there is another
 * use: `(e0 := s0 - s0//2) - e0//2`. C names it in a statement before (CiExprNames). */
static inline bool
ci_expr_is_long(const CiExpr *e)
{
    return e->length > 32;
}
/* Prints the name of a symbol, or of a long expression. False: the expression has no name. */
typedef bool CiPrintName(CiText *out, const CiExpr *e, void *arg);
/* As ci_expr_print, with the names that the callback prints. The whole expression is never a name. */
void ci_expr_print_with(CiText *out, const CiExpr *e, CiExprStyle style, CiPrintName *print_name,
                        void *arg);

/* Names of long expressions in a text of C. Each is declared before the statement that first uses it, in the block
 * of that statement. */
typedef struct CiExprNames {
    CiText *declarations; /* before the statement that is being printed; NULL: no expression gets a name there */
    const CiExpr **named;
    int *numbers;
    int count; /* of those that are known: a block ends with as many as before it */
    int capacity, capnumbers, made;
} CiExprNames;
/* Prints e in CI_STYLE_program with these names, of which e may be one. */
void ci_expr_print_program(CiText *out, const CiExpr *e, CiExprNames *names);
/* Prints the name of e, and declares it if it has none. Prints nothing and returns false if it cannot have one. */
bool ci_expr_names_print(CiExprNames *names, CiText *out, const CiExpr *e, CiExprStyle style,
                         CiPrintName *print_name, void *arg);
/* Symbols must have been declared in sym. */
const CiExpr *ci_expr_parse(CiSym *sym, CiLexer *lex);
/* Text that is parsed from now on may call the expression by this name, which no symbol has. */
void ci_sym_set_alias(CiSym *sym, const char *name, const CiExpr *e);
/* NULL when not declared; of several index symbols of one name, the one asked for last. */
const CiExpr *ci_sym_find_symbol(CiSym *sym, const char *name);

#endif
