/* cuBLAS without a card: column-major products on the host, where the fake driver has its memory.
 * Like the real one it refuses leading dimensions that are too small. */
#include <complex.h>
#include <stdlib.h>

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
    int ta, tb, m, n, k, la, lb, lc;
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
    name(&p, (const type *)a + at * step_a, (const type *)b + at * step_b, (type *)c + at * step_c)

int
cublasSetStream_v2(void *handle, void *stream)
{
    (void)handle, (void)stream;
    return 0;
}

int
cublasGemmStridedBatchedEx(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                           const void *alpha, Address a, int type_a, int lead_a, long long step_a,
                           Address b, int type_b, int lead_b, long long step_b, const void *beta,
                           Address c, int type_c, int lead_c, long long step_c, int batch,
                           int compute, int algorithm)
{
    Product p = {transpose_a, transpose_b, m, n, k, lead_a, lead_b, lead_c};
    int wide = type_a == 1 || type_a == 5;
    (void)alpha, (void)beta;
    if (!handle || type_a != type_b || type_b != type_c || algorithm != -1 ||
        compute != (wide ? 70 : 68) || lead_a < (transpose_a ? k : m) ||
        lead_b < (transpose_b ? n : k) || lead_c < m)
        return 7;
    products++;
    for (long long at = 0; at < batch; at++)
        if (type_a == 0)
            RUN(multiply_f32, float);
        else if (type_a == 1)
            RUN(multiply_f64, double);
        else if (type_a == 2)
            RUN(multiply_f16, half);
        else if (type_a == 4)
            RUN(multiply_c64, c64);
        else if (type_a == 5)
            RUN(multiply_c128, c128);
        else
            return 15;
    return 0;
}
