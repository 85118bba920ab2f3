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
    const char *function; /* by C's name of the f64 version */
    int operands;
    const char *shortcut; /* statements that return earlier, or "" */
} CiImprecise;

typedef struct CiSpelling {
    const char *function; /* before a support function: "static inline", "static __device__" */
    const char *builtin;  /* before an exact function of the C library: "__builtin_" or "" */
    bool is_overloaded;   /* functions of the C library have the same name for f32 */
    /* These are computed in f64 and rounded, by functions `ci_rounded_` of the source. */
    const CiImprecise *imprecise;
    int nimprecise;
    CiExprStyle style;
    bool is_cpp;                 /* values of several parts are written T{a, b}, not (T){a, b} */
    bool lacks_complex;          /* the C library's complex numbers */
    bool has_undefined_overflow; /* of signed integers: what may wrap is computed without a sign */
    /* The target's own body for a support function, "{ return __float_as_uint(a); }"; NULL takes
     * the table's. An operation with a support function of its name is this function where it has one.
     * May be NULL. */
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
    const CiProc *proc; /* the one being printed: sizes have the numbers that it gives them */
    bool *is_used;      /* per support row and dtype */
    bool is_linked[CI_LIBRARY_COUNT]; /* that of a function which was printed */
    CiMap *used;  /* names (interned), memory and sizes that were printed -> the last proc that has them */
    CiMap *names_of; /* statement -> index expressions that get their names before it */
    CiExprNames long_names; /* those that are declared */
    CiMap *names; /* holes: name -> its number, from 1; NULL: names are printed as they are */
} CiEmitter;

CiEmitter *ci_emitter_new(const CiKernels *kernels, const CiSpelling *spelling);

/* The name of the type that values of a dtype are computed in: float for f16. */
const char *ci_emit_type(CiDtype dtype);
/* typedefs of sized integers and complex numbers, for sources without headers. */
void ci_emit_types(CiText *out);
/* Support functions used so far, callees first. */
void ci_emit_support(CiEmitter *e, CiText *out);

/* The function that rounds a float to what a narrow one can hold. */
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
/* Memory form <-> value: halves convert, others are as they are. */
void ci_emit_widen(CiEmitter *e, CiText *out, CiDtype dtype, const char *element);
void ci_emit_narrow(CiEmitter *e, CiText *out, CiDtype dtype, const char *value);
/* index_names.c: names long index expressions of e->proc, before it is printed. */
void ci_emit_name_indices(CiEmitter *e);
/* Declares the names that a statement gets. The printer of a statement calls it first. */
void ci_emit_declare_names(CiEmitter *e, CiText *out, const CiStmt *stmt);
/* Prints the name of a long index expression; false: it has none here. */
bool ci_emit_name_of(CiEmitter *e, CiText *out, const CiExpr *index);
/* The number of the proc's size that is this expression; -1: none is. */
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
/* Notes memory, or a size, of the proc that is being printed. `has`: true if that proc uses it. */
void ci_emit_note(CiEmitter *e, const void *thing);
bool ci_emit_has(const CiEmitter *e, const void *thing);
bool ci_emit_has_name(CiEmitter *e, const char *name);

/* Holes: between begin and fill a name of memory or of a proc is printed as a hole, numbered by first
 * use, so that kernels which differ only in these names have equal texts. */
void ci_emit_begin_holes(CiEmitter *e);
const char *ci_emit_name(CiEmitter *e, const char *name);
/* The text with the names in it. */
void ci_emit_fill(const CiEmitter *e, CiText *out, const char *text);

/* acc op value as an expression, for reductions and scans. Folds of halves, which are computed in
 * float, are not rounded between; scans are. */
void ci_emit_combine(CiEmitter *e, CiText *out, CiOp fold, CiDtype dtype, const char *earlier,
                     const char *later);

#endif
