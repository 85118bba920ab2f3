/* Launches of a kernel's functions. */
#include "device/gpu/gpu.h"

static void
add(CiGpuParameters *p, const void *value, size_t bytes)
{
    p->bytes[p->count] = (unsigned char)bytes;
    p->values[p->count++] = value;
}

static void
add_scalar(CiGpuParameters *p, const CiSlot *slot, CiDtype type)
{
    bool is_narrow = type == CI_DTYPE_f32 || type == CI_DTYPE_c64;
    float *narrow = p->narrow[p->count];
    for (int k = 0; k < ci_dtype_size(type) / 4 && is_narrow; k++)
        narrow[k] = (float)slot->c[k];
    add(p, is_narrow ? (const void *)narrow : slot, (size_t)ci_dtype_size(type));
}

static void
fill_parameters(const CiGpuLayout *layout, const CiLaunch *launch, CiGpuParameters *p)
{
    p->count = 0;
    for (int k = 0; k < layout->nbuffers; k++)
        add(p, &launch->buffers[layout->buffers[k]], 0);
    for (int k = 0; k < layout->nsizes; k++)
        add(p, &launch->sizes[k], sizeof(int64_t));
    for (int k = 0; k < layout->nslots; k++)
        add_scalar(p, &launch->scalars[layout->slots[k]], layout->slot_types[k]);
}

static int
start(const CiGpuDriver *driver, void *arg, const CiGpuFunction *function, int64_t blocks, const CiGpuParameters *p)
{
    return blocks > 0 ? driver->run(arg, function, blocks, p) : 0;
}

/* Starts both functions of a split kernel; partial results are in memory of the launch. */
static int
start_both(const CiGpuDriver *driver, void *arg, const CiGpuLayout *layout, const int64_t *numbers, CiGpuParameters *p)
{
    void *partials = NULL;
    int64_t bytes = numbers[CI_LAUNCH_partial_bytes];
    bytes = bytes > 0 ? (bytes + 3) / 4 * 4 : 4;
    int result = driver->take(arg, (size_t)bytes, &partials);
    if (result)
        return result;
    add(p, &partials, 0);
    if (layout->notifies)
        result = driver->clear(arg, partials, (size_t)bytes);
    for (int k = 0; k < 2 && !result; k++)
        result = start(driver, arg, &layout->functions[k], numbers[k ? CI_LAUNCH_finish_units : CI_LAUNCH_units], p);
    int given = driver->give(arg, partials, (size_t)bytes);
    return result ? result : given;
}

/* Waits for the kernel, because the host must know whether to continue. */
static int
start_checked(const CiGpuDriver *driver, void *arg, const CiGpuLayout *layout, const int64_t *numbers, CiGpuParameters *p,
              int *failed)
{
    void *place = NULL;
    int result = driver->take(arg, sizeof *failed, &place);
    if (result)
        return result;
    add(p, &place, 0);
    result = driver->clear(arg, place, sizeof *failed);
    if (!result)
        result = start(driver, arg, &layout->functions[0], numbers[CI_LAUNCH_units], p);
    if (!result)
        result = driver->read(arg, failed, place, sizeof *failed);
    int given = driver->give(arg, place, sizeof *failed);
    return result ? result : given;
}

int
ci_gpu_launch(const CiGpuDriver *driver, void *arg, const CiGpuLayout *layout,
              const CiLaunch *launch, int *failed)
{
    CiGpuParameters p;
    int64_t numbers[CI_LAUNCH_COUNT];
    *failed = 0;
    ci_size_table_fill(&layout->launch, launch->sizes, numbers);
    fill_parameters(layout, launch, &p);
    if (layout->has_checks)
        return start_checked(driver, arg, layout, numbers, &p, failed);
    if (layout->has_finish)
        return start_both(driver, arg, layout, numbers, &p);
    return start(driver, arg, &layout->functions[0], numbers[CI_LAUNCH_units], &p);
}
