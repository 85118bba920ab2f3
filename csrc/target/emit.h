/* Shared declarations of C-like targets: types, constants, expressions of ops, index expressions
 * and support functions. A target supplies a table of spellings. target/c prints statements and
 * loops, for which a C-like language supplies a dialect.
 *
 * A source is printed in two parts: kernels first, into a text of their own, which records what they
 * use; then the support functions and helpers that they call, and the parts are joined. */
#ifndef CI_TARGET_EMIT_H
#define CI_TARGET_EMIT_H

#include "base/map.h"
#include "ir/proc.h"

/* A function of the C library whose f32 version may be more than 2 ULP from the value. */
typedef struct CiImprecise {
    const char *function; /* C's name of the f64 version */
    int operands;
    const char *shortcut; /* statements that return earlier, or "" */
} CiImprecise;

typedef struct CiSpelling {
    const char *function; /* before a support function: "static inline", "static __device__" */
    const char *builtin;  /* before an exact function of the C library: "__builtin_" or "" */
    bool is_overloaded;   /* functions of the C library have one name for f32 and f64 */
    /* Functions that the source computes in f64 and rounds, in helpers named `ci_rounded_`. */
    const CiImprecise *imprecise;
    int nimprecise;
    CiExprStyle style;
    bool is_cpp;                 /* values of several parts are written T{a, b}, not (T){a, b} */
    bool lacks_complex;          /* the C library has no complex numbers */
    bool has_undefined_overflow; /* signed overflow is undefined: operations that may wrap use unsigned types */
    /* Returns the target's own body of a support function, e.g. "{ return __float_as_uint(a); }", or NULL, if the table's
     * body is used. An operation for which it returns a body is printed as a call of that support function. May be NULL. */
    const char *(*override)(const char *name, CiDtype dtype);
} CiSpelling;

/* The libraries of the functions of intrinsics.def. */
typedef enum CiLibrary {
#define LIBRARY(name, argument) CI_LIBRARY_##name,
#include "target/intrinsics.def"
    CI_LIBRARY_COUNT
} CiLibrary;

typedef struct CiEmitter {
    CiContext *ctx;
    const CiKernels *kernels;
    const CiSpelling *spelling;
    const CiProc *proc; /* the proc being printed, which numbers the sizes */
    bool *is_used;      /* per support row and dtype */
    bool is_linked[CI_LIBRARY_COUNT]; /* by library: the source calls one of its functions */
    CiMap *used;  /* interned names, memory and sizes that were printed -> the last proc that uses them */
    CiMap *names_of; /* statement -> index expressions that are named before it */
    CiExprNames long_names; /* the names that have been declared */
    CiMap *names; /* name -> the number of its hole, from 1; NULL: names are printed, not holes */
} CiEmitter;

CiEmitter *ci_emitter_new(const CiKernels *kernels, const CiSpelling *spelling);

/* The name of the type in which values of a dtype are computed: float for f16. */
const char *ci_emit_type(CiDtype dtype);
/* typedefs of sized integers and complex numbers, for sources without headers. */
void ci_emit_types(CiText *out);
/* Support functions used so far, callees first. */
void ci_emit_support(CiEmitter *e, CiText *out);

/* The function that rounds a float to the precision of a narrow float. */
const char *ci_emit_rounding(CiEmitter *e, CiDtype narrow);

/* True if a narrow float has its own function for the operation. */
bool ci_emit_is_own(CiOp op, CiDtype operand);

/* The name of a function of the C library, for a dtype that values are computed in. */
const char *ci_emit_function(CiEmitter *e, const char *name, CiDtype dtype);

/* Expressions over operand names. Halves come out rounded. */
void ci_emit_pointwise(CiEmitter *e, CiText *out, CiOp op, CiDtype operand,
                       const char *const *names);
/* cast, where, const, index and pointwise; args[] names the operands, `operand` is the dtype of the
 * first. */
void ci_emit_scalar(CiEmitter *e, CiText *out, const CiScalar *op, CiDtype operand,
                    const char *const *names);
/* Converts an element of memory to a value, and back. Only narrow floats need a conversion. */
void ci_emit_widen(CiEmitter *e, CiText *out, CiDtype dtype, const char *element);
void ci_emit_narrow(CiEmitter *e, CiText *out, CiDtype dtype, const char *value);
/* index_names.c: names long index expressions of e->proc, before it is printed. */
void ci_emit_name_indices(CiEmitter *e);
/* Declares the names that a statement gets. The printer of a statement calls it first. */
void ci_emit_declare_names(CiEmitter *e, CiText *out, const CiStmt *stmt);
/* Prints the name of a long index expression; false if it has no name in this statement. */
bool ci_emit_name_of(CiEmitter *e, CiText *out, const CiExpr *index);
/* The number of the proc's size that equals this expression; -1 if there is none. */
int ci_emit_size_number(const CiProc *proc, const CiExpr *e);
/* An index expression; size symbols must be among the proc's sizes, index symbols print their
 * own name. */
void ci_emit_index(CiEmitter *e, CiText *out, const CiExpr *index);
const char *ci_emit_index_text(CiEmitter *e, const CiExpr *index);
/* The pointer's name of a buffer: in0, buf3. Never a user's name. */
const char *ci_emit_buffer(CiEmitter *e, const CiBuffer *buffer);
/* The number of the slot in `scalars` that holds this scalar input. */
int ci_emit_scalar_slot(const CiLoops *loops, const CiBuffer *buffer);
/* The value of a scalar input, read from `scalars` (const CiSlot layout: 16 bytes each). */
void ci_emit_slot(CiEmitter *e, CiText *out, const CiBuffer *buffer);
/* Comment with the source lines of a proc's kernel, escaped. */
void ci_emit_locations(CiText *out, const CiProc *proc);

/* Notes that the printed text uses a name of the language, such as a helper; returns the name. */
const char *ci_emit_use(CiEmitter *e, const char *name);
bool ci_emit_uses(CiEmitter *e, const char *name);
/* ci_emit_note records that the proc being printed uses a memory, a size or a name. The other two return true if that proc
 * uses it. */
void ci_emit_note(CiEmitter *e, const void *thing);
bool ci_emit_has(const CiEmitter *e, const void *thing);
bool ci_emit_has_name(CiEmitter *e, const char *name);

/* Holes: between begin and fill a name of memory or of a proc is printed as a hole, numbered by first
 * use, so that kernels which differ only in these names have equal texts. */
void ci_emit_begin_holes(CiEmitter *e);
const char *ci_emit_name(CiEmitter *e, const char *name);
/* Prints a text with its holes replaced by the names. */
void ci_emit_fill(const CiEmitter *e, CiText *out, const char *text);

/* acc op value as an expression, for reductions and scans. Folds of halves, which are computed in
 * float, are not rounded between; scans are. */
void ci_emit_combine(CiEmitter *e, CiText *out, CiOp fold, CiDtype dtype, const char *earlier,
                     const char *later);

#endif
