/* Options of a compile: the defaults of the table, then environment variables, then the caller's
 * values. */
#include "state/state.h"

#include "analysis/choices.h"

static int
read_bool(const char *text, bool *out)
{
    *out = !(text[0] == '\0' || strcmp(text, "0") == 0 || strcmp(text, "false") == 0 ||
             strcmp(text, "no") == 0 || strcmp(text, "off") == 0);
    return 0;
}

static int
read_int(const char *text, int64_t *out)
{
    char *end = NULL;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0')
        return -1;
    *out = value;
    return 0;
}

static int
read_text(const char *text, const char **out)
{
    *out = text;
    return 0;
}

#define read_levels read_text
#define read_choices read_text
#define read_passes read_text
#define read_joins read_text

static int
take_bool(PyObject *value, bool *out)
{
    int truth = PyObject_IsTrue(value);
    *out = truth == 1;
    return truth < 0 ? -1 : 0;
}

static int
take_int(PyObject *value, int64_t *out)
{
    *out = PyLong_AsLongLong(value);
    return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

static int
take_text(PyObject *value, const char **out)
{
    *out = PyUnicode_AsUTF8(value);
    return *out == NULL ? -1 : 0;
}

#define take_levels take_text
#define take_choices take_text
#define take_passes take_text
#define take_joins take_text

static int
take_option(CiOptions *options, PyObject *key, PyObject *value)
{
    if (!PyUnicode_Check(key)) {
        PyErr_SetString(PyExc_TypeError, "names of options are strings");
        return -1;
    }
#define OPTION(name, type, initial, allowed, env, doc)                                             \
    if (PyUnicode_CompareWithASCIIString(key, #name) == 0)                                         \
        return take_##type(value, &options->name);
#include "base/options.def"
#undef OPTION
    PyErr_Format(PyExc_ValueError, "there is no option '%U'", key);
    return -1;
}

/* Texts point into values, which the caller keeps alive. */
int
cx_options_fill(PyObject *values, CiOptions *options)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    const char *text = NULL;

    ci_options_default(options);
    /* An invalid environment variable is ignored, so that it does not break a program. */
#define OPTION(name, type, initial, allowed, env, doc)                                             \
    if ((text = getenv(env)) != NULL)                                                              \
        (void)read_##type(text, &options->name);
#include "base/options.def"
#undef OPTION
    while (PyDict_Next(values, &at, &key, &value))
        if (take_option(options, key, value) < 0)
            return -1;
    if (options->library_threads == 0)
        options->library_threads = cx_library_threads();
    return 0;
}

#define VALUE_bool(value) PyBool_FromLong(value)
#define VALUE_int(value) PyLong_FromLongLong(value)
#define VALUE_text(value) PyUnicode_FromString(value)
#define VALUE_levels(value) PyUnicode_FromString(value)
#define VALUE_passes(value) PyUnicode_FromString(value)
#define VALUE_choices(value) PyUnicode_FromString(value)
#define VALUE_joins(value) PyUnicode_FromString(value)
#define ALLOWED_bool(allowed) allowed
#define ALLOWED_int(allowed) allowed
#define ALLOWED_text(allowed) allowed
#define ALLOWED_levels(allowed) ci_compile_levels()
#define ALLOWED_passes(allowed) allowed
#define ALLOWED_choices(allowed) allowed
#define ALLOWED_joins(allowed) allowed

PyObject *
cx_options_list(void)
{
    PyObject *list = PyList_New(0);
    CiOptions options;

    ci_options_default(&options);
#define OPTION(name, type, initial, allowed, env, doc)                                             \
    if (list != NULL) {                                                                            \
        PyObject *row = Py_BuildValue("(ssNsss)", #name, #type, VALUE_##type(options.name),        \
                                      ALLOWED_##type(allowed), env, doc);                          \
        if (row == NULL || PyList_Append(list, row) < 0)                                           \
            Py_CLEAR(list);                                                                        \
        Py_XDECREF(row);                                                                           \
    }
#include "base/options.def"
#undef OPTION
    return list;
}

PyObject *
cx_choices_list(void)
{
    PyObject *list = PyList_New(CI_CHOICE_COUNT);
    for (Py_ssize_t k = 0; list != NULL && k < CI_CHOICE_COUNT; k++) {
        const CiChoiceRow *row = ci_choice_row((CiChoice)k);
        PyObject *item = Py_BuildValue("(sLLsLi)", row->name, (long long)row->values[0],
                                       (long long)row->values[1], row->doc, (long long)row->most,
                                       row->is_power);
        cx_put_item(&list, k, item);
    }
    return list;
}
