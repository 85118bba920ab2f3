/* Places checks as late as possible. Everything that was computed before a failing check is
 * discarded, and each access clamps its own index into range. So values do not wait for checks of
 * their operands, a check and the checked access can be one kernel, and the host waits once for
 * several checks.
 *
 * Checks come first in two cases. If they read few bytes of arguments and the rest of the program
 * reads many or calls a library, they are launched before it, and without a call each has a launch of its own. The host
 * waits for these launches alone, and gives the device the rest meanwhile. If the host need not wait at all, a loop that only checks can be
 * vectorized, which a gather cannot.
 *
 * A check precedes every effect that is visible outside: a store to an argument, a call with
 * effects. It also precedes whatever may fail with an error of its own or may not terminate: a
 * while loop, and sizes that data define. */
#include "loops/loops.h"

#define MAX_CHECKS 2 /* that come first: each is a launch */

static bool may_wait_after(const CiItems *items);

static bool
may_come_after(const CiItem *item)
{
    switch (item->kind) {
    case CI_ITEM_nest:
        return item->nest->target->kind != CI_BUFFER_input;
    case CI_ITEM_extern:
        return item->ext->result->kind != CI_BUFFER_input && !item->ext->ext->may_fail &&
               !ci_op_has(item->ext->op, CI_FACT_effect);
    case CI_ITEM_for:
    case CI_ITEM_if:
        return may_wait_after(&item->region->body) && may_wait_after(&item->region->other);
    case CI_ITEM_while:
    case CI_ITEM_symbol:
    case CI_ITEM_check:
        return false;
    }
    return false;
}

static bool
may_wait_after(const CiItems *items)
{
    for (int k = 0; k < items->count; k++) {
        if (!may_come_after(&items->items[k]))
            return false;
    }
    return true;
}

/* ---- checks of arguments ---- */

typedef struct Uses {
    int *nreaders, *nwriters;
} Uses;

static bool
reads_arguments(const CiNest *nest, const Uses *uses)
{
    for (const CiScalar *load = NULL; (load = ci_nest_next_load(nest, load));)
        if (load->buffer->kind == CI_BUFFER_temp || uses->nwriters[load->buffer->id])
            return false;
    return true;
}

/* The position of the nest that stores the bool of a check, which has no other reader and is made of
 * arguments alone; -1: there is none. */
static int
find_checked(const CiItems *items, const CiCheckItem *check, const Uses *uses)
{
    const CiBuffer *buffer = check->buffer;
    for (int k = 0; k < items->count; k++) {
        const CiNest *nest = items->items[k].kind == CI_ITEM_nest ? items->items[k].nest : NULL;
        if (nest && nest->target == buffer && uses->nreaders[buffer->id] == 1 &&
            uses->nwriters[buffer->id] == 1)
            return reads_arguments(nest, uses) ? k : -1;
    }
    return -1;
}

static CiAmount
bytes_of_loads(const CiNest *nest)
{
    CiAmount bytes = ci_amount(0);
    for (const CiScalar *load = NULL; (load = ci_nest_next_load(nest, load));)
        bytes = ci_amount_plus(bytes, ci_cost_of_buffer(load->buffer));
    return bytes;
}

/* Finds the nests of all checks of the program's block. False if a check has none, or if the host
 * waits for other results as well. */
static bool
find_all_checked(const CiItems *items, const Uses *uses, bool *is_checked, CiAmount *bytes)
{
    int nchecks = 0;
    *bytes = ci_amount(0);
    for (int k = 0; k < items->count; k++) {
        const CiItem *item = &items->items[k];
        int at = item->kind == CI_ITEM_check ? find_checked(items, item->check, uses) : -1;
        if (item->kind == CI_ITEM_symbol || item->kind == CI_ITEM_while ||
            (item->kind == CI_ITEM_check && at < 0))
            return false;
        if (at < 0)
            continue;
        is_checked[at] = true;
        *bytes = ci_amount_plus(*bytes, bytes_of_loads(items->items[at].nest));
        nchecks++;
    }
    return nchecks > 0 && nchecks <= MAX_CHECKS;
}

static CiAmount
bytes_of_program(const CiLoops *loops)
{
    CiAmount bytes = ci_amount(0);
    for (int k = 0; k < loops->nbuffers; k++)
        if (loops->buffers[k]->kind != CI_BUFFER_scalar)
            bytes = ci_amount_plus(bytes, ci_cost_of_buffer(loops->buffers[k]));
    return bytes;
}

/* Library calls take several launches, and may move more than their operands. */
static bool
has_call(const CiItems *items)
{
    for (int k = 0; k < items->count; k++)
        if (items->items[k].kind == CI_ITEM_extern)
            return true;
    return false;
}

static void
check_first(const CiLoopRewriter *r, const Uses *uses)
{
    CiItems *items = &r->loops->items;
    CiItem *late = CI_NEW_ARRAY(r->ctx, CiItem, items->count + 1);
    bool *is_checked = CI_NEW_ARRAY(r->ctx, bool, items->count + 1);
    CiAmount bytes;
    int count = 0, nlate = 0;
    if (!find_all_checked(items, uses, is_checked, &bytes))
        return;
    int64_t most = CI_CHOOSE(r, check_bytes), own = ci_amount_likely(bytes);
    bool calls = has_call(items);
    if (own >= most || (!calls && ci_amount_likely(bytes_of_program(r->loops)) - own < most / 2))
        return;
    for (int k = 0; k < items->count; k++) {
        if (is_checked[k]) {
            items->items[count++] = items->items[k];
            items->items[count - 1].nest->is_separate = !calls; /* a kernel beside a call ends before it */
        } else {
            late[nlate++] = items->items[k];
        }
    }
    for (int k = 0; k < nlate; k++)
        items->items[count++] = late[k];
}

void
ci_loops_delay_checks(const CiLoopRewriter *r)
{
    Uses uses;
    CiItems *items = &r->loops->items;
    CiItem *waiting = CI_NEW_ARRAY(r->ctx, CiItem, items->count + 1);
    int nwaiting = 0, count = 0;
    ci_count_all_uses(r->loops, &uses.nreaders, &uses.nwriters);
    for (int k = 0; k <= items->count; k++) {
        const CiItem *item = k < items->count ? &items->items[k] : NULL;
        /* what is checked stays what it is: it is stored once */
        if (item && item->kind == CI_ITEM_check &&
            uses.nwriters[item->check->buffer->id] == 1) {
            waiting[nwaiting++] = *item;
            continue;
        }
        CiItem next = item ? *item : (CiItem){0};
        if (!item || !may_come_after(item)) {
            for (int w = 0; w < nwaiting; w++)
                items->items[count++] = waiting[w];
            nwaiting = 0;
        }
        if (item)
            items->items[count++] = next;
    }
    check_first(r, &uses);
}
