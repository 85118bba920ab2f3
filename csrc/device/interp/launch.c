/* A launch of the interpreter: memory for what is made inside the kernel, then its nodes in order.
 */
#include "device/interp/run.h"

#include "base/os.h"

#include <string.h>

#define PIECE 512 /* bytes */

static int32_t run_nodes(CiInterpRun *r, const CiInterpNodes *list);

static void
swap_memories(CiInterpRun *r, const CiInterpNode *node)
{
    for (int k = 0; k < node->nswaps; k += 2) {
        void *kept = r->memory[node->swaps[k]];
        r->memory[node->swaps[k]] = r->memory[node->swaps[k + 1]];
        r->memory[node->swaps[k + 1]] = kept;
    }
}

static int32_t
run_trip(CiInterpRun *r, const CiInterpNode *node)
{
    int32_t status = run_nodes(r, &node->body);
    if (status)
        return status;
    swap_memories(r, node);
    return ci_interp_poll(r);
}

static bool
is_true(const CiInterpRun *r, const CiInterpNode *node)
{
    return *(const uint8_t *)r->memory[node->condition];
}

static int32_t
run_check(CiInterpRun *r, const CiInterpNode *node)
{
    bool holds = node->is_symbol || is_true(r, node);
    if (node->is_symbol) {
        int64_t value = *(const int64_t *)r->memory[node->condition];
        r->env[node->slot] = value;
        holds = value >= node->low &&
                (!node->has_limit || value < ci_formula_evaluate(&node->extent, r->env));
    }
    if (holds)
        return CI_OK;
    if (r->fault)
        *r->fault = (CiFault){.kind = CI_ERR_CHECK, .node = node->number};
    return CI_ERR_CHECK;
}

static int32_t
run_node(CiInterpRun *r, const CiInterpNode *node)
{
    int32_t status = CI_OK;
    int64_t trips;
    switch (node->kind) {
    case CI_TREE_leaf:
        for (int k = 0; k < node->nnests && !status; k++)
            status = ci_interp_nest(r, &node->nests[k]);
        return status;
    case CI_TREE_check:
        return run_check(r, node);
    case CI_TREE_for:
        trips = ci_formula_evaluate(&node->extent, r->env);
        for (int64_t trip = 0; trip < trips && !status; trip++) {
            r->env[node->slot] = trip;
            status = run_trip(r, node);
        }
        return status;
    case CI_TREE_while:
        while (!(status = run_nodes(r, &node->other)) && is_true(r, node) &&
               !(status = run_trip(r, node)))
            ;
        return status;
    case CI_TREE_if:
        return run_nodes(r, is_true(r, node) ? &node->body : &node->other);
    }
    return CI_ERR_INTERNAL;
}

static int32_t
run_nodes(CiInterpRun *r, const CiInterpNodes *list)
{
    int32_t status = CI_OK;
    for (int k = 0; k < list->count && !status; k++)
        status = run_node(r, &list->nodes[k]);
    return status;
}

/* Which of the exchanged memories lies here by right. */
static int
find_home(const CiInterpRun *r, const CiInterpKernel *kernel, const void *memory)
{
    for (int k = 0; k < kernel->nswapped; k++)
        if (r->launch->buffers[kernel->swapped[k]] == memory)
            return kernel->swapped[k];
    return -1;
}

static int32_t
take_memory(CiInterpRun *r, const CiInterpKernel *kernel, size_t *sizes)
{
    memcpy(r->memory, r->launch->buffers, sizeof *r->memory * (size_t)kernel->nbuffers);
    for (int k = 0; k < kernel->ntemps; k++) {
        sizes[k] = (size_t)ci_formula_evaluate(&kernel->temp_bytes[k], r->env);
        r->memory[kernel->nbuffers + k] = ci_allocator_take(r->runtime->allocator, sizes[k]);
        if (!r->memory[kernel->nbuffers + k])
            return CI_ERR_MEMORY;
    }
    return CI_OK;
}

/* Behind the tree what exchanged memories hold goes where they were: along each cycle of the
 * permutation, a piece at a time. */
static void
move_back(CiInterpRun *r, const CiInterpKernel *kernel)
{
    char kept[PIECE];
    for (int k = 0; k < kernel->nswapped; k++) {
        int start = kernel->swapped[k];
        size_t bytes = (size_t)ci_formula_evaluate(&kernel->swapped_bytes[k], r->env);
        char *const *homes = (char *const *)r->launch->buffers;
        for (size_t done = 0; done < bytes && r->memory[start] != homes[start]; done += PIECE) {
            size_t size = bytes - done < PIECE ? bytes - done : PIECE;
            int to = start, from;
            memcpy(kept, homes[start] + done, size);
            for (; (from = find_home(r, kernel, r->memory[to])) != start; to = from)
                memcpy(homes[to] + done, homes[from] + done, size);
            memcpy(homes[to] + done, kept, size);
        }
        for (int to = start, from; r->memory[to] != homes[to]; to = from) {
            from = find_home(r, kernel, r->memory[to]);
            r->memory[to] = homes[to];
        }
    }
}

static int32_t
run_kernel(CiInterpRun *r, const CiInterpKernel *kernel, size_t *sizes)
{
    memcpy(r->env, r->launch->sizes, sizeof *r->env * (size_t)kernel->nsizes);
    int32_t status = take_memory(r, kernel, sizes);
    if (!status)
        status = run_nodes(r, &kernel->nodes);
    if (!status && kernel->nswapped)
        move_back(r, kernel);
    for (int k = 0; k < kernel->ntemps; k++)
        if (r->memory[kernel->nbuffers + k])
            ci_allocator_give(r->runtime->allocator, r->memory[kernel->nbuffers + k], sizes[k]);
    return status;
}

/* One zeroed piece of memory holds everything a launch needs. */
int32_t
ci_interp_launch(CiExecutable *executable, const CiLaunch *launch, CiFault *fault)
{
    const CiInterpKernel *kernel = &((CiInterpExecutable *)executable)->kernels[launch->kernel];
    size_t blocks = (size_t)(kernel->max_ops + CI_INTERP_EXTRA_BLOCKS) * CI_INTERP_BLOCK_BYTES;
    size_t memories = sizeof(void *) * (size_t)(kernel->nbuffers + kernel->ntemps + 1);
    size_t numbers = sizeof(int64_t) * (size_t)(2 * kernel->nslots + 2),
           sizes = sizeof(size_t) * (size_t)(kernel->ntemps + 1);
    size_t total = blocks + memories + numbers + sizes;
    char *space = ci_allocator_take(executable->runtime->allocator, total);
    if (fault)
        fault->kind = 0;
    if (!space)
        return CI_ERR_MEMORY;
    memset(space + blocks, 0, total - blocks);
    CiInterpRun run = {
        .launch = launch, .runtime = executable->runtime, .fault = fault, .blocks = space};
    run.truth = space + (size_t)kernel->max_ops * CI_INTERP_BLOCK_BYTES;
    run.stored = run.truth + CI_INTERP_BLOCK_BYTES;
    run.memory = (void **)(space + blocks);
    run.env = (int64_t *)(space + blocks + memories);
    run.extents = run.env + kernel->nslots + 1;
    run.last_poll = ci_os_time_ns();
    int32_t status = run_kernel(&run, kernel, (size_t *)(space + blocks + memories + numbers));
    ci_allocator_give(executable->runtime->allocator, space, total);
    return status;
}
