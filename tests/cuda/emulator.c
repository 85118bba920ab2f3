/* Implements the emulator's threads as fibers. A fiber runs until it waits for its warp or its
 * block, and continues when all live threads have arrived.
 *
 * $EMULATOR_ORDER selects which thread runs first. `first` means 0, 1, 2…; `last` is the reverse;
 * `any` is random, so that some warps run far ahead of others. The result of a kernel that lacks a
 * barrier therefore differs between the orders. Kernels that never wait run as plain calls.
 *
 * A fiber is created once as a context and then runs one thread after another. Later switches
 * use longjmp, because swapping contexts makes a system call for the signal mask each time. */
#undef _FORTIFY_SOURCE /* it takes a jump to another stack for an error */
#include "emulator.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define MAX_THREADS 1024
#define WARP 32
#define STACK (1 << 16)
#define WIDEST 16

typedef struct Dim {
    int x, y, z;
} Dim;

/* Functions and state for the kernel's library; host.py declares the same struct. */
typedef struct Runtime {
    Dim thread, block;
    unsigned char *shared;
    void (*wait)(int for_warp);
    void (*exchange)(void *value, int size, int lane);
    void (*collect)(const void *value, int size, void *all);
} Runtime;

typedef struct Kernel {
    Runtime **runtime; /* the library's pointer to it */
    void (*start)(void **parameters);
    const int *sizes; /* of its parameters: how many, then each one's bytes */
    bool waits;
} Kernel;

typedef enum State { STATE_runs, STATE_waits_for_warp, STATE_waits_for_block, STATE_ended } State;

typedef struct Thread {
    jmp_buf at;
    bool has_fiber;
    State state;
    unsigned char value[WIDEST];
} Thread;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one launch at a time */
static Runtime runtime;
static Thread threads[MAX_THREADS];
static unsigned char *stacks;
static jmp_buf scheduler;
static pthread_t owner; /* of the fibers */
static const Kernel *running;
static enum { ORDER_first, ORDER_last, ORDER_any } order;
static uint64_t chance = 1;
static void **running_parameters;

static void
jump(jmp_buf from, jmp_buf to)
{
    if (!_setjmp(from))
        _longjmp(to, 1);
}

static void
wait_for(int for_warp)
{
    Thread *thread = &threads[runtime.thread.x];
    thread->state = for_warp ? STATE_waits_for_warp : STATE_waits_for_block;
    jump(thread->at, scheduler);
}

/* The value becomes that of another lane of the warp. */
static void
exchange(void *value, int size, int lane)
{
    int number = runtime.thread.x, other = number / WARP * WARP + lane;
    memcpy(threads[number].value, value, (size_t)size);
    wait_for(true);
    memcpy(value, threads[other].value, (size_t)size);
    wait_for(true);
}

/* The values of all lanes of the warp. */
static void
collect(const void *value, int size, void *all)
{
    int number = runtime.thread.x;
    memcpy(threads[number].value, value, (size_t)size);
    wait_for(true);
    for (int lane = 0; lane < WARP; lane++)
        memcpy((char *)all + lane * size, threads[number / WARP * WARP + lane].value, (size_t)size);
    wait_for(true);
}

static void
run_threads(void)
{
    for (;;) {
        running->start(running_parameters);
        threads[runtime.thread.x].state = STATE_ended;
        jump(threads[runtime.thread.x].at, scheduler);
    }
}

/* Runs the thread from where it waits, or from its start. Returns when it waits again or ends. */
static void
enter(int number)
{
    Thread *thread = &threads[number];
    ucontext_t context;
    if (thread->has_fiber) {
        jump(scheduler, thread->at);
        return;
    }
    thread->has_fiber = true;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks + (size_t)number * STACK;
    context.uc_stack.ss_size = STACK;
    makecontext(&context, run_threads, 0);
    if (!_setjmp(scheduler))
        setcontext(&context);
}

/* A fiber continues in the host thread that created it. */
static void
own_fibers(void)
{
    for (int k = 0; k < MAX_THREADS && !pthread_equal(owner, pthread_self()); k++)
        threads[k].has_fiber = false;
    owner = pthread_self();
}

static bool
release(int first, int end, State state)
{
    bool has_any = false;
    for (int k = first; k < end; k++) {
        if (threads[k].state == STATE_runs ||
            (threads[k].state != state && threads[k].state != STATE_ended))
            return false;
        has_any |= threads[k].state == state;
    }
    for (int k = first; k < end; k++)
        if (threads[k].state == state)
            threads[k].state = STATE_runs;
    return has_any;
}

static unsigned
draw(void)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (unsigned)(chance >> 32);
}

/* The thread or block that runs as the i-th of count. */
static unsigned
turn(unsigned i, unsigned count, unsigned start)
{
    return order == ORDER_first  ? i
           : order == ORDER_last ? count - 1 - i
                                 : (unsigned)((i * UINT64_C(1000003) + start) % count);
}

/* One round: every runnable thread runs until it waits. */
static void
loop_iterations(int count)
{
    unsigned start = draw(), resting = order == ORDER_any ? draw() : 0;
    for (int i = 0; i < count; i++) {
        int k = (int)turn((unsigned)i, (unsigned)count, start);
        runtime.thread.x = k;
        if (threads[k].state == STATE_runs && !(resting >> k / WARP & 1) &&
            !(order == ORDER_any && draw() % 4 == 0))
            enter(k);
    }
}

static void
run_block(int count)
{
    for (int k = 0; k < count; k++)
        threads[k].state = STATE_runs;
    for (bool goes_on = true; goes_on;) {
        loop_iterations(count);
        goes_on = false;
        for (int k = 0; k < count; k++)
            goes_on |= threads[k].state == STATE_runs;
        for (int k = 0; k < count; k += WARP)
            goes_on |= release(k, k + WARP < count ? k + WARP : count, STATE_waits_for_warp);
        if (!goes_on)
            goes_on = release(0, count, STATE_waits_for_block);
    }
    for (int k = 0; k < count; k++)
        if (threads[k].state != STATE_ended)
            abort(); /* threads wait for each other at different barriers */
}

void *
emulator_open(const void *image)
{
    return *(const char *)image == '/' ? dlopen(image, RTLD_NOW | RTLD_LOCAL) : NULL;
}

void
emulator_close(void *module)
{
    dlclose(module);
}

void *
emulator_find(void *module, const char *name)
{
    char symbol[256] = "start_", sizes[256] = "sizes_";
    Kernel *kernel = calloc(1, sizeof *kernel); /* as long as the process: tests are short */
    void *start = dlsym(module, strncat(symbol, name, sizeof symbol - 16)),
         *waits = dlsym(module, "emulator_waits");
    if (!kernel || !start || !waits)
        return NULL;
    kernel->runtime = dlsym(module, "emulator_runtime");
    memcpy(&kernel->start, &start, sizeof start);
    kernel->sizes = dlsym(module, strncat(sizes, name, sizeof sizes - 16));
    kernel->waits = *(const int *)waits;
    return kernel;
}

static size_t
room_of(int size)
{
    return ((size_t)size + WIDEST - 1) / WIDEST * WIDEST;
}

void
emulator_pack(const void *function, void *const *parameters, char *values, size_t room)
{
    const int *sizes = ((const Kernel *)function)->sizes;
    size_t at = 0;
    for (int k = 0; k < sizes[0]; k++) {
        if (at + room_of(sizes[k + 1]) > room)
            abort();
        memcpy(values + at, parameters[k], (size_t)sizes[k + 1]);
        at += room_of(sizes[k + 1]);
    }
}

void
emulator_launch(void *function, unsigned grid_x, unsigned grid_y, unsigned count,
                unsigned shared_bytes, char *values)
{
    const Kernel *kernel = function;
    void *parameters[EMULATOR_MAX_BYTES / WIDEST];
    for (int k = 0; k < kernel->sizes[0]; k++) {
        parameters[k] = values;
        values += room_of(kernel->sizes[k + 1]);
    }
    const char *wanted = getenv("EMULATOR_ORDER");
    pthread_mutex_lock(&lock);
    runtime = (Runtime){.shared = aligned_alloc(64, (shared_bytes + 64) / 64 * 64),
                        .wait = wait_for,
                        .exchange = exchange,
                        .collect = collect};
    memset(runtime.shared, 0x5a, shared_bytes);
    if (!stacks)
        stacks = malloc((size_t)STACK * MAX_THREADS);
    own_fibers();
    order = !wanted || !strcmp(wanted, "first") ? ORDER_first
            : !strcmp(wanted, "last")           ? ORDER_last
                                                : ORDER_any;
    running = kernel;
    running_parameters = parameters;
    *kernel->runtime = &runtime;
    for (unsigned y = 0; y < grid_y; y++)
        for (unsigned i = 0; i < grid_x; i++) {
            runtime.block = (Dim){(int)turn(i, grid_x, 0), (int)y, 0};
            for (unsigned k = 0; k < count && !kernel->waits; k++) {
                runtime.thread.x = (int)turn(k, count, 0);
                kernel->start(parameters);
            }
            if (kernel->waits)
                run_block((int)count);
        }
    free(runtime.shared);
    pthread_mutex_unlock(&lock);
}
