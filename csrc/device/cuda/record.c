/* Recordings are CUDA graphs: what a stream of ours is given is captured, and launched as one in whatever
 * stream replays it.
 *
 * What launches allocate for themselves there (partial results) are nodes of the graph, which the driver
 * gives memory. Calls that would wait, or allocate otherwise, are refused by it (the thread's mode), which
 * ends the recording and nothing else.
 *
 * While any stream captures nobody may wait for the whole context: the lock `recording` is held from begin
 * to end, and by who waits. Between the two this thread makes launches, and needs nothing that another
 * one holds. */
#include "device/cuda/driver.h"

enum { CAPTURE_thread_local = 1, STREAM_non_blocking = 1 };

static int
begin(const CiCudaStay *stay, void **stream)
{
    CiCudaState *state = stay->state;
    int result = 0;
    if (!state->record_stream)
        result = stay->driver->stream_open(&state->record_stream, STREAM_non_blocking);
    if (result) {
        state->record_stream = NULL;
        return result;
    }
    *stream = state->record_stream;
    return stay->driver->capture_begin(state->record_stream, CAPTURE_thread_local);
}

int32_t
ci_cuda_record_begin(const CiQueue *queue, void **stream)
{
    CiCudaStay stay;
    int32_t status = ci_cuda_enter(&stay, queue);
    if (status)
        return status;
    pthread_mutex_lock(&stay.state->recording);
    status = ci_cuda_leave(&stay, begin(&stay, stream));
    if (status)
        pthread_mutex_unlock(&stay.state->recording);
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

/* Nobody wants it, and nothing may go on capturing. */
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
    CiCudaStay stay;
    CUgraphExec made = NULL;
    int32_t status = ci_cuda_enter(&stay, queue);
    if (status)
        abandon(state, stream);
    else
        status = ci_cuda_leave(&stay, end(state, stream, &made));
    pthread_mutex_unlock(&state->recording);
    *recording = made;
    return status;
}

int32_t
ci_cuda_replay(const CiQueue *queue, void *recording)
{
    CiCudaStay stay;
    int32_t status = ci_cuda_enter(&stay, queue);
    return status ? status
                  : ci_cuda_leave(&stay, stay.driver->graph_launch(recording, queue->stream));
}

/* The driver keeps what it needs of one that still runs. */
void
ci_cuda_record_close(const CiQueue *queue, void *recording)
{
    CiCudaStay stay;
    if (!ci_cuda_enter(&stay, queue))
        (void)ci_cuda_leave(&stay, stay.driver->exec_close(recording));
}

int
ci_cuda_synchronize_all(const CiCudaStay *stay)
{
    pthread_mutex_lock(&stay->state->recording);
    int result = stay->driver->synchronize_all();
    pthread_mutex_unlock(&stay->state->recording);
    return result;
}
