/* np.searchsorted: a thread searches for one value by bisection. */
#include "kernels/cuda/keys.cuh"

extern "C" __global__ void __launch_bounds__(256)
ksearch(const T *a, const T *v, L *y, const L n, const L step, const Rows from, const Rows to, const bool right)
{
    const L e = blockIdx.x*256LL + threadIdx.x;
    if (e >= to.rows)
        return;
    const K wanted = key(v[start(from, e)]);
    L low = 0, high = n;
    while (low < high) {
        const L middle = low + (high - low)/2;
        const K k = key(a[middle*step]);
        if (right ? k <= wanted : k < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    y[start(to, e)] = low;
}
