/* Versions of memory, and the journal of their changes, by which a mark is rolled back.
 *
 * A storage has one version at a time. While marks exist, the state of a storage is recorded
 * before it changes, once after each mark. The first record after a mark is therefore the state
 * at the mark; a storage without a record has not changed. A rollback is recorded like any other
 * change, and records are never removed, so marks can be used in any order. The journal ends
 * with the graph, and with the last mark.
 *
 * A storage that entered the graph after a mark existed before it: a rollback restores its state
 * on entry. */
#include "graph/storage.h"

/* Records the state before a change. -1: an exception, and nothing may change. */
static int
note(CxStorage *s)
{
    CxTracer *t = s->tracer;

    if (t->nmarks == 0 || s->noted == t->last_mark)
        return 0;
    if (t->nchanges == t->capchanges) {
        int capacity = t->capchanges ? 2 * t->capchanges : 64;
        CxChange *grown = PyMem_Realloc(t->changes, sizeof *grown * (size_t)capacity);
        if (grown == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        t->changes = grown;
        t->capchanges = capacity;
    }
    s->noted = t->last_mark;
    s->refs++;
    t->changes[t->nchanges++] =
        (CxChange){s, s->node, s->epoch, s->version, s->scope, s->is_written};
    return 0;
}

int
cx_storage_set_input(CxStorage *s, CiNode *node)
{
    if (note(s) < 0)
        return -1;
    s->node = s->input = node;
    s->epoch = s->tracer->epoch;
    s->scope = 0;
    s->is_written = false;
    return 0;
}

/* The node may be used as long as the scope that is open now. */
int
cx_storage_set_node(CxStorage *s, CiNode *node)
{
    if (note(s) < 0)
        return -1;
    s->node = node;
    s->epoch = s->tracer->epoch;
    s->scope = cx_dominance_now(s->tracer);
    return 0;
}

int
cx_storage_set_version(CxStorage *s, CiNode *node)
{
    if (note(s) < 0)
        return -1;
    s->node = node;
    s->scope = cx_dominance_now(s->tracer);
    s->version = ++s->tracer->last_version; /* never the number of a version that was rolled back */
    if (s->value != NULL)
        s->is_written = true;
    return 0;
}

static bool
is_changed_input(const CxStorage *s)
{
    return s->epoch == s->tracer->epoch && s->input != NULL && s->node != s->input;
}

/* Restores the state on entry to the graph. */
static int
reset_input(CxStorage *s)
{
    if (!is_changed_input(s))
        return 0;
    if (note(s) < 0)
        return -1;
    s->node = s->input;
    s->scope = 0;
    s->version = ++s->tracer->last_version;
    s->is_written = false;
    return 0;
}

static int
go_back(const CxChange *was)
{
    CxStorage *s = was->storage;

    if (was->epoch != s->tracer->epoch)
        return reset_input(s);
    if (note(s) < 0)
        return -1;
    s->node = was->node;
    s->epoch = was->epoch;
    s->version = was->version;
    s->scope = was->scope;
    s->is_written = was->is_written;
    return 0;
}

int
cx_versions_restore(CxTracer *t, int since, unsigned newest)
{
    int status = 0, end = t->nchanges;

    for (int k = since; k < end && status == 0; k++) {
        CxChange was = t->changes[k]; /* a copy: the journal may grow */
        if (was.storage->is_seen || was.storage->serial > newest)
            continue;
        was.storage->is_seen = true;
        status = go_back(&was);
    }
    for (int k = since; k < end; k++)
        t->changes[k].storage->is_seen = false;
    for (int k = 0; k < t->ninputs && status == 0; k++)
        if (t->inputs[k]->serial > newest)
            status = reset_input(t->inputs[k]);
    return status;
}

static bool
is_other(const CxChange *was)
{
    const CxStorage *s = was->storage;
    if (was->epoch != s->tracer->epoch)
        return is_changed_input(s);
    return s->epoch == was->epoch && s->version != was->version;
}

static int
by_serial(const void *a, const void *b)
{
    unsigned i = (*(CxStorage *const *)a)->serial, j = (*(CxStorage *const *)b)->serial;
    return (i > j) - (i < j);
}

CxStorage **
cx_versions_changed(CxTracer *t, int since, unsigned newest, int *count)
{
    size_t slots = (size_t)(t->nchanges - since + t->ninputs) + 1;
    CxStorage **found = PyMem_Malloc(sizeof *found * slots);
    int n = 0;

    if (found == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (int k = since; k < t->nchanges; k++) {
        CxStorage *s = t->changes[k].storage;
        if (!s->is_seen && s->serial <= newest && is_other(&t->changes[k]))
            found[n++] = s;
        s->is_seen = true;
    }
    for (int k = 0; k < t->ninputs; k++)
        if (t->inputs[k]->serial > newest && is_changed_input(t->inputs[k]))
            found[n++] = t->inputs[k];
    for (int k = since; k < t->nchanges; k++)
        t->changes[k].storage->is_seen = false;
    qsort(found, (size_t)n, sizeof *found, by_serial);
    *count = n;
    return found;
}

void
cx_versions_forget(CxTracer *t)
{
    for (int k = 0; k < t->nchanges; k++)
        cx_storage_release(t->changes[k].storage);
    t->nchanges = 0;
}
