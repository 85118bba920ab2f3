/* Bound of the time of a call in Python, from its bytecode and its arguments alone. A loop is assumed to run as often as the
 * largest number that the call is given, or that the code has. Operands of arithmetic and masks (0xFFFF) are no such numbers.
 *
 * The functions that the code names are counted with it, as they are when the bound is made. Python says which
 * instructions are of which class (`calls/bound.py`). */
#include "replay/bound.h"

#include <math.h>

#include "replay/function_body.h"
#include "state/docs.h"

enum {
#define NUMBER(name) NUMBER_##name,
    CX_INSTRUCTION_CLASSES(NUMBER)
#undef NUMBER
};
enum {
#define BIT(name) name = 1 << NUMBER_##name,
    CX_INSTRUCTION_CLASSES(BIT)
#undef BIT
};
/* Loops within each other, and calls; code objects that are counted; iterations of a `while`. */
enum { DEEPEST = 4, MAX_CODES = 64, WHILE = 16 };
/* Seconds: of an instruction, of one that may work on an array, and on each element. */
static const double INSTRUCTION = 20e-9, ON_ARRAY = 150e-9, ELEMENT = 0.5e-9;
static const double MAX_ITERATIONS = 1e9; /* a larger number is a mask, or a seed */
static const double LIKE = 4; /* a call takes at most so many times the part of its bound that others have taken */

/* Instructions, and those that may work on each element, by the number of loops around. */
typedef struct Term {
    double least, constant; /* iterations of a loop: at least, and the largest number that the code has */
    int count[DEEPEST + 1], working[DEEPEST + 1];
} Term;

typedef struct Terms {
    PyObject *known, *classes; /* borrowed: the global names of the code; the class of each instruction */
    Term term[MAX_CODES];
    PyCodeObject *code[MAX_CODES]; /* borrowed; only compared */
    int count;
    double constant; /* of the function itself */
} Terms;

struct CxBound {
    PyObject_HEAD
    PyObject *classes;
    double constant, share, asked; /* share: the largest part of their bound that calls have taken; 0 before the first */
    int count;
    Term *terms;
};

/* ---- one code object ---- */

/* For each instruction: 1 + the last jump back to it, and the change of the number of loops around. */
typedef struct Places {
    const unsigned char *raw, *classes;
    Py_ssize_t count;
    int *last, *change;
    bool *is_operand; /* constants */
} Places;

static unsigned
class_at(const Places *p, int64_t at)
{
    return at < p->count ? p->classes[p->raw[2 * at]] : 0;
}

static void
note_jumps(const Places *p, Term *term, Py_ssize_t nconstants)
{
    int64_t arg = 0;

    for (int64_t at = 0; at < p->count; at++) {
        unsigned class = class_at(p, at);
        arg = (arg << 8 | p->raw[2 * at + 1]) & INT32_MAX;
        if (class & EXTENDS)
            continue;
        if (class & (JUMPS_BACK | JUMPS_TO)) {
            bool has_cache = at + 1 < p->count && p->raw[2 * at + 2] == 0;
            int64_t target = class & JUMPS_TO ? arg : at + 1 + has_cache - arg;
            target = target < 0 ? 0 : target;
            if (target <= at) {
                p->last[target] = (int)at + 1;
                term->least = class_at(p, target) & (ITERATES | EXTENDS) ? term->least : WHILE;
            }
        } else if (class & LOADS && class_at(p, at + 1) & OPERATES && arg < nconstants)
            p->is_operand[arg] = true;
        arg = 0;
    }
}

/* Two loops only overlap if one is in the other. One loop may have two heads: `continue` jumps to the condition of a
 * `while`, and the end of its body to the body. Such heads belong to the loop that begins first. */
static void
note_loops(const Places *p)
{
    int64_t ends[DEEPEST + 2], depth = 0; /* of the loops around */

    for (int64_t at = 0; at < p->count; at++) {
        while (depth > 0 && ends[depth - 1] <= at)
            depth--;
        int64_t end = p->last[at];
        if (end == 0)
            continue;
        if (depth > 0 && ends[depth - 1] < end) {
            p->change[ends[depth - 1]]++;
            p->change[end]--;
            ends[depth - 1] = end;
        } else {
            p->change[at]++;
            p->change[end]--;
            if (depth <= DEEPEST)
                ends[depth++] = end;
        }
    }
}

static void
count_instructions(const Places *p, Term *term)
{
    int64_t depth = 0;

    for (int64_t at = 0; at < p->count; at++) {
        depth += p->change[at];
        int row = depth < 0 ? 0 : depth > DEEPEST ? DEEPEST : (int)depth;
        term->count[row] += (class_at(p, at) & COUNTS) != 0;
        term->working[row] += (class_at(p, at) & WORKS) != 0;
    }
}

static double
number_of(PyObject *value)
{
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);

    return overflow || fabs((double)number) > MAX_ITERATIONS ? 1 : (double)number;
}

static double
largest_constant(const Places *p, PyObject *constants)
{
    double largest = 1;

    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(constants); k++) {
        PyObject *value = PyTuple_GET_ITEM(constants, k);
        if (!PyLong_CheckExact(value) || p->is_operand[k])
            continue;
        double number = number_of(value);
        bool is_mask = number >= 0 && ((int64_t)number & ((int64_t)number + 1)) == 0;
        largest = is_mask ? largest : fmax(largest, number);
    }
    return largest;
}

static int
read_code(const Terms *terms, PyCodeObject *code, Term *term)
{
    PyObject *raw = PyObject_GetAttrString((PyObject *)code, "co_code");
    Py_ssize_t nconstants = PyTuple_GET_SIZE(code->co_consts);

    *term = (Term){.least = 1};
    if (raw == NULL)
        return -1;
    Places p = {.raw = (const unsigned char *)PyBytes_AS_STRING(raw),
                .classes = (const unsigned char *)PyBytes_AS_STRING(terms->classes),
                .count = PyBytes_GET_SIZE(raw) / 2};
    p.last = PyMem_Calloc((size_t)(2 * p.count + 1), sizeof *p.last);
    p.is_operand = PyMem_Calloc((size_t)nconstants + 1, sizeof *p.is_operand);
    if (p.last != NULL && p.is_operand != NULL) {
        p.change = p.last + p.count;
        note_jumps(&p, term, nconstants);
        note_loops(&p);
        count_instructions(&p, term);
        term->constant = largest_constant(&p, code->co_consts);
    } else
        PyErr_NoMemory();
    PyMem_Free(p.last);
    PyMem_Free(p.is_operand);
    Py_DECREF(raw);
    return PyErr_Occurred() ? -1 : 0;
}

/* ---- a function with those that it names ---- */

static int add_code(Terms *terms, PyCodeObject *code, double constant, int depth);

/* The code of a function of the same module that has this name, or NULL. Borrowed. */
static PyCodeObject *
named(const Terms *terms, PyObject *name)
{
    PyObject *found = PyDict_GetItemWithError(terms->known, name);
    bool is_own = found != NULL && PyFunction_Check(found) && PyFunction_GET_GLOBALS(found) == terms->known;

    return is_own ? (PyCodeObject *)PyFunction_GET_CODE(found) : NULL;
}

static int
add_inner(Terms *terms, PyCodeObject *code, double constant, int depth)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(code->co_consts); k++) {
        PyObject *inner = PyTuple_GET_ITEM(code->co_consts, k);
        if (PyCode_Check(inner) && add_code(terms, (PyCodeObject *)inner, constant, depth) < 0)
            return -1;
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(code->co_names); k++) {
        PyCodeObject *inner = named(terms, PyTuple_GET_ITEM(code->co_names, k));
        if (PyErr_Occurred() || (inner != NULL && add_code(terms, inner, constant, depth) < 0))
            return -1;
    }
    return 0;
}

static int
add_code(Terms *terms, PyCodeObject *code, double constant, int depth)
{
    for (int k = 0; k < terms->count; k++)
        if (terms->code[k] == code)
            return 0;
    if (terms->count == MAX_CODES || depth > DEEPEST)
        return 0;
    Term *term = &terms->term[terms->count];
    terms->code[terms->count] = code;
    if (read_code(terms, code, term) < 0)
        return -1;
    terms->count++;
    term->constant = fmax(term->constant, constant);
    if (depth == 0)
        terms->constant = term->constant;
    return add_inner(terms, code, term->constant, depth + 1);
}

/* ---- a call ---- */

typedef struct Size {
    double largest, elements; /* iterations that the arguments may stand for, and elements of one of them */
} Size;

static void
look_at(Size *size, PyObject *value)
{
    double number = 1, elements = 0;

    if (PyArray_CheckExact(value)) {
        PyArrayObject *a = (PyArrayObject *)value;
        for (int k = 0; k < PyArray_NDIM(a); k++)
            number = fmax(number, (double)PyArray_DIM(a, k));
        elements = (double)PyArray_SIZE(a);
    } else if (PyLong_CheckExact(value))
        number = fabs(number_of(value));
    else if (PyList_CheckExact(value) || PyTuple_CheckExact(value) || PyDict_CheckExact(value) ||
             PyUnicode_CheckExact(value) || PyAnySet_CheckExact(value))
        number = elements = (double)PyObject_Size(value);
    size->largest = fmax(size->largest, number);
    size->elements = fmax(size->elements, elements);
}

/* In the outermost loop all elements are worked on once: it runs over an axis. */
static double
seconds_of(const Term *term, const Size *size)
{
    double runs = fmax(fmin(size->largest, MAX_ITERATIONS), fmax(term->constant, term->least));
    double each = size->elements > 0 ? ON_ARRAY : 0, around = 1, before = 1, total = 0;

    for (int k = 0; k <= DEEPEST; k++) {
        total += (INSTRUCTION * term->count[k] + each * term->working[k]) * around +
                 ELEMENT * size->elements * term->working[k] * before;
        before = around;
        around *= runs;
    }
    return total;
}

/* Of functions among the arguments. */
static double
seconds_of_given(const CxBound *bound, PyObject *const *args, Py_ssize_t count, const Size *size)
{
    double total = 0;

    for (Py_ssize_t k = 0; k < count; k++) {
        if (!PyFunction_Check(args[k]))
            continue;
        Terms terms = {.known = PyFunction_GET_GLOBALS(args[k]), .classes = bound->classes};
        if (add_code(&terms, (PyCodeObject *)PyFunction_GET_CODE(args[k]), bound->constant, 1) < 0)
            PyErr_Clear();
        for (int n = 0; n < terms.count; n++)
            total += seconds_of(&terms.term[n], size);
    }
    return total;
}

double
cx_bound_seconds(CxBound *bound, PyObject *const *args, Py_ssize_t count, double *asked)
{
    Size size = {.largest = 1};
    double total = 0;

    for (Py_ssize_t k = 0; k < count && bound->count > 0; k++)
        look_at(&size, args[k]);
    for (int k = 0; k < bound->count; k++)
        total += seconds_of(&bound->terms[k], &size);
    if (bound->count > 0)
        total += seconds_of_given(bound, args, count, &size);
    *asked = total;
    return total * (bound->share > 0 ? fmin(1, LIKE * bound->share) : 1);
}

void
cx_bound_note(CxBound *bound, double asked, double seconds)
{
    if (asked > 0 && seconds > 0)
        bound->share = fmax(bound->share, seconds / asked);
}

/* ---- the type ---- */

static int
open_bound(CxBound *bound, PyObject *function)
{
    Terms *terms = PyMem_Calloc(1, sizeof *terms);

    if (terms == NULL)
        return -1;
    terms->known = PyFunction_GET_GLOBALS(function);
    terms->classes = bound->classes;
    int status = add_code(terms, (PyCodeObject *)PyFunction_GET_CODE(function), 1, 0);
    bound->terms = status < 0 ? NULL : PyMem_Malloc((size_t)terms->count * sizeof *bound->terms);
    if (bound->terms != NULL) {
        memcpy(bound->terms, terms->term, (size_t)terms->count * sizeof *bound->terms);
        bound->count = terms->count;
        bound->constant = terms->constant;
    }
    PyMem_Free(terms);
    return bound->terms == NULL ? -1 : 0;
}

static PyObject *
bound_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"fn", "classes", NULL};
    PyObject *fn = NULL, *classes = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OS:Bound", names, &fn, &classes))
        return NULL;
    if (PyBytes_GET_SIZE(classes) != 256)
        return PyErr_Format(PyExc_ValueError, "wanted: the class of each of 256 instructions");
    CxBound *bound = (CxBound *)type->tp_alloc(type, 0);
    PyObject *function = bound ? cx_python_function(fn) : NULL;
    if (bound != NULL)
        bound->classes = Py_NewRef(classes);
    if (function != NULL && open_bound(bound, function) < 0) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        Py_CLEAR(bound);
    }
    Py_XDECREF(function);
    return (PyObject *)bound;
}

static void
bound_dealloc(PyObject *self)
{
    CxBound *bound = (CxBound *)self;

    Py_XDECREF(bound->classes);
    PyMem_Free(bound->terms);
    cx_object_free(self);
}

bool
cx_is_bound(PyObject *value)
{
    return Py_TYPE(value)->tp_dealloc == bound_dealloc;
}

static PyObject *
bound_seconds(PyObject *self, PyObject *args)
{
    CxBound *bound = (CxBound *)self;

    CX_ENTRY();
    if (!PyTuple_CheckExact(args))
        return PyErr_Format(PyExc_TypeError, "wanted: a tuple of arguments");
    return PyFloat_FromDouble(cx_bound_seconds(bound, ((PyTupleObject *)args)->ob_item,
                                               PyTuple_GET_SIZE(args), &bound->asked));
}

static PyObject *
bound_note(PyObject *self, PyObject *seconds)
{
    CxBound *bound = (CxBound *)self;
    double took = PyFloat_AsDouble(seconds);

    CX_ENTRY();
    if (took == -1.0 && PyErr_Occurred())
        return NULL;
    cx_bound_note(bound, bound->asked, took);
    bound->asked = 0;
    Py_RETURN_NONE;
}

static PyMethodDef bound_methods[] = {
    CX_METHOD(Bound, seconds, bound_seconds, METH_O),
    CX_METHOD(Bound, note, bound_note, METH_O),
    {NULL, NULL, 0, NULL},
};

CX_TYPE(cx_bound_spec, Bound, CxBound, 0, CX_SLOT(Py_tp_new, bound_new),
        CX_SLOT(Py_tp_dealloc, bound_dealloc), CX_SLOT(Py_tp_methods, bound_methods));
