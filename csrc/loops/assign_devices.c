/* Device placement of nests, for programs with arrays on several devices. A nest runs on the device
 * that holds most of the bytes it accesses, so that least is copied; if two devices are equal, on
 * the device of its first operand.
 *
 * A nest without existing operands runs on the device of the first input. A region is placed as a
 * whole, because its iterations must find memory where earlier ones left it. A nest that accesses a
 * non-contiguous argument runs on that argument's device: the argument's own memory is meant,
 * whereas others have packed copies (lower.c).
 *
 * A buffer is allocated on the device of the nest that first stores it. */
#include "loops/loops.h"

typedef struct Assign {
    CiLoops *loops;
    int *seen;      /* by buffer: the last thing that counted it */
    bool *is_made;  /* by buffer: it has a device */
    int counting;   /* the thing that is counted now */
    int first;      /* device of the first buffer that it touches, or -1 */
    int bound;      /* that of the first one which cannot be copied, or -1 */
    int64_t bytes[CI_MAX_DEVICES];
    int device; /* that it gets */
} Assign;

static void
count_buffer(Assign *a, const CiBuffer *buffer)
{
    if (buffer->kind == CI_BUFFER_scalar || !a->is_made[buffer->id] ||
        a->seen[buffer->id] == a->counting)
        return;
    a->seen[buffer->id] = a->counting;
    int64_t bytes = ci_amount_likely(ci_cost_of_buffer(buffer));
    int64_t space = CI_INFINITY - a->bytes[buffer->device];
    a->bytes[buffer->device] += bytes < space ? bytes : space;
    if (a->first < 0)
        a->first = buffer->device;
    if (a->bound < 0 && buffer->kind == CI_BUFFER_input && !ci_buffer_is_dense(a->loops, buffer))
        a->bound = buffer->device;
}

static void
count_item(void *arg, CiItem *item)
{
    Assign *a = arg;
    for (const CiScalar *load = NULL; (load = ci_nest_next_load(item->nest, load));)
        count_buffer(a, load->buffer);
    if (item->nest)
        count_buffer(a, item->nest->target);
    for (int n = 0; item->ext && n < item->ext->noperands; n++)
        count_buffer(a, item->ext->operands[n]);
}

static int
best_device(const Assign *a)
{
    int best = a->first;
    if (a->bound >= 0)
        return a->bound;
    for (int d = 0; d < CI_MAX_DEVICES && best >= 0; d++)
        best = a->bytes[d] > a->bytes[best] ? d : best;
    for (int k = 0; k < a->loops->ninputs && best < 0; k++)
        if (a->loops->buffers[k]->kind == CI_BUFFER_input)
            best = a->loops->buffers[k]->device;
    return best < 0 ? 0 : best;
}

static void
make(Assign *a, CiBuffer *buffer, int device)
{
    if (!a->is_made[buffer->id])
        buffer->device = device;
    a->is_made[buffer->id] = true;
}

static void
set_item(void *arg, CiItem *item)
{
    Assign *a = arg;
    if (item->nest) {
        item->nest->device = a->device;
        make(a, item->nest->target, a->device);
        if (ci_nest_count(item->nest))
            make(a, ci_nest_count(item->nest), a->device);
    } else if (item->ext) {
        item->ext->device = a->device;
        make(a, item->ext->result, a->device);
    } else if (item->region) {
        item->region->device = a->device;
    }
}

void
ci_loops_assign_devices(const CiLoopRewriter *r)
{
    CiLoops *loops = r->loops;
    Assign a = {.loops = loops};
    if (ci_loops_device_count(loops) < 2)
        return;
    a.seen = CI_NEW_ARRAY(loops->ctx, int, loops->nbuffers + 1);
    a.is_made = CI_NEW_ARRAY(loops->ctx, bool, loops->nbuffers + 1);
    for (int k = 0; k < loops->ninputs; k++)
        a.is_made[k] = true;
    for (int k = 0; k < loops->items.count; k++) {
        CiItems one = {&loops->items.items[k], 1, 1};
        for (int d = 0; d < CI_MAX_DEVICES; d++)
            a.bytes[d] = 0;
        a.first = a.bound = -1;
        a.counting = k + 1;
        ci_items_visit(&one, count_item, &a);
        a.device = best_device(&a);
        ci_items_visit(&one, set_item, &a);
    }
}
