/* OpenCL's devices for cinductor. What _device.c and _kernels.c share. */
#ifndef CINDUCTOR_OPENCL_H
#define CINDUCTOR_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>

#include "device/toolkit.h"

#include <pthread.h>

/* The functions of the ICD loader, found when the package registers its device. */
#define CL_TABLE                                                                                   \
    CL(GetPlatformIDs) CL(GetDeviceIDs) CL(GetDeviceInfo) CL(CreateContext)    \
    CL(CreateCommandQueueWithProperties) CL(ReleaseCommandQueue) CL(Finish) CL(Flush)              \
    CL(SVMAlloc) CL(EnqueueSVMFree) CL(EnqueueSVMMemcpy) CL(EnqueueSVMMemFill)                     \
    CL(CreateProgramWithSource) CL(CreateProgramWithBinary) CL(BuildProgram)                       \
    CL(GetProgramBuildInfo) CL(GetProgramInfo) CL(ReleaseProgram) CL(CreateKernel)                 \
    CL(ReleaseKernel) CL(GetKernelWorkGroupInfo) CL(SetKernelArg) CL(SetKernelArgSVMPointer)       \
    CL(EnqueueNDRangeKernel) CL(EnqueueMarkerWithWaitList) CL(EnqueueBarrierWithWaitList)          \
    CL(WaitForEvents) CL(RetainEvent) CL(ReleaseEvent) CL(GetEventProfilingInfo)

typedef struct OpenCL {
#define CL(name) __typeof__(cl##name) *name;
    CL_TABLE
#undef CL
} OpenCL;

typedef struct Stream {
    cl_command_queue queue;
    struct Stream *next;
} Stream;

typedef struct Device {
    cl_device_id id;
    cl_context context;
    Stream *streams; /* its own, then those that are open, under a lock */
    char about[400]; /* its name and driver, on which its binaries depend */
    cl_ulong memory, local_bytes;
    size_t group, parameter_bytes; /* most threads of a block, bytes of a kernel's arguments */
    cl_uint units;
    bool has_f64, has_atomic64;
} Device;

#define MAX_DEVICES 16

extern const CiToolkit *kit;
extern OpenCL cl;
extern Device devices[MAX_DEVICES];
extern Device every; /* what all of them have */
extern const CiGpuVendor opencl_vendor;

/* _kernels.c: the dialect for what all devices have. */
void adapt_dialect(void);
/* _device.c: remembers an error of this thread; a CiStatus. */
int32_t status_of(int error);
cl_command_queue queue_of(const CiQueue *queue);

#endif
