/* Functions of torch for an emulated GPU, which the linker finds before libtorch's own: tensors of the host pass for tensors of the first CUDA
 * device, whose memory the fake driver has in the host's. With $EMULATED_NUMBERS_ON_HOST, tensors without axes stay on the host. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct Tensor *Handle;

typedef struct View {
    void *data;
    int32_t device_type, device_id, ndim;
} View;

typedef struct Table {
    uint32_t major, minor;
    void *older, *allocate, *managed_from, *managed_to;
    int (*view)(void *object, View *out);
    int (*stream)(int32_t type, int32_t index, void **stream);
} Table;

EXPORT Table *emulated_table(const Table *table);
EXPORT int32_t aoti_torch_empty_strided(int64_t rank, const int64_t *sizes, const int64_t *strides, int32_t dtype, int32_t device_type,
                                        int32_t device, Handle *made);
EXPORT int32_t aoti_torch_create_tensor_from_blob_v2(void *data, int64_t rank, const int64_t *sizes, const int64_t *strides, int64_t offset,
                                                     int32_t dtype, int32_t device_type, int32_t device, Handle *made, int32_t layout,
                                                     const uint8_t *opaque, int64_t opaque_size);
EXPORT int32_t aoti_torch_cuda_mm_out(Handle out, Handle a, Handle b);
EXPORT int32_t aoti_torch_cuda_bmm_out(Handle out, Handle a, Handle b);
EXPORT int32_t aoti_torch_cuda_addmm_out(Handle out, Handle c, Handle a, Handle b, double beta, double alpha);
EXPORT int32_t aoti_torch_cuda_baddbmm_out(Handle out, Handle c, Handle a, Handle b, double beta, double alpha);

static Table emulated;
static int (*real_view)(void *object, View *out);

static void *
real(const char *name)
{
    static void *library;
    if (!library)
        library = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
    return dlsym(library, name);
}

static int
view(void *object, View *out)
{
    int status = real_view(object, out);
    if (!status && (out->ndim > 0 || !getenv("EMULATED_NUMBERS_ON_HOST")))
        out->device_type = 2;
    return status;
}

static int
stream(int32_t type, int32_t index, void **made)
{
    (void)type, (void)index;
    *made = NULL;
    return 0;
}

Table *
emulated_table(const Table *table)
{
    emulated = *table;
    real_view = table->view;
    emulated.view = view;
    emulated.stream = stream;
    return &emulated;
}

int32_t
aoti_torch_empty_strided(int64_t rank, const int64_t *sizes, const int64_t *strides, int32_t dtype, int32_t device_type, int32_t device,
                         Handle *made)
{
    int32_t (*function)(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, Handle *) = real("aoti_torch_empty_strided");
    (void)device_type, (void)device;
    return function(rank, sizes, strides, dtype, 0, 0, made);
}

int32_t
aoti_torch_create_tensor_from_blob_v2(void *data, int64_t rank, const int64_t *sizes, const int64_t *strides, int64_t offset, int32_t dtype,
                                      int32_t device_type, int32_t device, Handle *made, int32_t layout, const uint8_t *opaque, int64_t opaque_size)
{
    int32_t (*function)(void *, int64_t, const int64_t *, const int64_t *, int64_t, int32_t, int32_t, int32_t, Handle *, int32_t, const uint8_t *,
                        int64_t) = real("aoti_torch_create_tensor_from_blob_v2");
    (void)device_type, (void)device;
    return function(data, rank, sizes, strides, offset, dtype, 0, 0, made, layout, opaque, opaque_size);
}

int32_t
aoti_torch_cuda_mm_out(Handle out, Handle a, Handle b)
{
    int32_t (*function)(Handle, Handle, Handle) = real("aoti_torch_cpu_mm_out");
    return function(out, a, b);
}

int32_t
aoti_torch_cuda_bmm_out(Handle out, Handle a, Handle b)
{
    int32_t (*function)(Handle, Handle, Handle) = real("aoti_torch_cpu_bmm_out");
    return function(out, a, b);
}

int32_t
aoti_torch_cuda_addmm_out(Handle out, Handle c, Handle a, Handle b, double beta, double alpha)
{
    int32_t (*function)(Handle, Handle, Handle, Handle, double, double) = real("aoti_torch_cpu_addmm_out");
    return function(out, c, a, b, beta, alpha);
}

int32_t
aoti_torch_cuda_baddbmm_out(Handle out, Handle c, Handle a, Handle b, double beta, double alpha)
{
    int32_t (*function)(Handle, Handle, Handle, Handle, double, double) = real("aoti_torch_cpu_baddbmm_out");
    return function(out, c, a, b, beta, alpha);
}
