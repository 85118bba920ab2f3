/* Stream capture of the fake CUDA driver. Work given to a stream between begin and end of a
 * capture is recorded, and done by each launch of the graph.
 *
 * As in the real driver, a capture refuses the default stream, waiting, allocations that are not
 * nodes of the graph, and other calls of the capturing thread that would do these. A refused call
 * invalidates its capture. */
#include "fake_driver.h"
#include "fake_memory.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_CAPTURES 16
#define THREAD_LOCAL_MODE 1

enum { INVALID = 1, UNSUPPORTED = 900, INVALIDATED = 901, WRONG_THREAD = 908 };

typedef unsigned long long Address;

typedef struct Node {
    struct Node *next;
    void (*run)(void *data);
    char data[];
} Node;

typedef struct Block {
    struct Block *next;
    void *at;
    size_t size;
    int is_freed;
} Block;

/* A captured graph. An instantiated graph is the same object. */
typedef struct Graph {
    void *stream;
    pthread_t thread;
    Node *first, *last;
    Block *blocks;
    int is_spoiled, holders, is_running;
} Graph;

EXPORT int cuStreamBeginCapture_v2(void *stream, int mode);
EXPORT int cuStreamEndCapture(void *stream, void **graph);
EXPORT int cuGraphInstantiateWithFlags(void **made, void *graph, unsigned long long flags);
EXPORT int cuGraphLaunch(void *made, void *stream);
EXPORT void fake_interrupt(void);
EXPORT int cuGraphDestroy(void *graph);
EXPORT int cuGraphExecDestroy(void *made);
EXPORT int fake_take_down(void *stream, void (*run)(void *data), const void *data, size_t size);

static Graph *captures[MAX_CAPTURES];
static int is_interrupted; /* by the next replay */
static int graphs, nodes; /* existing graphs; memory nodes since the process began */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static Graph *
find(const void *stream)
{
    for (int k = 0; k < MAX_CAPTURES; k++)
        if (captures[k] && captures[k]->stream == stream)
            return captures[k];
    return NULL;
}

int
fake_graphs(void)
{
    return graphs;
}

int
fake_memory_nodes(void)
{
    return nodes;
}

int
fake_is_capturing(const void *stream)
{
    pthread_mutex_lock(&lock);
    int is = stream && find(stream);
    pthread_mutex_unlock(&lock);
    return is;
}

int
fake_refuses(const void *stream, int of_thread, int of_all)
{
    int result = 0;
    pthread_mutex_lock(&lock);
    for (int k = 0; k < MAX_CAPTURES; k++) {
        Graph *graph = captures[k];
        if (!graph)
            continue;
        int is_met = of_all || (stream && graph->stream == stream) ||
                     (of_thread && pthread_equal(graph->thread, pthread_self()));
        graph->is_spoiled |= is_met;
        result = is_met ? UNSUPPORTED : result;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* Returns 0 if the stream does not capture; else records the call, unless the capture is already
 * invalid. */
int
fake_take_down(void *stream, void (*run)(void *data), const void *data, size_t size)
{
    pthread_mutex_lock(&lock);
    Graph *graph = stream ? find(stream) : NULL;
    Node *node = graph ? malloc(sizeof *node + size) : NULL;
    if (node) {
        node->next = NULL;
        node->run = run;
        memcpy(node->data, data, size);
        if (graph->last)
            graph->last->next = node;
        else
            graph->first = node;
        graph->last = node;
    }
    pthread_mutex_unlock(&lock);
    return node != NULL;
}

/* ---- memory that is a node ---- */

static void
spoil_contents(void *data)
{
    const Block *block = *(Block **)data;
    FAKE_OPENS_MEMORY;
    memset(block->at, 0xd7, block->size); /* each launch starts with undefined contents */
}

int
fake_graph_allocate(Address *at, size_t size, void *stream)
{
    pthread_mutex_lock(&lock);
    Graph *graph = find(stream);
    Block *block = calloc(1, sizeof *block);
    nodes++;
    *block = (Block){graph->blocks, fake_memory_new(size + 1), size, 0};
    graph->blocks = block;
    *at = (Address)(size_t)block->at;
    pthread_mutex_unlock(&lock);
    fake_own(block->at);
    return fake_take_down(stream, spoil_contents, &block, sizeof block) ? 0 : INVALIDATED;
}

int
fake_graph_free(Address at, void *stream)
{
    int result = INVALID;
    pthread_mutex_lock(&lock);
    Graph *graph = find(stream);
    for (Block *block = graph->blocks; block; block = block->next)
        if ((Address)(size_t)block->at == at && !block->is_freed) {
            block->is_freed = 1;
            result = 0;
        }
    graph->is_spoiled |= result != 0;
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- captures ---- */

int
cuStreamBeginCapture_v2(void *stream, int mode)
{
    FAKE_MAY_FAIL;
    if (!stream)
        return UNSUPPORTED;
    int result = INVALID;
    pthread_mutex_lock(&lock);
    Graph *graph = calloc(1, sizeof *graph);
    *graph = (Graph){.stream = stream, .thread = pthread_self(), .holders = 1};
    for (int k = 0; k < MAX_CAPTURES && result && mode == THREAD_LOCAL_MODE && !find(stream); k++)
        if (!captures[k]) {
            captures[k] = graph;
            graphs++;
            result = 0;
        }
    if (result)
        free(graph);
    pthread_mutex_unlock(&lock);
    return result;
}

/* The caller holds the lock. */
static void
let_go(Graph *graph)
{
    if (--graph->holders)
        return;
    for (Node *next, *node = graph->first; node; node = next) {
        next = node->next;
        free(node);
    }
    for (Block *next, *block = graph->blocks; block; block = next) {
        next = block->next;
        fake_memory_free(block->at);
        free(block);
    }
    free(graph);
}

/* Ends the capture in every case, also if it returns an error. */
int
cuStreamEndCapture(void *stream, void **out)
{
    int stops = fake_stops(__func__), result = 0;
    *out = NULL;
    pthread_mutex_lock(&lock);
    Graph *graph = find(stream);
    if (!graph || !pthread_equal(graph->thread, pthread_self())) {
        pthread_mutex_unlock(&lock);
        return graph ? WRONG_THREAD : INVALID;
    }
    for (int k = 0; k < MAX_CAPTURES; k++)
        if (captures[k] == graph)
            captures[k] = NULL;
    result = stops ? stops : graph->is_spoiled ? INVALIDATED : 0;
    graphs -= result != 0;
    if (result)
        let_go(graph);
    else
        *out = graph;
    pthread_mutex_unlock(&lock);
    return result;
}

int
cuGraphInstantiateWithFlags(void **made, void *what, unsigned long long flags)
{
    FAKE_MAY_FAIL;
    Graph *graph = what;
    for (Block *block = graph->blocks; block; block = block->next)
        if (!block->is_freed)
            return INVALID;
    if (flags)
        return INVALID;
    pthread_mutex_lock(&lock);
    graph->holders++;
    graphs++;
    pthread_mutex_unlock(&lock);
    *made = graph;
    fake_own(graph);
    return 0;
}

void
fake_interrupt(void)
{
    is_interrupted = 1;
}

int
cuGraphLaunch(void *made, void *stream)
{
    FAKE_MAY_FAIL;
    if (is_interrupted)
        raise(SIGINT);
    is_interrupted = 0;
    Graph *graph = made;
    if (!fake_is_internal(made) || !fake_is_internal(stream))
        return FAKE_WRONG_CONTEXT;
    pthread_mutex_lock(&lock);
    int is_running = graph->is_running++;
    pthread_mutex_unlock(&lock);
    if (!is_running && !fake_is_capturing(stream))
        for (Node *node = graph->first; node; node = node->next)
            node->run(node->data);
    pthread_mutex_lock(&lock);
    graph->is_running--;
    pthread_mutex_unlock(&lock);
    return is_running ? INVALID : 0;
}

int
cuGraphDestroy(void *graph)
{
    fake_called(__func__);
    pthread_mutex_lock(&lock);
    graphs--;
    let_go(graph);
    pthread_mutex_unlock(&lock);
    return 0;
}

int
cuGraphExecDestroy(void *made)
{
    fake_called(__func__);
    pthread_mutex_lock(&lock);
    graphs--;
    let_go(made);
    pthread_mutex_unlock(&lock);
    return 0;
}
