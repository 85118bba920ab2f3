/* A fake NCCL for tests: the members of a communicator are threads of one process, over the fake driver's
 * memory. A call returns when all members have made theirs, the last of which does the work of all, or when the
 * communicator is aborted. Floats of 32 and 64 bits are combined. */
#include "fake_memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MEMBERS 8

enum { SUCCESS = 0, ABORTED = 1, INVALID = 4 };
enum { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, SEND_RECV };

typedef struct Name {
    char bytes[128];
} Name;

typedef struct Asked {
    int op, type, reduce, root, to, from;
    size_t count;
    const char *operand;
    char *result;
} Asked;

typedef struct Group {
    struct Group *next;
    Name name;
    int count, joined, asked, round;
    Asked members[MEMBERS];
} Group;

typedef struct Comm {
    Group *group;
    int rank, round, is_aborted;
} Comm;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Group *groups;
static int names;
static _Thread_local Comm *exchanging;
static _Thread_local Asked exchange;

EXPORT int ncclGetUniqueId(Name *name);
EXPORT int ncclCommInitRank(Comm **comm, int count, Name name, int rank);
EXPORT int ncclCommAbort(Comm *comm);
EXPORT int ncclCommGetAsyncError(Comm *comm, int *result);
EXPORT const char *ncclGetErrorString(int result);
EXPORT int ncclGroupStart(void);
EXPORT int ncclGroupEnd(void);
EXPORT int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, Comm *comm, void *stream);
EXPORT int ncclAllGather(const void *from, void *to, size_t count, int type, Comm *comm, void *stream);
EXPORT int ncclReduceScatter(const void *from, void *to, size_t count, int type, int op, Comm *comm,
                             void *stream);
EXPORT int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, Comm *comm,
                         void *stream);
EXPORT int ncclSend(const void *from, size_t count, int type, int peer, Comm *comm, void *stream);
EXPORT int ncclRecv(void *to, size_t count, int type, int peer, Comm *comm, void *stream);

int
ncclGetUniqueId(Name *name)
{
    memset(name, 0, sizeof *name);
    pthread_mutex_lock(&lock);
    memcpy(name->bytes, &names, sizeof names);
    names++;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

static Group *
find(const Name *name, int count)
{
    Group *group = groups;
    while (group && memcmp(&group->name, name, sizeof *name) != 0)
        group = group->next;
    if (group)
        return group;
    group = calloc(1, sizeof *group);
    group->name = *name;
    group->count = count;
    group->next = groups;
    return groups = group;
}

/* Lets other threads run; with the lock. */
static void
pause_locked(void)
{
    pthread_mutex_unlock(&lock);
    usleep(50);
    pthread_mutex_lock(&lock);
}

int
ncclCommInitRank(Comm **comm, int count, Name name, int rank)
{
    if (rank >= count || count > MEMBERS)
        return INVALID;
    *comm = calloc(1, sizeof **comm);
    pthread_mutex_lock(&lock);
    Group *group = find(&name, count);
    group->joined++;
    **comm = (Comm){group, rank, 0, 0};
    while (group->joined < group->count)
        pause_locked();
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

/* Keeps the communicator: a call may be under way. */
int
ncclCommAbort(Comm *comm)
{
    pthread_mutex_lock(&lock);
    comm->is_aborted = 1;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

static double
value_at(const char *at, int type, size_t k)
{
    return type == 7 ? ((const float *)(const void *)at)[k] : ((const double *)(const void *)at)[k];
}

static void
combine(const Group *group, const Asked *of, size_t begin)
{
    for (size_t k = 0; k < of->count; k++) {
        double all = value_at(group->members[0].operand, of->type, begin + k);
        for (int m = 1; m < group->count; m++) {
            double x = value_at(group->members[m].operand, of->type, begin + k);
            all = of->reduce == 0   ? all + x
                  : of->reduce == 1 ? all * x
                  : of->reduce == 2 ? (x > all ? x : all)
                                    : (x < all ? x : all);
        }
        if (of->type == 7)
            ((float *)(void *)of->result)[k] = (float)all;
        else
            ((double *)(void *)of->result)[k] = all;
    }
}

static void
run_member(const Group *group, int rank)
{
    const Asked *of = &group->members[rank];
    FAKE_OPENS_MEMORY;
    switch (of->op) {
    case ALL_GATHER:
        for (int m = 0; m < group->count; m++)
            memcpy(of->result + (size_t)m * of->count, group->members[m].operand, of->count);
        break;
    case BROADCAST:
        memcpy(of->result, group->members[of->root].operand, of->count);
        break;
    case SEND_RECV:
        if (of->from >= 0)
            memcpy(of->result, group->members[of->from].operand, of->count);
        break;
    default:
        combine(group, of, of->op == REDUCE_SCATTER ? (size_t)rank * of->count : 0);
    }
}

int
ncclCommGetAsyncError(Comm *comm, int *result)
{
    *result = comm->is_aborted ? ABORTED : SUCCESS;
    return SUCCESS;
}

const char *
ncclGetErrorString(int result)
{
    return result == INVALID ? "invalid argument" : "unhandled error";
}

static void
run_all(Group *group)
{
    for (int m = 0; m < group->count; m++)
        run_member(group, m);
    group->asked = 0;
    group->round++;
}

static int
ask(Comm *comm, Asked asked)
{
    pthread_mutex_lock(&lock);
    Group *group = comm->group;
    group->members[comm->rank] = asked;
    comm->round++;
    if (++group->asked == group->count)
        run_all(group);
    while (comm->round > group->round && !comm->is_aborted)
        pause_locked();
    int result = comm->is_aborted ? ABORTED : SUCCESS;
    pthread_mutex_unlock(&lock);
    return result;
}

int
ncclAllReduce(const void *from, void *to, size_t count, int type, int op, Comm *comm, void *stream)
{
    (void)stream;
    return type != 7 && type != 8 ? INVALID
                                  : ask(comm, (Asked){.op = ALL_REDUCE,
                                                      .type = type,
                                                      .reduce = op,
                                                      .count = count,
                                                      .operand = from,
                                                      .result = to});
}

int
ncclReduceScatter(const void *from, void *to, size_t count, int type, int op, Comm *comm, void *stream)
{
    (void)stream;
    return type != 7 && type != 8 ? INVALID
                                  : ask(comm, (Asked){.op = REDUCE_SCATTER,
                                                      .type = type,
                                                      .reduce = op,
                                                      .count = count,
                                                      .operand = from,
                                                      .result = to});
}

int
ncclAllGather(const void *from, void *to, size_t count, int type, Comm *comm, void *stream)
{
    (void)stream, (void)type; /* bytes */
    return ask(comm, (Asked){.op = ALL_GATHER, .count = count, .operand = from, .result = to});
}

int
ncclBroadcast(const void *from, void *to, size_t count, int type, int root, Comm *comm, void *stream)
{
    (void)stream, (void)type;
    return ask(comm,
               (Asked){.op = BROADCAST, .root = root, .count = count, .operand = from, .result = to});
}

int
ncclGroupStart(void)
{
    exchanging = NULL;
    exchange = (Asked){.op = SEND_RECV, .to = -1, .from = -1};
    return SUCCESS;
}

int
ncclSend(const void *from, size_t count, int type, int peer, Comm *comm, void *stream)
{
    (void)stream, (void)type;
    exchanging = comm;
    exchange.operand = from;
    exchange.count = count;
    exchange.to = peer;
    return SUCCESS;
}

int
ncclRecv(void *to, size_t count, int type, int peer, Comm *comm, void *stream)
{
    (void)stream, (void)type;
    exchanging = comm;
    exchange.result = to;
    exchange.count = count;
    exchange.from = peer;
    return SUCCESS;
}

/* Members of a mesh that neither send nor receive do not take part in NCCL; here the others wait for no one else. */
int
ncclGroupEnd(void)
{
    return exchanging ? ask(exchanging, exchange) : SUCCESS;
}
