/* Graph passes from Python: converts the rows of a compile to CiExtraPasses, and calls the
 * observer of passes.
 *
 * A row is (name, after, function) or (name, after, pattern, replacement). A function gets the
 * graph as text and returns text, or None if nothing has changed. An exception that it raises is
 * kept until the GIL is held again. */
#include "program/passes.h"

#include "codegen/codegen.h"
#include "loops/loops.h"
#include "passes/rewrite.h"

/* ---- one pass ---- */

/* With the GIL: calls the function with the text. Stores the text that it returns, which the
 * compile keeps, or NULL for None. -1 if it raises, with the message in out. */
static int
call_python(CxPass *pass, const char *text, const char **made, char *out, size_t capacity)
{
    PyObject *result = PyObject_CallFunction(pass->function, "s", text);
    const char *chars = result != NULL && result != Py_None ? PyUnicode_AsUTF8(result) : NULL;
    bool is_fine = result == Py_None || chars != NULL;

    *made = chars;
    if (is_fine && chars != NULL && PyList_Append(pass->all->texts, result) < 0)
        is_fine = false;
    Py_XDECREF(result);
    if (is_fine)
        return 0;
    PyObject *error = cx_take_exception(), *words = error ? PyObject_Str(error) : NULL;
    const char *why = words != NULL ? PyUnicode_AsUTF8(words) : NULL;
    snprintf(out, capacity, "%s: %s", error ? Py_TYPE(error)->tp_name : "Exception",
             why ? why : "");
    PyErr_Clear();
    Py_XDECREF(words);
    Py_XSETREF(pass->all->error, error);
    return -1;
}

/* With the GIL: binds library calls that a pass has added and add_extern knows. Others are
 * looked up among those of the previous graph. */
static void
bind_externs(CxPass *pass, const CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        CiNode *node = block->nodes[k];
        for (int b = 0; b < node->nblocks; b++)
            bind_externs(pass, node->blocks[b]);
        if (node->ext == NULL || node->ext->call != NULL)
            continue;
        PyObject *pair = Py_BuildValue("(ss)", node->ext->name, node->ext->key);
        int failed = 0;
        PyObject *capsule =
            pair ? cx_dict_find(pass->all->state->externs, pair, &failed) : NULL;
        if (capsule != NULL)
            node->ext = PyCapsule_GetPointer(capsule, NULL);
        PyErr_Clear();
        Py_XDECREF(pair);
    }
}

static void
bind_all(CxPass *pass, const CiGraph *g)
{
    CX_CALLBACK_BEGIN();
    bind_externs(pass, g->body);
    CX_CALLBACK_END();
}

/* With numerics="exact" capture leaves such functions of arrays to NumPy, so a pass has added it. */
static void
check_exact(const CxPass *pass, const CiGraph *g, const CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        const CiNode *node = block->nodes[k];
        for (int b = 0; b < node->nblocks; b++)
            check_exact(pass, g, node->blocks[b]);
        if (ci_op_kind(node->op) == CI_OPKIND_math && node->kind == CI_KIND_array)
            ci_fail(g->ctx, CI_ERR_PASS,
                    "the pass '%s' adds %s, but numerics is 'exact': attributes={'by': 'numpy'} "
                    "has NumPy's loop compute it",
                    pass->name, ci_op_name(node->op));
    }
}

static CiGraph *
run_function(void *data, CiGraph *g)
{
    CxPass *pass = data;
    CiText text = ci_text_new(g->ctx);
    char why[400];
    const char *made = NULL;

    ci_graph_print(&text, g);
    CX_CALLBACK_BEGIN();
    int status = call_python(pass, text.data, &made, why, sizeof why);
    CX_CALLBACK_END();
    if (status < 0)
        ci_fail(g->ctx, CI_ERR_PASS, "the pass '%s' raised %s", pass->name, why);
    if (made == NULL)
        return g;
    g = ci_graph_parse(g->ctx, made);
    bind_all(pass, g);
    if (pass->all->is_exact)
        check_exact(pass, g, g->body);
    return g;
}

static CiGraph *
run_pattern(void *data, CiGraph *g)
{
    const CxPass *pass = data;
    CiRule rule = {pass->name, pass->pattern, pass->replacement, CI_OP_none, NULL, true};

    ci_rewrite(g, &rule, 1);
    if (pass->all->is_exact)
        check_exact(pass, g, g->body);
    return g;
}

/* ---- the passes of a compile ---- */

int
cx_passes_open(CxState *state, CxPasses *all, PyObject *rows, const CiOptions *options)
{
    Py_ssize_t count = rows != NULL ? PyTuple_GET_SIZE(rows) : 0;

    *all = (CxPasses){.state = state, .rows = Py_XNewRef(rows), .texts = PyList_New(0)};
    all->is_exact = strcmp(options->numerics, "exact") == 0;
    all->passes = PyMem_Calloc((size_t)count + 1, sizeof *all->passes);
    all->extras = PyMem_Calloc((size_t)count + 1, sizeof *all->extras);
    if (all->texts == NULL || all->passes == NULL || all->extras == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t k = 0; k < count; k++) {
        CxPass *pass = &all->passes[k];
        PyObject *row = PyTuple_GET_ITEM(rows, k);
        const char *after = NULL;
        pass->all = all;
        if (PyTuple_GET_SIZE(row) == 4
                ? !PyArg_ParseTuple(row, "ssss", &pass->name, &after, &pass->pattern,
                                    &pass->replacement)
                : !PyArg_ParseTuple(row, "ssO", &pass->name, &after, &pass->function))
            return -1;
        all->extras[all->count++] = (CiExtraPass){
            pass->name, after, pass->function ? run_function : run_pattern, pass};
    }
    return 0;
}

void
cx_passes_close(CxPasses *all)
{
    Py_CLEAR(all->rows);
    Py_CLEAR(all->texts);
    Py_CLEAR(all->error);
    PyMem_Free(all->passes);
    PyMem_Free(all->extras);
}

/* Makes the exception that a pass raised the cause of the current one. An interrupt replaces it. */
void
cx_passes_explain(CxPasses *all)
{
    if (all->error == NULL || !PyErr_Occurred())
        return;
    PyObject *error = cx_take_exception(), *cause = all->error;
    all->error = NULL;
    if (!PyObject_IsInstance(cause, PyExc_Exception)) {
        Py_XDECREF(error);
        error = cause;
    } else if (error != NULL) {
        PyException_SetCause(error, cause); /* steals it */
    }
    cx_restore_exception(error);
}

/* Called without the lock. */
void
cx_pass_observed(void *arg, const char *pass, const char *text, double seconds)
{
    CX_CALLBACK_BEGIN();
    PyObject *done = PyObject_CallFunction(arg, "ssd", pass, text, seconds);
    if (done == NULL)
        PyErr_WriteUnraisable(arg);
    Py_XDECREF(done);
    CX_CALLBACK_END();
}

/* ---- registration from Python ---- */

/* set_passes(rows, key): the passes of all later compiles; the key distinguishes them from other
 * sets. */
PyObject *
cx_set_passes(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyObject *rows = NULL, *key = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "O!U:set_passes", &PyTuple_Type, &rows, &key))
        return NULL;
    Py_XSETREF(state->passes, Py_NewRef(rows));
    Py_XSETREF(state->passes_key, Py_NewRef(key));
    Py_RETURN_NONE;
}

/* set_pass_observer(fn or None) */
PyObject *
cx_set_pass_observer(PyObject *module, PyObject *observer)
{
    CxState *state = PyModule_GetState(module);

    CX_ENTRY();
    Py_XSETREF(state->pass_observer, observer == Py_None ? NULL : Py_NewRef(observer));
    Py_RETURN_NONE;
}

static int
append_pass(PyObject *list, const char *name, bool is_needed, const char *doc, const char *level)
{
    PyObject *item = Py_BuildValue("(sOss)", name, is_needed ? Py_True : Py_False, doc, level);
    int failed = item == NULL ? -1 : PyList_Append(list, item);

    Py_XDECREF(item);
    return failed;
}

/* passes(): (name, cannot be left out, doc, level) for the passes of passes.def, loops.def and
 * procs.def. */
PyObject *
cx_list_passes(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    int failed = list == NULL ? -1 : 0;

    (void)module, (void)unused;
    for (int k = 0; !failed && k < ci_pass_count(); k++) {
        const CiPassRow *row = ci_pass_at(k);
        failed = append_pass(list, row->name, row->is_needed, row->doc, "graph");
    }
    for (int k = 0; !failed && k < ci_loop_pass_count(); k++) {
        const CiLoopPass *row = ci_loop_pass_at(k);
        failed = append_pass(list, row->name, row->is_needed, row->doc, "loops");
    }
    for (int k = 0; !failed && k < ci_proc_pass_count(); k++) {
        const CiProcPass *row = ci_proc_pass_at(k);
        failed = append_pass(list, row->name, row->is_needed, row->doc, "procs");
    }
    if (failed)
        Py_CLEAR(list);
    return list;
}

static void
body_check_pattern(CiContext *ctx, void *arg)
{
    (void)ci_pattern_compile(ctx, arg);
}

/* check_pattern(pattern, replacement): raises SyntaxError if they cannot be parsed. */
PyObject *
cx_check_pattern(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    CiRule rule = {.name = "pattern", .is_users = true};
    CiContext *ctx = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "ss:check_pattern", &rule.pattern, &rule.replacement))
        return NULL;
    if ((ctx = ci_context_open()) == NULL)
        return PyErr_NoMemory();
    int status = cx_protect(state, ctx, body_check_pattern, &rule);
    ci_context_close(ctx);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}
