/* Converts NumPy's arrays, dtypes and numbers to the core's and back. Result arrays are
 * allocated by NumPy, large ones in reused blocks (block_cache.c). */
#include "state/array.h"

int
cx_arrays_init(CxState *state)
{
    for (int k = 0; k < CI_DTYPE_COUNT; k++) {
        char text[2] = {ci_dtype_char((CiDtype)k), '\0'};
        PyArray_Descr *descr = NULL;
        if (!text[0])
            continue;
        PyObject *name = PyUnicode_FromString(text);
        if (name == NULL)
            return -1;
        int ok = PyArray_DescrConverter(name, &descr);
        Py_DECREF(name);
        if (!ok)
            return -1;
        state->descrs[k] = (PyObject *)descr;
    }
    return 0;
}

/* ---- dtypes of other packages ---- */

typedef struct Foreign {
    CiDtype dtype;
    const char *module, *name;
} Foreign;

static const Foreign foreign[] = {
#define FOREIGN(dtype, module, name) {CI_DTYPE_##dtype, module, name},
#include "state/foreign.def"
#undef FOREIGN
};
enum { FOREIGN_COUNT = (int)(sizeof foreign / sizeof *foreign) };

static CiDtype
dtype_of_foreign(PyArray_Descr *descr)
{
    const char *name = descr->typeobj->tp_name;
    for (int k = 0; k < FOREIGN_COUNT; k++) {
        size_t length = strlen(foreign[k].module);
        if (strncmp(name, foreign[k].module, length) == 0 && name[length] == '.' &&
            strcmp(name + length + 1, foreign[k].name) == 0)
            return foreign[k].dtype;
    }
    return CI_DTYPE_none;
}

static PyArray_Descr *
import_descr(const Foreign *row)
{
    PyArray_Descr *descr = NULL;
    PyObject *module = PyImport_ImportModule(row->module);
    PyObject *type = module ? PyObject_GetAttrString(module, row->name) : NULL;

    if (type != NULL && !PyArray_DescrConverter(type, &descr))
        descr = NULL;
    Py_XDECREF(module);
    Py_XDECREF(type);
    return descr;
}

PyArray_Descr *
cx_descr(CxState *state, CiDtype dtype)
{
    for (int k = 0; state->descrs[dtype] == NULL && k < FOREIGN_COUNT; k++)
        if (foreign[k].dtype == dtype)
            state->descrs[dtype] = (PyObject *)import_descr(&foreign[k]);
    return (PyArray_Descr *)state->descrs[dtype];
}

/* ---- dtypes ---- */

CiDtype
cx_dtype_of_descr(PyArray_Descr *descr)
{
    if (!PyArray_ISNBO(descr->byteorder))
        return CI_DTYPE_none;
    switch (descr->type_num) {
    case NPY_BOOL:
        return CI_DTYPE_bool;
    case NPY_BYTE:
        return CI_DTYPE_i8;
    case NPY_UBYTE:
        return CI_DTYPE_u8;
    case NPY_SHORT:
        return CI_DTYPE_i16;
    case NPY_USHORT:
        return CI_DTYPE_u16;
    case NPY_INT:
        return CI_DTYPE_i32;
    case NPY_UINT:
        return CI_DTYPE_u32;
    case NPY_LONG:
        return sizeof(long) == 8 ? CI_DTYPE_i64 : CI_DTYPE_i32;
    case NPY_ULONG:
        return sizeof(long) == 8 ? CI_DTYPE_u64 : CI_DTYPE_u32;
    /* Where long has 64 bits, long long is equal to it, but NumPy's class of its numbers is another one. */
    case NPY_LONGLONG:
        return sizeof(long) == 8 ? CI_DTYPE_none : CI_DTYPE_i64;
    case NPY_ULONGLONG:
        return sizeof(long) == 8 ? CI_DTYPE_none : CI_DTYPE_u64;
    case NPY_HALF:
        return CI_DTYPE_f16;
    case NPY_FLOAT:
        return CI_DTYPE_f32;
    case NPY_DOUBLE:
        return CI_DTYPE_f64;
    case NPY_CFLOAT:
        return CI_DTYPE_c64;
    case NPY_CDOUBLE:
        return CI_DTYPE_c128;
    default:
        return dtype_of_foreign(descr);
    }
}

CiDtype
cx_dtype_in_loop(PyArray_Descr *descr)
{
    bool is_long_long = descr->type_num == NPY_LONGLONG || descr->type_num == NPY_ULONGLONG;
    if (!is_long_long || !PyArray_ISNBO(descr->byteorder))
        return cx_dtype_of_descr(descr);
    return descr->type_num == NPY_LONGLONG ? CI_DTYPE_i64 : CI_DTYPE_u64;
}

CiDtype
cx_dtype_of_object(CxState *state, PyObject *dtype)
{
    PyArray_Descr *descr = NULL;

    (void)state;
    if (!PyArray_DescrConverter(dtype, &descr))
        return CI_DTYPE_none;
    CiDtype found = cx_dtype_of_descr(descr);
    if (found == CI_DTYPE_none)
        PyErr_Format(cx_exception(state, "Unsupported"), "dtype %R is not supported", descr);
    Py_DECREF(descr);
    return found;
}

static bool
is_c_dense(CiDtype dtype, int rank, const int64_t *sizes, const int64_t *strides)
{
    int64_t expected = ci_dtype_size(dtype);
    for (int k = rank - 1; k >= 0; k--) {
        if (strides[k] != expected)
            return false;
        expected *= sizes[k];
    }
    return true;
}

/* From that many bytes on, fresh pages cost more than calling the handler. */
enum { WARM_LEAST = 1 << 20 };

int
cx_warm_enter(CxState *state, CiDtype dtype, int rank, const int64_t *sizes, PyObject **before)
{
    bool is_large = state->warm != NULL && cx_count(rank, sizes) >= WARM_LEAST / ci_dtype_size(dtype);

    *before = is_large ? PyDataMem_SetHandler(state->warm) : NULL;
    return is_large && *before == NULL ? -1 : 0;
}

int
cx_warm_leave(PyObject *before)
{
    PyObject *ours = before ? PyDataMem_SetHandler(before) : NULL;
    int status = before != NULL && ours == NULL ? -1 : 0;

    Py_XDECREF(ours);
    Py_XDECREF(before);
    return status;
}

/* Dense C order is left to NumPy: this is faster, and the strides of empty arrays are then
 * NumPy's. */
PyObject *
cx_array_new(CxState *state, CiDtype dtype, int rank, const int64_t *sizes, const int64_t *strides)
{
    PyArray_Descr *descr = cx_descr(state, dtype);
    PyObject *before = NULL;

    if (descr == NULL)
        return NULL;
    if (strides != NULL &&
        (cx_count(rank, sizes) == 0 || is_c_dense(dtype, rank, sizes, strides)))
        strides = NULL;
    if (cx_warm_enter(state, dtype, rank, sizes, &before) < 0)
        return NULL;
    Py_INCREF(descr);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, descr, rank, (const npy_intp *)sizes,
                                           (const npy_intp *)strides, NULL, 0, NULL);
    if (cx_warm_leave(before) < 0)
        Py_CLEAR(array);
    return array;
}

/* NumPy's headers do not have the flag of its broadcast_arrays. */
static int
warn_of_writes(PyObject *array)
{
    PyObject *flags = PyObject_GetAttrString(array, "flags");
    int status = flags ? PyObject_SetAttrString(flags, "_warn_on_write", Py_True) : -1;
    Py_XDECREF(flags);
    return status;
}

bool
cx_array_warns(PyObject *array)
{
    const unsigned warns = 1u << 31;
    return ((unsigned)PyArray_FLAGS((PyArrayObject *)array) & warns) != 0;
}

PyObject *
cx_array_view(CxState *state, PyObject *base, CiDtype dtype, int rank, const int64_t *sizes,
              const int64_t *strides, int64_t offset, CxAccess access)
{
    PyArrayObject *owner = (PyArrayObject *)base;
    PyArray_Descr *descr = cx_descr(state, dtype);
    if (descr == NULL)
        return NULL;
    int flags = PyArray_FLAGS(owner) & NPY_ARRAY_WRITEABLE;

    if (access == CX_READONLY)
        flags = 0;
    Py_INCREF(descr);
    PyObject *view =
        PyArray_NewFromDescr(&PyArray_Type, descr, rank, (const npy_intp *)sizes,
                             (const npy_intp *)strides, PyArray_BYTES(owner) + offset, flags, NULL);
    if (view == NULL)
        return NULL;
    /* Steals the reference, and collapses chains of views as NumPy does. */
    if (PyArray_SetBaseObject((PyArrayObject *)view, Py_NewRef(base)) < 0)
        Py_CLEAR(view);
    else if (flags != 0 && access == CX_WARNS_OF_WRITES && warn_of_writes(view) < 0)
        Py_CLEAR(view);
    return view;
}

PyObject *
cx_array_dummy(CxState *state, CiDtype dtype, int rank, const int64_t *sizes)
{
    PyArray_Descr *descr = cx_descr(state, dtype);
    int64_t strides[CI_MAX_RANK] = {0};
    PyObject *result = NULL;

    Py_INCREF(descr);
    PyObject *one = PyArray_Zeros(0, NULL, descr, 0);
    if (one != NULL)
        result = cx_array_view(state, one, dtype, rank, sizes, strides, 0, CX_WRITABLE);
    Py_XDECREF(one);
    return result;
}

PyObject *
cx_scalar_from(CxState *state, CiDtype dtype, CiKind kind, const void *element)
{
    if (kind == CI_KIND_python) {
        const double *d = element;
        switch (dtype) {
        case CI_DTYPE_f64:
            return PyFloat_FromDouble(d[0]);
        case CI_DTYPE_c128:
            return PyComplex_FromDoubles(d[0], d[1]);
        case CI_DTYPE_bool:
            return PyBool_FromLong(*(const uint8_t *)element);
        case CI_DTYPE_i64:
            return PyLong_FromLongLong(*(const int64_t *)element);
        case CI_DTYPE_u64:
            return PyLong_FromUnsignedLongLong(*(const uint64_t *)element);
        default:
            break;
        }
    }
    return PyArray_Scalar((void *)(uintptr_t)element, cx_descr(state, dtype), NULL);
}

int
cx_code_of_number(PyObject *value, bool *is_strong)
{
    *is_strong = false;
    if (PyFloat_CheckExact(value))
        return CX_WEAK_float;
    if (PyBool_Check(value))
        return CI_DTYPE_bool;
    if (PyLong_CheckExact(value))
        return CX_WEAK_int;
    if (PyComplex_CheckExact(value))
        return CX_WEAK_complex;
    if (PyArray_IsScalar(value, Generic)) {
        PyArray_Descr *descr = PyArray_DescrFromScalar(value);
        if (descr == NULL) {
            PyErr_Clear();
            return -1;
        }
        CiDtype dtype = cx_dtype_of_descr(descr);
        Py_DECREF(descr);
        *is_strong = dtype != CI_DTYPE_none; /* long double is not supported */
        return *is_strong ? (int)dtype : -1;
    }
    return -1;
}

/* A constant of an integer or bool dtype from an int. */
static int
const_of_long(PyObject *value, CiDtype dtype, CiConst *out)
{
    int overflow = 0;
    long long v = PyLong_AsLongLongAndOverflow(value, &overflow);
    int bits = 8 * ci_dtype_size(dtype);

    if (v == -1 && PyErr_Occurred())
        return -1;
    if (dtype == CI_DTYPE_bool) {
        out->i = overflow != 0 || v != 0;
        return 0;
    }
    if (ci_dtype_class(dtype) == CI_CLASS_uint) {
        if (overflow > 0 && bits == 64) {
            unsigned long long u = PyLong_AsUnsignedLongLong(value);
            if (u == (unsigned long long)-1 && PyErr_Occurred()) {
                PyErr_Clear();
                return 1;
            }
            out->i = (int64_t)u;
            return 0;
        }
        if (overflow != 0 || v < 0 || (bits < 64 && v >> bits != 0))
            return 1;
    } else if (overflow != 0 ||
               (bits < 64 && (v < -(1LL << (bits - 1)) || v >= 1LL << (bits - 1)))) {
        return 1;
    }
    out->i = v;
    return 0;
}

int
cx_scalar_element(PyObject *scalar, void *out)
{
    PyArray_Descr *descr = PyArray_DescrFromScalar(scalar);
    void *at;

    if (descr == NULL)
        return -1;
    PyArray_ScalarAsCtype(scalar, out);
    if (PyTypeNum_ISEXTENDED(descr->type_num)) { /* NumPy stores a pointer to the element */
        memcpy(&at, out, sizeof at);
        memcpy(out, at, (size_t)PyDataType_ELSIZE(descr));
    }
    Py_DECREF(descr);
    return 0;
}

int
cx_const_of(CxState *state, PyObject *value, CiDtype dtype, CiConst *out)
{
    CiConst v = {0, 0.0, 0.0};
    CiDtype from;

    (void)state;
    *out = v;
    if (PyLong_Check(value) && !PyBool_Check(value) && ci_dtype_is_integral(dtype))
        return const_of_long(value, dtype, out);
    if (PyArray_IsScalar(value, Generic)) {
        union {
            double d[2];
            int64_t i;
            uint8_t bytes[64];
        } element;
        PyArray_Descr *descr = PyArray_DescrFromScalar(value);
        if (descr == NULL)
            return -1;
        from = cx_dtype_of_descr(descr);
        Py_DECREF(descr);
        if (from == CI_DTYPE_none) {
            PyErr_SetString(PyExc_TypeError, "a scalar of this type is not supported");
            return -1;
        }
        if (cx_scalar_element(value, &element) < 0)
            return -1;
        v = ci_const_load(from, &element);
    } else if (PyBool_Check(value)) {
        from = CI_DTYPE_bool;
        v.i = value == Py_True;
    } else if (PyComplex_Check(value)) {
        from = CI_DTYPE_c128;
        Py_complex c = PyComplex_AsCComplex(value);
        v.re = c.real;
        v.im = c.imag;
    } else {
        from = CI_DTYPE_f64;
        v.re = PyFloat_AsDouble(value);
        if (v.re == -1.0 && PyErr_Occurred())
            return -1;
    }
    *out = ci_const_cast(v, from, dtype);
    return 0;
}

int64_t
cx_count(int rank, const int64_t *sizes)
{
    int64_t count = 1;
    for (int k = 0; k < rank; k++)
        count *= sizes[k];
    return count;
}

/* Lays new axes [ni, nj) over old axes [oi, oj), which have the same number of elements, if the
 * old ones are evenly spaced. */
static bool
merge_axes(const int64_t *sizes, const int64_t *strides, int oi, int oj, const int64_t *new_sizes,
           int ni, int nj, int64_t *new_strides)
{
    for (int k = oi; k < oj - 1; k++)
        if (strides[k] != sizes[k + 1] * strides[k + 1])
            return false;
    new_strides[nj - 1] = strides[oj - 1];
    for (int k = nj - 1; k > ni; k--)
        new_strides[k - 1] = new_strides[k] * new_sizes[k];
    return true;
}

bool
cx_reshape_strides(int rank, const int64_t *sizes, const int64_t *strides, int new_rank,
                   const int64_t *new_sizes, int64_t itemsize, int64_t *new_strides)
{
    int64_t olds[CI_MAX_RANK], oldt[CI_MAX_RANK];
    int n = 0;

    if (cx_count(rank, sizes) == 0) {
        int64_t step = itemsize;
        for (int k = new_rank - 1; k >= 0; k--) {
            new_strides[k] = step;
            step *= new_sizes[k] ? new_sizes[k] : 1;
        }
        return true;
    }
    for (int k = 0; k < rank; k++) /* axes of one element have no effect on memory */
        if (sizes[k] != 1) {
            olds[n] = sizes[k];
            oldt[n++] = strides[k];
        }
    int oi = 0, oj = 1, ni = 0, nj = 1;
    while (ni < new_rank && oi < n) {
        int64_t np = new_sizes[ni], op = olds[oi];
        while (np != op) {
            if (np < op)
                np *= new_sizes[nj++];
            else
                op *= olds[oj++];
        }
        if (!merge_axes(olds, oldt, oi, oj, new_sizes, ni, nj, new_strides))
            return false;
        ni = nj++;
        oi = oj++;
    }
    int64_t last = ni >= 1 ? new_strides[ni - 1] : itemsize;
    for (int k = ni; k < new_rank; k++) /* only axes of size 1 are left */
        new_strides[k] = last;
    return true;
}

PyObject *
cx_sizes_tuple(int rank, const int64_t *sizes)
{
    PyObject *tuple = PyTuple_New(rank);
    for (int k = 0; tuple != NULL && k < rank; k++)
        cx_put_item(&tuple, k, PyLong_FromLongLong(sizes[k]));
    return tuple;
}

PyObject *
cx_size_items(PyObject *object, int capacity)
{
    PyObject *items = PySequence_Fast(object, "an int or a sequence of ints is expected");

    if (items != NULL && PySequence_Fast_GET_SIZE(items) > capacity) {
        PyErr_Format(PyExc_ValueError, "maximum supported dimension for an ndarray is currently %d, found %zd",
                     capacity, PySequence_Fast_GET_SIZE(items));
        Py_CLEAR(items);
    }
    return items;
}

int
cx_sizes_from(PyObject *object, int64_t *sizes, int capacity)
{
    PyObject *items = NULL;
    int count = -1;

    if (PyLong_Check(object) || (!PySequence_Check(object) && PyIndex_Check(object))) {
        sizes[0] = PyNumber_AsSsize_t(object, PyExc_OverflowError);
        return sizes[0] == -1 && PyErr_Occurred() ? -1 : 1;
    }
    items = cx_size_items(object, capacity);
    if (items == NULL)
        return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
    for (Py_ssize_t k = 0; k < n; k++) {
        sizes[k] = PyNumber_AsSsize_t(PySequence_Fast_GET_ITEM(items, k), PyExc_OverflowError);
        if (sizes[k] == -1 && PyErr_Occurred())
            goto done;
    }
    count = (int)n;
done:
    Py_DECREF(items);
    return count;
}

void
cx_array_extent(PyObject *array, char **low, char **high)
{
    PyArrayObject *a = (PyArrayObject *)array;
    *low = *high = PyArray_BYTES(a);
    if (PyArray_SIZE(a) == 0)
        return;
    for (int k = 0; k < PyArray_NDIM(a); k++) {
        npy_intp reach = (PyArray_DIM(a, k) - 1) * PyArray_STRIDE(a, k);
        if (reach < 0)
            *low += reach;
        else
            *high += reach;
    }
    *high += PyArray_ITEMSIZE(a);
}

int
cx_slot_from(PyObject *value, CiDtype dtype, CiSlot *slot)
{
    CiSlot zero = {.c = {0.0, 0.0}};
    *slot = zero;
    switch (dtype) {
    case CI_DTYPE_f64:
        slot->f = PyFloat_AsDouble(value);
        break;
    case CI_DTYPE_c128: {
        Py_complex c = PyComplex_AsCComplex(value);
        slot->c[0] = c.real;
        slot->c[1] = c.imag;
        break;
    }
    case CI_DTYPE_bool:
        slot->i = PyObject_IsTrue(value);
        break;
    case CI_DTYPE_u64:
        slot->i = (int64_t)PyLong_AsUnsignedLongLong(value);
        break;
    default:
        slot->i = PyLong_AsLongLong(value);
    }
    return PyErr_Occurred() ? -1 : 0;
}
