/* The extension module: its state, its functions, multi-phase initialisation. */
#define CX_IMPORTS_ARRAY
#include "foreign/tensor_program.h"
#include "operation/traced.h"
#include "operation/ufunc.h"
#include "program/direct.h"
#include "program/passes.h"
#include "program/user_code.h"
#include "region/region.h"
#include "replay/account.h"
#include "replay/bound.h"
#include "replay/overtakable.h"
#include "replay/specialization.h"
#include "state/array.h"
#include "state/dlpack.h"
#include "state/docs.h"
#include "state/stance.h"
#include "state/torch_functions.h"
#include "surface/disk_cache.h"
#include "surface/register.h"
#include "value/value.h"

#include "base/hash.h"
#include "base/version.h"
#include "device/cpu/level.h"

#define WARM_BYTES ((size_t)256 << 20)

/* Polled by launches and builds without the GIL. A device's thread gets no signals, and may not
 * take the GIL while Python ends. */
static int32_t
poll_signals(void *arg)
{
    (void)arg;
    if (PyGILState_GetThisThreadState() == NULL)
        return 0;
    CX_CALLBACK_BEGIN();
    int32_t stop = PyErr_CheckSignals() < 0 ? CI_ERR_INTERRUPTED : 0;
    CX_CALLBACK_END();
    return stop;
}

static bool
stop_build(void *arg)
{
    const CxState *state = arg;
    return state->beside == CX_ALONGSIDE_ending || poll_signals(NULL) != 0;
}

static PyObject *
module_set_surface(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyObject *functions = NULL, *methods = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "O!O!:set_surface", &PyDict_Type, &functions, &PyDict_Type,
                          &methods))
        return NULL;
    PyObject *before = Py_BuildValue("(OO)", state->functions ? state->functions : Py_None,
                                     state->methods ? state->methods : Py_None);
    if (before == NULL)
        return NULL;
    Py_XSETREF(state->functions, Py_NewRef(functions));
    Py_XSETREF(state->methods, Py_NewRef(methods));
    return before;
}

static PyObject *
module_set_exact(PyObject *module, PyObject *value)
{
    CxState *state = PyModule_GetState(module);
    CX_ENTRY();
    state->is_exact = value == Py_True;
    Py_RETURN_NONE;
}

static PyObject *
module_is_compiling(PyObject *module, PyObject *unused)
{
    CxState *state = PyModule_GetState(module);
    (void)unused;
    return PyBool_FromLong(state->compiling > 0);
}

static PyObject *
module_has_dtype(PyObject *module, PyObject *dtype)
{
    (void)module;
    return PyBool_FromLong(PyArray_DescrCheck(dtype) &&
                           cx_dtype_of_descr((PyArray_Descr *)dtype) != CI_DTYPE_none);
}

static PyObject *
module_options(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return cx_options_list();
}

static PyObject *
module_choices(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return cx_choices_list();
}

static PyObject *
op_row(CiOp op)
{
    static const char *const kinds[] = {
        "pointwise", "math",      "ufunc",  "reduce", "argreduce", "online", "scan",   "view",
        "create",    "structure", "extern", "region", "composite", "scalar", "lanes"};
    CiOpKind kind = ci_op_kind(op);
    CiOp requested = kind == CI_OPKIND_reduce || kind == CI_OPKIND_scan ? ci_op_combine(op) : op;
    PyObject *dtypes = PyDict_New();

    for (int d = 0; dtypes != NULL && d < CI_DTYPE_COUNT; d++) {
        bool can = ci_op_why_not(requested, (CiDtype)d) == NULL;
        if (PyDict_SetItemString(dtypes, ci_dtype_name((CiDtype)d), can ? Py_True : Py_False) < 0)
            Py_CLEAR(dtypes);
    }
    if (dtypes == NULL)
        return NULL;
    return Py_BuildValue("(ssiNz)", ci_op_name(op), kinds[kind], ci_op_arity(op), dtypes,
                         ci_op_why_never_in_graphs(op));
}

static PyObject *
module_ops(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    (void)module;
    (void)unused;
    for (int op = 0; list != NULL && op < CI_OP_COUNT; op++)
        cx_add_item(&list, op_row((CiOp)op));
    return list;
}

/* Opens the driver of each device that it is asked for. */
static PyObject *
module_backends(PyObject *module, PyObject *args)
{
    const CiRegistry *registry = ((CxState *)PyModule_GetState(module))->runtime.registry;
    const char *device = NULL;
    PyObject *list, *none;
    CiOptions options;
    char text[512];

    if (!PyArg_ParseTuple(args, "|s:backends", &device))
        return NULL;
    list = PyList_New(0);
    none = PyDict_New();
    if (none == NULL || cx_options_fill(none, &options) < 0)
        Py_CLEAR(list);
    for (int k = 0; list != NULL && k < ci_backend_count(registry); k++) {
        const CiBackend *b = ci_backend_at(registry, k);
        const CiCompiler *c = b->compiler;
        if (device != NULL && strcmp(b->device->name, device) != 0)
            continue;
        const char *why =
            c->why_not_available ? c->why_not_available(&options, text, sizeof text) : NULL;
        cx_add_item(&list, Py_BuildValue("(sssz)", b->device->name, c->name, c->doc, why));
    }
    Py_XDECREF(none);
    return list;
}

/* The names of all backends, without testing whether they can be used, which would open a driver
 * and compilers. */
static PyObject *
module_backend_names(PyObject *module, PyObject *unused)
{
    const CiRegistry *registry = ((CxState *)PyModule_GetState(module))->runtime.registry;
    PyObject *list = PyList_New(0);

    (void)unused;
    for (int k = 0; list != NULL && k < ci_backend_count(registry); k++) {
        const CiBackend *b = ci_backend_at(registry, k);
        PyObject *row = Py_BuildValue("(ssN)", b->device->name, b->compiler->name,
                                      PyBool_FromLong(k < ci_backend_count(NULL)));
        cx_add_item(&list, row);
    }
    return list;
}

static PyObject *
module_arch_levels(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    const char *name = NULL;
    bool runs = false;

    (void)module, (void)unused;
    for (int k = 0; list != NULL && (name = ci_cpu_level_of_family(k, &runs)) != NULL; k++)
        cx_add_item(&list, Py_BuildValue("(sO)", name, runs ? Py_True : Py_False));
    return list;
}

static PyObject *
module_functions(PyObject *module, PyObject *unused)
{
    (void)unused;
    CX_ENTRY();
    return cx_functions(PyModule_GetState(module));
}

static PyObject *
module_ufuncs(PyObject *module, PyObject *unused)
{
    CxState *state = PyModule_GetState(module);
    (void)unused;
    CX_ENTRY();
    return PyDict_Keys(state->ufunc_ids);
}

static PyObject *
module_sha256(PyObject *module, PyObject *data)
{
    uint8_t digest[32];
    char text[65];
    CiSha256 hash;

    (void)module;
    if (!PyBytes_Check(data))
        return PyErr_Format(PyExc_TypeError, "bytes are expected");
    ci_sha256_init(&hash);
    ci_sha256_add(&hash, PyBytes_AS_STRING(data), (size_t)PyBytes_GET_SIZE(data));
    ci_sha256_finish(&hash, digest);
    ci_sha256_hex(digest, text);
    return PyUnicode_FromString(text);
}

static PyObject *
module_cache_clear(PyObject *module, PyObject *unused)
{
    CxState *state = PyModule_GetState(module);
    (void)unused;
    PyDict_Clear(state->segments);
    PySet_Clear(state->segments_kept);
    PyDict_Clear(state->segment_counts);
    return PyLong_FromLongLong(state->runtime.cache ? ci_cache_clear(state->runtime.cache) : 0);
}

static PyObject *
module_set_locals(PyObject *module, PyObject *args)
{
    PyObject *frame, *values;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!", &PyFrame_Type, &frame, &PyDict_Type, &values) ||
        cx_set_locals((PyFrameObject *)frame, values) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* view(array, dtype, shape, strides, offset, is_writable): a view of its memory, which must
 * contain it. */
static PyObject *
module_view(PyObject *self, PyObject *args)
{
    PyObject *base = NULL, *shape = NULL, *steps = NULL;
    PyArray_Descr *descr = NULL;
    long long offset = 0;
    int is_writable = 0;
    int64_t sizes[CI_MAX_RANK], strides[CI_MAX_RANK];

    CxState *state = PyModule_GetState(self);
    if (!PyArg_ParseTuple(args, "OO!OOLp:view", &base, &PyArrayDescr_Type, &descr, &shape, &steps,
                          &offset, &is_writable))
        return NULL;
    bool is_device_array = (PyObject *)Py_TYPE(base) == state->array_type;
    base = is_device_array ? ((CxDeviceArray *)base)->handle : base;
    if (!PyArray_Check(base))
        return PyErr_Format(PyExc_TypeError, "view: an array is expected");
    CiDtype dtype = cx_dtype_of_descr(descr);
    int rank = cx_sizes_from(shape, sizes, CI_MAX_RANK);
    if (dtype == CI_DTYPE_none || rank < 0 || cx_sizes_from(steps, strides, CI_MAX_RANK) != rank)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "view: wrong arguments");
    return cx_device_result(state, cx_array_view(state, base, dtype, rank, sizes, strides, offset,
                                                 is_writable ? CX_WRITABLE : CX_READONLY));
}

/* paddings(array): the padding of each axis, as in cx_layout_paddings. */
static PyObject *
module_paddings(PyObject *self, PyObject *array)
{
    int64_t paddings[NPY_MAXDIMS];

    (void)self;
    if (!PyArray_Check(array))
        return PyErr_Format(PyExc_TypeError, "an array is expected");
    cx_layout_paddings((PyArrayObject *)array, paddings);
    return cx_sizes_tuple(PyArray_NDIM((PyArrayObject *)array), paddings);
}

static PyMethodDef module_methods[] = {
    CX_FUNCTION(set_surface, module_set_surface, METH_VARARGS),
    CX_FUNCTION(view, module_view, METH_VARARGS),
    CX_FUNCTION(paddings, module_paddings, METH_O),
    CX_FUNCTION(are_placed_alike, cx_are_placed_alike, METH_VARARGS),
    CX_FUNCTION(exchange_items, cx_exchange_items, METH_VARARGS),
    CX_FUNCTION(list_column, cx_list_column, METH_O),
    CX_FUNCTION(twister_memory, cx_twister_memory, METH_O),
    CX_FUNCTION(store_column, cx_store_column, METH_VARARGS),
    CX_FUNCTION(set_exact, module_set_exact, METH_O),
    CX_FUNCTION(is_compiling, module_is_compiling, METH_NOARGS),
    CX_FUNCTION(has_dtype, module_has_dtype, METH_O),
    CX_FUNCTION(options, module_options, METH_NOARGS),
    CX_FUNCTION(choices, module_choices, METH_NOARGS),
    CX_FUNCTION(ops, module_ops, METH_NOARGS),
    CX_FUNCTION(backends, module_backends, METH_VARARGS),
    CX_FUNCTION(backend_names, module_backend_names, METH_NOARGS),
    CX_FUNCTION(register_device, cx_register_device, METH_VARARGS),
    CX_FUNCTION(set_array_type, cx_set_array_type, METH_VARARGS),
    CX_FUNCTION(functions, module_functions, METH_NOARGS),
    CX_FUNCTION(check_function, cx_check_function, METH_VARARGS),
    CX_FUNCTION(note_proof, cx_note_proof, METH_VARARGS),
    CX_FUNCTION(arch_levels, module_arch_levels, METH_NOARGS),
    CX_FUNCTION(cache_info, cx_cache_info, METH_NOARGS),
    CX_FUNCTION(cache_stores, cx_cache_stores, METH_NOARGS),
    CX_FUNCTION(cache_clear, module_cache_clear, METH_NOARGS),
    CX_FUNCTION(ufuncs, module_ufuncs, METH_NOARGS),
    CX_FUNCTION(kind_of, cx_kind_object, METH_O),
    CX_FUNCTION(sha256, module_sha256, METH_O),
    CX_FUNCTION(read_call, cx_read_call, METH_O),
    CX_FUNCTION(has_call, cx_has_call, METH_O),
    CX_FUNCTION(write_call, cx_write_call, METH_VARARGS),
    CX_FUNCTION(cache_directory, cx_cache_directory, METH_NOARGS),
    CX_FUNCTION(set_locals, module_set_locals, METH_VARARGS),
    CX_FUNCTION(set_cache_directory, cx_set_cache_directory, METH_O),
    CX_FUNCTION(add_extern, cx_add_extern, METH_VARARGS),
    CX_FUNCTION(aten_call, cx_aten_call, METH_VARARGS),
    CX_FUNCTION(user_code, cx_user_code, METH_VARARGS),
    CX_FUNCTION(set_passes, cx_set_passes, METH_VARARGS),
    CX_FUNCTION(set_pass_observer, cx_set_pass_observer, METH_O),
    CX_FUNCTION(passes, cx_list_passes, METH_NOARGS),
    CX_FUNCTION(check_pattern, cx_check_pattern, METH_VARARGS),
    CX_FUNCTION(run_program, cx_run_program, METH_VARARGS),
    CX_FUNCTION(recompile, cx_recompile, METH_VARARGS),
    CX_FUNCTION(plan, cx_plan, METH_VARARGS),
    CX_FUNCTION(set_alongside, cx_set_alongside, METH_O),
    CX_FUNCTION(flag_settings, cx_flag_settings, METH_NOARGS),
    CX_FUNCTION(has_warned_of_compiler, cx_has_warned_of_compiler, METH_NOARGS),
    CX_FUNCTION(set_autotune_clock, cx_set_autotune_clock, METH_O),
    CX_FUNCTION(step_clock, cx_step_clock, METH_O),
    CX_FUNCTION(graph_inputs, cx_graph_inputs, METH_O),
    CX_FUNCTION(compile_graph, CX_KEYWORDS(cx_compile_graph), METH_VARARGS | METH_KEYWORDS),
    CX_FUNCTION(compile_text, CX_KEYWORDS(cx_compile_text), METH_VARARGS | METH_KEYWORDS),
    {NULL, NULL, 0, NULL},
};

/* ---- initialisation ---- */

static int
add_type(PyObject *module, PyType_Spec *spec, PyObject **type)
{
    *type = PyType_FromModuleAndSpec(module, spec, NULL);
    return *type == NULL ? -1 : PyModule_AddType(module, (PyTypeObject *)*type);
}

static int
open_runtime(CxState *state)
{
    state->runtime.pool = ci_pool_open(0);
    state->runtime.allocator = ci_allocator_open(WARM_BYTES);
    state->runtime.cache = ci_cache_open(NULL);
    state->runtime.registry = ci_registry_open();
    state->registered = PyList_New(0);
    state->runtime.poll = poll_signals;
    state->runtime.should_stop_build = stop_build;
    state->runtime.should_stop_arg = state;
    if (state->runtime.allocator != NULL &&
        (state->warm = cx_warm_handler(state->runtime.allocator)) == NULL)
        return -1;
    if (state->runtime.pool != NULL && state->runtime.allocator != NULL && state->runtime.cache != NULL &&
        state->runtime.registry != NULL && state->registered != NULL)
        return 0;
    PyErr_NoMemory();
    return -1;
}

static int
make_tables(CxState *state)
{
#define OBJECT(name)
#define OBJECTS(name, count)
#define STRING(name)                                                                               \
    if ((state->str_##name = PyUnicode_InternFromString(#name)) == NULL)                           \
        return -1;
#include "state/state.def"
#undef OBJECT
#undef OBJECTS
#undef STRING
    state->files = PyDict_New();
    state->segments = PyDict_New();
    state->segments_kept = PySet_New(NULL);
    state->build_factor = 1;
    state->segment_counts = PyDict_New();
    state->externs = PyDict_New();
    bool are_made = state->files && state->segments && state->segments_kept &&
                    state->segment_counts && state->externs;
    return are_made ? 0 : -1;
}

static int
module_exec(PyObject *module)
{
    CxState *state = PyModule_GetState(module);
    PyObject *bound_type = NULL;

    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError, "cinductor cannot be imported in a subinterpreter");
        return -1;
    }
    if (PyModule_AddStringConstant(module, "VERSION", CI_VERSION) < 0 || PyArray_ImportNumPyAPI() < 0)
        return -1;
    if (cx_check_sets() < 0 || make_tables(state) < 0 || cx_errors_init(state, module) < 0 || cx_arrays_init(state) < 0 ||
        cx_ufuncs_init(state) < 0 || cx_errstate_init(state) < 0 || open_runtime(state) < 0)
        return -1;
    if (add_type(module, &cx_traced_spec, &state->traced_type) < 0 ||
        add_type(module, &cx_tracer_spec, &state->tracer_type) < 0 ||
        add_type(module, &cx_break_spec, &state->break_type) < 0 ||
        add_type(module, &cx_mark_spec, &state->mark_type) < 0 ||
        add_type(module, &cx_block_spec, &state->block_type) < 0 ||
        add_type(module, &cx_program_spec, &state->program_type) < 0 ||
        add_type(module, &cx_builder_spec, &state->builder_type) < 0 ||
        add_type(module, &cx_user_code_spec, &state->user_code_type) < 0 ||
        add_type(module, &cx_specialization_spec, &state->specialization_type) < 0 ||
        add_type(module, &cx_bound_spec, &bound_type) < 0 ||
        add_type(module, &cx_account_spec, &state->account_type) < 0 ||
        add_type(module, &cx_overtakable_spec, &state->overtakable_type) < 0 ||
        add_type(module, &cx_function_spec, &state->function_type) < 0 ||
        add_type(module, &cx_bound_method_spec, &state->method_type) < 0 ||
        add_type(module, &cx_hook_spec, &state->hook_type) < 0 ||
        add_type(module, &cx_syntax_visitor_spec, &state->syntax_visitor_type) < 0 ||
        add_type(module, &cx_paced_spec, &state->paced_type) < 0 ||
        add_type(module, &cx_device_memory_spec, &state->device_memory_type) < 0 ||
        add_type(module, &cx_device_object_spec, &state->device_object_type) < 0 ||
        add_type(module, &cx_stream_spec, &state->stream_type) < 0 ||
        add_type(module, &cx_event_spec, &state->event_type) < 0 ||
        add_type(module, &cx_tensor_program_spec, &state->tensor_program_type) < 0 ||
        PyModule_AddIntConstant(module, "PADDING_AXIS", CX_PADDING_AXIS) < 0 ||
#define NAME(name) #name " "
        PyModule_AddStringConstant(module, "INSTRUCTION_CLASSES", CX_INSTRUCTION_CLASSES(NAME)) < 0 ||
#undef NAME
        cx_streams_init(state, module) < 0 || cx_stances_init(state) < 0)
        return -1;
    Py_DECREF(bound_type); /* the module has it */
    PyMethodDef *const tables[] = {
        cx_stance_methods, cx_stream_methods, cx_host_copy_methods, cx_shared_methods, cx_group_methods, cx_syntax_methods, cx_flow_methods, cx_node_methods, cx_operand_methods,
        cx_reach_methods,  cx_dlpack_methods, cx_torch_methods,     cx_device_memory_methods, cx_device_methods};
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
        if (PyModule_AddFunctions(module, tables[k]) < 0)
            return -1;
    state->missing = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
    return state->missing == NULL ? -1 : PyModule_AddObjectRef(module, "MISSING", state->missing);
}

static int
module_traverse(PyObject *module, visitproc visit, void *arg)
{
    CxState *state = PyModule_GetState(module);
#define OBJECT(name) Py_VISIT(state->name);
#define OBJECTS(name, count)                                                                       \
    for (int k = 0; k < count; k++)                                                                \
        Py_VISIT(state->name[k]);
#define STRING(name) Py_VISIT(state->str_##name);
#include "state/state.def"
#undef OBJECT
#undef OBJECTS
#undef STRING
    return 0;
}

static int
module_clear(PyObject *module)
{
    CxState *state = PyModule_GetState(module);
#define OBJECT(name) Py_CLEAR(state->name);
#define OBJECTS(name, count)                                                                       \
    for (int k = 0; k < count; k++)                                                                \
        Py_CLEAR(state->name[k]);
#define STRING(name) Py_CLEAR(state->str_##name);
#include "state/state.def"
#undef OBJECT
#undef OBJECTS
#undef STRING
    return 0;
}

static void
module_free(void *module)
{
    CxState *state = PyModule_GetState(module);

    if (state == NULL)
        return;
    module_clear(module);
    for (int k = 0; k < CX_UFUNC_COUNT; k++)
        PyMem_Free(state->resolved[k]);
    ci_runtime_shut(&state->runtime);
    for (int k = 0; k < CI_UFUNC_COUNT; k++)
        ci_ufunc_table_close(&state->ufunc_tables[k]);
    if (state->runtime.pool != NULL)
        ci_pool_close(state->runtime.pool);
    if (state->warm == NULL && state->runtime.allocator != NULL)
        ci_allocator_close(state->runtime.allocator);
    Py_XDECREF(state->warm);
    if (state->runtime.cache != NULL)
        ci_cache_close(state->runtime.cache);
    ci_registry_close(state->runtime.registry);
    Py_XDECREF(state->registered);
    for (int k = 0; k < state->nold_caches; k++)
        ci_cache_close(state->old_caches[k]);
    PyMem_Free(state->old_caches);
}

static PyModuleDef_Slot module_slots[] = {
    CX_SLOT(Py_mod_exec, module_exec),
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT, "cinductor._core", CX_DOC_module,
    sizeof(CxState),       module_methods,    module_slots,
    module_traverse,       module_clear,      module_free,
};

CxState *
cx_state_of_type(PyTypeObject *type)
{
#if PY_VERSION_HEX >= 0x030B0000
    PyObject *module = PyType_GetModuleByDef(type, &module_def);
#else
    PyObject *module = NULL;
    while (type != NULL && (module = PyType_GetModule(type)) == NULL) {
        PyErr_Clear();
        type = type->tp_base;
    }
#endif
    return module ? PyModule_GetState(module) : NULL;
}

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC
PyInit__core(void)
{
    return PyModuleDef_Init(&module_def);
}
