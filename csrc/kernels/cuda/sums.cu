/* Exact sums at indices (device/cuda/scatter.c), whose order does not matter: superaccumulators of fixed point, as in
 * Collange, Defour, Graillat & Iakymchuk 2015. T: an element. U: its bits. FRACTION: of them, of the fraction. PARTS: pieces of
 * PART_BITS bits that a fraction consists of, of which each is added by one atomic operation.
 *
 * A sum is LIMBS numbers. Number k counts units of 2**(16 k) times the least float; a piece goes to the number of the
 * highest unit that divides it. The last number says which infinities and NaN were added. LEAST: the exponent of the least float. */
#include "kernels/cuda/await.cuh"
typedef long long L;
typedef unsigned long long M;

/* Two numbers that one access moves. */
struct __align__(16) Pair {
    M first, second;
};

enum { EXPONENTS = (1 << (8*(int)sizeof(U) - 1 - FRACTION)) - 1, LIMBS = (EXPONENTS - 2 + (PARTS - 1)*PART_BITS)/16 + 1 };
enum { POSITIVE = 1, NEGATIVE = 2, NEITHER = 4 };

static __device__ int exponent(const U bits) { return (int)(bits >> FRACTION) & EXPONENTS; }
static __device__ U fraction(const U bits) { return bits & (((U)1 << FRACTION) - 1); }
static __device__ bool is_negative(const U bits) { return bits >> (8*sizeof(U) - 1); }
static __device__ int limit(const U bits)
{
    return exponent(bits) < EXPONENTS ? 0 : fraction(bits) ? NEITHER : is_negative(bits) ? NEGATIVE : POSITIVE;
}

/* Piece p of a finite number: its value in units of number *k of a sum. */
static __device__ M piece(const U bits, const int p, int *k)
{
    const int e = exponent(bits), shift = e - (e > 0) + p*PART_BITS;
    const U all = fraction(bits) | (U)(e > 0) << FRACTION;
    const M value = (M)(all >> p*PART_BITS & (((U)1 << PART_BITS) - 1)) << shift % 16;
    *k = shift/16;
    return is_negative(bits) ? -value : value;
}

extern "C" __global__ void __launch_bounds__(256)
kclear(M *sums, const L n)
{
    ci_await_kernels();
    const L first = blockIdx.x*1024LL + 2*threadIdx.x;
    #pragma unroll
    for (int r = 0; r < 2; r++) {
        const L i = first + 512*r;
        if (i + 1 < n)
            *(Pair *)(sums + i) = Pair{0, 0};
        else if (i < n)
            sums[i] = 0;
    }
}

extern "C" __global__ void __launch_bounds__(256)
kadd(const L *where, const U *v, M *sums, const L n, const L targets)
{
    ci_await_kernels();
    const L i = blockIdx.x*256LL + threadIdx.x;
    if (i >= n)
        return;
    M *const own = sums + where[i];
    const U bits = v[i];
    if (limit(bits)) {
        atomicOr(own + LIMBS*targets, (M)limit(bits));
        return;
    }
    for (int p = 0; p < PARTS; p++) {
        int k;
        const M value = piece(bits, p, &k);
        if (value)
            atomicAdd(own + k*targets, value);
    }
}

/* A sum's highest digits of 16 bits, of which `top` is the first one that is not 0. rest: lower digits are not all 0. */
struct Digits {
    M high, low;
    int top;
    bool rest;
};

/* Not inlined, because the assembler would need seconds for add_up. */
static __device__ __noinline__ Digits push(Digits d, const M digit, const int k)
{
    #pragma unroll 1
    for (int g = k - d.top < 8 ? k - d.top : 8; g > 0; g--) {
        d.rest |= (d.low & 0xffff) != 0;
        d.low = d.low >> 16 | d.high << 48;
        d.high >>= 16;
    }
    d.high |= digit << 48;
    d.top = k;
    return d;
}

/* The digits of a sum and a number, or of their negative; returns what is carried out of them: -1 if that is negative. Many
 * loads are issued before the first use. */
static __device__ L add_up(const M *own, const L targets, const U bits, const bool negates, Digits &d)
{
    enum { AT_ONCE = 10 };
    L carry = 0;
    d = Digits{0, 0, 0, false};
    #pragma unroll 1
    for (int first = 0; first < LIMBS + 4; first += AT_ONCE) {
        M limbs[AT_ONCE];
        #pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            limbs[j] = first + j < LIMBS ? own[(first + j)*targets] : 0;
        #pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            for (int p = 0; p < PARTS; p++) {
                int to;
                const M value = piece(bits, p, &to);
                limbs[j] += to == first + j ? value : 0;
            }
            carry += (L)(negates ? -limbs[j] : limbs[j]);
            if (carry & 0xffff)
                d = push(d, carry & 0xffff, first + j);
            carry >>= 16;
        }
    }
    return carry;
}

/* d is not 0. The result is the nearest number, of two equally near ones the even one, or infinity. */
static __device__ T nearest(const Digits &d, const bool negates)
{
    const int empty = __clzll(d.high);
    const M high = d.high << empty | d.low >> (63 - empty) >> 1;
    const bool rest = d.rest || d.low << empty;
    const T value = (T)ldexp((T)(high | rest), 16*(d.top - 3) - empty + LEAST);
    return negates ? -value : value;
}

extern "C" __global__ void __launch_bounds__(256)
kround(const T *base, const M *sums, T *y, const L targets)
{
    ci_await_kernels();
    const L i = blockIdx.x*256LL + threadIdx.x;
    if (i >= targets)
        return;
    const U bits = ((const U *)base)[i];
    const int limits = (int)sums[LIMBS*targets + i] | limit(bits);
    if (limits) {
        const float infinity = __int_as_float(0x7f800000);
        y[i] = (T)(limits == POSITIVE ? infinity : limits == NEGATIVE ? -infinity : infinity - infinity);
        return;
    }
    Digits d;
    bool negates = false;
    #pragma unroll 1
    while (add_up(sums + i, targets, bits, negates, d) < 0)
        negates = true;
    y[i] = d.high ? nearest(d, negates) : exponent(bits) || fraction(bits) ? (T)0 : base[i];
}
