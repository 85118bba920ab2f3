/* Compiled graphs and their runs. */
#ifndef CX_PROGRAM_H
#define CX_PROGRAM_H

#include "state/state.h"

extern PyType_Spec cx_program_spec, cx_builder_spec;
typedef struct CxReturn {
    CiReturn layout; /* sizes and strides are NULL if they depend on the call */
    /* The return is copied, because another one has the same buffer, or because it is an argument's memory. */
    bool is_shared;
    bool is_part;    /* a part of a buffer of rank 1 that no other return uses */
} CxReturn;
typedef struct CxProgram CxProgram;
struct CxProgram {
    PyObject_HEAD CxState *state;
    CiProgram *program;
    CiProgram *former; /* the program of stencils before, which current runs may still use; or NULL */
    bool is_former;    /* `program` consists of stencils until `build` replaces it */
    CiContext *ctx; /* owns graph */
    CiGraph *graph; /* as captured; text() prints it and compiles it again */
    CiOptions options;
    PyObject *option_values; /* owns the option texts */
    const CiBackend *backend;
    CiQueue queue; /* queue of its first device, without a stream */
    PyObject *passes; /* the user's passes for its compile; or NULL */
    PyObject *texts;
    PyObject *wrapper; /* the printed Python wrapper, when that runs the program */
    PyObject *user_backend; /* (name, function): the function runs the program; or NULL */
    int nbuffers, nreturns, nscalars;
    CxReturn *returns;
    bool *is_scalar; /* per result buffer: a number, not an array */
    int64_t work;
    /* A symbolic program has little work if no size exceeds this one; 0: it always has more. */
    int64_t small;
    bool writes, is_symbolic; /* is_symbolic: sizes of inputs are read in each run */
    bool may_stop;            /* one of its checks may fail */
    bool is_interpreted;      /* the interpreter runs some of its kernels */
    int kernels, externs;
    /* The reason why the host's backend runs it instead of the device's, or NULL. */
    PyObject *why_host;
    PyObject *key;      /* its key among the segments, or NULL */
    double rent;        /* seconds that it runs interpreted or on stencils before it is built; or 0 */
    PyObject *on_paid;  /* called once when its runs have taken `rent` seconds; or NULL */
    double spent;       /* seconds that it has run */
};
/* The shape of a result buffer, if its memory is returned in another shape than the program's. */
typedef struct CxShape {
    bool is_set;
    int rank;
    const int64_t *layout; /* sizes, then strides in bytes */
    const int *numbers;    /* indices of the same in the table of the call, or NULL */
} CxShape;
enum { CX_MAX_OPERANDS = 256 }; /* operands of a library call */
enum { CX_FEW_SYMBOLS = 12, CX_FEW_GENERATORS = 4 };
/* Generators from which a run draws without Python, holding their locks. There is space for the
 * first few; Python draws from the others. */
typedef struct CxGenerators {
    int count;
    int64_t addresses[CX_FEW_GENERATORS];
    struct bitgen *bits[CX_FEW_GENERATORS];    /* NULL if Python draws */
    struct CxLegacyGauss *spares[CX_FEW_GENERATORS]; /* for np.random's own generator, or NULL */
    struct CxTwister *twisters[CX_FEW_GENERATORS]; /* for Python's own generators, or NULL */
    PyObject *locks[CX_FEW_GENERATORS];
    struct CxState *state;
} CxGenerators;
/* One run. buffers and slots: one per result buffer, zeroed; an array, or a number in its slot. */
typedef struct CxStash CxStash;
struct CxHandle; /* a tensor of torch */

typedef struct CxRun {
    CxProgram *program;
    void *const *inputs;
    const int64_t *const *sizes; /* per input; NULL if no symbol is read from arrays */
    PyObject *const *input_objects;
    const CiSlot *scalars;
    const CxShape *shapes;
    const int64_t *table; /* of the guards */
    PyObject **buffers;
    CiSlot *slots;
    /* Allocates result buffers in another way, with or without the GIL; arg is the run. NULL
     * without an exception means out of memory. */
    void *(*new_result)(void *arg, int number, const CiResultBuffer *buffer);
    /* Memory between steps by a caller that has its own allocator: all of the device's, and large buffers of the host; or NULL. */
    int32_t (*take)(void *arg, size_t bytes, void **block);
    void (*give)(void *arg, void *block);
    /* The program does not read this input again. Its caller has references to all; NULL: the run takes them. */
    void (*drop)(void *arg, int input);
    /* Replaces memory that the run's caller has allocated by a tensor of torch; false if it cannot. */
    bool (*put_tensor)(void *arg, void *block, struct CxHandle *tensor, void *data);
    /* The stream of the program's one device, if the caller chooses it. */
    bool has_stream;
    void *stream;
    PyObject *values; /* the result tuple of the Python wrapper */
    PyThreadState *released;
    CiQueue queues[CI_MAX_DEVICES];    /* the program's queues, with the current streams */
    PyObject *streams[CI_MAX_DEVICES]; /* their stream objects, or NULL; held until cx_run_close */
    CxGenerators generators;
    CxStash *stash; /* results of calls of torch that the program has not taken yet */
    unsigned float_flags; /* NumPy's bits */
    int64_t *symbols;     /* values after the run */
    int64_t few_symbols[CX_FEW_SYMBOLS];
} CxRun;

/* Where a later call finds an input of a graph. An input is the value of a source or of a symbol of
 * the call's environment: a python i64 input for symbols that are no extent of an array. */
typedef struct CxInput {
    int source;
    CiKind kind;
    CiDtype dtype;
    int symbol; /* index in the environment, or in the table of a specialization; or -1 */
} CxInput;

void cx_stash_close(CxRun *run); /* direct_aten.c */

/* isolate.c: with the option isolate, compiles the program in a child process first. -1 with an exception if that dies. */
int cx_isolate(CxProgram *program);

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

/* compile_graph.c: compile_graph(builder or text, *, options, device, backend): compiles a
 * program without running it. */
PyObject *cx_compile_graph(PyObject *module, PyObject *args, PyObject *kwargs);

PyObject *cx_plan(PyObject *module, PyObject *args); /* plan.c */

/* program_table.c: a new reference to the program with this key, or NULL (with an exception if
 * *failed). A program in the table is removed when it dies; a current exception is kept. */
CxProgram *cx_program_find(CxState *state, PyObject *key, int *failed);
int cx_program_put(CxProgram *program, PyObject *key);
void cx_program_take_out(CxProgram *program);

/* info.c: the outcome of recording each partition of a program; None if recording was not
 * requested. Then the numbers of a compile by name, in a dict; empty for NULL. */
PyObject *cx_program_recordings(PyObject *self, void *closure);
int cx_info_fill(PyObject *dict, const CiCompileInfo *info);

/* wrapper.c */
int cx_wrapper_open(CxProgram *program);
int cx_wrapper_run(CxRun *run);
PyObject *cx_program_observe(PyObject *self, PyObject *observer);
PyObject *cx_program_wrapper_names(PyObject *self, PyObject *unused);

/* user_backend.c: a backend of `register_backend` makes a function of the program's graph, which runs it. Programs
 * whose data may stop them, or decide sizes, are refused. */
int cx_user_backend_open(CxProgram *program, PyObject *backend);
int cx_user_backend_run(CxRun *run);

/* direct_draw.c: releases the locks; a current exception is kept. */
void cx_generators_close(CxGenerators *generators);

/* replacement.c: the method copy_stencils; builds what takes the place of a program of stencils. */
PyObject *cx_program_copy_stencils(PyObject *self, PyObject *args);
/* The backend whose kernels run until the other backend has built; NULL if there is none. */
const CiBackend *cx_find_first(CxState *state, const CiBackend *backend, const CiOptions *options);
/* Adds the time of a call that began at `began` (nanoseconds) and has run the program to `spent`. Calls on_paid when `spent`
 * reaches `rent`. */
void cx_program_pay(CxProgram *program, int64_t began);
int cx_program_replace(CxProgram *program, PyObject *info);

/* made.c */
/* For fewer elements, keeping the GIL costs other threads less than releasing it costs this one. */
#define RELEASE_WORK 65536
/* Moves the results of a compile request to the program. */
int cx_program_take(CxProgram *program, const CiRequest *request, PyObject *info);
void cx_note_build(CxState *state, const CiGraph *graph, const CiCompileInfo *info);

/* program.c */
/* Makes an unbuilt program with a copy of the graph. Its method `build` compiles it and stores it under the key. */
CxProgram *cx_program_defer(CxState *state, const CiGraph *graph, const CiOptions *options,
                            PyObject *option_values, const CiBackend *backend, PyObject *key);
/* Owns ctx if it succeeds. passes: from Python; given: see CiRequest; either may be NULL. */
CxProgram *cx_program_compile(CxState *state, CiContext *ctx, CiGraph *graph,
                              const CiOptions *options, PyObject *option_values,
                              const CiBackend *backend, PyObject *passes, const CiTextInput *given,
                              PyObject *info);
bool cx_block_has_checks(const CiBlock *block);  /* true if one of its checks may fail */
bool cx_block_has_effects(const CiBlock *block); /* must run even if its values are unused */
int cx_program_run(CxRun *run);
/* Releases a program of the core. The GIL is released while its devices finish, because they may wait for other threads. */
static inline void
cx_program_free(CiProgram *program)
{
    PyThreadState *saved = NULL;

    if (ci_program_waits(program)) {
        CX_RELEASE(saved);
        ci_program_end(program);
        CX_TAKE(saved);
    }
    ci_program_release(program);
}
void cx_run_close(CxRun *run);
/* A new reference to the value of one return after a run. */
PyObject *cx_run_value(CxRun *run, int position, CiKind kind);
/* Sizes, strides, …: returns the constants, or fills `capacity` from the table. */
const int64_t *cx_layout_of(int count, const int64_t *layout, const int *numbers,
                            const int64_t *table, int64_t *capacity);

/* extern.c */
/* position_axis, may_fail: as in CiExtern; equal for all calls with one name and key. */
const CiExtern *cx_extern_find(CxState *state, const char *name, const char *key,
                               PyObject *callable, int position_axis, bool may_fail,
                               const CiOp *parts);
/* Binds the library calls of a graph that was read from text: products to NumPy's functions,
 * others by name and key. Returns true if all are bound; -1 with an exception. */
int cx_find_externs(CxState *state, CiGraph *graph);
/* The library calls of a program except products: (name, key, callable, position_axis, may_fail,
 * parts) for each; an empty list for NULL. */
PyObject *cx_program_library_calls(PyObject *program, PyObject *unused);

/* graph_inputs.c: graph_inputs(text): for each input its kind ("array", "scalar", "python"),
 * dtype, shape and strides in elements. Varying sizes have their values of the captured call. */
PyObject *cx_graph_inputs(PyObject *module, PyObject *text);

PyObject *cx_add_extern(PyObject *module, PyObject *args);

#endif
