/* Recordings are CUDA graphs: the work given to one of cinductor's streams is captured, and
 * replayed in any stream as one launch.
 *
 * Memory that launches allocate for themselves (partial results) becomes nodes of the graph, for
 * which the driver allocates memory. Calls that would wait, or allocate otherwise, are refused by
 * the driver (the thread's capture mode); this ends the recording and has no other effect.
 *
 * While any stream captures, no thread may wait for the whole context. The lock `recording` is
 * therefore held from begin to end of a capture, and by threads that wait. During a capture this
 * thread makes launches, and needs no lock that another one holds. */
#include "device/cuda/driver.h"

enum { CAPTURE_thread_local = 1, STREAM_non_blocking = 1 };

static int
begin(const CiCudaContextScope *scope, void **stream)
{
    CiCudaState *state = scope->state;
    int result = 0;
    if (!state->record_stream)
        result = scope->driver->stream_open(&state->record_stream, STREAM_non_blocking);
    if (result) {
        state->record_stream = NULL;
        return result;
    }
    *stream = state->record_stream;
    return scope->driver->capture_begin(state->record_stream, CAPTURE_thread_local);
}

int32_t
ci_cuda_record_begin(const CiQueue *queue, void **stream)
{
    CiCudaContextScope scope;
    int32_t status = ci_cuda_enter(&scope, queue);
    if (status)
        return status;
    pthread_mutex_lock(&scope.state->recording);
    status = ci_cuda_leave(&scope, begin(&scope, stream));
    if (status)
        pthread_mutex_unlock(&scope.state->recording);
    return status;
}

/* A stream whose capture has failed is not used again. */
static void
forget_stream(CiCudaState *state)
{
    (void)state->driver.stream_close(state->record_stream);
    state->record_stream = NULL;
}

static int
end(CiCudaState *state, CUstream stream, CUgraphExec *made)
{
    const CiCudaDriver *driver = &state->driver;
    CUgraph graph = NULL;
    int result = driver->capture_end(stream, &graph);
    if (result) {
        forget_stream(state);
        return result;
    }
    result = driver->graph_instantiate(made, graph, 0);
    if (result)
        *made = NULL;
    (void)driver->graph_close(graph);
    return result;
}

/* Discards the recording, so that no capture remains active. */
static void
abandon(CiCudaState *state, CUstream stream)
{
    CUgraph graph = NULL;
    (void)state->driver.capture_end(stream, &graph);
    if (graph)
        (void)state->driver.graph_close(graph);
    forget_stream(state);
}

int32_t
ci_cuda_record_end(const CiQueue *queue, void *stream, void **recording)
{
    CiCudaState *state = ci_cuda_state(queue);
    CiCudaContextScope scope;
    CUgraphExec made = NULL;
    int32_t status = ci_cuda_enter(&scope, queue);
    if (status)
        abandon(state, stream);
    else
        status = ci_cuda_leave(&scope, end(state, stream, &made));
    pthread_mutex_unlock(&state->recording);
    *recording = made;
    return status;
}

int32_t
ci_cuda_replay(const CiQueue *queue, void *recording)
{
    CiCudaContextScope scope;
    int32_t status = ci_cuda_enter(&scope, queue);
    return status ? status
                  : ci_cuda_leave(&scope, scope.driver->graph_launch(recording, queue->stream));
}

/* The driver keeps what it needs of one that still runs. */
void
ci_cuda_record_close(const CiQueue *queue, void *recording)
{
    CiCudaContextScope scope;
    if (!ci_cuda_enter(&scope, queue))
        (void)ci_cuda_leave(&scope, scope.driver->exec_close(recording));
}

int
ci_cuda_synchronize_all(const CiCudaContextScope *scope)
{
    int late = ci_cuda_await_groups(scope);
    pthread_mutex_lock(&scope->state->recording);
    int result = scope->driver->synchronize_all();
    pthread_mutex_unlock(&scope->state->recording);
    return late ? late : result;
}
