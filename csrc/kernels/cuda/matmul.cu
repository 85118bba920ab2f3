/* A product of matrices with any strides: a block computes a tile of 64 times 64 elements, a thread 4 times 4 of it, from
 * strips of 16 in shared memory. Macros: IS_HALF (elements are f16), IS_COMPLEX (elements have parts P), else T (element), S (sum). */
typedef long long L;
#if IS_HALF
typedef unsigned short uint16_t;
typedef uint16_t T;
typedef float S;
static __device__ S
get(T h)
{
    float a;
    asm("cvt.f32.f16 %0, %1;" : "=f"(a) : "h"(h));
    return a;
}
static __device__ T
put(S a)
{
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(a));
    return h;
}
#else
#if IS_COMPLEX
struct T {
    P re, im;
};
typedef T S;
#endif
static __device__ S get(T x) { return (S)x; }
static __device__ T put(S x) { return (T)x; }
#endif
static __device__ S
step(S a, S b, S sum)
{
#if IS_COMPLEX
    return S{sum.re + (a.re*b.re - a.im*b.im), sum.im + (a.re*b.im + a.im*b.re)};
#else
    return sum + a*b;
#endif
}

extern "C" __global__ void __launch_bounds__(256)
kmatmul(const T *a, const T *b, T *c, const L m, const L n, const L k, const L a_row, const L a_column, const L a_batch, const L b_row, const L b_column, const L b_batch, const L c_row, const L c_column, const L c_batch, const L first)
{
    __shared__ S left[16][64 + 1], right[16][64 + 1];
    const int tid = (int)threadIdx.x, x = tid % 16, y = tid / 16;
    const L tiles = (n + 63) / 64, batch = first + blockIdx.y;
    const L row = blockIdx.x / tiles * 64, column = blockIdx.x % tiles * 64;
    const T *const A = a + batch*a_batch, *const B = b + batch*b_batch;
    S sum[4][4] = {};
    for (L at = 0; at < k; at += 16) {
        for (int e = tid; e < 1024; e += 256) {
            const int p = a_column == 1 ? e % 16 : e / 64, i = a_column == 1 ? e / 16 : e % 64;
            const int q = b_row == 1 ? e % 16 : e / 64, j = b_row == 1 ? e / 16 : e % 64;
            left[p][i] = at + p < k && row + i < m ? get(A[(row + i)*a_row + (at + p)*a_column]) : S{};
            right[q][j] = at + q < k && column + j < n ? get(B[(at + q)*b_row + (column + j)*b_column]) : S{};
        }
        __syncthreads();
        #pragma unroll
        for (int p = 0; p < 16; p++)
            #pragma unroll
            for (int i = 0; i < 4; i++)
                #pragma unroll
                for (int j = 0; j < 4; j++)
                    sum[i][j] = step(left[p][y + 16*i], right[p][x + 16*j], sum[i][j]);
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            if (row + y + 16*i < m && column + x + 16*j < n)
                c[batch*c_batch + (row + y + 16*i)*c_row + (column + x + 16*j)*c_column] = put(sum[i][j]);
}
