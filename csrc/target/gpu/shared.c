/* Prints what the threads of a block share: barriers, and memory for their values. */
#include "target/gpu/print.h"

void
ci_gpu_print_barrier(CiGpuPrinter *p)
{
    ci_text_line(p->c.out, "%s",
                 p->threads <= p->gpu->warp ? p->gpu->warp_barrier : p->gpu->barrier);
}

bool
ci_gpu_declare_shared(CiGpuPrinter *p, CiDtype dtype, const char *name, int count)
{
    CiText *out = p->gpu->shared_is_first ? &p->shared : p->c.out;
    const char *line = ci_format(p->c.ctx, "%s%s %s[%d];", p->gpu->shared_array,
                                 ci_emit_type(dtype), name, count);
    const char *key = ci_intern(p->c.ctx, name);
    bool is_new = !ci_map_find(p->declared, CI_KEY(key));
    ci_map_put(p->declared, CI_KEY(key), p);
    p->shared_bytes += is_new ? (int64_t)count * ci_dtype_size(dtype) : 0;
    if (is_new || !p->gpu->shared_is_first)
        ci_text_line(out, "%s", line);
    return is_new;
}
