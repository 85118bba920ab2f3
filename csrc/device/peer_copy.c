/* Copies from one device to another of its kind, and streams that wait for each other. */
#include "device/device.h"

#include <stdlib.h>

int32_t
ci_device_order(const CiQueue *first, const CiQueue *later)
{
    const CiDevice *device = later->backend->device;
    void *event = NULL;
    if (!device->event_open)
        return device->synchronize(first);
    int32_t status = device->event_open(first, &event);
    if (status)
        return status;
    status = device->event_record(first, event);
    if (!status)
        status = device->event_wait(later, event);
    device->event_close(first, event);
    return status;
}

static int32_t
copy_through_host(const CiQueue *from, const CiQueue *to, void *there, const void *here, size_t size)
{
    const CiDevice *device = to->backend->device;
    void *block = malloc(size ? size : 1);
    if (!block)
        return CI_ERR_MEMORY;
    int32_t status = device->copy_out(from, block, here, size);
    if (!status)
        status = device->copy_in(to, there, block, size);
    free(block);
    return status;
}

int32_t
ci_device_copy_across(const CiQueue *from, const CiQueue *to, void *there, const void *here,
                      size_t size)
{
    const CiDevice *device = to->backend->device;
    if (!device->copy_across)
        return copy_through_host(from, to, there, here, size);
    int32_t status = ci_device_order(from, to);
    if (!status)
        status = device->copy_across(from, to, there, here, size);
    return status ? status : ci_device_order(to, from);
}
