/* CompiledFunction, the type that `compile` returns; call.c implements its calls. */
#include "replay/function.h"
#include "state/docs.h"

/* ---- the type ---- */

static PyObject *
function_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"fn", "parameters", "kinds", "defaults", "miss", "renew", NULL};
    PyObject *fn = NULL, *parameters = NULL, *kinds = NULL, *defaults = NULL, *miss = NULL,
             *refresh = NULL;
    CxFunction *f = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!O!O!O|O:CompiledFunction", names, &fn,
                                     &PyTuple_Type, &parameters, &PyTuple_Type, &kinds,
                                     &PyTuple_Type, &defaults, &miss, &refresh))
        return NULL;
    CxState *state = cx_state_of_type(type);
    f = state ? (CxFunction *)type->tp_alloc(type, 0) : NULL;
    if (f == NULL)
        return NULL;
    f->state = state;
    f->vectorcall = cx_function_call;
    f->fn = Py_NewRef(fn);
    f->miss = Py_NewRef(miss);
    f->refresh = Py_XNewRef(refresh);
    PyObject *function = cx_python_function(fn);
    cx_body_note(&f->body, function);
    Py_XDECREF(function);
    f->table = PyTuple_New(0);
    f->where = cx_body_location(fn);
    if (f->table == NULL || PyErr_Occurred() ||
        cx_signature_open(&f->signature, parameters, kinds, defaults, state->missing) < 0)
        Py_CLEAR(f);
    return (PyObject *)f;
}

static int
function_traverse(PyObject *self, visitproc visit, void *arg)
{
    CxFunction *f = (CxFunction *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(f->fn);
    Py_VISIT(f->signature.defaults);
    Py_VISIT(f->miss);
    Py_VISIT(f->refresh);
    Py_VISIT(f->body.function);
    Py_VISIT(f->table);
    Py_VISIT(f->dict);
    int status = cx_device_variants_visit(&f->variants, visit, arg);
    status = status ? status : cx_first_calls_visit(&f->first_calls, visit, arg);
    return status ? status : cx_split_calls_visit(&f->split_calls, visit, arg);
}

/* After this a call of the function raises an exception. */
static int
function_clear(PyObject *self)
{
    CxFunction *f = (CxFunction *)self;
    Py_CLEAR(f->dict);
    cx_first_calls_clear(&f->first_calls);
    cx_split_calls_clear(&f->split_calls);
    cx_device_variants_clear(&f->variants);
    PyObject *empty = PyTuple_New(0);
    if (empty != NULL)
        Py_XSETREF(f->table, empty);
    else
        PyErr_Clear();
    Py_CLEAR(f->refresh);
    cx_body_note(&f->body, NULL);
    if (f->fn != NULL)
        Py_SETREF(f->fn, Py_NewRef(Py_None));
    if (f->miss != NULL)
        Py_SETREF(f->miss, Py_NewRef(Py_None));
    cx_signature_clear(&f->signature);
    return 0;
}

static PyObject *
function_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<compiled %R>", ((CxFunction *)self)->fn);
}

/* The job keeps the counters. */
static void
function_finalize(PyObject *self)
{
    CxFunction *f = (CxFunction *)self;
    PyObject *job = PyMethod_Check(f->miss) ? PyMethod_GET_SELF(f->miss) : NULL;

    if (job == NULL || !f->is_counted || !Py_IsInitialized())
        return;
    PyObject *error = PyErr_Occurred() ? cx_take_exception() : NULL;
    PyObject *done = PyObject_CallMethod(job, "retire", "O", self);
    if (done == NULL)
        PyErr_WriteUnraisable(self);
    Py_XDECREF(done);
    if (error != NULL)
        cx_restore_exception(error);
}

static void
function_dealloc(PyObject *self)
{
    CxFunction *f = (CxFunction *)self;

    if (f->miss != NULL && PyObject_CallFinalizerFromDealloc(self) < 0)
        return;
    PyObject_GC_UnTrack(self);
    if (f->weakrefs != NULL)
        PyObject_ClearWeakRefs(self);
    Py_XDECREF(f->fn);
    cx_signature_close(&f->signature);
    Py_XDECREF(f->miss);
    Py_XDECREF(f->refresh);
    cx_body_note(&f->body, NULL);
    Py_XDECREF(f->table);
    cx_first_calls_clear(&f->first_calls);
    cx_accounts_clear(&f->accounts);
    cx_split_calls_free(&f->split_calls);
    cx_device_variants_clear(&f->variants);
    Py_XDECREF(f->dict);
    Py_XDECREF(f->where);
    cx_object_free(self);
}

static PyObject *
function_get(PyObject *self, PyObject *object, PyObject *type)
{
    (void)type;
    if (object == NULL || object == Py_None)
        return Py_NewRef(self);
    return PyMethod_New(self, object);
}

static PyObject *
replace_table(CxFunction *f, PyObject *table)
{
    if (table == NULL)
        return NULL;
    Py_SETREF(f->table, table);
    f->lent.count = 0;
    Py_RETURN_NONE;
}

static PyObject *
function_add(PyObject *self, PyObject *spec)
{
    CxFunction *f = (CxFunction *)self;

    CX_ENTRY();
    if (!PyObject_TypeCheck(spec, (PyTypeObject *)f->state->specialization_type))
        return PyErr_Format(PyExc_TypeError, "a Specialization is expected");
    cx_specialization_set_words((CxSpecialization *)spec, f->signature.names, f->where);
    f->unusual = 0;
    return replace_table(f, cx_table_with(f->table, spec, true));
}

static PyObject *
function_drop(PyObject *self, PyObject *spec)
{
    CxFunction *f = (CxFunction *)self;
    return replace_table(f, cx_table_with(f->table, spec, false));
}

static PyObject *
function_drop_all(PyObject *self, PyObject *unused)
{
    CxFunction *f = (CxFunction *)self;
    (void)unused;
    cx_first_calls_clear(&f->first_calls);
    cx_accounts_clear(&f->accounts);
    cx_split_calls_clear(&f->split_calls);
    cx_device_variants_clear(&f->variants);
    return replace_table(f, PyTuple_New(0));
}

/* Reads the arguments of a call, one for each parameter. */
static bool
read_kind(const CxFunction *f, PyObject *bound, CxKind *kind)
{
    bool is_call = PyTuple_CheckExact(bound) && PyTuple_GET_SIZE(bound) == f->signature.count;

    if (is_call)
        *kind = cx_kind_of(((PyTupleObject *)bound)->ob_item, f->signature.count);
    else
        PyErr_SetString(PyExc_ValueError, "wanted: a tuple of one argument for each parameter");
    return is_call;
}

static PyObject *
function_note_split_calls(PyObject *self, PyObject *args)
{
    CxFunction *f = (CxFunction *)self;
    PyObject *driver = NULL, *fix = NULL, *object = NULL;
    int is_timed = 0;
    CxKind kind;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OOOp:note_split_calls", &driver, &fix, &object, &is_timed))
        return NULL;
    f->lent.count = 0;
    if (driver == Py_None)
        cx_split_calls_clear(&f->split_calls);
    else if (!cx_kind_from_object(object, &kind) ||
             cx_split_calls_note(&f->split_calls, driver, fix, &kind, is_timed) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *
function_run_first_calls(PyObject *self, PyObject *args)
{
    CX_ENTRY();
    return cx_first_calls_allow(&((CxFunction *)self)->first_calls, args) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *
function_note_device_variant(PyObject *self, PyObject *args)
{
    CxFunction *f = (CxFunction *)self;
    CX_ENTRY();
    return cx_device_variants_note(f->state, &f->variants, args) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *
function_account(PyObject *self, PyObject *bound)
{
    CxFunction *f = (CxFunction *)self;
    CxKind kind;

    CX_ENTRY();
    return read_kind(f, bound, &kind) ? cx_accounts_open(f->state, &f->accounts, &kind) : NULL;
}

static PyObject *
function_accounts(PyObject *self, PyObject *unused)
{
    (void)unused;
    return cx_accounts_list(&((CxFunction *)self)->accounts);
}

/* module.name(self, *args, **kwargs) */
static PyObject *
call_python(const char *module, const char *name, PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *found = PyImport_ImportModule(module), *all = NULL, *made = NULL;
    PyObject *function = found ? PyObject_GetAttrString(found, name) : NULL;
    Py_ssize_t count = args ? PyTuple_GET_SIZE(args) : 0;

    if (function != NULL && (all = PyTuple_New(count + 1)) != NULL) {
        PyTuple_SET_ITEM(all, 0, Py_NewRef(self));
        for (Py_ssize_t k = 0; k < count; k++)
            PyTuple_SET_ITEM(all, k + 1, Py_NewRef(PyTuple_GET_ITEM(args, k)));
        made = PyObject_Call(function, all, kwargs);
    }
    Py_XDECREF(all);
    Py_XDECREF(function);
    Py_XDECREF(found);
    return made;
}

/* A method whose code is a function in Python. */
#define IN_PYTHON(method, module, name)                                                            \
    static PyObject *function_##method(PyObject *self, PyObject *args, PyObject *kwargs)           \
    {                                                                                              \
        return call_python(module, name, self, args, kwargs);                                      \
    }
#define IN_PYTHON_ALONE(method, module, name)                                                      \
    static PyObject *function_##method(PyObject *self, PyObject *unused)                           \
    {                                                                                              \
        (void)unused;                                                                              \
        return call_python(module, name, self, NULL, NULL);                                        \
    }

IN_PYTHON(explain, "cinductor", "explain")
IN_PYTHON(lower, "cinductor", "lower")
IN_PYTHON(warm, "cinductor", "warm")
IN_PYTHON_ALONE(stats, "cinductor.compile", "stats_of")
IN_PYTHON_ALONE(dir, "cinductor.compile", "names_of")
IN_PYTHON_ALONE(html, "cinductor.report.notebook", "card")

#define WITH_KEYWORDS(name)                                                                        \
    CX_METHOD(CompiledFunction, name, (PyCFunction)(void (*)(void))function_##name,                \
              METH_VARARGS | METH_KEYWORDS)

static PyMethodDef function_methods[] = {
    CX_METHOD(CompiledFunction, _repr_html_, function_html, METH_NOARGS),
    CX_METHOD(CompiledFunction, __dir__, function_dir, METH_NOARGS),
    CX_METHOD(CompiledFunction, stats, function_stats, METH_NOARGS),
    WITH_KEYWORDS(explain),
    WITH_KEYWORDS(lower),
    WITH_KEYWORDS(warm),
    CX_METHOD(CompiledFunction, add, function_add, METH_O),
    CX_METHOD(CompiledFunction, drop, function_drop, METH_O),
    CX_METHOD(CompiledFunction, note_split_calls, function_note_split_calls, METH_VARARGS),
    CX_METHOD(CompiledFunction, run_first_calls, function_run_first_calls, METH_VARARGS),
    CX_METHOD(CompiledFunction, note_device_variant, function_note_device_variant, METH_VARARGS),
    CX_METHOD(CompiledFunction, account, function_account, METH_O),
    CX_METHOD(CompiledFunction, accounts, function_accounts, METH_NOARGS),
    CX_METHOD(CompiledFunction, clear, function_drop_all, METH_NOARGS),
    {NULL, NULL, 0, NULL},
};

static PyMemberDef function_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CxFunction, vectorcall), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(CxFunction, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CxFunction, weakrefs), READONLY, NULL},
    CX_MEMBER(CompiledFunction, fn, T_OBJECT, CxFunction, fn, READONLY),
    CX_MEMBER(CompiledFunction, parameters, T_OBJECT, CxFunction, signature.names, READONLY),
    CX_MEMBER(CompiledFunction, specializations, T_OBJECT, CxFunction, table, READONLY),
    CX_MEMBER(CompiledFunction, stance, T_INT, CxFunction, stance, 0),
    CX_MEMBER(CompiledFunction, is_counted, T_BOOL, CxFunction, is_counted, 0),
    CX_MEMBER(CompiledFunction, calls, T_PYSSIZET, CxFunction, calls, 0),
    CX_MEMBER(CompiledFunction, failed_checks, T_PYSSIZET, CxFunction, failed_checks, 0),
    CX_MEMBER(CompiledFunction, plain_calls, T_PYSSIZET, CxFunction, plain_calls, 0),
    {NULL, 0, 0, 0, NULL},
};

/* An attribute of fn, unless it was set on the compiled function. Annotations that are evaluated
 * lazily (3.14) are not copied, and what inspect reports (iscoroutinefunction) it reads from
 * code and defaults. */
static PyObject *
function_attribute(PyObject *self, void *name)
{
    CxFunction *f = (CxFunction *)self;
    PyObject *own = f->dict ? cx_dict_named(f->dict, name) : NULL;

    return own ? Py_NewRef(own) : PyObject_GetAttrString(f->fn, name);
}

static int
function_set_attribute(PyObject *self, PyObject *value, void *name)
{
    PyObject *dict = PyObject_GenericGetDict(self, NULL);
    int status = dict == NULL    ? -1
                 : value != NULL ? PyDict_SetItemString(dict, name, value)
                                 : PyDict_DelItemString(dict, name);

    Py_XDECREF(dict);
    return status;
}

static PyObject *
function_is_driver_timed(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(cx_split_calls_is_open(&((CxFunction *)self)->split_calls));
}

static PyObject *
function_why_not_split_calls(PyObject *self, void *closure)
{
    (void)closure;
    return cx_split_calls_text(&((CxFunction *)self)->split_calls);
}

#define ATTRIBUTE(name)                                                                            \
    CX_GETTER(CompiledFunction, name, function_attribute, function_set_attribute, #name)

static PyGetSetDef function_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    ATTRIBUTE(__annotations__),
    ATTRIBUTE(__code__),
    ATTRIBUTE(__defaults__),
    ATTRIBUTE(__kwdefaults__),
    CX_GETTER(CompiledFunction, is_driver_timed, function_is_driver_timed, NULL, NULL),
    CX_GETTER(CompiledFunction, why_not_split_calls, function_why_not_split_calls, NULL, NULL),
    {NULL, NULL, NULL, NULL, NULL},
};

CX_TYPE(cx_function_spec, CompiledFunction, CxFunction,
        Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL,
        CX_SLOT(Py_tp_new, function_new), CX_SLOT(Py_tp_dealloc, function_dealloc),
        CX_SLOT(Py_tp_finalize, function_finalize), CX_SLOT(Py_tp_traverse, function_traverse),
        CX_SLOT(Py_tp_clear, function_clear), CX_SLOT(Py_tp_call, PyVectorcall_Call),
        CX_SLOT(Py_tp_descr_get, function_get), CX_SLOT(Py_tp_repr, function_repr),
        CX_SLOT(Py_tp_methods, function_methods), CX_SLOT(Py_tp_members, function_members),
        CX_SLOT(Py_tp_getset, function_getset));
