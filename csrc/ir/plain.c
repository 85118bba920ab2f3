/* Estimates the time of a graph's operations in NumPy and Python as a sum over nodes. The constants are times of
 * single operations, measured on one machine. */
#include "ir/plain.h"

/* Seconds, and seconds for each element. */
static const double ITERATION = 30e-9, OF_PYTHON = 55e-9, OF_SCALAR = 85e-9, READ = 95e-9, STORE = 100e-9,
                    VIEW = 0.25e-6, ARRAY = 0.9e-6, ELEMENT = 0.6e-9, FUNCTION_ELEMENT = 6e-9,
                    FOLD = 2.8e-6, FOLD_ELEMENT = 2.4e-9, CALL = 4e-6, CALL_ELEMENT = 2e-9;
static const double BUILD = 39e-3, BUILD_NODE = 68e-6;

static double block_seconds(const CiBlock *block, const CiSizes *sizes);

static double
count_of(const CiNode *node, const CiSizes *sizes)
{
    double count = 1;
    for (int k = 0; k < node->rank; k++)
        count *= sizes->of(sizes, node->sizes[k]);
    return count;
}

static bool
has_param(const CiBlock *block, const CiNode *node)
{
    for (int k = 0; k < block->nparams; k++)
        if (block->params[k] == node)
            return true;
    return false;
}

/* The number of iterations of a while is unknown, except if it counts them in a symbol with a limit. */
static double
iterations_of(const CiNode *region, const CiSizes *sizes)
{
    if (region->op == CI_OP_for)
        return sizes->of(sizes, region->starts[0]);
    const CiBlock *body = region->blocks[region->nblocks - 1];
    for (int k = 0; k < body->nnodes; k++) {
        const CiNode *node = body->nodes[k];
        if (node->op == CI_OP_define && node->starts[0]->limit != NULL &&
            has_param(region->blocks[0], node->args[0]))
            return sizes->of(sizes, node->starts[0]->limit);
    }
    return sizes->unknown_iterations;
}

/* One arm of two is taken. */
static double
region_seconds(const CiNode *node, const CiSizes *sizes)
{
    double inside = 0, around = sizes->counted == CI_COUNT_callbacks ? 0 : ITERATION;

    for (int k = 0; k < node->nblocks; k++)
        inside += block_seconds(node->blocks[k], sizes);
    return node->op == CI_OP_if ? inside / 2 : inside + around > 0 ? iterations_of(node, sizes) * (around + inside) : 0;
}

static bool
is_nothing(const CiNode *node)
{
    switch (node->op) {
    case CI_OP_input:
    case CI_OP_const:
    case CI_OP_param:
    case CI_OP_result:
    case CI_OP_define:
    case CI_OP_expr:
    case CI_OP_check:
    case CI_OP_reshape:
        return true;
    default:
        return false;
    }
}

/* Of a new version of an array what has changed is made, not the array. */
static double
array_seconds(const CiNode *node, const CiSizes *sizes)
{
    bool is_store = node->op == CI_OP_assign || node->op == CI_OP_scatter;
    double count = count_of(is_store ? node->args[1] : node, sizes);
    double read = node->nargs > 0 ? count_of(node->args[0], sizes) : 0;

    switch (ci_op_kind(node->op)) {
    case CI_OPKIND_view:
        return count <= 1 ? READ : VIEW;
    case CI_OPKIND_reduce:
    case CI_OPKIND_argreduce:
    case CI_OPKIND_scan:
        return FOLD + FOLD_ELEMENT * read;
    case CI_OPKIND_extern:
        return CALL + CALL_ELEMENT * (count > read ? count : read);
    case CI_OPKIND_math:
    case CI_OPKIND_ufunc:
    case CI_OPKIND_composite:
        return ARRAY + FUNCTION_ELEMENT * count;
    default:
        return is_store && count <= 1 ? STORE : ARRAY + ELEMENT * count;
    }
}

static double
node_seconds(const CiNode *node, const CiSizes *sizes)
{
    if (node->nblocks > 0)
        return region_seconds(node, sizes);
    if (sizes->counted == CI_COUNT_callbacks && (node->ext == NULL || !node->ext->calls_back))
        return 0;
    bool is_whole = ci_op_kind(node->op) == CI_OPKIND_reduce ||
                    ci_op_kind(node->op) == CI_OPKIND_argreduce ||
                    ci_op_kind(node->op) == CI_OPKIND_extern;
    if (node->kind == CI_KIND_array || is_whole)
        return array_seconds(node, sizes);
    return node->kind == CI_KIND_python ? OF_PYTHON : OF_SCALAR;
}

/* The operations of a call of a compiled function follow each other. Its regions are a part of it. A library call that gives an
 * array takes time for each element. */
static double
block_seconds(const CiBlock *block, const CiSizes *sizes)
{
    double seconds = 0;
    unsigned before = 0;

    for (int k = 0; k < block->nnodes; k++) {
        const CiNode *node = block->nodes[k];
        if (is_nothing(node))
            continue;
        bool is_of_array = node->ext != NULL && node->rank > 0;
        unsigned call = sizes->counted != CI_COUNT_calls || is_of_array ? 0 : node->loc.call;
        if (call == 0)
            seconds += node_seconds(node, sizes);
        else if (call != before)
            seconds += 1e-9 * (call / 2);
        before = call;
    }
    return seconds;
}

double
ci_plain_seconds(const CiGraph *graph, const CiSizes *sizes)
{
    return block_seconds(graph->body, sizes);
}

double
ci_build_seconds(const CiGraph *graph)
{
    return BUILD + BUILD_NODE * ci_graph_node_count(graph);
}
