/* A fake cuFFT for machines without a GPU. It computes transforms by their definition, in host
 * memory. */
#include "fake_memory.h"

#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

typedef unsigned long long Address;
typedef struct Plan {
    int n, rows, in_step, in_row, out_step, out_row;
} Plan;
static Plan plans[64]; /* n 0: there is none */

EXPORT int cufftPlanMany(int *plan, int rank, int *sizes, int *in, int in_step, int in_row, int *out,
                         int out_step, int out_row, int type, int rows);
EXPORT int cufftDestroy(int plan);
EXPORT int cufftSetStream(int plan, void *stream);
EXPORT int cufftExecC2C(int plan, Address in, Address out, int direction);
EXPORT int cufftExecZ2Z(int plan, Address in, Address out, int direction);
EXPORT int cufftExecR2C(int plan, Address in, Address out);
EXPORT int cufftExecD2Z(int plan, Address in, Address out);
EXPORT int cufftExecC2R(int plan, Address in, Address out);
EXPORT int cufftExecZ2D(int plan, Address in, Address out);

int
cufftPlanMany(int *plan, int rank, int *sizes, int *in, int in_step, int in_row, int *out,
              int out_step, int out_row, int type, int rows)
{
    (void)rank, (void)type;
    int number = 0;
    while (number < 64 && plans[number].n)
        number++;
    if (number == 64 || !in || !out) /* without these the library ignores steps */
        return 1;
    plans[number] = (Plan){sizes[0], rows, in_step, in_row, out_step, out_row};
    *plan = number;
    return 0;
}

int
cufftDestroy(int plan)
{
    bool is_there = plan >= 0 && plan < 64 && plans[plan].n;
    if (is_there)
        plans[plan] = (Plan){0};
    return !is_there;
}

int
cufftSetStream(int plan, void *stream)
{
    (void)stream;
    return plan < 0 || plan >= 64 || !plans[plan].n;
}

/* One output of a transform of n points, of which x has the first ones; the rest of a real
 * signal are their conjugates. */
static double complex
add_up(const double complex *x, int n, int there, int k, int direction)
{
    double complex sum = 0;
    for (int i = 0; i < n; i++) {
        double complex value = i < there ? x[i] : conj(x[n - i]);
        sum += value * cexp(direction * 2 * M_PI * I * ((double)i * k / n));
    }
    return sum;
}

#define TRANSFORM(name, In, Out, in_count, out_count, direction)                                   \
    const Plan p = plans[plan];                                                                    \
    const int n = p.n, half = n / 2 + 1, there = in_count, made = out_count;                       \
    double complex *x = calloc((size_t)there, sizeof *x);                                          \
    FAKE_OPENS_MEMORY;                                                                             \
    (void)half;                                                                                    \
    for (int row = 0; row < p.rows; row++) {                                                       \
        for (int i = 0; i < there; i++)                                                            \
            x[i] = ((const In *)in)[row * p.in_row + i * p.in_step];                               \
        for (int k = 0; k < made; k++)                                                             \
            ((Out *)out)[row * p.out_row + k * p.out_step] = (Out)add_up(x, n, there, k, direction); \
    }                                                                                              \
    free(x);                                                                                       \
    return 0;

int
cufftExecC2C(int plan, Address in, Address out, int direction)
{
    TRANSFORM(C2C, float complex, float complex, n, n, direction)
}

int
cufftExecZ2Z(int plan, Address in, Address out, int direction)
{
    TRANSFORM(Z2Z, double complex, double complex, n, n, direction)
}

int
cufftExecR2C(int plan, Address in, Address out)
{
    TRANSFORM(R2C, float, float complex, n, half, -1)
}

int
cufftExecD2Z(int plan, Address in, Address out)
{
    TRANSFORM(D2Z, double, double complex, n, half, -1)
}

int
cufftExecC2R(int plan, Address in, Address out)
{
    TRANSFORM(C2R, float complex, float, half, n, 1)
}

int
cufftExecZ2D(int plan, Address in, Address out)
{
    TRANSFORM(Z2D, double complex, double, half, n, 1)
}
