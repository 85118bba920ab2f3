/* Elements as keys: key(x) < key(y) if x comes before y. back(key(x)) is x.
 * T: the bits of an element. K: an unsigned integer at least as wide. IS_FLOAT: elements are floats with infinity
 * INFINITY_BITS, whose NaN comes last; IS_ALIKE: zeros of both signs are equal. IS_SIGNED: they are integers with a sign. */
#include "kernels/cuda/rows.cuh"

static const K SIGN = (K)1 << (8*sizeof(T) - 1);

#if IS_FLOAT
static const K INFINITE = INFINITY_BITS;
/* The order of a float's bits is the order of its magnitude: all bits of a negative number are inverted. */
static __device__ K
key(T x)
{
    const K a = x & ~SIGN;
    if (a > INFINITE)
        return (T)~(T)0;
    if (IS_ALIKE && !a)
        x = 0;
    return x & SIGN ? (T)~x : (K)(x | SIGN);
}
static __device__ T back(K k) { return k & SIGN ? (T)(k ^ SIGN) : (T)~k; }
#elif IS_SIGNED
static __device__ K key(T x) { return x ^ SIGN; }
static __device__ T back(K k) { return (T)(k ^ SIGN); }
#else
static __device__ K key(T x) { return x; }
static __device__ T back(K k) { return (T)k; }
#endif
