/* Converts the returns of a run to Python values: buffers of results, views and parts of them,
 * copies, numbers. */
#include "program/program.h"
#include "state/array.h"
#include "state/device_array.h"

/* A return with its layout in this run, as a view of its base. */
static PyObject *
view_of(CxRun *run, int position, PyObject *base, CxAccess access)
{
    const CiReturn *r = &run->program->returns[position].layout;
    CiReturn varying;
    int64_t storage[2 * CI_MAX_RANK], strides[CI_MAX_RANK];
    int64_t size = ci_dtype_size(r->dtype);

    if (r->sizes == NULL) {
        ci_program_return_at(run->program->program, position, run->symbols, storage, &varying);
        r = &varying;
    }
    for (int k = 0; k < r->rank; k++)
        strides[k] = r->strides[k] * size;
    return cx_array_view(run->program->state, base, r->dtype, r->rank, r->sizes, strides,
                         r->offset * size, access);
}

/* A copy of a return whose memory something else owns too. */
static PyObject *
copy_view(CxRun *run, int position, PyObject *base)
{
    PyObject *view = view_of(run, position, base, CX_READONLY);
    PyObject *copy = view ? PyArray_NewCopy((PyArrayObject *)view, NPY_KEEPORDER) : NULL;
    Py_XDECREF(view);
    return copy;
}

/* Shortens the buffer if the return is its first elements and a large part of it; else NULL. */
static PyObject *
shortened(CxRun *run, int position, PyObject *array)
{
    enum { PART = 3 }; /* a result may own at most this many times its size */
    CiReturn r;
    int64_t storage[2 * CI_MAX_RANK];

    if (!run->program->returns[position].is_part || PyArray_NDIM((PyArrayObject *)array) != 1)
        return NULL;
    ci_program_return_at(run->program->program, position, run->symbols, storage, &r);
    npy_intp *size = PyArray_DIMS((PyArrayObject *)array);
    if (r.offset != 0 || r.strides[0] != 1 || r.sizes[0] < *size / PART || r.sizes[0] < 2)
        return NULL;
    *size = r.sizes[0];
    return Py_NewRef(array);
}

static PyObject *
as_kind(CxState *state, PyObject *array, CiDtype dtype, CiKind kind)
{
    if (array == NULL || kind == CI_KIND_array)
        return array;
    PyObject *scalar = cx_scalar_from(state, dtype, kind, PyArray_DATA((PyArrayObject *)array));
    Py_DECREF(array);
    return scalar;
}

/* A return on a device: views share memory, and a value that is a scalar in NumPy is an array of
 * rank 0. */
static PyObject *
device_value(CxRun *run, int position)
{
    const CxReturn *back = &run->program->returns[position];
    const CiReturn *r = &back->layout;

    if (r->result_buffer >= 0 && !back->is_shared)
        return Py_NewRef(run->buffers[r->result_buffer]);
    PyObject *base =
        r->result_buffer < 0 ? run->input_objects[r->input] : run->buffers[r->result_buffer];
    return view_of(run, position, base, CX_WRITABLE);
}

/* The slot of an input that is a Python number. */
static const CiSlot *
scalar_input(const CxRun *run, int input)
{
    const CiSlot *slot = run->scalars;
    for (int k = 0; k < input; k++)
        slot += run->program->graph->inputs[k]->kind == CI_KIND_python;
    return slot;
}

static PyObject *
slot_value(CxState *state, CiDtype dtype, CiKind kind, const CiSlot *slot)
{
    if (kind != CI_KIND_array)
        return cx_scalar_from(state, dtype, kind, slot);
    PyObject *array = cx_array_new(state, dtype, 0, NULL, NULL);
    if (array != NULL)
        memcpy(PyArray_DATA((PyArrayObject *)array), slot, (size_t)ci_dtype_size(dtype));
    return array;
}

PyObject *
cx_run_value(CxRun *run, int position, CiKind kind)
{
    CxProgram *p = run->program;
    const CxReturn *back = &p->returns[position];
    const CiReturn *r = &back->layout;
    PyObject *array = NULL;

    if (cx_is_on_device(&p->options, p->backend))
        return device_value(run, position);
    if (run->values != NULL) {
        array = PyTuple_GET_ITEM(run->values, position);
        array = back->is_shared ? PyArray_NewCopy((PyArrayObject *)array, NPY_KEEPORDER)
                                : Py_NewRef(array);
        const CxShape *shape =
            run->shapes && r->result_buffer >= 0 ? &run->shapes[r->result_buffer] : NULL;
        if (array != NULL && shape != NULL && shape->is_set && !back->is_shared) {
            int64_t capacity[2 * CI_MAX_RANK];
            const int64_t *layout =
                cx_layout_of(2 * shape->rank, shape->layout, shape->numbers, run->table, capacity);
            Py_SETREF(array, cx_array_view(p->state, array, r->dtype, shape->rank, layout,
                                           layout + shape->rank, 0, CX_WRITABLE));
        }
        return as_kind(p->state, array, r->dtype, kind);
    }
    if (r->result_buffer < 0 && p->graph->inputs[r->input]->kind == CI_KIND_python)
        return slot_value(p->state, r->dtype, kind, scalar_input(run, r->input));
    if (r->result_buffer < 0)
        return as_kind(p->state, copy_view(run, position, run->input_objects[r->input]), r->dtype,
                       kind);
    if (p->is_scalar[r->result_buffer])
        return slot_value(p->state, r->dtype, kind, &run->slots[r->result_buffer]);
    array = run->buffers[r->result_buffer];
    PyObject *part = shortened(run, position, array);
    array = part               ? part
            : back->is_shared ? copy_view(run, position, array)
                              : Py_NewRef(array);
    return as_kind(p->state, array, r->dtype, kind);
}
