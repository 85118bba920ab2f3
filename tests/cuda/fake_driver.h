/* Declarations shared by the files of the fake CUDA driver. */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include <stddef.h>

/* Counts a call of a function of the driver. */
void fake_called(const char *name);
/* Counts a call of a function that can fail before it acts. Returns an error code if
 * $FAKE_CUDA_FAIL is its name or fake_fail_after() selected this call, else 0. */
int fake_stops(const char *name);
#define FAKE_MAY_FAIL                                                                              \
    do {                                                                                           \
        int stops_ = fake_stops(__func__);                                                         \
        if (stops_)                                                                                \
            return stops_;                                                                         \
    } while (0)
/* Returns `result` if $FAKE_CUDA_FAIL is the name, else 0. */
int fake_fails(const char *name, int result);
/* Shared blocks that this process has. */
int fake_shared(void);
/* True if the stream captures (fake_graph.c). */
int fake_is_capturing(const void *stream);
/* Returns the error for a call that waits or allocates while a capture would refuse it, else 0.
 * The capture of the stream always counts; `of_thread` adds captures of this thread, `of_all`
 * those of every thread. These captures are invalidated. */
int fake_refuses(const void *stream, int of_thread, int of_all);
/* For a stream that captures. */
int fake_graph_allocate(unsigned long long *at, size_t size, void *stream);
int fake_graph_free(unsigned long long at, void *stream);
int fake_take_down(void *stream, void (*run)(void *data), const void *data, size_t size);
/* Number of graphs that exist, captured or instantiated. */
int fake_graphs(void);
int fake_memory_nodes(void); /* since the process began */
#define FAKE_WRONG_CONTEXT 400
int fake_is_internal(const void *what);
/* Records that the address belongs to the current device. */
void fake_own(const void *what);
/* Device memory: see fake_memory.h. */
void *fake_memory_new(size_t size);
void fake_memory_free(void *block);

#endif
