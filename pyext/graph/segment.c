/* Finds or compiles the program of a segment: the code between two breaks. Programs are found by
 * the text of the graph.
 *
 * The text omits hints, because the sizes of the call have decided everything they can. It also
 * omits the names of data-dependent symbols, which differ in each iteration of a loop that Python
 * runs. */
#include <math.h>

#include "graph/graph.h"
#include "ir/plain.h"
#include "program/program.h"

/* Returns the interpreter of the same device, or NULL. */
static const CiBackend *
find_interpreter(const CxTracer *t)
{
    return ci_backend_find(t->state->runtime.registry, t->backend->device->name, "interp");
}

/* True if the tracer's backend needs no compiler: its programs are made in a millisecond. */
static bool
needs_no_compiler(const CxTracer *t)
{
    const CiBackend *stencils = ci_backend_find(t->state->runtime.registry, t->backend->device->name, "stencil");
    return t->backend == stencils || t->backend == find_interpreter(t);
}

/* A backend that needs no compiler: the tracer's, or that of stencils, or the interpreter. NULL: there is none. */
static const CiBackend *
find_unbuilt(const CxTracer *t)
{
    if (needs_no_compiler(t))
        return t->backend;
    const CiBackend *first = cx_find_first(t->state, t->backend, &t->options);
    return first != NULL ? first : find_interpreter(t);
}

/* A number that Python computes anew in each call and that became part of the graph makes a new
 * segment each time. Beyond a limit, new segments of a function are run without a compiler. */
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
    const CiBackend *plain = find_unbuilt(t);
    if (!t->needs_python || count <= limit || plain == NULL || plain == t->backend)
        return t->backend;
    if (count == limit + 1 &&
        cx_warn("%U has compiled %ld different pieces between steps that Python runs, the limit; "
                "further ones are not compiled. Often a number that Python computes "
                "anew in each call has become part of them: keep it in a 0-d array, or compile the "
                "part without the breaks that cinductor.explain shows",
                t->name, limit) < 0)
        return NULL;
    return plain;
}

/* True if a build pays for a piece between two breaks: its next run alone takes long enough in NumPy, or
 * its runs have taken the rent, a share of the build's price. Until then no compiler is used for it. A call that
 * owes no rent builds a piece when it meets it again, and a piece that is not light at once. */
static bool
is_due(const CxTracer *t, const CxProgram *before, double plain, double price)
{
    const double light = 1.2e-3; /* seconds */

    if (!t->needs_python || find_interpreter(t) == NULL || needs_no_compiler(t) ||
        plain >= fmax(2 * t->rent * price, light))
        return true;
    return before != NULL ? before->spent >= before->rent : t->rent < 0;
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
    int warned = cx_warn("%U runs without registered passes: %S", t->name, error);
    Py_XDECREF(error);
    return warned < 0 ? NULL : compile_by(t, backend, &t->options, NULL);
}

static bool
has_user_backend(const CxTracer *t)
{
    return t->user_backend != NULL && t->user_backend != Py_None;
}

/* Drops the program, and leaves its graph to the tracer. */
static void
take_graph_back(CxProgram **program)
{
    (*program)->ctx = NULL;
    (*program)->graph = NULL;
    Py_CLEAR(*program);
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
    const char *advice = has_user_backend(t) ? "see register_backend" : is_compilers ? "install gcc or clang, or set CC to a C compiler that works"
                         : is_folders
                             ? "free some space, or set CINDUCTOR_CACHE_DIR to a folder of your own"
                             : "an internal error of cinductor: please report it";
    int warned = state->warned_of_compiler
                   ? 0
                   : cx_warn("%U is run by the interpreter backend: %S (%s)", t->name, error, advice);
    state->warned_of_compiler = true;
    Py_XDECREF(error);
    options.fusion = false;
    return warned < 0 ? NULL : compile_by(t, plain, &options, t->state->passes);
}

PyObject *
cx_has_warned_of_compiler(PyObject *module, PyObject *unused)
{
    const CxState *state = PyModule_GetState(module);
    (void)unused;
    return PyBool_FromLong(state->warned_of_compiler);
}

static CxProgram *
compile_segment(CxTracer *t, PyObject *key, const CxProgram *before, double plain, double price)
{
    bool builds = is_due(t, before, plain, price);
    const CiBackend *backend = builds ? choose_backend(t) : find_unbuilt(t);

    if (backend == NULL)
        return NULL;
    PyObject *passes = Py_XNewRef(t->state->passes);
    CxProgram *program = compile_by(t, backend, &t->options, passes);
    Py_XDECREF(passes);
    if (program == NULL)
        program = leave_out_passes(t, backend);
    if (program != NULL && has_user_backend(t) && cx_user_backend_open(program, t->user_backend) < 0)
        take_graph_back(&program);
    if (program == NULL)
        program = interpret_instead(t, backend);
    if (program == NULL)
        return NULL;
    t->ctx = NULL; /* owned by the program now */
    if (!builds) {
        program->rent = fmax(t->rent * price, 1e-9);
        t->unbuilt += price;
    }
    if (cx_program_put(program, key) < 0)
        PyErr_Clear(); /* compiled again next time */
    return program;
}

/* Keeps the program for the next call, because Python runs code between the pieces. A call
 * without breaks has a specialization, which keeps its program. */
static int
keep(CxTracer *t, CxProgram *program)
{
    enum { MAX_KEPT = 1024 };

    if (!t->needs_python || t->kept == NULL || program->key == NULL)
        return 0;
    if (PySet_GET_SIZE(t->kept) >= MAX_KEPT)
        PySet_Clear(t->kept);
    return PySet_Add(t->kept, (PyObject *)program);
}

/* True if a program that no compiler has built is still not worth its build. */
static bool
stays_unbuilt(const CxTracer *t, CxProgram *program, double plain, double price)
{
    program->rent = fmin(program->rent, fmax(t->rent * price, 1e-9));
    return !is_due(t, program, plain, price);
}

/* Capture decides whether a whole graph is built now, and whether an inexact program may run: it raises otherwise,
 * and has the unbuilt program. *made: the program if it has been made meanwhile, else NULL. */
static int
request_build(CxTracer *t, PyObject *key, double plain, double price, CxProgram **made)
{
    PyObject *asked = t->on_build, *done = NULL;

    *made = NULL;
    bool is_exact = cx_block_is_exact(t->state, t->graph->body);
    if (asked == NULL || asked == Py_None || t->needs_python || (is_exact && needs_no_compiler(t)))
        return 0;
    CxProgram *program = cx_program_defer(t->state, t->graph, &t->options, t->option_values,
                                          t->backend, key);
    if (program != NULL)
        done = PyObject_CallFunction(asked, "OdddddO", (PyObject *)program, plain, cx_call_seconds(t, CX_LEAST),
                                     cx_call_seconds(t, CX_OWN), cx_call_seconds(t, CX_CALLBACKS), price, is_exact ? Py_True : Py_False);
    if (done != NULL && program->program != NULL)
        *made = (CxProgram *)Py_NewRef(program);
    Py_XDECREF(program);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

CxProgram *
cx_segment_find(CxTracer *t, const char *form, double plain)
{
    int failed = 0;
    double factor = t->state->clock == 0 ? t->state->build_factor : 1;
    double price = needs_no_compiler(t) ? 0 : factor * ci_build_seconds(t->graph);
    /* The key of the passes tells functions of one name apart. */
    PyObject *by = has_user_backend(t) ? PyTuple_GET_ITEM(t->user_backend, 0) : Py_None;
    PyObject *key = PyUnicode_FromFormat("%s:%s %R %R %V\n%s", t->backend->device->name,
                                         t->backend->compiler->name, by, t->option_values,
                                         t->state->passes_key, "", form);
    if (key == NULL)
        return NULL;
    t->price += price;
    CxProgram *program = cx_program_find(t->state, key, &failed);
    bool is_known = program != NULL && (program->rent == 0 || program->on_paid != NULL || stays_unbuilt(t, program, plain, price));
    bool builds = !is_known && !failed;
    CxProgram *made = NULL;
    if ((builds || !cx_block_is_exact(t->state, t->graph->body)) && request_build(t, key, plain, price, &made) < 0)
        Py_CLEAR(program);
    else if (made != NULL)
        Py_XSETREF(program, made);
    else if (builds)
        Py_XSETREF(program, compile_segment(t, key, program, plain, price));
    Py_DECREF(key);
    if (program != NULL && keep(t, program) < 0)
        Py_CLEAR(program);
    return program;
}
