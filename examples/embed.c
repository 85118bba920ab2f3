/* cinductor in a C program, without Python: a graph in text form is compiled, run and timed.
 *
 *     cc -std=gnu11 -O2 -Icsrc examples/embed.c $(find csrc -name '*.c') -lm -lpthread -ldl -o embed
 *     ./embed            runs the graph below
 *     ./embed kernels    prints that level of it first: graph, loops, kernels, wrapper, json, source
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cinductor.h"
#include "base/os.h"

#define ROWS 1000
#define COLUMNS 64
#define REPEATS 100

/* log(sum(exp(x - max(x)))) + max(x), row by row. */
static const char *const text = "graph logsumexp(in0: f64[1000,64]) {\n"
                                "  %0: f64[1000] = max(in0, axes=[1])       @embed.py:1\n"
                                "  %1: f64[1000,1] = reshape(%0)\n"
                                "  %2: f64[1000,64] = subtract(in0, %1)     @embed.py:2\n"
                                "  %3: f64[1000,64] = exp(%2)               @embed.py:2\n"
                                "  %4: f64[1000] = sum(%3, axes=[1])        @embed.py:3\n"
                                "  %5: f64[1000] = log(%4)                  @embed.py:3\n"
                                "  %6: f64[1000] = add(%5, %0)              @embed.py:3\n"
                                "  return %6\n"
                                "}\n";

static void
print_level(void *wanted, const char *level, const char *level_text)
{
    if (!strcmp(wanted, level))
        printf("%s\n", level_text);
}

/* Returns memory for a result: here one array that every call overwrites. */
static void *
give_result(void *arg, int number, const CiResultBuffer *result)
{
    (void)number;
    return result->rank == 1 && result->sizes[0] == ROWS ? arg : NULL;
}

static double
expected(const double *row)
{
    double most = row[0], sum = 0;
    for (int i = 0; i < COLUMNS; i++)
        most = fmax(most, row[i]);
    for (int i = 0; i < COLUMNS; i++)
        sum += exp(row[i] - most);
    return log(sum) + most;
}

static int
run(CiProgram *program)
{
    static double x[ROWS * COLUMNS], y[ROWS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = sin(i) * 10;
    CiCall call = {.inputs = (void *[]){x}, .new_result = give_result, .arg = y};
    int64_t start = ci_os_time_ns();
    for (int i = 0; i < REPEATS; i++) {
        int32_t status = ci_program_run(program, &call);
        if (status) {
            fprintf(stderr, "the call failed: %s\n", ci_status_text((CiStatus)status));
            return 1;
        }
    }
    double ns = (double)(ci_os_time_ns() - start) / REPEATS, error = 0;
    for (int i = 0; i < ROWS; i++)
        error = fmax(error, fabs(y[i] - expected(x + (ptrdiff_t)i * COLUMNS)));
    printf("%.1f us a call, largest difference %.1e\n", ns / 1e3, error);
    return error > 1e-12;
}

int
main(int argc, char **argv)
{
    char message[CI_API_MESSAGE];
    CiApi *api;
    CiProgram *program;
    CiApiTarget target = {.dump = argc > 1 ? print_level : NULL, .dump_arg = argv[1]};
    if (ci_api_open(&api, 0, NULL)) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    int status = 1;
    if (ci_api_compile_text(api, text, &target, &program, message))
        fprintf(stderr, "%s\n", message);
    else
        status = run(program);
    ci_program_release(program);
    ci_api_close(api);
    return status;
}
