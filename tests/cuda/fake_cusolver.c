/* A fake cuSOLVER for machines without a GPU. It factors matrices in host memory, by the simplest methods, as
 * complex doubles. */
#include "fake_memory.h"

#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

typedef unsigned long long Address;
typedef double complex Z;

/* A matrix by columns, in memory of type number 0 (float), 1 (double), 4 or 5 (complex). */
static Z
get(int type, Address a, int64_t k)
{
    const float *f = (const float *)a;
    const double *d = (const double *)a;
    return type == 0 ? f[k] : type == 1 ? d[k] : type == 4 ? f[2 * k] + I * f[2 * k + 1] : d[2 * k] + I * d[2 * k + 1];
}

static void
put(int type, Address a, int64_t k, Z z)
{
    float *f = (float *)a;
    double *d = (double *)a;
    if (type == 0)
        f[k] = (float)creal(z);
    else if (type == 1)
        d[k] = creal(z);
    else if (type == 4)
        f[2 * k] = (float)creal(z), f[2 * k + 1] = (float)cimag(z);
    else
        d[2 * k] = creal(z), d[2 * k + 1] = cimag(z);
}

static Z *
read_matrix(int type, Address a, int64_t m, int64_t n, int64_t lead)
{
    Z *x = calloc((size_t)(m * n + 1), sizeof *x);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++)
            x[i + j * m] = get(type, a, i + j * lead);
    return x;
}

static void
write_matrix(int type, Address a, int64_t m, int64_t n, int64_t lead, Z *x)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++)
            put(type, a, i + j * lead, x[i + j * m]);
    free(x);
}

#define START void *handle, void *parameters
#define WORK int compute, Address work, size_t bytes, void *host_work, size_t host_bytes, int *info
#define SIZES int compute, size_t *bytes, size_t *host_bytes
#define UNUSED (void)handle, (void)parameters
#define UNUSED_WORK UNUSED, (void)compute, (void)work, (void)bytes, (void)host_work, (void)host_bytes
#define SIZE_OF_WORK                                                                               \
    UNUSED, (void)compute, *bytes = 64, *host_bytes = 8;                                           \
    return 0

EXPORT int cusolverDnCreate(void **handle);
EXPORT int cusolverDnDestroy(void *handle);
EXPORT int cusolverDnSetStream(void *handle, void *stream);
EXPORT int cusolverDnCreateParams(void **parameters);
EXPORT int cusolverDnDestroyParams(void *parameters);

int
cusolverDnCreate(void **handle)
{
    return (*handle = calloc(1, 1)) == NULL;
}

int
cusolverDnDestroy(void *handle)
{
    free(handle);
    return 0;
}

int
cusolverDnSetStream(void *handle, void *stream)
{
    (void)stream;
    return handle == NULL;
}

int
cusolverDnCreateParams(void **parameters)
{
    return (*parameters = calloc(1, 1)) == NULL;
}

int
cusolverDnDestroyParams(void *parameters)
{
    free(parameters);
    return 0;
}

/* ---- LU, Cholesky ---- */

EXPORT int cusolverDnXgetrf_bufferSize(START, int64_t m, int64_t n, int type, Address a, int64_t lead, SIZES);
EXPORT int cusolverDnXgetrf(START, int64_t m, int64_t n, int type, Address a, int64_t lead, int64_t *pivots, WORK);
EXPORT int cusolverDnXgetrs(START, int transpose, int64_t n, int64_t columns, int type, Address a, int64_t lead,
                            const int64_t *pivots, int type_b, Address b, int64_t lead_b, int *info);
EXPORT int cusolverDnXpotrf_bufferSize(START, int upper, int64_t n, int type, Address a, int64_t lead, SIZES);
EXPORT int cusolverDnXpotrf(START, int upper, int64_t n, int type, Address a, int64_t lead, WORK);

int
cusolverDnXgetrf_bufferSize(START, int64_t m, int64_t n, int type, Address a, int64_t lead, SIZES)
{
    (void)m, (void)n, (void)type, (void)a, (void)lead;
    SIZE_OF_WORK;
}

int
cusolverDnXgetrf(START, int64_t m, int64_t n, int type, Address a, int64_t lead, int64_t *pivots, WORK)
{
    FAKE_OPENS_MEMORY;
    Z *x = read_matrix(type, a, m, n, lead);
    UNUSED_WORK;
    *info = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k; i < n; i++)
            best = cabs(x[i + k * n]) > cabs(x[best + k * n]) ? i : best;
        pivots[k] = best + 1;
        for (int64_t j = 0; j < n; j++) {
            Z had = x[k + j * n];
            x[k + j * n] = x[best + j * n];
            x[best + j * n] = had;
        }
        if (x[k + k * n] == 0) {
            *info = *info ? *info : (int)k + 1;
            continue;
        }
        for (int64_t i = k + 1; i < n; i++) {
            x[i + k * n] /= x[k + k * n];
            for (int64_t j = k + 1; j < n; j++)
                x[i + j * n] -= x[i + k * n] * x[k + j * n];
        }
    }
    write_matrix(type, a, m, n, lead, x);
    return 0;
}

int
cusolverDnXgetrs(START, int transpose, int64_t n, int64_t columns, int type, Address a, int64_t lead,
                 const int64_t *pivots, int type_b, Address b, int64_t lead_b, int *info)
{
    FAKE_OPENS_MEMORY;
    Z *x = read_matrix(type, a, n, n, lead), *y = read_matrix(type_b, b, n, columns, lead_b);
    UNUSED, *info = 0;
    for (int64_t c = 0; c < columns; c++) {
        Z *v = y + c * n;
        for (int64_t i = 0; i < n; i++) {
            Z had = v[i];
            v[i] = v[pivots[i] - 1];
            v[pivots[i] - 1] = had;
        }
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < i; j++)
                v[i] -= x[i + j * n] * v[j];
        for (int64_t i = n - 1; i >= 0; i--) {
            for (int64_t j = i + 1; j < n; j++)
                v[i] -= x[i + j * n] * v[j];
            v[i] /= x[i + i * n];
        }
    }
    free(x);
    write_matrix(type_b, b, n, columns, lead_b, y);
    return transpose != 0;
}

int
cusolverDnXpotrf_bufferSize(START, int upper, int64_t n, int type, Address a, int64_t lead, SIZES)
{
    (void)upper, (void)n, (void)type, (void)a, (void)lead;
    SIZE_OF_WORK;
}

/* Entry i, j of the half that is read. */
#define HALF(x, i, j) (upper ? conj((x)[(j) + (i)*n]) : (x)[(i) + (j)*n])

int
cusolverDnXpotrf(START, int upper, int64_t n, int type, Address a, int64_t lead, WORK)
{
    FAKE_OPENS_MEMORY;
    Z *x = read_matrix(type, a, n, n, lead), *l = calloc((size_t)(n * n), sizeof *l);
    UNUSED_WORK;
    *info = 0;
    for (int64_t j = 0; j < n && !*info; j++)
        for (int64_t i = j; i < n && !*info; i++) {
            Z sum = HALF(x, i, j);
            for (int64_t k = 0; k < j; k++)
                sum -= l[i + k * n] * conj(l[j + k * n]);
            if (i == j && !(creal(sum) > 0))
                *info = (int)j + 1;
            l[i + j * n] = i == j ? sqrt(creal(sum)) : sum / l[j + j * n];
        }
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j; i < n; i++)
            x[upper ? j + i * n : i + j * n] = upper ? conj(l[i + j * n]) : l[i + j * n];
    free(l);
    write_matrix(type, a, n, n, lead, x);
    return 0;
}

/* ---- singular values, and eigenvalues by them ---- */

EXPORT int cusolverDnXsyevd_bufferSize(START, int vectors, int upper, int64_t n, int type, Address a, int64_t lead,
                                       int type_w, Address w, SIZES);
EXPORT int cusolverDnXsyevd(START, int vectors, int upper, int64_t n, int type, Address a, int64_t lead, int type_w,
                            Address w, WORK);
EXPORT int cusolverDnXgesvd_bufferSize(START, signed char job_u, signed char job_v, int64_t m, int64_t n, int type,
                                       Address a, int64_t lead, int type_s, Address s, int type_u, Address u,
                                       int64_t lead_u, int type_v, Address v, int64_t lead_v, SIZES);
EXPORT int cusolverDnXgesvd(START, signed char job_u, signed char job_v, int64_t m, int64_t n, int type, Address a,
                            int64_t lead, int type_s, Address s, int type_u, Address u, int64_t lead_u, int type_v,
                            Address v, int64_t lead_v, WORK);

static Z
inner(const Z *a, const Z *b, int64_t m)
{
    Z sum = 0;
    for (int64_t i = 0; i < m; i++)
        sum += conj(a[i]) * b[i];
    return sum;
}

/* Rotates columns of x, and of v as it does, until those of x are orthogonal. */
static void
orthogonalize(Z *x, int64_t m, int64_t n, Z *v)
{
    for (int64_t k = 0; k < n * n; k++)
        v[k] = k % (n + 1) == 0;
    for (int sweep = 0; sweep < 60; sweep++)
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                double a = creal(inner(x + p * m, x + p * m, m)), b = creal(inner(x + q * m, x + q * m, m));
                Z c = inner(x + p * m, x + q * m, m);
                if (cabs(c) <= 1e-17 * sqrt(a * b) || cabs(c) == 0)
                    continue;
                double zeta = (b - a) / (2 * cabs(c)), t = (zeta < 0 ? -1 : 1) / (fabs(zeta) + sqrt(1 + zeta * zeta)),
                       cosine = 1 / sqrt(1 + t * t);
                Z sine = cosine * t * (c / cabs(c));
                for (int64_t i = 0; i < m + n; i++) {
                    Z *l = i < m ? x + i + p * m : v + (i - m) + p * n, *r = i < m ? x + i + q * m : v + (i - m) + q * n;
                    Z had = *l;
                    *l = cosine * had - conj(sine) * *r;
                    *r = sine * had + cosine * *r;
                }
            }
}

int
cusolverDnXsyevd_bufferSize(START, int vectors, int upper, int64_t n, int type, Address a, int64_t lead, int type_w,
                            Address w, SIZES)
{
    (void)vectors, (void)upper, (void)n, (void)type, (void)a, (void)lead, (void)type_w, (void)w;
    SIZE_OF_WORK;
}

/* Shifted, so that all eigenvalues are positive: then they are the singular values. */
int
cusolverDnXsyevd(START, int vectors, int upper, int64_t n, int type, Address a, int64_t lead, int type_w, Address w,
                 WORK)
{
    FAKE_OPENS_MEMORY;
    Z *x = read_matrix(type, a, n, n, lead), *y = calloc((size_t)(n * n), sizeof *y),
      *v = calloc((size_t)(n * n), sizeof *v);
    double shift = 1;
    UNUSED_WORK;
    *info = 0;
    for (int64_t k = 0; k < n * n; k++)
        shift += cabs(x[k]);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            y[i + j * n] = i == j ? creal(x[i + i * n]) + shift : i > j ? HALF(x, i, j) : conj(HALF(x, j, i));
    orthogonalize(y, n, n, v);
    for (int64_t k = 0; k < n; k++) {
        int64_t least = -1;
        double value = INFINITY;
        for (int64_t j = 0; j < n; j++) {
            double length = sqrt(creal(inner(y + j * n, y + j * n, n)));
            if (length < value)
                value = length, least = j;
        }
        put(type_w, w, k, value - shift);
        for (int64_t i = 0; i < n; i++) {
            x[i + k * n] = v[i + least * n];
            y[i + least * n] = INFINITY;
        }
    }
    free(y);
    free(v);
    if (vectors)
        write_matrix(type, a, n, n, lead, x);
    else
        free(x);
    return 0;
}

int
cusolverDnXgesvd_bufferSize(START, signed char job_u, signed char job_v, int64_t m, int64_t n, int type, Address a,
                            int64_t lead, int type_s, Address s, int type_u, Address u, int64_t lead_u, int type_v,
                            Address v, int64_t lead_v, SIZES)
{
    (void)job_u, (void)job_v, (void)type, (void)a, (void)lead, (void)type_s, (void)s, (void)type_u, (void)u;
    (void)lead_u, (void)type_v, (void)v, (void)lead_v;
    if (m < n)
        return 3;
    SIZE_OF_WORK;
}

/* The column becomes orthogonal to those before it, and of length 1; from unit vectors where it vanishes. */
static void
complete(Z *u, int64_t m, int64_t k)
{
    for (int64_t unit = -1; unit < m; unit++) {
        for (int64_t i = 0; i < m && unit >= 0; i++)
            u[i + k * m] = i == unit;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t j = 0; j < k; j++) {
                Z part = inner(u + j * m, u + k * m, m);
                for (int64_t i = 0; i < m; i++)
                    u[i + k * m] -= part * u[i + j * m];
            }
        double length = sqrt(creal(inner(u + k * m, u + k * m, m)));
        if (length < 1e-8)
            continue;
        for (int64_t i = 0; i < m; i++)
            u[i + k * m] /= length;
        return;
    }
}

int
cusolverDnXgesvd(START, signed char job_u, signed char job_v, int64_t m, int64_t n, int type, Address a, int64_t lead,
                 int type_s, Address s, int type_u, Address u, int64_t lead_u, int type_v, Address v, int64_t lead_v,
                 WORK)
{
    FAKE_OPENS_MEMORY;
    int64_t kept = job_u == 'A' ? m : n;
    Z *x = read_matrix(type, a, m, n, lead), *r = calloc((size_t)(n * n), sizeof *r),
      *left = calloc((size_t)(m * kept + 1), sizeof *left), *right = calloc((size_t)(n * n), sizeof *right);
    UNUSED_WORK;
    (void)job_v, *info = 0;
    orthogonalize(x, m, n, r);
    for (int64_t k = 0; k < n; k++) {
        int64_t most = -1;
        double value = -1;
        for (int64_t j = 0; j < n; j++) {
            double length = creal(r[j * n]) == INFINITY ? -1 : sqrt(creal(inner(x + j * m, x + j * m, m)));
            if (length > value)
                value = length, most = j;
        }
        put(type_s, s, k, value);
        for (int64_t i = 0; i < m; i++)
            left[i + k * m] = value > 1e-12 ? x[i + most * m] / value : 0;
        for (int64_t i = 0; i < n; i++)
            right[k + i * n] = conj(r[i + most * n]);
        r[most * n] = INFINITY;
        complete(left, m, k);
    }
    for (int64_t k = n; k < kept; k++)
        complete(left, m, k);
    free(x);
    free(r);
    if (job_u != 'N') {
        write_matrix(type_u, u, m, kept, lead_u, left);
        write_matrix(type_v, v, n, n, lead_v, right);
    } else {
        free(left);
        free(right);
    }
    return 0;
}

/* ---- QR ---- */

EXPORT int cusolverDnXgeqrf_bufferSize(START, int64_t m, int64_t n, int type, Address a, int64_t lead, int type_tau,
                                       Address tau, SIZES);
EXPORT int cusolverDnXgeqrf(START, int64_t m, int64_t n, int type, Address a, int64_t lead, int type_tau, Address tau,
                            WORK);

int
cusolverDnXgeqrf_bufferSize(START, int64_t m, int64_t n, int type, Address a, int64_t lead, int type_tau, Address tau,
                            SIZES)
{
    (void)m, (void)n, (void)type, (void)a, (void)lead, (void)type_tau, (void)tau;
    SIZE_OF_WORK;
}

/* Columns from `first` on lose their part along v, times `factor`; v[k] counts as 1. */
static void
reflect(Z *x, int64_t m, int64_t n, const Z *v, int64_t k, Z factor, int64_t first)
{
    for (int64_t j = first; j < n; j++) {
        Z sum = x[k + j * m];
        for (int64_t i = k + 1; i < m; i++)
            sum += conj(v[i]) * x[i + j * m];
        x[k + j * m] -= factor * sum;
        for (int64_t i = k + 1; i < m; i++)
            x[i + j * m] -= factor * sum * v[i];
    }
}

int
cusolverDnXgeqrf(START, int64_t m, int64_t n, int type, Address a, int64_t lead, int type_tau, Address tau, WORK)
{
    FAKE_OPENS_MEMORY;
    Z *x = read_matrix(type, a, m, n, lead);
    UNUSED_WORK;
    *info = 0;
    for (int64_t k = 0; k < m && k < n; k++) {
        Z *column = x + k * m, alpha = column[k];
        double below = creal(inner(column + k + 1, column + k + 1, m - k - 1));
        double length = sqrt(below + creal(alpha * conj(alpha))), beta = creal(alpha) > 0 ? -length : length;
        int is_trivial = below == 0 && cimag(alpha) == 0;
        Z factor = is_trivial ? 0 : (beta - alpha) / beta;
        put(type_tau, tau, k, factor);
        if (is_trivial)
            continue;
        for (int64_t i = k + 1; i < m; i++)
            column[i] /= alpha - beta;
        column[k] = beta;
        reflect(x, m, n, column, k, conj(factor), k + 1);
    }
    write_matrix(type, a, m, n, lead, x);
    return 0;
}

static int
make_q(int type, int m, int columns, int k, Address a, int lead, Address tau, int *info)
{
    FAKE_OPENS_MEMORY;
    Z *v = read_matrix(type, a, m, columns, lead), *q = calloc((size_t)m * (size_t)columns + 1, sizeof *q);
    for (int j = 0; j < columns; j++)
        q[j + j * m] = 1;
    for (int i = k - 1; i >= 0; i--)
        reflect(q, m, columns, v + i * m, i, get(type, tau, i), 0);
    free(v);
    write_matrix(type, a, m, columns, lead, q);
    *info = 0;
    return 0;
}

#define Q(name, type)                                                                              \
    EXPORT int name##_bufferSize(void *handle, int m, int n, int k, Address a, int lead, Address tau, int *elements); \
    EXPORT int name(void *handle, int m, int n, int k, Address a, int lead, Address tau, Address work, int elements,  \
                    int *info);                                                                    \
    int name##_bufferSize(void *handle, int m, int n, int k, Address a, int lead, Address tau, int *elements)         \
    {                                                                                              \
        (void)handle, (void)m, (void)n, (void)k, (void)a, (void)lead, (void)tau, *elements = 16;   \
        return 0;                                                                                  \
    }                                                                                              \
    int name(void *handle, int m, int n, int k, Address a, int lead, Address tau, Address work, int elements, \
             int *info)                                                                            \
    {                                                                                              \
        (void)handle, (void)work, (void)elements;                                                  \
        return make_q(type, m, n, k, a, lead, tau, info);                                          \
    }
Q(cusolverDnSorgqr, 0)
Q(cusolverDnDorgqr, 1)
Q(cusolverDnCungqr, 4)
Q(cusolverDnZungqr, 5)
