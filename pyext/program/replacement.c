/* Programs whose kernels a compiler makes that takes no time, and what takes their place. */
#include "program/program.h"
#include "state/state.h"

/* True if runs of the one may go on as runs of the other. */
static bool
is_alike(const CiProgram *one, const CiProgram *other)
{
    return ci_program_result_buffer_count(one) == ci_program_result_buffer_count(other) &&
           ci_program_return_count(one) == ci_program_return_count(other) &&
           ci_program_symbol_count(one) == ci_program_symbol_count(other) &&
           ci_program_extern_count(one) == ci_program_extern_count(other);
}

/* Builds what takes the place of the first program. That is kept, because other threads may run it. */
int
cx_program_replace(CxProgram *p, PyObject *info)
{
    CiRequest request;

    if (cx_isolate(p) < 0 || cx_program_make(p->state, p->graph, &p->options, p->backend, p->passes, NULL, NULL,
                                             NULL, NULL, &request) < 0)
        return -1;
    cx_note_build(p->state, p->graph, &request.info);
    if (p->is_former && is_alike(p->program, request.program)) {
        p->former = p->program;
        p->program = request.program;
        p->is_former = false;
    } else {
        cx_program_free(request.program);
    }
    return cx_info_fill(info, &request.info) < 0 || cx_warn_of_cache(p->state) < 0 ? -1 : 0;
}

/* Sums of any number of elements: making their statements alone takes longer than a first program may. */
static bool
has_symbolic_reductions(const CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        const CiNode *node = block->nodes[k];
        CiOpKind kind = ci_op_kind(node->op);
        bool is_fold = kind == CI_OPKIND_reduce || kind == CI_OPKIND_argreduce || kind == CI_OPKIND_scan;
        for (int axis = 0; is_fold && axis < node->args[0]->rank; axis++)
            if (node->args[0]->sizes[axis]->kind != CI_EXPR_const)
                return true;
        for (int j = 0; j < node->nblocks; j++)
            if (has_symbolic_reductions(node->blocks[j]))
                return true;
    }
    return false;
}

/* The backend that makes the first program; NULL: there is none. */
static const CiBackend *
find_first(const CxProgram *p)
{
    bool may_be = p->program == NULL && p->options.stencils && strcmp(p->options.wrapper, "python") != 0 &&
                  !has_symbolic_reductions(p->graph->body);

    return may_be ? ci_backend_first(p->state->runtime.registry, p->backend, &p->options) : NULL;
}

PyObject *
cx_program_copy_stencils(PyObject *self, PyObject *unused)
{
    CxProgram *p = (CxProgram *)self;
    CiRequest request;

    (void)unused;
    CX_ENTRY();
    const CiBackend *first = find_first(p);
    if (first == NULL)
        Py_RETURN_FALSE;
    if (cx_program_make(p->state, p->graph, &p->options, first, p->passes, NULL, NULL, NULL, NULL, &request) < 0)
        return NULL;
    if (request.info.build.interpreted > 0) {
        cx_program_free(request.program);
        Py_RETURN_FALSE;
    }
    p->is_former = true;
    PyObject *info = PyDict_New();
    int taken = info == NULL ? -1 : cx_program_take(p, &request, info);
    Py_XDECREF(info);
    if (taken < 0 || (p->key != NULL && cx_program_put(p, p->key) < 0))
        return NULL;
    Py_RETURN_TRUE;
}
