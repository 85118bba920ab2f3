/* A fake cuBLAS for machines without a GPU. It computes column-major products on the host, where
 * the fake driver keeps its memory.
 *
 * Like the real library it refuses leading dimensions that are too small. On a stream that
 * captures, a product becomes a node of the graph. */
#include "fake_memory.h"

#include <complex.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef unsigned long long Address;
typedef _Float16 half;
typedef float complex c64;
typedef double complex c128;

EXPORT int cublasCreate_v2(void **handle);
EXPORT int cublasDestroy_v2(void *handle);
EXPORT int cublasSetStream_v2(void *handle, void *stream);
EXPORT int cublasGemmStridedBatchedEx(void *handle, int transpose_a, int transpose_b, int m, int n,
                                      int k, const void *alpha, Address a, int type_a, int lead_a,
                                      long long step_a, Address b, int type_b, int lead_b,
                                      long long step_b, const void *beta, Address c, int type_c,
                                      int lead_c, long long step_c, int batch, int compute,
                                      int algorithm);
EXPORT int fake_products(void);

static int products;
static void *now; /* the handle's stream */

int
cublasCreate_v2(void **handle)
{
    *handle = malloc(1);
    return 0;
}

int
cublasDestroy_v2(void *handle)
{
    free(handle);
    return 0;
}

int
fake_products(void)
{
    return products;
}

typedef struct Product {
    int ta, tb, m, n, k, la, lb, lc, type, batch;
    Address a, b, c;
    long long step_a, step_b, step_c;
} Product;

#define MULTIPLY(name, type, sum_type)                                                             \
    static void name(const Product *p, const type *a, const type *b, type *c)                      \
    {                                                                                              \
        for (int j = 0; j < p->n; j++)                                                             \
            for (int i = 0; i < p->m; i++) {                                                       \
                sum_type sum = 0;                                                                  \
                for (long long l = 0; l < p->k; l++)                                               \
                    sum += (sum_type)a[p->ta ? l + (long long)i * p->la : i + l * p->la] *         \
                           (sum_type)b[p->tb ? j + l * p->lb : l + (long long)j * p->lb];          \
                c[i + (long long)j * p->lc] = (type)sum;                                           \
            }                                                                                      \
    }
MULTIPLY(multiply_f16, half, float)
MULTIPLY(multiply_f32, float, float)
MULTIPLY(multiply_f64, double, double)
MULTIPLY(multiply_c64, c64, c64)
MULTIPLY(multiply_c128, c128, c128)

#define RUN(name, type)                                                                            \
    name(p, (const type *)p->a + at * p->step_a, (const type *)p->b + at * p->step_b,              \
         (type *)p->c + at * p->step_c)

static void
run_product(void *data)
{
    const Product *p = data;
    FAKE_OPENS_MEMORY;
    for (long long at = 0; at < p->batch; at++)
        if (p->type == 0)
            RUN(multiply_f32, float);
        else if (p->type == 1)
            RUN(multiply_f64, double);
        else if (p->type == 2)
            RUN(multiply_f16, half);
        else if (p->type == 4)
            RUN(multiply_c64, c64);
        else
            RUN(multiply_c128, c128);
}

/* By the driver, which is another library. */
static int
take_down(const Product *product)
{
    int (*take)(void *, void (*)(void *), const void *, size_t) = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *found = driver ? dlsym(driver, "fake_take_down") : NULL;
    memcpy(&take, &found, sizeof take);
    return take && take(now, run_product, product, sizeof *product);
}

int
cublasSetStream_v2(void *handle, void *stream)
{
    (void)handle;
    now = stream;
    return 0;
}

int
cublasGemmStridedBatchedEx(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                           const void *alpha, Address a, int type_a, int lead_a, long long step_a,
                           Address b, int type_b, int lead_b, long long step_b, const void *beta,
                           Address c, int type_c, int lead_c, long long step_c, int batch,
                           int compute, int algorithm)
{
    Product p = {transpose_a, transpose_b, m, n,     k, lead_a, lead_b, lead_c,
                 type_a,      batch,       a, b,     c, step_a, step_b, step_c};
    int wide = type_a == 1 || type_a == 5;
    (void)alpha, (void)beta;
    if (!handle || type_a != type_b || type_b != type_c || algorithm != -1 ||
        compute != (wide ? 70 : 68) || lead_a < (transpose_a ? k : m) ||
        lead_b < (transpose_b ? n : k) || lead_c < m)
        return 7;
    if (type_a < 0 || type_a > 5 || type_a == 3)
        return 15;
    products++;
    if (!take_down(&p))
        run_product(&p);
    return 0;
}
