/* Groups of GPUs, over NCCL.
 *
 * A group has a stream of its own, and two events: its stream waits for the work that a program has given so
 * far, and a program's stream waits for the group's.
 *
 * Nothing waits for ever. NCCL makes a communicator, and connections when they are first used, with all members,
 * and waits for them in the call. Calls that do not block would each start a thread, which takes ten times as long.
 * Each group has a thread that makes the communicator, and then ends it if a call is late. A collective's
 * kernel waits on the GPU; so before the host waits for a stream, it asks that stream, and the groups with work
 * under way, until the stream is done. A group that is late, or has an error, is aborted: then its calls and
 * kernels end. */
#include "device/cuda/nccl.h"
#include "device/cuda/nccl_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    NCCL_success = 0,
    NCCL_in_progress = 7, /* of a state: nothing is wrong */
    RESULT_not_ready = 600, /* of the driver */
    STREAM_non_blocking = 1,
    EVENT_without_time = 2,
    SPINS = 2000,      /* polls without a pause: most collectives are over by then */
    PAUSE_NS = 20000,
    WATCH_NS = 100000000 /* between two looks at a call */
};

struct CiCudaGroup {
    CiCudaGroup *next;  /* of the same GPU */
    CiNccl nccl;        /* the state's: the thread may outlive that */
    CiNcclComm comm;      /* NULL: aborted */
    pthread_mutex_t lock; /* of the communicator and of what is given to it */
    pthread_t thread;
    /* Of the thread: */
    CiGroupName name;
    const CiCudaDriver *driver; /* until the communicator is made, or given up */
    CUcontext context;
    pthread_mutex_t opening;
    pthread_cond_t changed;
    bool is_made, is_given_up, is_closing;
    int made; /* NCCL's result */
    /* When the call began that is made; 0: none is. Who sets it back to 0 decides: the caller that the call is
     * over, or the thread that it is late, and then the thread ends the communicator. */
    atomic_llong calling;
    CUstream stream;
    CUevent ready, done; /* what the program had given; the last collective */
    /* Under the state's lock: */
    bool is_pending; /* `done` is not known to have come */
    int number;      /* of collectives so far */
    int users;       /* threads that look at it, waiting */
    int rank, count;
    int64_t timeout_ns;
};

/* ---- finding ---- */

/* NULL, and the state has the reason, if it is not there. */
static const CiNccl *
find_nccl(CiCudaState *state)
{
    pthread_mutex_lock(&state->grouping);
    if (!state->nccl)
        state->nccl = ci_nccl_load();
    const CiNccl *found = state->nccl && state->nccl->is_found ? state->nccl : NULL;
    if (!found)
        snprintf(state->group_error, sizeof state->group_error,
                 "collectives of GPUs need NCCL, and no libnccl.so.2 of version 2.14 or later was found: pip "
                 "install 'cinductor[nccl]', or set CINDUCTOR_NCCL to its folder");
    pthread_mutex_unlock(&state->grouping);
    return found;
}

/* ---- failures ---- */

static int
fail(CiCudaState *state, const CiCudaGroup *group, const char *why)
{
    pthread_mutex_lock(&state->grouping);
    snprintf(state->group_error, sizeof state->group_error, "member %d of %d: %s", group->rank,
             group->count, why);
    pthread_mutex_unlock(&state->grouping);
    return CI_CUDA_GROUP_FAILED;
}

static int
fail_late(CiCudaState *state, const CiCudaGroup *group, const char *what)
{
    char why[120];
    snprintf(why, sizeof why, "%s was not done within %g s: another member has not come, or has ended",
             what, (double)group->timeout_ns / 1e9);
    return fail(state, group, why);
}

/* Ends the communicator, and the kernels that wait for other members. */
static void
end_communicator(CiCudaState *state, CiCudaGroup *group)
{
    pthread_mutex_lock(&group->lock);
    if (group->comm)
        (void)state->nccl->abort(group->comm);
    group->comm = NULL;
    pthread_mutex_unlock(&group->lock);
}

/* ---- waiting ---- */

typedef struct Wait {
    int64_t start;
    int polls;
} Wait;

static Wait
begin_wait(void)
{
    return (Wait){.start = ci_os_time_ns()};
}

/* A poll is over; false: the time is up. */
static bool
may_continue(Wait *wait, int64_t timeout_ns)
{
    if (wait->polls++ < SPINS)
        return true;
    nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
    return ci_os_time_ns() - wait->start < timeout_ns;
}

static int
answer(CiCudaState *state, const CiCudaGroup *group, int result)
{
    return result == NCCL_success ? 0 : fail(state, group, state->nccl->text(result));
}

/* True while the group's work is under way. A group that is late or has an error is ended. */
static bool
is_under_way(const CiCudaContextScope *scope, CiCudaGroup *group, const Wait *wait, int *result)
{
    CiCudaState *state = scope->state;
    int event = scope->driver->event_query(group->done), error = NCCL_success;
    if (event != RESULT_not_ready)
        return false;
    pthread_mutex_lock(&group->lock);
    if (group->comm)
        (void)state->nccl->state(group->comm, &error);
    pthread_mutex_unlock(&group->lock);
    bool is_late = ci_os_time_ns() - wait->start > group->timeout_ns;
    bool is_wrong = error != NCCL_success && error != NCCL_in_progress;
    if (!is_wrong && !is_late)
        return true;
    *result = is_wrong ? fail(state, group, state->nccl->text(error))
                       : fail_late(state, group, "a collective");
    end_communicator(state, group);
    return false;
}

/* The group at that position among those with work under way, in use until `leave`, and its number; NULL
 * after the last. */
static CiCudaGroup *
take_pending(CiCudaState *state, int position, int *number)
{
    pthread_mutex_lock(&state->grouping);
    CiCudaGroup *found = state->groups;
    while (found && (!found->is_pending || position-- > 0))
        found = found->next;
    if (found) {
        found->users++;
        *number = found->number;
    }
    pthread_mutex_unlock(&state->grouping);
    return found;
}

/* With the state's lock. */
static void
set_pending(CiCudaState *state, CiCudaGroup *group, bool is_pending)
{
    if (group->is_pending != is_pending)
        atomic_fetch_add(&state->npending, is_pending ? 1 : -1);
    group->is_pending = is_pending;
}

static void
leave(CiCudaState *state, CiCudaGroup *group, bool is_done, int number)
{
    pthread_mutex_lock(&state->grouping);
    group->users--;
    if (is_done && number == group->number)
        set_pending(state, group, false);
    pthread_mutex_unlock(&state->grouping);
}

/* Something that the host waits for: an event, or the work that a stream was given. */
typedef struct Query {
    CUevent event;
    CUstream stream;
} Query;

static int
query_result(const CiCudaDriver *driver, const Query *query)
{
    return query->event ? driver->event_query(query->event) : driver->stream_query(query->stream);
}

/* Returns when `query` is ready, or no group has work under way; without `query`, in the second case. */
static int
await(const CiCudaContextScope *scope, const Query *query)
{
    CiCudaState *state = scope->state;
    Wait wait = begin_wait();
    int result = 0;
    while (atomic_load(&state->npending) && (!query || query_result(scope->driver, query) == RESULT_not_ready)) {
        CiCudaGroup *group;
        for (int position = 0, number; (group = take_pending(state, position, &number)); position++) {
            bool is_done = !is_under_way(scope, group, &wait, &result);
            leave(state, group, is_done, number);
        }
        (void)may_continue(&wait, INT64_MAX);
    }
    return result;
}

int
ci_cuda_await_groups(const CiCudaContextScope *scope)
{
    return await(scope, NULL);
}

int
ci_cuda_await_stream(const CiCudaContextScope *scope, CUstream stream)
{
    return await(scope, &(Query){.stream = stream});
}

int
ci_cuda_wait_stream(const CiCudaContextScope *scope, CUstream stream)
{
    int result = ci_cuda_await_stream(scope, stream);
    return result ? result : scope->driver->synchronize(stream);
}

int
ci_cuda_wait_event(const CiCudaContextScope *scope, CUevent event)
{
    int result = await(scope, &(Query){.event = event});
    return result ? result : scope->driver->event_synchronize(event);
}

/* ---- groups ---- */

int
ci_nccl_name(CiCudaState *state, CiGroupName *name)
{
    const CiNccl *nccl = find_nccl(state);
    CiCudaGroup nobody = {.count = 0};
    return nccl ? answer(state, &nobody, nccl->name(name)) : CI_CUDA_GROUP_FAILED;
}

static int
open_stream(const CiCudaDriver *driver, CiCudaGroup *group)
{
    int result = driver->stream_open(&group->stream, STREAM_non_blocking);
    if (!result)
        result = driver->event_open(&group->ready, EVENT_without_time);
    if (!result)
        result = driver->event_open(&group->done, EVENT_without_time);
    return result;
}

/* Ends calls that are late, until the group is closed; with `opening` locked. */
static void
watch(CiCudaGroup *group)
{
    while (!group->is_closing) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += WATCH_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&group->changed, &group->opening, &until);
        long long start = atomic_load(&group->calling);
        bool is_late = start && ci_os_time_ns() - start > group->timeout_ns;
        if (is_late && atomic_compare_exchange_strong(&group->calling, &start, 0)) {
            (void)group->nccl.abort(group->comm); /* the call returns */
            return;
        }
    }
}

static void
free_memory(CiCudaGroup *group)
{
    pthread_mutex_destroy(&group->lock);
    pthread_mutex_destroy(&group->opening);
    pthread_cond_destroy(&group->changed);
    free(group);
}

static void *
run_thread(void *arg)
{
    CiCudaGroup *group = arg;
    CUcontext ignored;
    int result = group->driver->context_push(group->context);
    if (!result)
        result = group->nccl.open(&group->comm, group->count, group->name, group->rank);
    pthread_mutex_lock(&group->opening);
    group->made = result;
    group->is_made = true;
    pthread_cond_broadcast(&group->changed);
    if (!group->is_given_up) {
        (void)group->driver->context_pop(&ignored);
        watch(group);
        pthread_mutex_unlock(&group->opening);
        return NULL;
    }
    pthread_mutex_unlock(&group->opening);
    if (!result)
        (void)group->nccl.abort(group->comm);
    free_memory(group);
    return NULL;
}

/* Waits for the thread's communicator; false: it is late, and its thread frees the group when it ends. */
static bool
wait_for_communicator(CiCudaGroup *group)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += group->timeout_ns / 1000000000;
    until.tv_nsec += group->timeout_ns % 1000000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&group->opening);
    int waited = 0;
    while (!group->is_made && !waited)
        waited = pthread_cond_timedwait(&group->changed, &group->opening, &until);
    group->is_given_up = !group->is_made;
    bool is_made = group->is_made;
    pthread_mutex_unlock(&group->opening);
    return is_made;
}

static void
close_stream(const CiCudaDriver *driver, const CiCudaGroup *group)
{
    if (group->stream) {
        (void)driver->synchronize(group->stream);
        (void)driver->stream_close(group->stream);
    }
    if (group->ready)
        (void)driver->event_close(group->ready);
    if (group->done)
        (void)driver->event_close(group->done);
}

/* Ends a group whose thread runs. */
static void
free_group(CiCudaState *state, CiCudaGroup *group)
{
    pthread_mutex_lock(&group->opening);
    group->is_closing = true;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->opening);
    (void)pthread_join(group->thread, NULL);
    end_communicator(state, group);
    close_stream(&state->driver, group);
    free_memory(group);
}

/* The communicator of a group that has a stream; on failure the group is freed. */
static int
open_communicator(CiCudaState *state, CiCudaGroup *group)
{
    int result = CI_CUDA_GROUP_FAILED;
    if (pthread_create(&group->thread, NULL, run_thread, group)) {
        (void)fail(state, group, "no thread could be started");
        close_stream(&state->driver, group);
        free_memory(group);
    } else if (!wait_for_communicator(group)) {
        (void)fail_late(state, group, "the group");
        close_stream(&state->driver, group);
        (void)pthread_detach(group->thread);
    } else if ((result = answer(state, group, group->made)) != 0) {
        group->comm = NULL;
        free_group(state, group);
    }
    return result;
}

static int
open_group(CiCudaState *state, CiCudaGroup *group)
{
    int result = find_nccl(state) ? open_stream(&state->driver, group) : CI_CUDA_GROUP_FAILED;
    if (result) {
        close_stream(&state->driver, group);
        free_memory(group);
        return result;
    }
    group->nccl = *state->nccl;
    return open_communicator(state, group);
}

int
ci_nccl_open(CiCudaState *state, const CiGroupName *name, int rank, int count, int64_t timeout_ms,
             CiCudaGroup **out)
{
    CiCudaGroup *group = calloc(1, sizeof *group);
    if (!group)
        return CI_CUDA_NO_MEMORY;
    *group = (CiCudaGroup){.rank = rank,
                           .count = count,
                           .timeout_ns = timeout_ms * 1000000,
                           .name = *name,
                           .driver = &state->driver,
                           .context = state->context};
    pthread_mutex_init(&group->lock, NULL);
    pthread_mutex_init(&group->opening, NULL);
    pthread_cond_init(&group->changed, NULL);
    int result = open_group(state, group);
    if (result)
        return result;
    pthread_mutex_lock(&state->grouping);
    group->next = state->groups;
    state->groups = group;
    pthread_mutex_unlock(&state->grouping);
    *out = group;
    return 0;
}

/* Returns when no other thread looks at the group. */
static void
take_out(CiCudaState *state, CiCudaGroup *group)
{
    pthread_mutex_lock(&state->grouping);
    set_pending(state, group, false);
    for (CiCudaGroup **g = &state->groups; *g; g = &(*g)->next)
        if (*g == group) {
            *g = group->next;
            break;
        }
    while (group->users) {
        pthread_mutex_unlock(&state->grouping);
        nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
        pthread_mutex_lock(&state->grouping);
    }
    pthread_mutex_unlock(&state->grouping);
}

void
ci_nccl_close(CiCudaState *state, CiCudaGroup *group)
{
    take_out(state, group);
    free_group(state, group);
}

void
ci_nccl_shut(CiCudaState *state)
{
    while (state->groups)
        ci_nccl_close(state, state->groups);
}

/* ---- collectives ---- */

/* Orders the group's stream after the queue's, gives it the collective, and notes the end. */
static int
start(const CiCudaContextScope *scope, CUstream stream, CiCudaGroup *group, const CiCollective *what)
{
    const CiCudaDriver *driver = scope->driver;
    CUdeviceptr to = (CUdeviceptr)(uintptr_t)what->result;
    int result = driver->event_record(group->ready, stream);
    if (!result)
        result = driver->event_wait(group->stream, group->ready, 0);
    if (!result && what->op == CI_OP_send_recv && what->from < 0)
        result = driver->clear_bytes(to, 0, (size_t)what->count * what->size, group->stream);
    if (result)
        return result;
    atomic_store(&group->calling, ci_os_time_ns());
    int given = ci_nccl_give(&group->nccl, group->comm, group->stream, what);
    if (!atomic_exchange(&group->calling, 0))
        group->comm = NULL;
    result = !group->comm ? fail_late(scope->state, group, "a call") : answer(scope->state, group, given);
    return result ? result : driver->event_record(group->done, group->stream);
}

int
ci_nccl_start(const CiCudaContextScope *scope, CUstream stream, CiCudaGroup *group, const CiCollective *what)
{
    CiCudaState *state = scope->state;
    bool is_reduced = what->op == CI_OP_all_reduce || what->op == CI_OP_reduce_scatter;
    int result = 0;
    pthread_mutex_lock(&group->lock);
    if (!group->comm)
        result = fail(state, group, "the group was ended by a failure");
    else if (is_reduced && !ci_nccl_combines(what))
        result = fail(state, group, "NCCL does not combine elements of this dtype");
    else
        result = start(scope, stream, group, what);
    pthread_mutex_unlock(&group->lock);
    if (!result) {
        pthread_mutex_lock(&state->grouping);
        group->number++;
        set_pending(state, group, true);
        pthread_mutex_unlock(&state->grouping);
    } else if (result == CI_CUDA_GROUP_FAILED) {
        end_communicator(state, group);
    }
    return result;
}

int
ci_nccl_join(const CiCudaContextScope *scope, CUstream stream, const CiCudaGroup *group)
{
    return scope->driver->event_wait(stream, group->done, 0);
}
