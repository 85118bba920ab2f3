/* Flush: runs the pending graph. Compiles a program (segment.c) for the storages that must
 * become real, runs it, and gives the storages their values. If compiling fails the graph stays
 * pending; after a run, failed or not, it is gone. */
#include "graph/methods.h"
#include "graph/size.h"
#include "program/program.h"
#include "state/array.h"
#include "state/device_array.h"

#include <sys/mman.h>

typedef struct Flush {
    CxTracer *tracer;
    CxStorage **outs;
    int nouts;
    CiText form;
    bool has_writes;
    CxRun run;
    void **inputs;
    const int64_t **sizes;
    PyObject **objects;
    CiSlot *scalars;
} Flush;

static bool
is_pending(const CxTracer *t, const CxStorage *s)
{
    return s->value == NULL && s->epoch == t->epoch && cx_storage_is_current(s);
}

/* True if the graph must compute the value although it is known, because a later call has
 * another one. */
static bool
is_derived(const CxTracer *t, const CxStorage *s)
{
    return s->kind == CI_KIND_python && s->source == CX_SOURCE_unknown && !s->is_specialized &&
           s->epoch == t->epoch && s->input == NULL && cx_storage_is_current(s);
}

static int
choose(Flush *f, CxStorage **wanted, int nwanted, bool everything)
{
    CxTracer *t = f->tracer;
    int capacity = nwanted;

    for (CxStorage *s = t->storages; everything && s != NULL; s = s->next)
        capacity++;
    f->outs = PyMem_Calloc((size_t)capacity + 1, sizeof *f->outs);
    if (f->outs == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (CxStorage *s = t->storages; s != NULL; s = s->next) {
        s->position = -1;
        f->has_writes |= s->is_written && s->epoch == t->epoch;
    }
    for (int k = 0; k < nwanted; k++)
        if (wanted[k]->position < 0 && (is_pending(t, wanted[k]) || is_derived(t, wanted[k]))) {
            wanted[k]->position = f->nouts;
            f->outs[f->nouts++] = wanted[k];
        }
    /* The list is newest first; the graph needs oldest first. */
    int first = f->nouts;
    for (CxStorage *s = t->storages; everything && s != NULL; s = s->next)
        if (s->position < 0 && is_pending(t, s)) {
            s->position = 0;
            f->outs[f->nouts++] = s;
        }
    for (int a = first, b = f->nouts - 1; a < b; a++, b--) {
        CxStorage *swap = f->outs[a];
        f->outs[a] = f->outs[b];
        f->outs[b] = swap;
    }
    for (int k = 0; k < f->nouts; k++) {
        f->outs[k]->position = k;
        f->outs[k]->refs++;
    }
    return 0;
}

static void
body_outputs(CiContext *ctx, void *arg)
{
    Flush *f = arg;
    CxTracer *t = f->tracer;
    CiGraph *g = t->graph;

    g->body->nresults = 0;
    g->nwrites = 0;
    for (int k = 0; k < f->nouts; k++)
        ci_graph_return(g, f->outs[k]->node);
    for (int k = 0; k < t->ninputs; k++)
        if (t->inputs[k]->is_written)
            ci_graph_write(g, t->inputs[k]->input, t->inputs[k]->node);
    f->form = ci_text_new(ctx);
    ci_graph_print_canonical(&f->form, g);
}

static void
forget_graph(CxTracer *t)
{
    for (int k = 0; k < t->ninputs; k++) {
        t->inputs[k]->is_written = false;
        t->inputs[k]->input = NULL;
        cx_storage_release(t->inputs[k]);
    }
    t->ninputs = 0;
    cx_versions_forget(t);
    t->has_run = true;
    cx_symbols_reveal(t);
    t->epoch++;
    if (t->ctx != NULL)
        ci_context_close(t->ctx);
    t->ctx = NULL;
    t->graph = NULL;
    t->nopen = 0;
}

static int
fill_inputs(Flush *f)
{
    CxTracer *t = f->tracer;
    size_t n = (size_t)t->ninputs + 1;
    int nscalars = 0;

    f->inputs = PyMem_Calloc(n, sizeof *f->inputs);
    f->sizes = PyMem_Calloc(n, sizeof *f->sizes);
    f->objects = PyMem_Calloc(n, sizeof *f->objects);
    f->scalars = PyMem_Calloc(n, sizeof *f->scalars);
    PyMem_Free(t->ran);
    t->nran = 0;
    t->ran = PyMem_Calloc(n, sizeof *t->ran);
    if (!f->inputs || !f->sizes || !f->objects || !f->scalars || !t->ran) {
        PyErr_NoMemory();
        return -1;
    }
    t->nran = t->ninputs;
    for (int k = 0; k < t->ninputs; k++) {
        CxStorage *s = t->inputs[k];
        t->ran[k] = (CxInput){s->source, s->kind, s->dtype, cx_symbol_number(t, s)};
        if (s->kind == CI_KIND_python) {
            f->objects[k] = Py_NewRef(s->value);
            if (cx_slot_from(s->value, s->dtype, &f->scalars[nscalars++]) < 0)
                return -1;
            continue;
        }
        f->objects[k] =
            s->kind == CI_KIND_array ? Py_NewRef(s->value) : PyArray_FromScalar(s->value, NULL);
        if (f->objects[k] == NULL)
            return -1;
        if (cx_is_on_device(&t->options, t->backend) &&
            cx_check_device_input(t->state, &t->options, f->objects[k],
                                  t->graph->inputs[k]->device) < 0)
            return -1;
        f->inputs[k] = PyArray_DATA((PyArrayObject *)f->objects[k]);
        f->sizes[k] = (const int64_t *)PyArray_DIMS((PyArrayObject *)f->objects[k]);
    }
    return 0;
}

/* Copies the array if its layout differs from the one that capture has shown. */
static PyObject *
in_layout(CxState *state, CxStorage *s, PyObject *array)
{
    PyArrayObject *a = (PyArrayObject *)array;
    int64_t strides[CI_MAX_RANK];
    bool fits = true;

    if (array == NULL || s->kind != CI_KIND_array || PyArray_SIZE(a) == 0)
        return array;
    for (int k = 0; k < s->rank; k++)
        if (!cx_size_is_known(s->tracer, s->strides[k]))
            return array;
    if (cx_size_values(s->tracer, s->rank, s->strides, strides) < 0) {
        Py_DECREF(array);
        return NULL;
    }
    for (int k = 0; k < s->rank; k++)
        fits &= PyArray_DIM(a, k) <= 1 || PyArray_STRIDE(a, k) == strides[k];
    if (fits || cx_is_device_array(state, array))
        return array;
    s->tracer->needs_python = true; /* a replay would not know of the copy */
    PyObject *copy =
        cx_array_new(state, s->dtype, s->rank, (const int64_t *)PyArray_DIMS(a), strides);
    if (copy != NULL && PyArray_CopyInto((PyArrayObject *)copy, a) < 0)
        Py_CLEAR(copy);
    Py_DECREF(array);
    return copy;
}

/* Returns the CPU time of this thread. */
static double
thread_seconds(void)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Adds the float flags that a run of a program has raised to those of the call and of the program. */
static int
note_flags(CxTracer *t, CxProgram *program, unsigned flags)
{
    t->float_flags |= flags;
    if (flags == 0)
        return 0;
    PyObject *before = PyDict_GetItemWithError(t->raised, (PyObject *)program);
    if (before == NULL && PyErr_Occurred())
        return -1;
    PyObject *all = PyLong_FromLong(flags | (before != NULL ? PyLong_AsLong(before) : 0));
    int result = all != NULL ? PyDict_SetItem(t->raised, (PyObject *)program, all) : -1;
    Py_XDECREF(all);
    return result;
}

static const char RUNNING[] = "cinductor.running";

static void
begin_run(Flush *f, CxRun *run, CxProgram *program)
{
    size_t n = (size_t)program->nbuffers + 1;

    *run = (CxRun){.program = program,
                   .inputs = f->inputs,
                   .sizes = f->sizes,
                   .input_objects = f->objects,
                   .scalars = f->scalars};
    run->buffers = PyMem_Calloc(n, sizeof *run->buffers);
    run->slots = PyMem_Calloc(n, sizeof *run->slots);
}

static void
end_run(CxRun *run)
{
    if (run->buffers != NULL)
        cx_run_close(run);
    PyMem_Free(run->buffers);
    PyMem_Free(run->slots);
}

/* Runs the program of a flush again and drops the results. */
static PyObject *
run_again(PyObject *running, PyObject *unused)
{
    Flush *f = PyCapsule_GetPointer(running, RUNNING);
    CxRun run;
    int failed = -1;

    (void)unused;
    if (f == NULL)
        return NULL;
    begin_run(f, &run, f->run.program);
    if (run.buffers == NULL || run.slots == NULL)
        PyErr_NoMemory();
    else
        failed = cx_program_run(&run);
    end_run(&run);
    return failed < 0 ? NULL : Py_NewRef(Py_None);
}

/* Lets the observer of runs run the program again, if no run changes anything. */
static int
show_run(Flush *f, CxProgram *program, double seconds)
{
    static PyMethodDef again = {"run_again", run_again, METH_NOARGS, NULL};
    PyObject *shown = f->tracer->on_run, *done = NULL;

    if (shown == NULL || shown == Py_None || f->has_writes || cx_block_has_effects(f->tracer->graph->body))
        return 0;
    PyObject *running = PyCapsule_New(f, RUNNING, NULL);
    PyObject *function = running != NULL ? PyCFunction_New(&again, running) : NULL;
    if (function != NULL)
        done = PyObject_CallFunction(shown, "OOdO", (PyObject *)f->tracer, (PyObject *)program, seconds, function);
    if (running != NULL && PyCapsule_SetName(running, "") < 0) /* the flush ends: no later call is accepted */
        Py_CLEAR(done);
    Py_XDECREF(function);
    Py_XDECREF(running);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int
run_program(Flush *f, CxProgram *program)
{
    CxTracer *t = f->tracer;
    double took = 0;
    int result = -1;

    begin_run(f, &f->run, program);
    if (f->run.buffers == NULL || f->run.slots == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    took = thread_seconds();
    int failed = cx_program_run(&f->run);
    took = thread_seconds() - took;
    t->seconds += took;
    program->spent += took;
    if (failed < 0)
        goto done;
    if (note_flags(t, program, f->run.float_flags) < 0)
        goto done;
    for (int k = 0; k < f->nouts; k++) {
        CxStorage *s = f->outs[k];
        if (s->value != NULL)
            continue;
        s->value = cx_run_value(&f->run, k, s->kind);
        if (s->value == NULL || cx_symbols_learn(s) < 0)
            goto done;
    }
    for (int k = 0; k < f->nouts; k++) {
        CxStorage *s = f->outs[k];
        s->value = in_layout(t->state, s, s->value);
        if (s->value == NULL)
            goto done;
    }
    result = show_run(f, program, took);
done:
    end_run(&f->run);
    return result;
}

/* Implements the option check_passes: compares the results of each pass, for these inputs, with
 * those before it. */
static int
check_passes(Flush *f, CxProgram *program)
{
    PyObject *inputs = PyTuple_New(f->tracer->ninputs), *module = NULL, *done = NULL;

    for (int k = 0; inputs != NULL && k < f->tracer->ninputs; k++)
        PyTuple_SET_ITEM(inputs, k, Py_NewRef(f->objects[k]));
    if (inputs != NULL && (module = PyImport_ImportModule("cinductor.extensions.passes")) != NULL)
        done = PyObject_CallMethod(module, "check", "OOO", (PyObject *)program, inputs,
                                   f->tracer->option_values);
    Py_XDECREF(inputs);
    Py_XDECREF(module);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Saves the contents of an array that existed before the call, before the first write to it,
 * because the call may have to restart. Large arrays are not saved. */
int
cx_storage_keep(CxStorage *s)
{
    enum { MAX_SAVED = 1 << 26 };
    CxTracer *t = s->tracer;
    int failed = 0;

    if (s->source < 0 || s->kind != CI_KIND_array || s->value == NULL || s->access == CX_READONLY)
        return 0;
    PyObject *key = PyLong_FromVoidPtr(s->value), *pair = NULL, *copy = NULL;
    bool is_new = key && t->saved && cx_dict_find(t->saved, key, &failed) == NULL && !failed;
    if (is_new && PyArray_NBYTES((PyArrayObject *)s->value) > MAX_SAVED) {
        t->cannot_undo = true;
    } else if (is_new && !t->cannot_undo) {
        copy = PyArray_NewCopy((PyArrayObject *)s->value, NPY_KEEPORDER);
        pair = copy ? PyTuple_Pack(2, s->value, copy) : NULL;
        failed = pair == NULL || PyDict_SetItem(t->saved, key, pair) < 0;
    }
    Py_XDECREF(copy);
    Py_XDECREF(pair);
    Py_XDECREF(key);
    return failed || PyErr_Occurred() ? -1 : 0;
}

static int
save_written(CxTracer *t)
{
    for (int k = 0; k < t->ninputs; k++)
        if (t->inputs[k]->is_written && cx_storage_keep(t->inputs[k]) < 0)
            return -1;
    return 0;
}

bool
cx_has_checks(const CxTracer *t)
{
    return t->graph != NULL && cx_block_has_checks(t->graph->body);
}

static void
unmap(PyObject *pages)
{
    munmap(PyCapsule_GetPointer(pages, NULL), (size_t)(uintptr_t)PyCapsule_GetContext(pages));
}

/* An array whose pages are addresses without memory, so that its size may exceed the machine's. */
static PyObject *
reserved_array(CxTracer *t, const CxStorage *s, const int64_t *sizes, const int64_t *strides)
{
    PyArray_Descr *descr = cx_descr(t->state, s->dtype);
    int64_t last = 0;

    if (descr == NULL)
        return NULL;
    for (int k = 0; k < s->rank; k++)
        last += sizes[k] > 0 ? (sizes[k] - 1) * strides[k] : 0;
    size_t bytes = (size_t)(last + PyDataType_ELSIZE(descr));
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
        return PyErr_NoMemory();
    PyObject *pages = PyCapsule_New(data, NULL, unmap), *array = NULL;
    if (pages == NULL) {
        munmap(data, bytes);
        return NULL;
    }
    if (PyCapsule_SetContext(pages, (void *)(uintptr_t)bytes) == 0) {
        Py_INCREF(descr);
        array = PyArray_NewFromDescr(&PyArray_Type, descr, s->rank, (const npy_intp *)sizes,
                                     (const npy_intp *)strides, data, NPY_ARRAY_WRITEABLE, NULL);
    }
    if (array != NULL && PyArray_SetBaseObject((PyArrayObject *)array, Py_NewRef(pages)) < 0)
        Py_CLEAR(array);
    Py_DECREF(pages);
    return array;
}

/* The reason with the name of the function that compiles without a call. */
static int
refuse_dry(CxTracer *t, const char *why)
{
    PyErr_Format(cx_exception(t->state, "Unsupported"), "%s (%S)", why, t->whole ? t->whole : Py_None);
    return -1;
}

/* A value of a result's kind, dtype and sizes. It is not computed and must not be read. */
static PyObject *
empty_value(CxTracer *t, const CxStorage *s)
{
    int64_t sizes[CI_MAX_RANK], strides[CI_MAX_RANK];

    for (int k = 0; k < s->rank; k++)
        if (!cx_size_is_known(t, s->sizes[k]) || !cx_size_is_known(t, s->strides[k])) {
            (void)refuse_dry(t, "data decide a size of the result");
            return NULL;
        }
    if (cx_size_values(t, s->rank, s->sizes, sizes) < 0 ||
        cx_size_values(t, s->rank, s->strides, strides) < 0)
        return NULL;
    PyObject *array = reserved_array(t, s, sizes, strides), *number = NULL;
    if (array == NULL || s->kind == CI_KIND_array)
        return array;
    PyArray_FILLWBYTE((PyArrayObject *)array, 0);
    number = s->kind == CI_KIND_python
                 ? PyObject_CallMethod(array, "item", NULL)
                 : PyArray_ToScalar(PyArray_DATA((PyArrayObject *)array), (PyArrayObject *)array);
    Py_DECREF(array);
    return number;
}

/* In place of a run, where only programs are wanted: at the end of a call alone, because before it
 * Python asks for values. */
static int
fill_results(Flush *f, bool is_end)
{
    CxTracer *t = f->tracer;

    if (!is_end)
        return refuse_dry(t, "Python needs a value that only a call computes");
    for (int k = 0; k < f->nouts; k++)
        if (f->outs[k]->value == NULL &&
            (f->outs[k]->value = empty_value(t, f->outs[k])) == NULL)
            return -1;
    return 0;
}

int
cx_tracer_flush(CxTracer *t, CxStorage **wanted, int nwanted, bool everything)
{
    Flush f = {.tracer = t};
    CxProgram *program = NULL;
    double plain = 0;
    bool is_useful = false;
    int result = -1;

    if (t->is_busy)
        return cx_raise_status(t->state, CI_ERR_UNSUPPORTED,
                               "a traced value was used while its graph was running");
    if (t->ctx == NULL)
        return 0;
    if (t->nblocks != 0)
        return cx_region_break(t, "a concrete value is needed");
    if (cx_symbols_resolve(t) < 0)
        return -1;
    t->is_busy = true;
    if (choose(&f, wanted, nwanted, everything) < 0)
        goto done;
    bool has_effects = t->graph != NULL && cx_block_has_effects(t->graph->body);
    if (f.nouts == 0 && !f.has_writes && !has_effects) {
        forget_graph(t);
        result = 0;
        goto done;
    }
    if (cx_protect(t->state, t->ctx, body_outputs, &f) < 0 || fill_inputs(&f) < 0)
        goto done;
    plain = cx_call_seconds(t, CX_LIKELY);
    /* Captured code of one small call (heapq, bisect) is work: a loop with breaks around it may be captured in another way. */
    is_useful = plain > CX_LITTLE || cx_call_seconds(t, CX_OWN) > CX_LITTLE;
    program = cx_segment_find(t, f.form.data, plain);
    bool may_undo = everything || (t->on_flags != NULL && t->on_flags != Py_None);
    if (program == NULL || (f.has_writes && may_undo && save_written(t) < 0))
        goto done;
    if (t->options.check_passes && check_passes(&f, program) < 0)
        goto done;
    result = t->is_dry ? fill_results(&f, !everything) : run_program(&f, program);
    t->is_inexact |= !cx_block_is_exact(t->state, t->graph->body);
    t->flushes++;
    t->plain += plain;
    if (is_useful)
        t->useful = t->flushes;
    Py_XSETREF(t->program, Py_NewRef(program));
    forget_graph(t);
done:
    for (int k = 0; k < f.nouts; k++)
        cx_storage_release(f.outs[k]);
    for (int k = 0; f.objects != NULL && k < t->nran; k++)
        Py_XDECREF(f.objects[k]);
    PyMem_Free(f.outs);
    PyMem_Free(f.inputs);
    PyMem_Free(f.sizes);
    PyMem_Free(f.objects);
    PyMem_Free(f.scalars);
    Py_XDECREF(program);
    t->is_busy = false;
    return result;
}

/* Undoes the writes to arrays by runs of this call. Returns False if that is impossible, or if
 * there was another effect. */
PyObject *
cx_method_undo(PyObject *self, PyObject *unused)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *key = NULL, *pair = NULL;
    Py_ssize_t at = 0;

    (void)unused;
    CX_ENTRY();
    if (t->cannot_undo || t->is_busy)
        Py_RETURN_FALSE;
    while (PyDict_Next(t->saved, &at, &key, &pair))
        if (PyArray_CopyInto((PyArrayObject *)PyTuple_GET_ITEM(pair, 0),
                             (PyArrayObject *)PyTuple_GET_ITEM(pair, 1)) < 0)
            return NULL;
    PyDict_Clear(t->saved);
    Py_RETURN_TRUE;
}

int
cx_tracer_break(CxTracer *tracer, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    PyObject *reason = PyUnicode_FromFormatV(format, args);
    va_end(args);
    if (reason == NULL)
        return -1;
    int failed = cx_tracer_note(tracer, reason);
    Py_DECREF(reason);
    return failed < 0 ? -1 : cx_tracer_flush(tracer, NULL, 0, true);
}
