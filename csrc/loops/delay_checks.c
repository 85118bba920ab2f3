/* Places checks as late as possible. Everything that was computed before a failing check is
 * discarded, and each access clamps its own index into range. So values do not wait for checks of
 * their operands, a check and the checked access can be one kernel, and the host waits once for
 * several checks. If the host need not wait, checks come first instead: a loop that only checks can
 * be vectorized, a gather cannot.
 *
 * A check precedes every effect that is visible outside: a store to an argument, a call with
 * effects. It also precedes whatever may fail with an error of its own or may not terminate: a
 * while loop, and sizes that data define. */
#include "loops/loops.h"

static bool may_wait_behind(const CiItems *items);

static bool
may_come_behind(const CiItem *item)
{
    switch (item->kind) {
    case CI_ITEM_nest:
        return item->nest->target->kind != CI_BUFFER_input;
    case CI_ITEM_extern:
        return item->ext->result->kind != CI_BUFFER_input && !item->ext->ext->may_fail &&
               !ci_op_has(item->ext->op, CI_FACT_effect);
    case CI_ITEM_for:
    case CI_ITEM_if:
        return may_wait_behind(&item->region->body) && may_wait_behind(&item->region->other);
    case CI_ITEM_while:
    case CI_ITEM_symbol:
    case CI_ITEM_check:
        return false;
    }
    return false;
}

static bool
may_wait_behind(const CiItems *items)
{
    for (int k = 0; k < items->count; k++) {
        if (!may_come_behind(&items->items[k]))
            return false;
    }
    return true;
}

void
ci_loops_delay_checks(const CiLoopRewriter *r)
{
    int *nreaders, *nwriters;
    CiItems *items = &r->loops->items;
    CiItem *waiting = CI_NEW_ARRAY(r->ctx, CiItem, items->count + 1);
    int nwaiting = 0, count = 0;
    ci_count_all_uses(r->loops, &nreaders, &nwriters);
    for (int k = 0; k <= items->count; k++) {
        const CiItem *item = k < items->count ? &items->items[k] : NULL;
        /* what is checked stays what it is: it is stored once */
        if (item && item->kind == CI_ITEM_check &&
            nwriters[item->check->buffer->id] == 1) {
            waiting[nwaiting++] = *item;
            continue;
        }
        CiItem next = item ? *item : (CiItem){0};
        if (!item || !may_come_behind(item)) {
            for (int w = 0; w < nwaiting; w++)
                items->items[count++] = waiting[w];
            nwaiting = 0;
        }
        if (item)
            items->items[count++] = next;
    }
}
