/* The first statement of kernels that start early (ci_cuda_launch_early). */
static __device__ void
ci_await_kernels()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
