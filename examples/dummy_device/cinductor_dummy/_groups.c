/* Collectives of the dummy's devices: the members of a group share a file without a name, which they find through
 * /proc while the process that made it lives. Each has a slot in it: all write, wait for each other, and read.
 *
 * A member that waits polls, because one that dies would leave a lock behind. */
#define _GNU_SOURCE
#include "_card.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MEMBERS 64
#define SLOT ((size_t)1 << 16)
#define POLL_NS 50000

typedef struct Shared {
    atomic_long come[MEMBERS]; /* how often each member has come to a meeting */
    atomic_int broken;         /* no member meets any more */
    char slots[MEMBERS][SLOT];
} Shared;

struct Group {
    Shared *shared;
    int rank, count;
    int64_t timeout_ns;
    Stream *stream;
    ino_t file;
};

/* Files that this process has made, open until a member leaves the group. */
typedef struct Made {
    struct Made *next;
    int file;
    ino_t number;
} Made;

static Made *made;

/* ---- names ---- */

int32_t
dummy_group_name(const CiQueue *queue, CiGroupName *name)
{
    struct stat is;
    Made *own = calloc(1, sizeof *own);
    int file = own ? memfd_create("cinductor_dummy_group", MFD_CLOEXEC) : -1;
    (void)queue;
    if (file < 0 || ftruncate(file, (off_t)sizeof(Shared)) || fstat(file, &is)) {
        if (file >= 0)
            close(file);
        free(own);
        return CI_ERR_MEMORY;
    }
    pthread_mutex_lock(&dummy_lock);
    *own = (Made){made, file, is.st_ino};
    made = own;
    pthread_mutex_unlock(&dummy_lock);
    memset(name, 0, sizeof *name);
    snprintf(name->bytes, sizeof name->bytes, "/proc/%ld/fd/%d %llu", (long)getpid(), file,
             (unsigned long long)is.st_ino);
    return CI_OK;
}

static Shared *
map(const CiGroupName *name, ino_t *number)
{
    char path[40];
    unsigned long long wanted = 0;
    struct stat is;
    bool is_name = memchr(name->bytes, 0, sizeof name->bytes) &&
                   sscanf(name->bytes, "%39s %llu", path, &wanted) == 2;
    int file = is_name ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return NULL;
    bool is_right = !fstat(file, &is) && is.st_ino == wanted && is.st_size == (off_t)sizeof(Shared);
    void *at = is_right ? mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                        : MAP_FAILED;
    close(file);
    *number = (ino_t)wanted;
    return at == MAP_FAILED ? NULL : at;
}

static void
forget_file(ino_t number)
{
    pthread_mutex_lock(&dummy_lock);
    for (Made **m = &made; *m; m = &(*m)->next)
        if ((*m)->number == number) {
            Made *found = *m;
            *m = found->next;
            close(found->file);
            free(found);
            break;
        }
    pthread_mutex_unlock(&dummy_lock);
}

/* ---- meetings ---- */

static int64_t
now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int32_t
fail(Group *group, const char *format, int member, long ms)
{
    char why[96];
    atomic_store(&group->shared->broken, 1);
    snprintf(why, sizeof why, format, member, group->count, ms);
    return dummy_refuse(why);
}

/* Returns when all members have come as often as this one, or fails. */
static int32_t
meet(Group *group)
{
    Shared *shared = group->shared;
    long number = atomic_fetch_add(&shared->come[group->rank], 1) + 1;
    int64_t start = now_ns();
    for (int member = 0; member < group->count;) {
        if (atomic_load(&shared->come[member]) >= number) {
            member++;
            continue;
        }
        if (atomic_load(&shared->broken))
            return fail(group, "a member of the group has failed or left (waited for member %d of %d)",
                        member, 0);
        if (now_ns() - start > group->timeout_ns)
            return fail(group, "member %d of %d did not come to the collective within %ld ms", member,
                        (long)(group->timeout_ns / 1000000));
        nanosleep(&(struct timespec){0, POLL_NS}, NULL);
    }
    return CI_OK;
}

/* ---- memberships ---- */

static void
free_group(const CiQueue *queue, Group *group)
{
    if (group->shared)
        atomic_store(&group->shared->broken, 1);
    if (group->stream)
        dummy_close_stream(queue, group->stream);
    if (group->shared)
        munmap(group->shared, sizeof(Shared));
    forget_file(group->file);
    free(group);
}

int32_t
dummy_group_open(const CiQueue *queue, const CiGroupName *name, int rank, int count,
                 int64_t timeout_ms, void **out)
{
    int32_t status = dummy_enter_card(CALL_group_open, queue);
    Group *group = status ? NULL : calloc(1, sizeof *group);
    if (!group)
        return status ? status : CI_ERR_MEMORY;
    *group = (Group){.rank = rank, .count = count, .timeout_ns = timeout_ms * 1000000};
    group->shared = count <= MEMBERS ? map(name, &group->file) : NULL;
    group->stream = group->shared ? dummy_new_stream(queue->index) : NULL;
    status = !group->shared  ? dummy_refuse("there is no group of this name, or it is too large")
             : group->stream ? meet(group)
                             : CI_ERR_MEMORY;
    if (status) {
        free_group(queue, group);
        return status;
    }
    *out = group;
    return CI_OK;
}

void
dummy_group_close(const CiQueue *queue, void *group)
{
    free_group(queue, group);
}

/* ---- the group's stream ---- */

/* Lets the one queue's stream wait for what the other's has now. */
static int32_t
order(const CiQueue *first, const CiQueue *second)
{
    Event *event = dummy_record(first);
    if (!event)
        return CI_ERR_MEMORY;
    int32_t status =
        dummy_give(second, &(Task){.kind = KIND_wait, .event = event, .number = 1}, false);
    dummy_count_event(event, -1);
    return status;
}

static CiQueue
queue_of(const CiQueue *queue, const Group *group)
{
    return (CiQueue){queue->backend, queue->runtime, queue->index, group->stream};
}

static bool
is_of(const CiQueue *queue, const void *address)
{
    return dummy_card_of(address) == queue->index;
}

int32_t
dummy_group_start(const CiQueue *queue, void *what, const CiCollective *collective)
{
    Group *group = what;
    CiQueue own = queue_of(queue, group);
    int32_t status = dummy_enter(CALL_group_start);
    if (status)
        return status;
    if (!is_of(queue, collective->operand) || !is_of(queue, collective->result))
        return dummy_refuse("a collective with memory of another device");
    status = order(queue, &own);
    Task task = {.kind = KIND_collective, .group = group, .what = *collective};
    return status ? status : dummy_give(&own, &task, false);
}

int32_t
dummy_group_join(const CiQueue *queue, void *group)
{
    CiQueue own = queue_of(queue, group);
    int32_t status = dummy_enter(CALL_group_join);
    return status ? status : order(&own, queue);
}

/* ---- the collectives ---- */

#define COMBINE(type)                                                                              \
    {                                                                                              \
        type *x = to;                                                                              \
        const type *y = from;                                                                      \
        for (int64_t k = 0; k < count; k++)                                                        \
            x[k] = op == CI_OP_add        ? (type)(x[k] + y[k])                                    \
                   : op == CI_OP_multiply ? (type)(x[k] * y[k])                                    \
                   : op == CI_OP_maximum  ? (x[k] >= y[k] || x[k] != x[k] ? x[k] : y[k])           \
                                          : (x[k] <= y[k] || x[k] != x[k] ? x[k] : y[k]);          \
        return true;                                                                               \
    }

/* Adds elements of another member to those of the result; false: not of this dtype. */
static bool
combine(CiOp op, CiDtype dtype, int64_t count, void *to, const void *from)
{
    switch (dtype) {
    case CI_DTYPE_i8:
        COMBINE(int8_t)
    case CI_DTYPE_i32:
        COMBINE(int32_t)
    case CI_DTYPE_i64:
        COMBINE(int64_t)
    case CI_DTYPE_u8:
        COMBINE(uint8_t)
    case CI_DTYPE_u32:
        COMBINE(uint32_t)
    case CI_DTYPE_u64:
        COMBINE(uint64_t)
    case CI_DTYPE_f32:
        COMBINE(float)
    case CI_DTYPE_f64:
        COMBINE(double)
    case CI_DTYPE_c64:
        return op == CI_OP_add && combine(op, CI_DTYPE_f32, 2 * count, to, from);
    case CI_DTYPE_c128:
        return op == CI_OP_add && combine(op, CI_DTYPE_f64, 2 * count, to, from);
    default:
        return false;
    }
}

/* Stores n elements of the result from the slots of all members. */
static int32_t
take(const Group *group, const CiCollective *what, int64_t begin, int64_t n)
{
    size_t size = what->size, bytes = (size_t)n * size;
    char(*slots)[SLOT] = group->shared->slots;
    char *to = (char *)what->result + (size_t)begin * size;
    switch (what->op) {
    case CI_OP_all_gather:
        for (int member = 0; member < group->count; member++)
            memcpy(to + (size_t)(member * what->count) * size, slots[member], bytes);
        return CI_OK;
    case CI_OP_broadcast:
        memcpy(to, slots[what->root], bytes);
        return CI_OK;
    case CI_OP_send_recv:
        if (what->from < 0)
            memset(to, 0, bytes);
        else
            memcpy(to, slots[what->from], bytes);
        return CI_OK;
    default:
        memcpy(to, slots[0], bytes);
        for (int member = 1; member < group->count; member++)
            if (!combine(what->reduce, what->dtype, n, to, slots[member]))
                return dummy_refuse("the dummy does not combine elements of this dtype");
        return CI_OK;
    }
}

/* All members' elements [begin, begin + n) of one part; the result is this member's only if the part is. */
static int32_t
exchange(Group *group, const CiCollective *what, int part, int64_t begin, int64_t n)
{
    size_t size = what->size;
    const char *from = (const char *)what->operand + (size_t)(part * what->count + begin) * size;
    bool is_own = what->op != CI_OP_reduce_scatter || part == group->rank;
    memcpy(group->shared->slots[group->rank], from, (size_t)n * size);
    int32_t status = meet(group);
    if (!status && is_own)
        status = take(group, what, begin, n);
    return status ? status : meet(group);
}

int32_t
dummy_run_collective(Group *group, const CiCollective *what)
{
    int64_t most = (int64_t)(SLOT / what->size);
    int parts = what->op == CI_OP_reduce_scatter ? group->count : 1;
    int32_t status = CI_OK;
    for (int part = 0; part < parts; part++)
        for (int64_t begin = 0; begin < what->count && !status; begin += most)
            status = exchange(group, what, part, begin,
                              what->count - begin < most ? what->count - begin : most);
    if (status)
        atomic_store(&group->shared->broken, 1);
    return status;
}
