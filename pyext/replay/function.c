/* CompiledFunction: what `compile` returns. A call binds its arguments to the parameters, tries the
 * specializations by their guards, and asks Python (miss) when none fits. The table of
 * specializations is a tuple, replaced whole: a call in progress keeps the one it began with. */
#include "replay/body.h"
#include "replay/device_call.h"
#include "replay/driven.h"
#include "replay/signature.h"
#include "replay/specialization.h"
#include "state/stance.h"

typedef struct CxFunction {
    PyObject_HEAD vectorcallfunc vectorcall;
    CxState *state;
    CxSignature signature;
    PyObject *fn, *miss, *table, *dict, *weakrefs;
    PyObject *renew;   /* what gives the parameters again when the function has others, or NULL */
    CxBody body;
    PyObject *plain;        /* keys of calls that fn answers: plain.c */
    CxDriven driven;        /* those that a driver answers */
    CxTwins twins;          /* what answers where arguments are arrays of a device */
    const PyObject *latest; /* the specialization that answered last: only compared */
    PyObject *where;        /* "model.py:12", for texts; or NULL */
    int stance; /* a CxStance, its own; -1: it is compiled whatever the stance is */
    Py_ssize_t calls, failed_checks, plain_calls;
    int unusual; /* calls whose sizes were unusual for what there is, and that returned */
} CxFunction;

/* After so many of them they are compiled for. */
enum { MOST_UNUSUAL = 8 };

/* ---- the table ---- */

/* The table without a specialization, or with it at the front; NULL with an exception. */
static PyObject *
table_with(PyObject *table, PyObject *spec, bool at_front)
{
    Py_ssize_t n = PyTuple_GET_SIZE(table), at = 0;
    bool is_there = false;

    for (Py_ssize_t k = 0; k < n; k++)
        is_there |= PyTuple_GET_ITEM(table, k) == spec;
    PyObject *made = PyTuple_New(n - is_there + at_front);
    if (made != NULL && at_front)
        PyTuple_SET_ITEM(made, at++, Py_NewRef(spec));
    for (Py_ssize_t k = 0; made != NULL && k < n; k++)
        if (PyTuple_GET_ITEM(table, k) != spec)
            PyTuple_SET_ITEM(made, at++, Py_NewRef(PyTuple_GET_ITEM(table, k)));
    return made;
}

/* One that answers twice in a row moves to the front: recent use orders the table, and calls that
 * alternate leave it alone. */
static void
note_use(CxFunction *f, PyObject *table, Py_ssize_t number)
{
    PyObject *spec = PyTuple_GET_ITEM(table, number);

    if (number != 0 && f->latest == spec && f->table == table) {
        PyObject *moved = table_with(table, spec, true);
        if (moved != NULL)
            Py_SETREF(f->table, moved);
        else
            PyErr_Clear();
    }
    f->latest = spec;
}

/* ---- calls ---- */

/* NumPy gives its warnings for a run that raised floating-point flags: the function once more, in
 * NumPy. What cannot be called once more is warned of in its place. */
static PyObject *
diagnose(CxFunction *f, PyObject *const *args, size_t nargsf, PyObject *names, PyObject *result,
         CxSpecialization *spec, unsigned suspects)
{
    PyObject *same = NULL;

    if (suspects & CX_CALLED_ONCE) {
        PyObject *job = PyMethod_Check(f->miss) ? PyMethod_GET_SELF(f->miss) : NULL;
        if (job == NULL)
            return result;
        same = PyObject_CallMethod(job, "warn_of_flags", "OI", (PyObject *)spec,
                                   suspects & ~(unsigned)CX_CALLED_ONCE);
    } else
        same = PyObject_Vectorcall(f->fn, args, nargsf, names);
    if (same == NULL)
        Py_CLEAR(result);
    Py_XDECREF(same);
    return result;
}

static PyObject *
call_miss(CxFunction *f, PyObject *const *bound, PyObject *const *args, size_t nargsf,
          PyObject *names)
{
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    int is_plain = cx_is_plain(f->plain, bound, f->signature.count);

    if (is_plain < 0)
        return NULL;
    if (is_plain) {
        f->plain_calls++;
        return PyObject_Vectorcall(f->fn, args, nargsf, names);
    }
    PyObject *result = NULL;
    int is_driven =
        cx_driven_call(&f->driven, bound, f->signature.count, args, nargsf, names, &result);
    if (is_driven != 0)
        return is_driven < 0 ? NULL : result;
    PyObject *tuple = PyTuple_New(f->signature.count), *positional = PyTuple_New(nargs),
             *keywords = PyDict_New();

    if (tuple == NULL || positional == NULL || keywords == NULL)
        goto done;
    for (int k = 0; k < f->signature.count; k++)
        PyTuple_SET_ITEM(tuple, k, Py_NewRef(bound[k]));
    for (Py_ssize_t k = 0; k < nargs; k++)
        PyTuple_SET_ITEM(positional, k, Py_NewRef(args[k]));
    for (Py_ssize_t k = 0; names != NULL && k < PyTuple_GET_SIZE(names); k++)
        if (PyDict_SetItem(keywords, PyTuple_GET_ITEM(names, k), args[nargs + k]) < 0)
            goto done;
    PyObject *four[] = {(PyObject *)f, tuple, positional, keywords};
    result = PyObject_Vectorcall(f->miss, four, 4, NULL);
    if (result == NULL)
        cx_keep_given_traceback();
done:
    Py_XDECREF(tuple);
    Py_XDECREF(positional);
    Py_XDECREF(keywords);
    return result;
}

static PyObject *
refuse(CxFunction *f, PyObject *const *bound, PyObject *table)
{
    PyObject *why = NULL;
    if (PyTuple_GET_SIZE(table) != 0)
        why = cx_specialization_why((CxSpecialization *)PyTuple_GET_ITEM(table, 0), bound,
                                    f->signature.count);
    if (!PyErr_Occurred())
        PyErr_Format(cx_exception(f->state, "RecompileError"),
                     "the stance is fail_on_recompile, and %s%S; cinductor.set_stance('default') "
                     "compiles it",
                     why ? "" : "nothing was compiled before of ", why ? why : f->fn);
    Py_XDECREF(why);
    return NULL;
}

/* The function itself, where a specialization fits. */
static PyObject *
call_numpy(CxFunction *f, CxTrial *trial, PyObject *const *args, size_t nargsf, PyObject *names)
{
    int64_t began = cx_trial_begin(trial);
    PyObject *result = PyObject_Vectorcall(f->fn, args, nargsf, names);

    if (result != NULL)
        cx_trial_end(trial, true, began);
    return result;
}

static PyObject *
call_once(CxFunction *f, PyObject *const *bound, PyObject *const *args, size_t nargsf,
           PyObject *names, int stance)
{
    PyObject *table = Py_NewRef(f->table), *result = NULL;
    CxSpecialization *spec = NULL;
    CxOutcome outcome = {.answer = CX_NO_MATCH};
    bool is_unusual = false;

    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(table) && outcome.answer < CX_MATCH; k++) {
        spec = (CxSpecialization *)PyTuple_GET_ITEM(table, k);
        result = cx_specialization_call(spec, bound, f->signature.count, &outcome);
        if (outcome.answer >= CX_MATCH)
            note_use(f, table, k);
        is_unusual |= outcome.answer == CX_UNUSUAL;
        if (result == NULL && PyErr_Occurred())
            goto done;
    }
    if (outcome.answer == CX_NUMPYS) {
        result = call_numpy(f, outcome.trial, args, nargsf, names);
        goto done;
    }
    is_unusual = is_unusual && outcome.answer < CX_MATCH && f->unusual < MOST_UNUSUAL;
    f->failed_checks += is_unusual || outcome.answer == CX_CHECK_FAILED;
    if (is_unusual || outcome.answer == CX_CHECK_FAILED) {
        result = PyObject_Vectorcall(f->fn, args, nargsf, names);
        f->unusual += is_unusual && result != NULL;
    } else if (outcome.answer == CX_MATCH)
        result = outcome.suspects != 0 && result != NULL
                     ? diagnose(f, args, nargsf, names, result, spec, outcome.suspects)
                     : result;
    else if (stance == CX_STANCE_eager_on_recompile)
        result = PyObject_Vectorcall(f->fn, args, nargsf, names);
    else if (stance == CX_STANCE_fail_on_recompile)
        result = refuse(f, bound, table);
    else
        result = call_miss(f, bound, args, nargsf, names);
done:
    Py_DECREF(table);
    return result;
}

/* Another thread may have compiled what this one was to compile: then it looks again. */
static PyObject *
call_bound(CxFunction *f, PyObject *const *bound, PyObject *const *args, size_t nargsf,
           PyObject *names, int stance)
{
    PyObject *result;

    while ((result = call_once(f, bound, args, nargsf, names, stance)) == f->state->missing)
        Py_DECREF(result);
    return result;
}

/* ---- the function's own code and defaults, which may be set ---- */

/* The parameters anew; what was compiled is forgotten by `renew`. */
static int
renew(CxFunction *f)
{
    PyObject *names = NULL, *kinds = NULL, *defaults = NULL, *made = NULL;
    CxSignature fresh = {0};

    cx_body_note(&f->body, f->body.function);
    cx_twins_clear(&f->twins);
    if (f->renew == NULL)
        return 0;
    made = PyObject_CallOneArg(f->renew, (PyObject *)f);
    if (made == NULL ||
        !PyArg_ParseTuple(made, "O!O!O!", &PyTuple_Type, &names, &PyTuple_Type, &kinds,
                          &PyTuple_Type, &defaults) ||
        cx_signature_open(&fresh, names, kinds, defaults, f->state->missing) < 0) {
        Py_XDECREF(made);
        return -1;
    }
    cx_signature_close(&f->signature);
    f->signature = fresh;
    Py_DECREF(made);
    return 0;
}

/* The context's or the process's; where that is the default, the function's own. */
static int
stance_of(const CxFunction *f)
{
    if (f->stance < 0)
        return CX_STANCE_default;
    int stance = cx_stance(f->state);
    return stance == CX_STANCE_default ? f->stance : stance;
}

static PyObject *
function_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    CxFunction *f = (CxFunction *)self;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    PyObject *small[16] = {NULL}, **bound = small, *result = NULL;

    CX_ENTRY();
    int stance = stance_of(f);
    f->calls++;
    if (stance < 0)
        return NULL;
    if (stance == CX_STANCE_force_eager)
        return PyObject_Vectorcall(f->fn, args, nargsf, names);
    if (!cx_body_is_same(&f->body, &f->signature) && renew(f) < 0)
        return NULL;
    /* All positional and complete: the caller's references do. */
    if (names == NULL && nargs == f->signature.count &&
        f->signature.npositional == f->signature.count) {
        if (f->twins.count > 0 &&
            cx_twins_call(f->state, &f->twins, f->miss, args, nargs, &result))
            return result;
        return call_bound(f, args, args, nargsf, names, stance);
    }
    if (f->signature.count > 16 &&
        (bound = PyMem_Calloc((size_t)f->signature.count, sizeof *bound)) == NULL)
        return PyErr_NoMemory();
    int count = f->signature.count; /* the call may renew it */
    int status = cx_signature_bind(&f->signature, args, nargs, names, bound);
    if (status > 0)
        result = call_bound(f, bound, args, nargsf, names, stance);
    else if (status == 0) /* raises the TypeError that names what is wrong */
        result = PyObject_Vectorcall(f->fn, args, nargsf, names);
    for (int k = 0; k < count; k++)
        Py_XDECREF(bound[k]);
    if (bound != small)
        PyMem_Free(bound);
    return result;
}

/* ---- the type ---- */

/* Where a function is, as guards name it; NULL without an exception for what has no code. */
static PyObject *
find_place(PyObject *fn)
{
    PyObject *function = cx_python_function(fn);
    PyObject *code = function ? PyFunction_GET_CODE(function) : NULL;
    Py_XDECREF(function); /* fn keeps it */
    if (code == NULL || !PyUnicode_Check(((PyCodeObject *)code)->co_filename))
        return NULL;
    const char *file = PyUnicode_AsUTF8(((PyCodeObject *)code)->co_filename);
    if (file == NULL) {
        PyErr_Clear();
        return NULL;
    }
    const char *slash = strrchr(file, '/');
    return PyUnicode_FromFormat("%s:%d", slash ? slash + 1 : file,
                                ((PyCodeObject *)code)->co_firstlineno);
}

static PyObject *
function_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"fn", "parameters", "kinds", "defaults", "miss", "renew", NULL};
    PyObject *fn = NULL, *parameters = NULL, *kinds = NULL, *defaults = NULL, *miss = NULL,
             *renew = NULL;
    CxFunction *f = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!O!O!O|O:CompiledFunction", names, &fn,
                                     &PyTuple_Type, &parameters, &PyTuple_Type, &kinds,
                                     &PyTuple_Type, &defaults, &miss, &renew))
        return NULL;
    CxState *state = cx_state_of_type(type);
    f = state ? (CxFunction *)type->tp_alloc(type, 0) : NULL;
    if (f == NULL)
        return NULL;
    f->state = state;
    f->vectorcall = function_vectorcall;
    f->fn = Py_NewRef(fn);
    f->miss = Py_NewRef(miss);
    f->renew = Py_XNewRef(renew);
    PyObject *function = cx_python_function(fn);
    cx_body_note(&f->body, function);
    Py_XDECREF(function);
    f->table = PyTuple_New(0);
    f->plain = PyTuple_New(0);
    f->where = find_place(fn);
    if (f->table == NULL || f->plain == NULL || PyErr_Occurred() ||
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
    Py_VISIT(f->renew);
    Py_VISIT(f->body.function);
    Py_VISIT(f->table);
    Py_VISIT(f->plain);
    Py_VISIT(f->dict);
    int status = cx_twins_visit(&f->twins, visit, arg);
    return status ? status : cx_driven_visit(&f->driven, visit, arg);
}

/* Whoever still holds the function gets an exception for a call of it. */
static int
function_clear(PyObject *self)
{
    CxFunction *f = (CxFunction *)self;
    Py_CLEAR(f->dict);
    Py_CLEAR(f->plain);
    cx_driven_clear(&f->driven);
    cx_twins_clear(&f->twins);
    PyObject *empty = PyTuple_New(0);
    if (empty != NULL)
        Py_XSETREF(f->table, empty);
    else
        PyErr_Clear();
    Py_CLEAR(f->renew);
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

static void
function_dealloc(PyObject *self)
{
    CxFunction *f = (CxFunction *)self;
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    if (f->weakrefs != NULL)
        PyObject_ClearWeakRefs(self);
    Py_XDECREF(f->fn);
    cx_signature_close(&f->signature);
    Py_XDECREF(f->miss);
    Py_XDECREF(f->renew);
    cx_body_note(&f->body, NULL);
    Py_XDECREF(f->table);
    Py_XDECREF(f->plain);
    cx_driven_clear(&f->driven);
    cx_twins_clear(&f->twins);
    Py_XDECREF(f->dict);
    Py_XDECREF(f->where);
    type->tp_free(self);
    Py_DECREF(type);
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
function_add(PyObject *self, PyObject *spec)
{
    CxFunction *f = (CxFunction *)self;

    CX_ENTRY();
    if (!PyObject_TypeCheck(spec, (PyTypeObject *)f->state->specialization_type))
        return PyErr_Format(PyExc_TypeError, "a Specialization is expected");
    cx_specialization_set_words((CxSpecialization *)spec, f->signature.names, f->where);
    f->unusual = 0;
    PyObject *table = table_with(f->table, spec, true);
    if (table == NULL)
        return NULL;
    Py_SETREF(f->table, table);
    Py_RETURN_NONE;
}

static PyObject *
function_drop(PyObject *self, PyObject *spec)
{
    CxFunction *f = (CxFunction *)self;
    PyObject *table = table_with(f->table, spec, false);

    if (table == NULL)
        return NULL;
    Py_SETREF(f->table, table);
    Py_RETURN_NONE;
}

static PyObject *
function_drop_all(PyObject *self, PyObject *unused)
{
    CxFunction *f = (CxFunction *)self;
    PyObject *empty = PyTuple_New(0);
    (void)unused;
    if (empty == NULL)
        return NULL;
    Py_SETREF(f->table, empty);
    Py_XSETREF(f->plain, Py_NewRef(empty));
    cx_driven_clear(&f->driven);
    cx_twins_clear(&f->twins);
    Py_RETURN_NONE;
}

static bool
is_key(const CxFunction *f, PyObject *key)
{
    if (PyTuple_CheckExact(key) && PyTuple_GET_SIZE(key) == f->signature.count)
        return true;
    PyErr_SetString(PyExc_ValueError, "a key has one part for each parameter");
    return false;
}

static PyObject *
function_note_plain(PyObject *self, PyObject *key)
{
    CxFunction *f = (CxFunction *)self;

    CX_ENTRY();
    PyObject *keys = is_key(f, key) ? cx_keys_with(f->plain, key) : NULL;
    if (keys == NULL)
        return NULL;
    Py_XSETREF(f->plain, keys);
    Py_RETURN_NONE;
}

static PyObject *
function_note_driven(PyObject *self, PyObject *args)
{
    CxFunction *f = (CxFunction *)self;
    PyObject *driver = NULL, *fix = NULL, *key = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OOO:note_driven", &driver, &fix, &key))
        return NULL;
    if (driver == Py_None)
        cx_driven_clear(&f->driven);
    else if (!is_key(f, key) || cx_driven_note(&f->driven, driver, fix, key) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *
function_note_twin(PyObject *self, PyObject *args)
{
    CxFunction *f = (CxFunction *)self;
    CX_ENTRY();
    return cx_twins_note(f->state, &f->twins, args) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef function_methods[] = {
    {"add", function_add, METH_O, "add(specialization): tried first from now on."},
    {"drop", function_drop, METH_O,
     "drop(specialization): forgets it; a call that runs it goes on."},
    {"note_plain", function_note_plain, METH_O,
     "note_plain(key): fn answers such calls; see key_of in job.py."},
    {"note_driven", function_note_driven, METH_VARARGS,
     "note_driven(driver, fix, key): the driver answers such calls; None: no call any more."},
    {"note_twin", function_note_twin, METH_VARARGS,
     "note_twin(twin, args): it answers calls with arguments that live so; None: no call any more."},
    {"clear", function_drop_all, METH_NOARGS,
     "Forgets all specializations, and which calls fn answers."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef function_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CxFunction, vectorcall), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(CxFunction, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CxFunction, weakrefs), READONLY, NULL},
    {"fn", T_OBJECT, offsetof(CxFunction, fn), READONLY, NULL},
    {"parameters", T_OBJECT, offsetof(CxFunction, signature.names), READONLY, NULL},
    {"specializations", T_OBJECT, offsetof(CxFunction, table), READONLY, NULL},
    {"stance", T_INT, offsetof(CxFunction, stance), 0, NULL},
    {"calls", T_PYSSIZET, offsetof(CxFunction, calls), READONLY, NULL},
    {"failed_checks", T_PYSSIZET, offsetof(CxFunction, failed_checks), READONLY,
     "Calls whose program met what it could not do; the function itself answered."},
    {"plain_calls", T_PYSSIZET, offsetof(CxFunction, plain_calls), READONLY,
     "Calls that fn answered because they were known to be its own."},
    {NULL, 0, 0, 0, NULL},
};

/* fn's, until somebody sets others: those that wait to be asked for are not copied (3.14). */
static PyObject *
function_annotations(PyObject *self, void *unused)
{
    CxFunction *f = (CxFunction *)self;
    int failed = 0;
    PyObject *own = f->dict ? cx_dict_find(f->dict, f->state->str___annotations__, &failed) : NULL;

    (void)unused;
    if (own != NULL || failed)
        return Py_XNewRef(own);
    return PyObject_GetAttr(f->fn, f->state->str___annotations__);
}

static int
function_annotate(PyObject *self, PyObject *value, void *unused)
{
    PyObject *dict = PyObject_GenericGetDict(self, NULL);
    PyObject *name = ((CxFunction *)self)->state->str___annotations__;
    int status = dict == NULL    ? -1
                 : value != NULL ? PyDict_SetItem(dict, name, value)
                                 : PyDict_DelItem(dict, name);

    (void)unused;
    Py_XDECREF(dict);
    return status;
}

static PyGetSetDef function_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {"__annotations__", function_annotations, function_annotate, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot function_slots[] = {
    CX_SLOT(Py_tp_new, function_new),
    CX_SLOT(Py_tp_dealloc, function_dealloc),
    CX_SLOT(Py_tp_traverse, function_traverse),
    CX_SLOT(Py_tp_clear, function_clear),
    CX_SLOT(Py_tp_call, PyVectorcall_Call),
    CX_SLOT(Py_tp_descr_get, function_get),
    CX_SLOT(Py_tp_repr, function_repr),
    CX_SLOT(Py_tp_methods, function_methods),
    CX_SLOT(Py_tp_members, function_members),
    CX_SLOT(Py_tp_getset, function_getset),
    {0, NULL},
};

PyType_Spec cx_function_spec = {
    "cinductor._core.CompiledFunction",
    sizeof(CxFunction),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL,
    function_slots,
};
