/* Converts a CiStatus to an exception. Classes that Python lacks are made from errors.def, so a
 * new row is enough. Also reads NumPy's error state, which defines the effect of floating-point
 * flags. */
#include "state/state.h"

#include "state/docs.h"

static const char *const exception_names[CI_ERR_COUNT] = {
#define ERROR(name, python, text) [CI_ERR_##name] = python,
#include "base/errors.def"
#undef ERROR
};

static const struct {
    const char *name, *doc;
} exception_docs[] = {
#define ROW(name) {#name, CX_DOC_##name},
    CX_EXCEPTIONS(ROW)
#undef ROW
};

/* Makes a class of exceptions and adds it to the module. `bases` is a class or a tuple of them. */
static PyObject *
new_class(PyObject *module, const char *package, const char *name, PyObject *bases)
{
    PyObject *type = NULL;
    char full[80];
    size_t k = 0;

    while (k < sizeof exception_docs / sizeof *exception_docs &&
           strcmp(exception_docs[k].name, name) != 0)
        k++;
    if (k == sizeof exception_docs / sizeof *exception_docs)
        return PyErr_Format(PyExc_SystemError, "_core.pyi has no class %s", name);
    PyOS_snprintf(full, sizeof full, "%s.%s", package, name);
    type = PyErr_NewExceptionWithDoc(full, exception_docs[k].doc, bases, NULL);
    if (type != NULL && PyModule_AddObjectRef(module, name, type) < 0)
        Py_CLEAR(type);
    return type;
}

static int
add_class(CxState *state, PyObject *module, const char *name, PyObject *bases)
{
    PyObject *type = new_class(module, "cinductor", name, bases);
    int result = type ? PyDict_SetItemString(state->exceptions, name, type) : -1;

    Py_XDECREF(type);
    return result;
}

/* Base classes: all exceptions of the package have one, and the compiler's another.
 * RecompileError is also a RuntimeError, because such calls have always raised that. */
static int
add_bases(CxState *state, PyObject *module)
{
    PyObject *error = new_class(module, "cinductor", "Error", NULL);
    PyObject *both = error ? PyTuple_Pack(2, error, PyExc_RuntimeError) : NULL;
    int result = -1;

    state->base_error = both ? new_class(module, "cinductor", "CinductorError", error) : NULL;
    if (state->base_error != NULL)
        result = add_class(state, module, "RecompileError", both);
    Py_XDECREF(error);
    Py_XDECREF(both);
    return result;
}

int
cx_errors_init(CxState *state, PyObject *module)
{
    PyObject *builtins = PyEval_GetBuiltins();

    state->exceptions = PyDict_New();
    if (state->exceptions == NULL || add_bases(state, module) < 0)
        return -1;
    /* Not Exceptions, so that the user's handlers do not catch them. */
    state->region_break =
        new_class(module, "cinductor._core", "RegionBreak", PyExc_BaseException);
    if (state->region_break == NULL ||
        add_class(state, module, "CheckFailed", PyExc_BaseException) < 0)
        return -1;
    for (int k = 1; k < CI_ERR_COUNT; k++) {
        const char *name = exception_names[k];
        if (name[0] == '\0' || cx_dict_named(state->exceptions, name) != NULL)
            continue;
        PyObject *known = cx_dict_named(builtins, name);
        if (known != NULL) {
            if (PyDict_SetItemString(state->exceptions, name, known) < 0)
                return -1;
        } else if (add_class(state, module, name, state->base_error) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Called while an exception is set, or when memory is exhausted, so it allocates nothing. */
PyObject *
cx_exception(CxState *state, const char *name)
{
    PyObject *type = state->exceptions ? cx_dict_named(state->exceptions, name) : NULL;
    return type != NULL ? type : PyExc_RuntimeError;
}

/* Splits a compiler message into its parts: what happened, the command, its output, and in the
 * last line the source. */
static int
set_parts(PyObject *error, const char *message)
{
    const char *command = strchr(message, '\n');
    const char *answer = command ? strchr(command + 1, '\n') : NULL;
    const char *source = NULL, *last = strrchr(message, '\n');

    if (last != NULL && strncmp(last + 1, CI_SOURCE_LINE, strlen(CI_SOURCE_LINE)) == 0)
        source = last + 1 + strlen(CI_SOURCE_LINE);
    const char *end = source ? last : message + strlen(message);
    PyObject *parts[3] = {
        PyUnicode_FromStringAndSize(command ? command + 1 : "", answer ? answer - command - 1 : 0),
        PyUnicode_FromStringAndSize(answer ? answer + 1 : "",
                                    answer && end > answer ? end - answer - 1 : 0),
        source ? PyUnicode_DecodeFSDefault(source) : Py_NewRef(Py_None)};
    static const char *const names[3] = {"cmd", "stderr", "source"};
    int result = 0;

    for (int k = 0; k < 3; k++) {
        if (parts[k] == NULL || PyObject_SetAttrString(error, names[k], parts[k]) < 0)
            result = -1;
        Py_XDECREF(parts[k]);
    }
    return result;
}

/* Raises the error of a compiler: what happened and, if it was kept, where the source is. The
 * command and its output are attributes then. */
static void
raise_compile(PyObject *type, const char *message)
{
    const char *last = strrchr(message, '\n');
    bool is_kept = last != NULL && strncmp(last + 1, CI_SOURCE_LINE, strlen(CI_SOURCE_LINE)) == 0;
    PyObject *first =
        is_kept ? PyUnicode_DecodeUTF8(message, (Py_ssize_t)strcspn(message, "\n"), "replace") : NULL;

    if (first != NULL)
        PyErr_Format(type, "%U\n%s", first, last + 1);
    else
        PyErr_SetString(type, message);
    Py_XDECREF(first);
}

static void
add_parts(const char *message)
{
    PyObject *error = cx_take_exception();
    if (error == NULL)
        return;
    if (set_parts(error, message) < 0)
        PyErr_Clear();
    cx_restore_exception(error);
}

int
cx_raise_status(CxState *state, CiStatus status, const char *message)
{
    if (PyErr_Occurred())
        return -1;
    if (message == NULL || message[0] == '\0')
        message = ci_status_text(status);
    const char *name = status > CI_OK && status < CI_ERR_COUNT ? exception_names[status] : "";
    if (name[0] == '\0')
        name = "InternalError";
    if (status != CI_ERR_COMPILE && status != CI_ERR_LOAD) {
        PyErr_SetString(cx_exception(state, name), message);
        return -1;
    }
    raise_compile(cx_exception(state, name), message);
    add_parts(message);
    return -1;
}

int
cx_raise_check(CxState *state, const char *reason)
{
    bool is_promise =
        reason != NULL && strncmp(reason, CI_INDEX_ASSERT, strlen(CI_INDEX_ASSERT)) == 0;
    return cx_raise_status(state, is_promise ? CI_ERR_ASSERT : CI_ERR_CHECK, reason);
}

PyObject *
cx_misuse(CxState *state, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)PyErr_FormatV(cx_exception(state, "InternalError"), format, args);
    va_end(args);
    return NULL;
}

/* The package knows which frames are the user's. */
static int
warn_by(const char *function, PyObject *text)
{
    PyObject *module = text ? PyImport_ImportModule("cinductor.base.deferred_warnings") : NULL;
    PyObject *done = module ? PyObject_CallMethod(module, function, "O", text) : NULL;

    Py_XDECREF(module);
    Py_XDECREF(text);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

int
cx_warn(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    PyObject *text = PyUnicode_FromFormatV(format, args);
    va_end(args);
    return warn_by("warn", text);
}

int
cx_warn_of_cache(CxState *state)
{
    char *text = state->runtime.cache ? ci_cache_take_warning(state->runtime.cache) : NULL;

    if (text == NULL)
        return 0;
    int result = warn_by("warn_of_cache", PyUnicode_FromString(text));
    free(text);
    return result;
}

int
cx_protect(CxState *state, CiContext *ctx, void (*body)(CiContext *ctx, void *arg), void *arg)
{
    CiStatus status = ci_protect(ctx, body, arg);
    return status == CI_OK ? 0 : cx_raise_status(state, status, ci_context_message(ctx));
}

/* How a filter treats NumPy's warnings. A pattern, or a number of a line, may fit some of them. */
static CxFilters
read_filter(PyObject *filter, bool *is_decisive)
{
    if (!PyTuple_Check(filter) || PyTuple_GET_SIZE(filter) != 5 ||
        !PyUnicode_Check(PyTuple_GET_ITEM(filter, 0))) {
        *is_decisive = true;
        return CX_FILTERS_STRICT;
    }
    int is_meant = PyObject_IsSubclass(PyExc_RuntimeWarning, PyTuple_GET_ITEM(filter, 2));
    Py_UCS4 first = PyUnicode_ReadChar(PyTuple_GET_ITEM(filter, 0), 0);
    bool is_general = PyTuple_GET_ITEM(filter, 1) == Py_None && PyTuple_GET_ITEM(filter, 3) == Py_None &&
                      PyObject_Not(PyTuple_GET_ITEM(filter, 4)) == 1;

    *is_decisive = is_meant > 0 && is_general;
    if (is_meant < 0 || (is_meant > 0 && (first == 'a' || first == 'e')))
        return CX_FILTERS_STRICT;
    return is_meant > 0 && first != 'i' ? CX_FILTERS_ONCE : CX_FILTERS_IGNORE;
}

/* The strictest of the filters, up to the one that decides. Python's default is once per line. */
static CxFilters
read_filters(PyObject *filters)
{
    CxFilters found = CX_FILTERS_IGNORE;
    bool is_decisive = false;

    for (Py_ssize_t k = 0; found != CX_FILTERS_STRICT && !is_decisive && k < PyList_GET_SIZE(filters); k++) {
        CxFilters one = read_filter(PyList_GET_ITEM(filters, k), &is_decisive);
        found = one > found ? one : found;
    }
    return is_decisive || found > CX_FILTERS_ONCE ? found : CX_FILTERS_ONCE;
}

/* How the active filters treat NumPy's warnings. The module warnings replaces the list or its first item when filters
 * change, so the answer is kept until then. */
static CxFilters
active_filters(CxState *state)
{
    if (state->warnings == NULL) {
        PyObject *module = PyImport_ImportModule("warnings");
        state->warnings = module ? Py_XNewRef(PyModule_GetDict(module)) : NULL;
        Py_XDECREF(module);
    }
    PyObject *filters = state->warnings ? PyDict_GetItemWithError(state->warnings, state->str_filters) : NULL;
    if (filters == NULL || !PyList_CheckExact(filters)) {
        PyErr_Clear();
        return filters == NULL ? CX_FILTERS_STRICT : CX_FILTERS_ONCE;
    }
    Py_ssize_t count = PyList_GET_SIZE(filters);
    PyObject *first = count > 0 ? PyList_GET_ITEM(filters, 0) : Py_None;
    if (filters == state->filters_read && first == state->filters_first && count == state->filters_count)
        return state->filters;
    Py_INCREF(filters);
    Py_XSETREF(state->filters_read, Py_NewRef(filters));
    Py_XSETREF(state->filters_first, Py_NewRef(first));
    state->filters_count = count;
    state->filters = read_filters(filters);
    state->filters_changes++;
    Py_DECREF(filters);
    PyErr_Clear();
    return state->filters;
}

/* True if the active filters raise such warnings or show each of them. */
bool
cx_filters_are_strict(CxState *state)
{
    return active_filters(state) == CX_FILTERS_STRICT;
}

static const char *const FLAGS[] = {"divide", "over", "under", "invalid"}; /* CX_FLAG_... */

/* Reads what the active errstate does about each flag. */
static CxErrstate
read_errstate(const CxState *state)
{
    PyObject *settings = PyObject_CallNoArgs(state->geterr);
    CxErrstate found = {0};

    for (unsigned k = 0; settings != NULL && k < 4; k++) {
        PyObject *value = PyDict_GetItemString(settings, FLAGS[k]);
        if (value == NULL || PyUnicode_CompareWithASCIIString(value, "warn") == 0)
            continue;
        bool is_ignored = PyUnicode_CompareWithASCIIString(value, "ignore") == 0;
        found.ignored |= is_ignored ? 1u << k : 0;
        found.acts |= !is_ignored;
    }
    Py_XDECREF(settings);
    PyErr_Clear();
    return found;
}

/* Reads the active errstate. Its object does not change, so the answer is kept with the latest one. */
static CxErrstate
active_errstate(CxState *state)
{
    PyObject *now = NULL;

    if (state->errstate == NULL || PyContextVar_Get(state->errstate, NULL, &now) < 0 || now == NULL) {
        PyErr_Clear();
        return read_errstate(state);
    }
    if (now != state->errstate_latest) {
        state->errstate_read = read_errstate(state);
        Py_XSETREF(state->errstate_latest, Py_NewRef(now));
    }
    Py_DECREF(now);
    return state->errstate_read;
}

/* True if the active errstate raises, calls, prints or logs. */
bool
cx_errstate_acts(CxState *state)
{
    return active_errstate(state).acts;
}

/* True if it does, or if each warning is given. */
bool
cx_errstate_is_strict(CxState *state)
{
    return cx_errstate_acts(state) || cx_filters_are_strict(state);
}

/* The flags about which NumPy says something now, and Python does not ignore it. */
static unsigned
reported_flags(CxState *state)
{
    CxErrstate errstate = active_errstate(state);
    unsigned all = CX_FLAG_divide | CX_FLAG_overflow | CX_FLAG_underflow | CX_FLAG_invalid;

    return active_filters(state) == CX_FILTERS_IGNORE && !errstate.acts ? 0 : all & ~errstate.ignored;
}

/* The flags of a run about which NumPy must be asked: those that it would report now, without those that it was asked about.
 * The latter are kept in asked until filters change: then Python gives a warning again that it gives once per line. */
unsigned
cx_flags_to_report(CxState *state, CxAsked *asked, unsigned flags)
{
    flags &= reported_flags(state);
    if (asked->filters != state->filters_changes)
        *asked = (CxAsked){.filters = state->filters_changes};
    unsigned known = cx_errstate_is_strict(state) ? 0 : asked->flags;
    asked->flags |= flags;
    return flags & ~known;
}

/* flag_settings() -> (is_strict, reported, changes) */
PyObject *
cx_flag_settings(PyObject *module, PyObject *unused)
{
    CxState *state = PyModule_GetState(module);
    unsigned reported = reported_flags(state);

    (void)unused;
    return Py_BuildValue("(NII)", PyBool_FromLong(cx_errstate_is_strict(state)), reported, state->filters_changes);
}

/* The settings of seterr() with which NumPy ignores these flags. */
static PyObject *
settings_that_ignore(unsigned flags)
{
    PyObject *settings = PyDict_New(), *ignore = PyUnicode_FromString("ignore");

    for (int k = 0; settings != NULL && k < 4; k++)
        if (ignore == NULL ||
            ((flags >> k & 1) && PyDict_SetItemString(settings, FLAGS[k], ignore) < 0))
            Py_CLEAR(settings);
    Py_XDECREF(ignore);
    return settings;
}

/* Calls callable(*args) while NumPy ignores these flags. */
PyObject *
cx_call_quietly(CxState *state, unsigned flags, PyObject *callable, PyObject *const *args,
                int nargs)
{
    PyObject *none = PyTuple_New(0), *settings = settings_that_ignore(flags), *before = NULL;
    PyObject *result = NULL;

    if (none != NULL && settings != NULL)
        before = PyObject_Call(state->seterr, none, settings);
    if (before != NULL) {
        result = PyObject_Vectorcall(callable, args, (size_t)nargs, NULL);
        PyObject *error = cx_take_exception(), *left = PyObject_Call(state->seterr, none, before);
        Py_XDECREF(left);
        if (error != NULL)
            cx_restore_exception(error);
    }
    Py_XDECREF(before);
    Py_XDECREF(settings);
    Py_XDECREF(none);
    return result;
}

/* NumPy's error state is in a context variable without a public name; if it is not found,
 * geterr() is called. */
int
cx_errstate_init(CxState *state)
{
    PyObject *numpy = PyImport_ImportModule("numpy"),
             *umath = PyImport_ImportModule("numpy._core.umath");

    if (numpy != NULL)
        state->geterr = PyObject_GetAttrString(numpy, "geterr");
    if (numpy != NULL)
        state->seterr = PyObject_GetAttrString(numpy, "seterr");
    if (umath != NULL)
        state->errstate = PyObject_GetAttrString(umath, "_extobj_contextvar");
    if (state->errstate != NULL && !PyContextVar_CheckExact(state->errstate))
        Py_CLEAR(state->errstate);
    Py_XDECREF(numpy);
    Py_XDECREF(umath);
    if (state->geterr == NULL || state->seterr == NULL)
        return -1;
    PyErr_Clear();
    return 0;
}

PyObject *
cx_location_text(PyObject *code)
{
    PyObject *path = ((PyCodeObject *)code)->co_filename;
    Py_ssize_t length = PyUnicode_GET_LENGTH(path);
    Py_ssize_t slash = PyUnicode_FindChar(path, '/', 0, length, -1);
    PyObject *name = slash < -1 ? NULL : PyUnicode_Substring(path, slash + 1, length);
    PyObject *text = NULL;

    if (name != NULL)
        text = PyUnicode_FromFormat("%U:%d", name, ((PyCodeObject *)code)->co_firstlineno);
    Py_XDECREF(name);
    return text;
}
