/* An op of a library in C, registered by the functions that libtorch exports for extensions: halve(x) = x / 2. */
#include <stdint.h>

int32_t aoti_torch_library_init_fragment(const char *name, const char *file, uint32_t line, void **made);
int32_t aoti_torch_library_init_impl(const char *name, const char *key, const char *file, uint32_t line, void **made);
int32_t aoti_torch_library_def(void *library, const char *schema);
int32_t aoti_torch_library_impl(void *library, const char *name, void (*fn)(uint64_t *, uint64_t, uint64_t));
int32_t aoti_torch_clone(void *tensor, void **made);
int32_t aoti_torch_get_data_ptr(void *tensor, void **data);
int32_t aoti_torch_get_numel(void *tensor, int64_t *count);
int32_t aoti_torch_delete_tensor_object(void *tensor);

int64_t calls;

static void
halve(uint64_t *stack, uint64_t narguments, uint64_t nresults)
{
    void *x = (void *)stack[0], *y = 0, *data = 0;
    int64_t count = 0;
    (void)narguments;
    (void)nresults;
    aoti_torch_clone(x, &y);
    aoti_torch_get_data_ptr(y, &data);
    aoti_torch_get_numel(y, &count);
    for (int64_t k = 0; k < count; k++)
        ((float *)data)[k] *= 0.5f;
    aoti_torch_delete_tensor_object(x);
    stack[0] = (uint64_t)y;
    calls++;
}

int32_t
add_op(void)
{
    void *library = 0, *on_host = 0; /* they live as long as the process */
    return aoti_torch_library_init_fragment("cinductor_in_c", "custom_op.c", 1, &library) ||
           aoti_torch_library_def(library, "halve(Tensor x) -> Tensor") ||
           aoti_torch_library_init_impl("cinductor_in_c", "CPU", "custom_op.c", 1, &on_host) ||
           aoti_torch_library_impl(on_host, "halve", halve);
}
