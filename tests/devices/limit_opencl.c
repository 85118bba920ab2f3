/* Is compiled into the example of OpenCL for check_opencl.py: takes f64, atomic operations of 64 bits or local memory from
 * the devices. */
#include "_opencl.h"

void
cinductor_limit(bool has_f64, bool has_atomic64, uint64_t local_bytes)
{
    every.has_f64 = has_f64;
    every.has_atomic64 = has_atomic64;
    for (int k = 0; k < MAX_DEVICES; k++)
        devices[k].local_bytes = local_bytes;
    adapt_dialect();
}
