/* Finds or compiles the program of a segment: the code between two breaks. Programs are found by
 * the text of the graph. The text omits hints, because the sizes of the call have decided
 * everything they can. It also omits the names of data-dependent symbols, which differ in each
 * iteration of a loop that Python runs. */
#include "graph/graph.h"
#include "program/program.h"

/* A number that Python computes anew in each call and that became part of the graph makes a new
 * segment each time. Beyond a limit, new segments of a function are interpreted, which needs no
 * compiler. */
/* Returns the interpreter of the same device, or NULL. */
static const CiBackend *
find_interpreter(const CxTracer *t)
{
    return ci_backend_find(t->state->runtime.registry, t->backend->device->name, "interp");
}

static const CiBackend *
choose_backend(CxTracer *t)
{
    enum { SEGMENTS_PER_SPECIALIZATION = 8 };
    CxState *state = t->state;
    int failed = 0;
    PyObject *known = cx_dict_find(state->segment_counts, t->key, &failed);
    long count = known ? PyLong_AsLong(known) + 1 : 1;
    long limit = SEGMENTS_PER_SPECIALIZATION * (long)t->options.recompile_limit;
    PyObject *number = PyLong_FromLong(count);

    if (failed || number == NULL || PyDict_SetItem(state->segment_counts, t->key, number) < 0)
        count = -1;
    Py_XDECREF(number);
    if (count < 0)
        return NULL;
    const CiBackend *plain = find_interpreter(t);
    if (!t->needs_python || count <= limit || plain == NULL || plain == t->backend)
        return t->backend;
    if (count == limit + 1 &&
        cx_warn("%U has compiled %ld different pieces between steps that Python runs, the limit; "
                "further ones run by the interpreter backend. Often a number that Python computes "
                "anew in each call has become part of them: keep it in a 0-d array, or compile the "
                "part without the breaks that cinductor.explain shows",
                t->name, limit) < 0)
        return NULL;
    return plain;
}

/* True (1) for a light piece between two breaks that is new: it may never come again, so it is
 * interpreted and only compiled the second time. -1 with an exception. */
static int
is_first_meeting(CxTracer *t, PyObject *key)
{
    enum { MAX_MET = 4096, LIGHT = 1 << 21 };
    PyObject *met = t->state->segments_met;
    const CiBackend *plain = find_interpreter(t);

    if (!t->interprets_light || !t->needs_python || plain == NULL || plain == t->backend ||
        !cx_call_makes_at_most(t, LIGHT))
        return 0;
    int is_known = PySet_Contains(met, key);
    if (is_known != 0)
        return -(is_known < 0);
    if (PySet_GET_SIZE(met) >= MAX_MET)
        PySet_Clear(met);
    return PySet_Add(met, key) < 0 ? -1 : 1;
}

static CxProgram *
compile_by(CxTracer *t, const CiBackend *backend, const CiOptions *options, PyObject *passes)
{
    return cx_program_compile(t->state, t->ctx, t->graph, options, t->option_values, backend,
                              passes, NULL, t->info);
}

/* If a registered pass fails after Python steps that cannot be undone, compiles without
 * registered passes and warns. */
static CxProgram *
leave_out_passes(CxTracer *t, const CiBackend *backend)
{
    if (!PyErr_ExceptionMatches(cx_exception(t->state, "PassFailed")) || !t->needs_python ||
        t->fullgraph)
        return NULL;
    PyObject *error = cx_take_exception();
    int told = cx_warn("%U runs without registered passes: %S", t->name, error);
    Py_XDECREF(error);
    return told < 0 ? NULL : compile_by(t, backend, &t->options, NULL);
}

/* If the compiler fails after Python steps that cannot be undone, warns once and interprets the
 * segment, without fusion in case the fault is cinductor's. Returns NULL with the exception if
 * that is impossible. */
static CxProgram *
interpret_instead(CxTracer *t, const CiBackend *backend)
{
    CxState *state = t->state;
    const CiBackend *plain = find_interpreter(t);
    bool is_compilers = PyErr_ExceptionMatches(cx_exception(state, "CompileError")) ||
                        PyErr_ExceptionMatches(cx_exception(state, "CompilerNotFound"));
    bool is_folders = PyErr_ExceptionMatches(cx_exception(state, "NoFolder"));
    bool is_known = (is_compilers || is_folders) && plain == backend;
    CiOptions options = t->options;

    if (is_known || !PyErr_ExceptionMatches(state->base_error) || !t->needs_python ||
        t->fullgraph || plain == NULL)
        return NULL;
    PyObject *error = cx_take_exception();
    const char *advice = is_compilers ? "install gcc or clang, or set CC to a C compiler that works"
                         : is_folders
                             ? "free some space, or set CINDUCTOR_CACHE_DIR to a folder of your own"
                             : "an internal error of cinductor: please report it";
    int told = state->told_of_compiler
                   ? 0
                   : cx_warn("%U runs by the interpreter backend: %S (%s)", t->name, error, advice);
    state->told_of_compiler = true;
    Py_XDECREF(error);
    options.fusion = false;
    return told < 0 ? NULL : compile_by(t, plain, &options, t->state->passes);
}

static CxProgram *
compile_segment(CxTracer *t, PyObject *key)
{
    int is_first = is_first_meeting(t, key);

    if (is_first < 0)
        return NULL;
    const CiBackend *backend = is_first ? find_interpreter(t) : choose_backend(t);
    if (backend == NULL)
        return NULL;
    PyObject *passes = Py_XNewRef(t->state->passes);
    CxProgram *program = compile_by(t, backend, &t->options, passes);
    Py_XDECREF(passes);
    if (program == NULL)
        program = leave_out_passes(t, backend);
    if (program == NULL)
        program = interpret_instead(t, backend);
    if (program == NULL)
        return NULL;
    t->ctx = NULL; /* owned by the program now */
    if (is_first)
        return program;
    if (cx_program_put(program, key) < 0)
        PyErr_Clear(); /* compiled again next time */
    return program;
}

/* Keeps the program for the next call, because Python runs code between the pieces. A call
 * without breaks has a specialization, which keeps its program. */
static int
keep(CxTracer *t, CxProgram *program)
{
    enum { MOST_KEPT = 1024 };

    if (!t->needs_python || t->kept == NULL || program->key == NULL) /* new and interpreted */
        return 0;
    if (PySet_GET_SIZE(t->kept) >= MOST_KEPT)
        PySet_Clear(t->kept);
    return PySet_Add(t->kept, (PyObject *)program);
}

CxProgram *
cx_segment_find(CxTracer *t, const char *form)
{
    int failed = 0;
    PyObject *key = PyUnicode_FromFormat("%s:%s %R %V\n%s", t->backend->device->name,
                                         t->backend->compiler->name, t->option_values,
                                         t->state->passes_key, "", form);
    if (key == NULL)
        return NULL;
    CxProgram *program = cx_program_find(t->state, key, &failed);
    if (program == NULL && !failed)
        program = compile_segment(t, key);
    Py_DECREF(key);
    if (program != NULL && keep(t, program) < 0)
        Py_CLEAR(program);
    return program;
}
