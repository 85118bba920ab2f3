/* The module's state, and how what the core reports becomes an exception.
 *
 * Everywhere in this folder: NULL or -1 says that a Python exception is set, and the lock is held.
 */
#ifndef CX_STATE_H
#define CX_STATE_H

#include "state/gil.h"

#include "api/compile.h"

/* Ufuncs are numbered: those that are one op by that op, the others after them. */
enum {
    CX_UFUNC_divmod = CI_OP_COUNT,
    CX_UFUNC_modf,
    CX_UFUNC_frexp,
    CX_UFUNC_degrees,
    CX_UFUNC_radians,
    CX_UFUNC_float_power,
    CX_UFUNC_COUNT
};

static inline bool
cx_is_comparison(int ufunc)
{
    return ufunc >= 0 && ufunc < CI_OP_COUNT &&
           ci_op_compares_signs((CiOp)ufunc, CI_DTYPE_i64, CI_DTYPE_u64);
}

/* What a value is to NumPy's promotion: a CiDtype, or one of Python's weak types. */
enum { CX_WEAK_int = CI_DTYPE_COUNT, CX_WEAK_float, CX_WEAK_complex, CX_CODE_COUNT };

typedef struct CxResolved {
    bool is_known;
    int8_t in[3], out[2]; /* CiDtype; CI_DTYPE_none: one that the core has not */
} CxResolved;

/* What is built beside calls, for races: nothing; something; what is built shall stop. */
typedef enum CxBeside { CX_BESIDE_nothing, CX_BESIDE_building, CX_BESIDE_ending } CxBeside;

typedef struct CxState {
#define OBJECT(name) PyObject *name;
#define OBJECTS(name, count) PyObject *name[count];
#define STRING(name) PyObject *str_##name;
#include "state/state.def"
#undef OBJECT
#undef OBJECTS
#undef STRING
    /* What changes behind import changes with the lock; see Threads in docs/architecture.md. */
    CiRuntime runtime;
    PyObject *registered; /* devices and compilers from outside; they end with the runtime */
    PyObject *warm; /* what NumPy asks for the memory of large results; it owns runtime.allocator */
    CxResolved
        *resolved[CX_UFUNC_COUNT]; /* per ufunc: codes squared entries, made when first asked */
    CiCache **old_caches;          /* set_cache_directory replaced them */
    int nold_caches;
    CiUfuncLoop ufunc_loops[CI_UFUNC_LOOPS]; /* the runtime's */
    CiUfuncTable ufunc_tables[CI_UFUNC_COUNT]; /* of functions of one float16 */
    bool has_vector_library;                 /* NumPy's loops of functions are quick */
    bool is_replaced[CX_UFUNC_COUNT];        /* some of the ufunc's loops are another library's */
    bool fuses_complex[2][2]; /* NumPy's loops of multiply and square of c64 and c128 arrays */
    bool roots_of_powers;     /* its loop of float powers has roots where all exponents are 0.5 */
    int stance;              /* the process's, a CxStance */
    bool has_stances;        /* some context has had one of its own */
    bool is_exact;           /* config.numerics is "exact": Python decides about calls on devices */
    Py_ssize_t spare_offset; /* legacy_draw.c: in np.random's generator; 0: not looked for, -1: not
                                found */
    bool told_of_compiler;   /* that it fails, where a call went on without it */
    double build_factor;     /* what builds take here, of what is estimated */
    int compiling;           /* tracers open */
    int beside;              /* a CxBeside */
} CxState;

#define CX_SLOT(id, function) {id, (void *)(uintptr_t)(function)}

CxState *cx_state_of_type(PyTypeObject *type); /* of the type or a subclass of it */

/* error.c */
int cx_errors_init(CxState *state, PyObject *module);
PyObject *cx_exception(CxState *state, const char *name); /* borrowed */
int cx_raise_status(CxState *state, CiStatus status, const char *message);
/* Of a check that has failed: CheckFailed, for which the function answers, or PromiseBroken. */
int cx_raise_check(CxState *state, const char *reason);
/* NULL, with an InternalError: a method of ours was given what it does not take. Code of the user's
 * that handles TypeErrors must not take it for one of its own. */
PyObject *cx_misuse(CxState *state, const char *format, ...);
PyObject *cx_place_text(PyObject *code); /* "model.py:12" */
int cx_warn(const char *format, ...);   /* at the user's line */
int cx_warn_of_cache(CxState *state);   /* of what went wrong with the disk cache, once */
int cx_protect(CxState *state, CiContext *ctx, void (*body)(CiContext *ctx, void *arg), void *arg);

enum { CX_FLAG_divide = 1, CX_FLAG_overflow = 2, CX_FLAG_underflow = 4, CX_FLAG_invalid = 8 };
int cx_errstate_init(CxState *state);
bool cx_errstate_is_strict(CxState *state);

/* options.c: the defaults, the environment, then these; a list of what there is. */
int cx_options_fill(PyObject *values, CiOptions *options);
/* library.c: threads that the library of NumPy's products takes; 0 where it does not say. */
int cx_library_threads(void);
PyObject *cx_options_list(void);
PyObject *cx_choices_list(void);

#endif
