/* What the files of the driver without a card share. */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include <stddef.h>

/* Counts a call of a function of the driver. */
void fake_called(const char *name);
/* The same of one that can fail before it does anything: where $FAKE_CUDA_FAIL is its name, or it is the
 * call that fake_fail_after() chose. */
int fake_stops(const char *name);
#define FAKE_MAY_FAIL                                                                              \
    do {                                                                                           \
        int stops_ = fake_stops(__func__);                                                         \
        if (stops_)                                                                                \
            return stops_;                                                                         \
    } while (0)
/* `result` where $FAKE_CUDA_FAIL is the name, else 0. */
int fake_fails(const char *name, int result);
/* Shared blocks that this process has. */
int fake_shared(void);
/* fake_graph.c. Whether that stream captures. */
int fake_is_capturing(const void *stream);
/* 0, or what a call is told that waits or allocates: on a stream that captures, by a thread that does,
 * while anybody does. It spoils these captures. */
int fake_refuses(const void *stream, int of_thread, int of_all);
/* On a stream that captures. */
int fake_graph_allocate(unsigned long long *at, size_t size, void *stream);
int fake_graph_free(unsigned long long at, void *stream);
int fake_take_down(void *stream, void (*run)(void *data), const void *data, size_t size);
/* That there are, captured or made. */
int fake_graphs(void);
int fake_memory_nodes(void); /* since the process began */
#define FAKE_WRONG_CONTEXT 400
int fake_is_ours(const void *what);
/* The address is of the device that is current. */
void fake_own(const void *what);

#endif
