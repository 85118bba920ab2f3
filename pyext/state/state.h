/* The state of the module, and the conversion of core errors to exceptions.
 *
 * In this folder a result of NULL or -1 means that a Python exception is set, and the GIL is
 * held, unless a comment says otherwise. */
#ifndef CX_STATE_H
#define CX_STATE_H

#include "state/gil.h"

#include "api/compile.h"

/* Numbers of ufuncs: that of the operation if they have one, the following numbers otherwise. */
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

/* The code of a value in NumPy's promotion: a CiDtype, or one of Python's weak types. */
enum { CX_WEAK_int = CI_DTYPE_COUNT, CX_WEAK_float, CX_WEAK_complex, CX_CODE_COUNT };

typedef struct CxResolved {
    bool is_known;
    int8_t in[3], out[2]; /* CiDtype; CI_DTYPE_none for a dtype that the core does not have */
} CxResolved;

/* State of builds on other threads, for autotuning: none, running, or to be stopped. */
typedef enum CxAlongside { CX_ALONGSIDE_nothing, CX_ALONGSIDE_building, CX_ALONGSIDE_ending } CxAlongside;

/* Times of a thread, in ns. noted: calls that an account has recorded, and misses. aside: the part of it that the original
 * functions would not have taken. An account subtracts the growth of both during its call. worked: the thread's processor
 * time at the last reading. */
enum { CX_TIMED = 16 };
typedef struct CxTimed {
    int64_t noted, aside, worked, read;
} CxTimed;

/* Classes of Python's syntax by which trees are built and searched: syntax.c. */
#define CX_SYNTAX_CLASSES(CLASS) \
    CLASS(Assign) CLASS(Attribute) CLASS(BinOp) CLASS(Call) CLASS(Compare) CLASS(Constant) \
    CLASS(Dict) CLASS(DictComp) CLASS(FormattedValue) CLASS(FunctionDef) CLASS(GeneratorExp) \
    CLASS(Lambda) CLASS(List) CLASS(ListComp) CLASS(Name) CLASS(NamedExpr) CLASS(Raise) CLASS(Set) \
    CLASS(SetComp) CLASS(Starred) CLASS(Subscript) CLASS(Tuple) CLASS(arguments) CLASS(keyword)
enum {
#define CLASS(name) CX_SYNTAX_##name,
    CX_SYNTAX_CLASSES(CLASS)
#undef CLASS
    CX_SYNTAX_COUNT
};

/* Python's filters for NumPy's warnings: they ignore all, give some once per line, or give or raise each one. */
typedef enum CxFilters { CX_FILTERS_IGNORE, CX_FILTERS_ONCE, CX_FILTERS_STRICT } CxFilters;
/* NumPy's errstate. */
enum { CX_FLAG_divide = 1, CX_FLAG_overflow = 2, CX_FLAG_underflow = 4, CX_FLAG_invalid = 8 };
typedef struct CxErrstate {
    unsigned ignored; /* flags */
    bool acts;        /* raises, calls, prints or logs for one */
} CxErrstate;
/* Floating-point flags that NumPy has confirmed, and the value of filters_changes at that time. */
typedef struct CxAsked {
    unsigned flags, filters;
} CxAsked;

typedef struct CxState {
#define OBJECT(name) PyObject *name;
#define OBJECTS(name, count) PyObject *name[count];
#define STRING(name) PyObject *str_##name;
#include "state/state.def"
#undef OBJECT
#undef OBJECTS
#undef STRING
    /* Fields that change after import are protected by the GIL; see Threads in
     * docs/architecture.md. */
    CiRuntime runtime;
    PyObject *registered; /* devices and compilers from outside; freed with the runtime */
    PyObject *warm; /* NumPy's memory handler for large results; it owns runtime.allocator */
    CxResolved
        /* Per ufunc: codes squared entries, allocated at the first use. */
        *resolved[CX_UFUNC_COUNT];
    CiCache **old_caches;          /* caches that set_cache_directory has replaced */
    int nold_caches;
    CiUfuncLoop ufunc_loops[CI_UFUNC_LOOPS]; /* the runtime's */
    CiUfuncTable ufunc_tables[CI_UFUNC_COUNT]; /* for functions of one float16 */
    CiUfuncVector ufunc_vectors[CI_UFUNC_LOOPS];
    CiUfuncVerdicts ufunc_verdicts; /* of earlier processes, about these */
    bool has_vector_library;                 /* NumPy's function loops are vectorised */
    bool has_vector_routines;                /* so is the C library that generated code calls */
    /* Some loops of the ufunc were replaced by another library. */
    bool is_replaced[CX_UFUNC_COUNT];
    /* NumPy's loops of multiply and square of complex numbers use an FMA. */
    bool fuses_complex[2][2][2]; /* of arrays; squares; complex128 */
    /* Neither Python's complex numbers nor NumPy's use an FMA when an operator multiplies two, and parts that are
     * NaN stay NaN. */
    bool has_plain_products;
    /* NumPy's loop of float powers computes squares if all exponents are 2; and roots if they are 0.5, reciprocals if -1. */
    bool squares_of_powers, roots_of_powers;
    int stance;              /* a CxStance, for the process */
    bool has_stances;        /* some context has had its own stance */
    bool is_exact;           /* config.numerics is "exact": Python decides about calls on devices */
    /* Offsets in a RandomState (legacy_draw.c) and in a random.Random (python_draw.c). */
    Py_ssize_t legacy_offset, twister_offset; /* 0: not searched for yet; -1: not found */
    bool warned_of_compiler;   /* a warning was given that the compiler fails */
    CxErrstate errstate_read;  /* the settings of errstate_latest */
    CxFilters filters;         /* the answer for filters_read, of this number */
    Py_ssize_t filters_count;
    unsigned filters_changes;  /* number of changes of the filters that were found */
    double build_factor;     /* time of builds on this machine, as a multiple of the estimate */
    int64_t clock;           /* nanoseconds that tests have stepped to, or 0: calls and builds are timed */
    int compiling;           /* open tracers */
    int beside;              /* a CxAlongside */
    CxTimed timed[CX_TIMED]; /* threads share one if their hashes are equal */
} CxState;

#define CX_SLOT(id, function) {id, (void *)(uintptr_t)(function)}
/* A type with slots, and with the docstring of _core.pyi. */
#define CX_TYPE(spec, name, object, flags, ...)                                                    \
    static PyType_Slot spec##_slots[] = {__VA_ARGS__, {Py_tp_doc, CX_DOC_##name}, {0, NULL}};      \
    PyType_Spec spec = CX_SPEC(#name, object, flags, spec##_slots)

CxState *cx_state_of_type(PyTypeObject *type); /* of the type or a subclass of it */

/* error.c */
int cx_errors_init(CxState *state, PyObject *module);
PyObject *cx_exception(CxState *state, const char *name); /* borrowed */
int cx_raise_status(CxState *state, CiStatus status, const char *message);
/* For a failed check: raises CheckFailed, after which the original function runs, or
 * PromiseBroken. */
int cx_raise_check(CxState *state, const char *reason);
/* Returns NULL with an InternalError: an internal method got an invalid argument. Not a
 * TypeError, which the user's code might catch. */
PyObject *cx_misuse(CxState *state, const char *format, ...);
PyObject *cx_location_text(PyObject *code); /* "model.py:12" */
int cx_warn(const char *format, ...);   /* at the user's line */
int cx_warn_of_cache(CxState *state);   /* a warning about the disk cache, once */
int cx_protect(CxState *state, CiContext *ctx, void (*body)(CiContext *ctx, void *arg), void *arg);

int cx_errstate_init(CxState *state);
bool cx_errstate_acts(CxState *state);
bool cx_filters_are_strict(CxState *state);
bool cx_errstate_is_strict(CxState *state);
unsigned cx_flags_to_report(CxState *state, CxAsked *asked, unsigned flags);
PyObject *cx_flag_settings(PyObject *module, PyObject *unused);
PyObject *cx_call_quietly(CxState *state, unsigned flags, PyObject *callable, PyObject *const *args,
                          int nargs);

/* options.c: fills in defaults, then the environment, then these values; a list of all options. */
int cx_options_fill(PyObject *values, CiOptions *options);
/* library.c: number of threads of the BLAS library; 0 if it cannot tell. */
int cx_library_threads(void);
PyObject *cx_options_list(void);
PyObject *cx_choices_list(void);

#endif
