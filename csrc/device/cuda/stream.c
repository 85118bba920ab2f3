/* Streams and events. */
#include "device/cuda/driver.h"

enum { STREAM_non_blocking = 1 }; /* it waits for no other, unless an event says so */

int32_t
ci_cuda_stream_open(const CiQueue *queue, void **stream)
{
    CiCudaState *state = ci_cuda_state(queue);
    CUstream made = NULL;
    int32_t status = ci_cuda_enter(state);
    if (!status)
        status = ci_cuda_leave(state, state->driver.stream_open(&made, STREAM_non_blocking));
    *stream = made;
    return status;
}

void
ci_cuda_stream_close(const CiQueue *queue, void *stream)
{
    CiCudaState *state = ci_cuda_state(queue);
    if (ci_cuda_enter(state))
        return;
    (void)state->driver.synchronize(stream);
    (void)ci_cuda_leave(state, state->driver.stream_close(stream));
}

int32_t
ci_cuda_event_open(const CiQueue *queue, void **event)
{
    CiCudaState *state = ci_cuda_state(queue);
    CUevent made = NULL;
    int32_t status = ci_cuda_enter(state);
    if (!status)
        status = ci_cuda_leave(state, state->driver.event_open(&made, 0));
    *event = made;
    return status;
}

void
ci_cuda_event_close(const CiQueue *queue, void *event)
{
    CiCudaState *state = ci_cuda_state(queue);
    if (!ci_cuda_enter(state))
        (void)ci_cuda_leave(state, state->driver.event_close(event));
}

int32_t
ci_cuda_event_record(const CiQueue *queue, void *event)
{
    CiCudaState *state = ci_cuda_state(queue);
    int32_t status = ci_cuda_enter(state);
    return status ? status : ci_cuda_leave(state, state->driver.event_record(event, queue->stream));
}

int32_t
ci_cuda_event_wait(const CiQueue *queue, void *event)
{
    CiCudaState *state = ci_cuda_state(queue);
    int32_t status = ci_cuda_enter(state);
    return status ? status
                  : ci_cuda_leave(state, state->driver.event_wait(queue->stream, event, 0));
}

int32_t
ci_cuda_event_synchronize(const CiQueue *queue, void *event)
{
    CiCudaState *state = ci_cuda_state(queue);
    int32_t status = ci_cuda_enter(state);
    return status ? status : ci_cuda_leave(state, state->driver.event_synchronize(event));
}

int32_t
ci_cuda_event_elapsed(const CiQueue *queue, void *first, void *second, double *ms)
{
    CiCudaState *state = ci_cuda_state(queue);
    int32_t status = ci_cuda_enter(state);
    float passed = 0.0f;
    if (!status)
        status = ci_cuda_leave(state, state->driver.event_elapsed(&passed, first, second));
    *ms = (double)passed;
    return status;
}
