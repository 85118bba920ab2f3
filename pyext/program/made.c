/* Properties of a program that has been made, and what its build tells about later ones. */
#include <math.h>

#include "ir/plain.h"
#include "program/program.h"
#include "state/stream.h"

/* Records which returns are which buffers. */
static int
fill_returns(CxProgram *p)
{
    p->nbuffers = ci_program_result_buffer_count(p->program);
    p->nreturns = ci_program_return_count(p->program);
    p->returns = PyMem_Calloc((size_t)p->nreturns + 1, sizeof *p->returns);
    p->is_scalar = PyMem_Calloc((size_t)p->nbuffers + 1, sizeof *p->is_scalar);
    if (p->returns == NULL || p->is_scalar == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int k = 0; k < p->nbuffers; k++)
        p->is_scalar[k] = !cx_is_on_device(&p->options, p->backend);
    for (int k = 0; k < p->nreturns; k++) {
        CiReturn *r = &p->returns[k].layout;
        int64_t storage[2 * CI_MAX_RANK];
        ci_program_return_at(p->program, k, NULL, storage, r);
        if (r->sizes == storage) /* differs in each call, so each run computes it */
            r->sizes = r->strides = NULL;
        p->returns[k].is_shared = r->result_buffer < 0 || !r->is_whole;
        p->returns[k].is_part = r->result_buffer >= 0 && !r->is_whole && r->rank == 1;
        for (int j = 0; j < k; j++) {
            bool is_same = p->returns[j].layout.result_buffer == r->result_buffer;
            p->returns[k].is_shared |= is_same;
            p->returns[k].is_part &= !is_same;
            p->returns[j].is_part &= !is_same;
        }
        if (r->result_buffer >= 0 && (r->kind == CI_KIND_array || !r->is_whole || r->rank != 0))
            p->is_scalar[r->result_buffer] = false;
    }
    return 0;
}

/* The number of elements of all values if every symbol is at most `most`; infinite with loops, and with
 * collectives, which may wait for another thread. */
static double
count_elements(const CiGraph *graph, double most)
{
    double total = 0.0;
    for (int k = 0; k < graph->body->nnodes; k++) {
        const CiNode *node = graph->body->nodes[k];
        bool is_long = node->nblocks != 0 || ci_op_has(node->op, CI_FACT_collective);
        double count = is_long ? HUGE_VAL : 1.0;
        for (int axis = 0; axis < node->rank; axis++)
            count *= ci_expr_magnitude(node->sizes[axis], most);
        total += count;
    }
    return total;
}

static int64_t
find_small(const CiGraph *graph)
{
    enum { MAX_NODES = 1000 };
    int64_t small = graph->body->nnodes <= MAX_NODES ? RELEASE_WORK : 0;
    while (small > 0 && count_elements(graph, (double)small) >= RELEASE_WORK)
        small /= 2;
    return small;
}

/* Builds are estimated by those made before, the latest most. A machine may have slept in one of them. */
void
cx_note_build(CxState *state, const CiGraph *graph, const CiCompileInfo *info)
{
    const double most = 4; /* times as long as was expected */
    double factor = fmin(1e-3 * info->total_ms / ci_build_seconds(graph), most * state->build_factor);

    if (info->build.children > 0 && state->clock == 0)
        state->build_factor += (factor - state->build_factor) / 4;
}

int
cx_program_take(CxProgram *p, const CiRequest *request, PyObject *info)
{
    p->program = request->program;
    p->queue = cx_queue(p->state, &p->options, p->backend);
    p->work = ci_program_work(p->program);
    p->is_symbolic = !ci_program_is_static(p->program);
    p->small = p->is_symbolic ? find_small(p->graph) : 0;
    p->kernels = request->info.kernels;
    p->externs = request->info.externs;
    p->is_interpreted = request->info.build.interpreted > 0;
    cx_note_build(p->state, p->graph, &request->info);
    return fill_returns(p) < 0 || cx_info_fill(info, &request->info) < 0 || cx_warn_of_cache(p->state) < 0 ? -1 : 0;
}
