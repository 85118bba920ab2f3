/* Groups by name, and calls as what a device does (CiCollective). */
#include "device/collective.h"
#include "device/registry.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* One membership. It is closed when no call uses it. */
typedef struct Member Member;
struct Member {
    Member *next;
    char name[CI_GROUP_NAME];
    const CiDevice *device;
    int index, rank, count, users;
    void *group; /* the device's; NULL while it is opened */
};

struct CiGroups {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    Member *members;
};

CiGroups *
ci_groups_new(void)
{
    CiGroups *groups = calloc(1, sizeof *groups);
    if (groups) {
        pthread_mutex_init(&groups->lock, NULL);
        pthread_cond_init(&groups->changed, NULL);
    }
    return groups;
}

/* Devices end what is still open with their own state. */
void
ci_groups_free(CiGroups *groups)
{
    if (!groups)
        return;
    for (Member *next, *member = groups->members; member; member = next) {
        next = member->next;
        free(member);
    }
    pthread_cond_destroy(&groups->changed);
    pthread_mutex_destroy(&groups->lock);
    free(groups);
}

static CiGroups *
groups_of(const CiQueue *queue)
{
    return queue->runtime->registry ? queue->runtime->registry->groups : NULL;
}

/* ---- members ---- */

static Member **
find(CiGroups *groups, const CiQueue *queue, const char *name, size_t length)
{
    Member **at = &groups->members;
    while (*at && ((*at)->device != queue->backend->device || (*at)->index != queue->index ||
                   strlen((*at)->name) != length || memcmp((*at)->name, name, length) != 0))
        at = &(*at)->next;
    return at;
}

/* The open membership of the name that a key begins with, in use until `leave`; NULL: there is none. */
static Member *
enter(const CiQueue *queue, const char *key)
{
    CiGroups *groups = groups_of(queue);
    if (!groups)
        return NULL;
    pthread_mutex_lock(&groups->lock);
    Member *member = *find(groups, queue, key, strcspn(key, " "));
    if (member && member->group)
        member->users++;
    else
        member = NULL;
    pthread_mutex_unlock(&groups->lock);
    return member;
}

static void
leave(const CiQueue *queue, Member *member)
{
    CiGroups *groups = groups_of(queue);
    pthread_mutex_lock(&groups->lock);
    member->users--;
    pthread_cond_broadcast(&groups->changed);
    pthread_mutex_unlock(&groups->lock);
}

static void
take_out(CiGroups *groups, const CiQueue *queue, const char *name)
{
    Member **at = find(groups, queue, name, strlen(name)), *member = *at;
    *at = member->next;
    free(member);
}

/* Adds a membership that is not open yet. */
static int32_t
add(CiGroups *groups, const CiQueue *queue, const char *name, int rank, int count)
{
    size_t length = strlen(name);
    bool is_name = length > 0 && length < CI_GROUP_NAME && !strchr(name, ' ');
    if (!is_name || rank < 0 || rank >= count)
        return CI_ERR_VALUE;
    Member *member = calloc(1, sizeof *member);
    if (!member)
        return CI_ERR_MEMORY;
    *member = (Member){
        .device = queue->backend->device, .index = queue->index, .rank = rank, .count = count};
    memcpy(member->name, name, length + 1);
    pthread_mutex_lock(&groups->lock);
    bool is_new = !*find(groups, queue, name, length);
    if (is_new) {
        member->next = groups->members;
        groups->members = member;
    }
    pthread_mutex_unlock(&groups->lock);
    if (is_new)
        return CI_OK;
    free(member);
    return CI_ERR_VALUE;
}

int32_t
ci_group_open(const CiQueue *queue, const char *name, const CiGroupName *unique, int rank,
              int count, int64_t timeout_ms)
{
    CiGroups *groups = groups_of(queue);
    if (!groups || !queue->backend->device->group_open)
        return CI_ERR_VALUE;
    int32_t status = add(groups, queue, name, rank, count);
    if (status)
        return status;
    void *group = NULL;
    status = queue->backend->device->group_open(queue, unique, rank, count, timeout_ms, &group);
    pthread_mutex_lock(&groups->lock);
    if (status)
        take_out(groups, queue, name);
    else
        (*find(groups, queue, name, strlen(name)))->group = group;
    pthread_mutex_unlock(&groups->lock);
    return status;
}

void
ci_group_close(const CiQueue *queue, const char *name)
{
    CiGroups *groups = groups_of(queue);
    void *group = NULL;
    if (!groups)
        return;
    pthread_mutex_lock(&groups->lock);
    Member *member = *find(groups, queue, name, strlen(name));
    if (member && member->group) {
        while (member->users)
            pthread_cond_wait(&groups->changed, &groups->lock);
        group = member->group;
        take_out(groups, queue, name);
    }
    pthread_mutex_unlock(&groups->lock);
    if (group)
        queue->backend->device->group_close(queue, group);
}

/* ---- calls ---- */

static CiOp
reduction_of(const char *text)
{
    static const struct {
        const char *name;
        CiOp op;
    } rows[] = {{"sum", CI_OP_add},
                {"prod", CI_OP_multiply},
                {"max", CI_OP_maximum},
                {"min", CI_OP_minimum}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (!strcmp(text, rows[k].name))
            return rows[k].op;
    return CI_OP_none;
}

/* Whom the member sends to and receives from, in `0>1 1>2`; false: the text is none. */
static bool
read_pairs(const char *text, const Member *member, CiCollective *what)
{
    while (*text) {
        char *end;
        long from = strtol(text, &end, 10);
        if (end == text || *end != '>')
            return false;
        text = end + 1;
        long to = strtol(text, &end, 10);
        if (end == text || from < 0 || from >= member->count || to < 0 || to >= member->count)
            return false;
        what->to = from == member->rank ? (int)to : what->to;
        what->from = to == member->rank ? (int)from : what->from;
        text = end + strspn(end, " ");
    }
    return true;
}

static bool
read_key(const char *key, const Member *member, CiCollective *what)
{
    const char *rest = key + strcspn(key, " ");
    rest += *rest == ' ';
    switch (what->op) {
    case CI_OP_all_reduce:
    case CI_OP_reduce_scatter:
        what->reduce = reduction_of(rest);
        return what->reduce != CI_OP_none;
    case CI_OP_broadcast:
        what->root = strncmp(rest, "root=", 5) ? -1 : (int)strtol(rest + 5, NULL, 10);
        return what->root >= 0 && what->root < member->count;
    case CI_OP_send_recv:
        return read_pairs(rest, member, what);
    default:
        return !*rest;
    }
}

static bool
is_in_order(const CiExternCall *call, int k)
{
    int64_t step = 1;
    for (int axis = call->ranks[k] - 1; axis >= 0; axis--) {
        if (call->strides[k][axis] != step && call->sizes[k][axis] != 1)
            return false;
        step *= call->sizes[k][axis];
    }
    return true;
}

/* The operand's and the result's elements are in C order, and fit each other. */
static bool
has_right_size(const CiExternCall *call, const Member *member, CiOp op)
{
    int64_t given = ci_extern_count(call, 0), made = ci_extern_count(call, 1);
    int64_t times = op == CI_OP_all_gather ? member->count : 1;
    int64_t parts = op == CI_OP_reduce_scatter ? member->count : 1;
    bool fits = call->noperands == 1 && given * times == made * parts &&
                call->dtypes[0] == call->dtypes[1];
    return fits && (!given || (is_in_order(call, 0) && is_in_order(call, 1)));
}

/* After a failure: what the device was given is done, so that its memory may be freed. */
static int32_t
finish(const CiQueue *queue, int32_t status)
{
    CiQueue all = {queue->backend, queue->runtime, queue->index, NULL};
    if (status)
        (void)queue->backend->device->synchronize(&all);
    return status;
}

int32_t
ci_collective_start(const CiQueue *queue, CiOp op, const CiExternCall *call)
{
    Member *member = enter(queue, call->ext->key);
    if (!member)
        return CI_ERR_VALUE;
    CiCollective what = {.op = op,
                         .reduce = CI_OP_none,
                         .dtype = call->dtypes[0],
                         .size = (size_t)ci_dtype_size(call->dtypes[0]),
                         .count = ci_extern_count(call, op == CI_OP_reduce_scatter),
                         .operand = call->operands[0],
                         .result = call->result,
                         .to = -1,
                         .from = -1};
    bool is_right = read_key(call->ext->key, member, &what) && has_right_size(call, member, op);
    int32_t status = !is_right     ? CI_ERR_VALUE
                     : !what.count ? CI_OK
                                   : finish(queue, queue->backend->device->group_start(
                                                       queue, member->group, &what));
    leave(queue, member);
    return status;
}

int32_t
ci_collective_join(const CiQueue *queue, const char *key)
{
    Member *member = enter(queue, key);
    if (!member)
        return CI_ERR_VALUE;
    int32_t status = finish(queue, queue->backend->device->group_join(queue, member->group));
    leave(queue, member);
    return status;
}
