/* np.convolve and np.correlate of elements T: a thread computes one element of the result. */
typedef long long L;

extern "C" __global__ void __launch_bounds__(256)
kslide(const T *a, const L n, const L a_step, const T *v, const L m, const L v_step, T *y, const L count, const L y_step, const L first, const bool is_turned, const bool is_backward)
{
    const L e = blockIdx.x*256LL + threadIdx.x, f = first + e;
    if (e >= count)
        return;
    T sum = 0;
    const L low = f < n ? 0 : f - n + 1, high = f < m ? f : m - 1;
    for (L k = high; k >= low; k--)
        sum += a[(f - k)*a_step] * v[(is_turned ? m - 1 - k : k)*v_step];
    y[(is_backward ? count - 1 - e : e)*y_step] = sum;
}
