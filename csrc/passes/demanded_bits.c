/* Demanded bits: removes masks that change no bit which is used later. In ((x & 0xFFFF) << 1) &
 * 0xFFFF the first one is removed. Python's ints are kept in range by masks in each step, and each
 * mask lengthens the dependence chain.
 *
 * One backward pass computes for each integer value the set of bits that affect the program's
 * results; users follow their operands. For operations that do not act on bits in order, and for
 * carried values, the set is all bits.
 *
 * needs: a valid graph, numbered. keeps: the demanded bits, so everything that can be observed. */
#include "passes/identity.h"
#include "passes/pass.h"

#define ALL (~(uint64_t)0)

typedef struct Demand {
    CiGraph *g;
    uint64_t *bits; /* by number of the node */
} Demand;

static bool
is_word(const CiNode *node)
{
    CiClass class = ci_dtype_class(node->dtype);
    return class == CI_CLASS_int || class == CI_CLASS_uint;
}

static uint64_t
type_bits(const CiNode *node)
{
    return ALL >> (64 - 8 * ci_dtype_size(node->dtype));
}

static uint64_t
sign_bit(const CiNode *node)
{
    return ci_dtype_class(node->dtype) == CI_CLASS_int ? type_bits(node) ^ type_bits(node) >> 1 : 0;
}

static void
demand(Demand *d, const CiNode *node, uint64_t bits)
{
    if (node->op != CI_OP_input)
        d->bits[node->id] |= bits;
}

/* Carries go upwards: all bits up to the highest. */
static uint64_t
and_below(uint64_t bits)
{
    for (int k = 1; k < 64; k *= 2)
        bits |= bits >> k;
    return bits;
}

/* ---- one operation ---- */

static uint64_t
demanded_by_shift(const CiNode *node, uint64_t bits)
{
    const CiNode *by = node->args[1];
    int64_t width = 8 * (int64_t)ci_dtype_size(node->dtype);
    if (by->op != CI_OP_const || by->value.i < 0 || by->value.i >= width)
        return ALL;
    int64_t count = by->value.i;
    if (node->op == CI_OP_left_shift)
        return bits >> count;
    uint64_t shifted_in = type_bits(node) & ~(type_bits(node) >> count);
    return (bits << count & type_bits(node)) | (bits & shifted_in ? sign_bit(node) : 0);
}

static uint64_t
demanded_by_mask(const CiNode *node, int arg, uint64_t bits)
{
    const CiNode *mask = node->args[!arg];
    if (mask->op != CI_OP_const)
        return bits;
    return bits & (uint64_t)(node->op == CI_OP_bitwise_and ? mask->value.i : ~mask->value.i);
}

static uint64_t
demanded_by_cast(const CiNode *node, uint64_t bits)
{
    const CiNode *from = node->args[0];
    bool needs_sign = (bits & ~type_bits(from)) != 0;
    return (bits & type_bits(from)) | (needs_sign ? sign_bit(from) : 0);
}

/* The bits of an operand that the node demands if `bits` of its own value are demanded. */
static uint64_t
demanded_of(const CiNode *node, int arg, uint64_t bits)
{
    if (!is_word(node) || !is_word(node->args[arg]))
        return ALL;
    switch (node->op) {
    case CI_OP_bitwise_and:
    case CI_OP_bitwise_or:
        return demanded_by_mask(node, arg, bits);
    case CI_OP_left_shift:
    case CI_OP_right_shift:
        return arg == 0 ? demanded_by_shift(node, bits) : ALL;
    case CI_OP_cast:
        return demanded_by_cast(node, bits);
    default:
        return ci_op_has(node->op, CI_FACT_each_bit)   ? bits
               : ci_op_has(node->op, CI_FACT_low_bits) ? and_below(bits)
                                                       : ALL;
    }
}

/* ---- the walk ---- */

static void demand_block(Demand *d, const CiBlock *block);

/* Demands of a region's blocks. The region's results follow it, so their demands are known. */
static void
demand_region(Demand *d, const CiNode *node)
{
    for (int b = node->nblocks - 1; b >= 0; b--) {
        const CiBlock *block = node->blocks[b];
        for (int k = 0; node->op != CI_OP_if && k < block->nresults; k++)
            demand(d, block->results[k], ALL);
        demand_block(d, block);
    }
}

static void
demand_block(Demand *d, const CiBlock *block)
{
    for (int k = block->nnodes - 1; k >= 0; k--) {
        const CiNode *node = block->nodes[k];
        if (node->op == CI_OP_result && node->args[0]->op == CI_OP_if) {
            for (int b = 0; b < 2; b++)
                demand(d, node->args[0]->blocks[b]->results[node->index], d->bits[node->id]);
            continue;
        }
        demand_region(d, node);
        for (int a = 0; node->op != CI_OP_result && a < node->nargs; a++)
            demand(d, node->args[a], demanded_of(node, a, d->bits[node->id]));
    }
}

/* The operand that replaces a mask without effect on demanded bits, or NULL. */
static CiNode *
find_unmasked(const Demand *d, const CiNode *node)
{
    for (int arg = 0; node->op == CI_OP_bitwise_and && is_word(node) && arg < 2; arg++) {
        CiNode *masked = node->args[arg];
        const CiNode *mask = node->args[!arg];
        if (mask->op == CI_OP_const && !(d->bits[node->id] & ~(uint64_t)mask->value.i))
            return masked;
    }
    return NULL;
}

static void
replace_block(Demand *d, CiBlock *block)
{
    int kept = 0;
    for (int k = 0; k < block->nnodes; k++) {
        CiNode *node = block->nodes[k], *unmasked = find_unmasked(d, node);
        ci_identity_forward_args(node);
        for (int b = 0; b < node->nblocks; b++)
            replace_block(d, node->blocks[b]);
        unmasked = unmasked ? ci_identity_forward(unmasked) : NULL;
        if (unmasked && !ci_identity_why_not_replace(d->g, node, unmasked))
            ci_identity_replace(d->g, node, unmasked);
        else
            block->nodes[kept++] = node;
    }
    block->nnodes = kept;
    for (int k = 0; k < block->nresults; k++)
        block->results[k] = ci_identity_forward(block->results[k]);
}

void
ci_pass_demand(CiGraph *g)
{
    Demand d = {g, CI_NEW_ARRAY(g->ctx, uint64_t, g->next_id + 1)};
    for (int k = 0; k < g->body->nresults; k++)
        demand(&d, g->body->results[k], ALL);
    for (int k = 0; k < g->nwrites; k++)
        demand(&d, g->writes[k].value, ALL);
    demand_block(&d, g->body);
    ci_identity_mark(g);
    replace_block(&d, g->body);
    ci_identity_forward_ends(g);
}
