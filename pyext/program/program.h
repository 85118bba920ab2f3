/* Compiled graphs and their runs. */
#ifndef CX_PROGRAM_H
#define CX_PROGRAM_H

#include "state/state.h"

extern PyType_Spec cx_program_spec, cx_builder_spec;
typedef struct CxReturn {
    CiReturn layout; /* sizes and strides NULL: they depend on the call */
    bool is_shared;  /* another return is that buffer, or it is an argument's memory: copied */
    bool is_part;    /* it is some of a buffer of one axis that no other return is of */
} CxReturn;
typedef struct CxProgram CxProgram;
struct CxProgram {
    PyObject_HEAD CxState *state;
    CiProgram *program;
    CiContext *ctx; /* owns graph */
    CiGraph *graph; /* as captured: what text() prints and compiles again */
    CiOptions options;
    PyObject *option_values; /* keeps the texts of options */
    const CiBackend *backend;
    CiQueue queue; /* of its first device, without a stream */
    PyObject *passes; /* from Python, of its compile; or NULL */
    PyObject *texts;
    PyObject *wrapper; /* the printed Python wrapper, when that runs the program */
    int nbuffers, nreturns, nscalars;
    CxReturn *returns;
    bool *is_scalar; /* per result buffer: one number, never an array */
    int64_t work;
    int64_t small; /* with no size above it a symbolic program has little work; 0: there is none */
    bool writes, is_symbolic; /* is_symbolic: sizes of inputs are read in each run */
    bool may_stop;            /* a check of it may fail */
    int kernels, externs;
    PyObject *why_host; /* why the host's backend runs it instead of the device's, or NULL */
    PyObject *key;      /* under which it is found among the segments, or NULL */
    double rent;        /* 0, or it is interpreted until it has run so many seconds */
    double spent;       /* seconds that it has run until then */
};
/* How a result buffer is made when another shape than the program's is wanted of its memory. */
typedef struct CxShape {
    bool is_set;
    int rank;
    const int64_t *layout; /* sizes, then strides in bytes */
    const int *numbers;    /* the same in the table of the call, or NULL */
} CxShape;
enum { CX_MOST_OPERANDS = 256 }; /* of a library call */
enum { CX_FEW_SYMBOLS = 12, CX_FEW_GENERATORS = 4 };
/* Generators that a run draws from without Python, whose locks it holds. The first that are met
 * have room; Python draws from the others. */
typedef struct CxGenerators {
    int count;
    int64_t addresses[CX_FEW_GENERATORS];
    struct bitgen *bits[CX_FEW_GENERATORS];    /* NULL: Python draws */
    struct CxFreeBlock *spares[CX_FEW_GENERATORS]; /* of np.random's own, or NULL */
    PyObject *locks[CX_FEW_GENERATORS];
} CxGenerators;
/* One run. buffers and slots: one per result buffer, zeroed; an array, or a number in its slot. */
typedef struct CxRun {
    CxProgram *program;
    void *const *inputs;
    const int64_t *const *sizes; /* per input; NULL when no symbol is read from arrays */
    PyObject *const *input_objects;
    const CiSlot *scalars;
    const CxShape *shapes;
    const int64_t *table; /* of the guards */
    PyObject **buffers;
    CiSlot *slots;
    /* Makes result buffers instead of that, with or without the lock; arg is the run. NULL with no exception:
     * there is no memory. */
    void *(*new_result)(void *arg, int number, const CiResultBuffer *buffer);
    PyObject *values; /* of the Python wrapper: its tuple */
    PyThreadState *released;
    CiQueue queues[CI_MAX_DEVICES];    /* the program's, with the streams in force */
    PyObject *streams[CI_MAX_DEVICES]; /* their objects, or NULL; until cx_run_close */
    CxGenerators generators;
    unsigned float_flags; /* NumPy's bits */
    int64_t *symbols;     /* values, when it has run */
    int64_t few_symbols[CX_FEW_SYMBOLS];
} CxRun;

/* Where a later call finds a graph's input: the value of a source, or of a symbol of the call's
 * environment (a python i64 input, for symbols that no array of the graph shows). */
typedef struct CxInput {
    int source;
    CiKind kind;
    CiDtype dtype;
    int symbol; /* number in the environment, in a specialization in its table; or -1 */
} CxInput;

/* program_text.c: compiles a copy of the graph in a context of its own, without the lock; with
 * `planned` only plans it. arg: of dump and planned. */
int cx_program_make(CxState *state, const CiGraph *graph, const CiOptions *options,
                    const CiBackend *backend, PyObject *passes, const CiTextInput *given,
                    void (*dump)(void *, const char *, const char *),
                    void (*planned)(void *, const struct CiProgramPlan *), void *arg,
                    CiRequest *request);
CiGraph *cx_graph_copy(CxState *state, CiContext *ctx, const CiGraph *graph);
PyObject *cx_program_text(CxProgram *program, const char *level);
PyObject *cx_program_backend(PyObject *self, void *closure);
PyObject *cx_program_approximate(PyObject *self, void *closure);
PyObject *cx_compile_text(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *cx_run_program(PyObject *module, PyObject *args);
PyObject *cx_recompile(PyObject *module, PyObject *args);

/* compile_graph.c: compile_graph(builder or text, *, options, device, backend): a program that has not run. */
PyObject *cx_compile_graph(PyObject *module, PyObject *args, PyObject *kwargs);

PyObject *cx_plan(PyObject *module, PyObject *args); /* plan.c */

/* program_table.c: a new reference to the program that is found by this key, or NULL (with an exception if
 * *failed). One that is put there is taken out as it dies; an exception that is set stays so. */
CxProgram *cx_program_find(CxState *state, PyObject *key, int *failed);
int cx_program_put(CxProgram *program, PyObject *key);
void cx_program_take_out(CxProgram *program);

/* info.c: the outcome of recording each part of a program; None if recording was not requested.
 * Then the numbers of a compile by name, in a dict; empty for NULL. */
PyObject *cx_program_recordings(PyObject *self, void *closure);
int cx_info_fill(PyObject *dict, const CiCompileInfo *info);

/* wrapper.c */
int cx_wrapper_open(CxProgram *program);
int cx_wrapper_run(CxRun *run);
PyObject *cx_program_observe(PyObject *self, PyObject *observer);
PyObject *cx_program_wrapper_names(PyObject *self, PyObject *unused);

/* direct_draw.c: gives the locks back; an exception that is set stays so. */
void cx_generators_close(CxGenerators *generators);

/* program.c */
/* An unbuilt program with a copy of the graph: its method `build` compiles it and puts it under that key. */
CxProgram *cx_program_defer(CxState *state, const CiGraph *graph, const CiOptions *options,
                            PyObject *option_values, const CiBackend *backend, PyObject *key);
/* Takes ctx over when it succeeds. passes: from Python, given: see CiRequest; either may be NULL.
 */
CxProgram *cx_program_compile(CxState *state, CiContext *ctx, CiGraph *graph,
                              const CiOptions *options, PyObject *option_values,
                              const CiBackend *backend, PyObject *passes, const CiTextInput *given,
                              PyObject *info);
bool cx_block_has_checks(const CiBlock *block);  /* a check of it may fail */
bool cx_block_has_effects(const CiBlock *block); /* must run even if its values are unused */
int cx_program_run(CxRun *run);
void cx_run_close(CxRun *run);
/* A new reference to the value of one return after a run. */
PyObject *cx_run_value(CxRun *run, int position, CiKind kind);
/* Sizes, strides, …: constants, or in room what the table says. */
const int64_t *cx_layout_of(int count, const int64_t *layout, const int *numbers,
                            const int64_t *table, int64_t *room);

/* extern.c */
/* position_axis, may_fail: as in CiExtern; the same for all calls of one name and key. */
const CiExtern *cx_extern_find(CxState *state, const char *name, const char *key,
                               PyObject *callable, int position_axis, bool may_fail,
                               const CiOp *parts);
/* Gives library calls of a graph that was a text what they call: products NumPy's own, others what
 * is known here by their name and key. Whether all of them have something; -1 with an exception. */
int cx_find_externs(CxState *state, CiGraph *graph);
/* What the library calls of a program are beside products, a tuple (name, key, callable,
 * position_axis, may_fail, parts) of each; an empty list of NULL. */
PyObject *cx_program_library_calls(PyObject *program, PyObject *unused);

/* graph_inputs.c: graph_inputs(text): a list of kind ("array", "scalar", "python"), dtype, shape and
 * strides in elements of each input, sizes that vary as in the call that was captured. */
PyObject *cx_graph_inputs(PyObject *module, PyObject *text);

PyObject *cx_add_extern(PyObject *module, PyObject *args);

#endif
