/* Library calls by name, and kernels that stand as text. */
#include "device/cuda/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- calls ---- */

typedef struct Row {
    const char *name;
    bool (*takes)(const CiExternItem *item);
    int32_t (*run)(const CiQueue *queue, const CiExternCall *call);
    bool records;
} Row;

static const Row rows[] = {
#define LIBRARY(name, takes, run, records) {#name, takes, run, records},
#include "device/cuda/library.def"
};

static const Row *
find_row(const CiExtern *ext)
{
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (!strcmp(rows[k].name, ext->name))
            return &rows[k];
    return NULL;
}

bool
ci_cuda_takes_extern(const CiExternItem *item)
{
    const Row *row = find_row(item->ext);
    return row && row->takes(item);
}

bool
ci_cuda_records_extern(const CiExternItem *item)
{
    return find_row(item->ext)->records;
}

int32_t
ci_cuda_run_extern(const CiQueue *queue, CiOp op, const CiExternCall *call)
{
    (void)op;
    return find_row(call->ext)->run(queue, call);
}

/* ---- operands ---- */

CiCudaRows
ci_cuda_rows(const CiExternCall *call, int k, int axis)
{
    CiCudaRows found = {.rows = 1, .length = 1};
    for (int d = 0; d < call->ranks[k]; d++) {
        int64_t size = call->sizes[k][d], stride = call->strides[k][d];
        if (d == axis) {
            found.length = size;
            found.step = stride;
            continue;
        }
        found.rows *= size;
        found.sizes[found.rank] = size;
        found.strides[found.rank++] = stride;
    }
    return found;
}

CiCudaRows
ci_cuda_elements(const CiExternCall *call, int k)
{
    return ci_cuda_rows(call, k, -1);
}

/* ---- element types ---- */

const char *
ci_cuda_unsigned(int size)
{
    static const char *const types[] = {[1] = "unsigned char",
                                        [2] = "unsigned short",
                                        [4] = "unsigned",
                                        [8] = "unsigned long long"};
    return size < 9 ? types[size] : NULL;
}

const char *
ci_cuda_number(CiDtype dtype)
{
    return dtype == CI_DTYPE_f32   ? "float"
           : dtype == CI_DTYPE_f64 ? "double"
                                   : ci_cuda_unsigned(ci_dtype_size(dtype));
}

/* ---- libraries ---- */

/* Loaded already, where the user says, by the loader's names. */
void *
ci_cuda_open_library(const char *const *names, size_t count, const char *environment)
{
    const char *folder = getenv(environment);
    char path[4096];
    for (int pass = 0; pass < 3; pass++)
        for (size_t k = 0; k < count; k++) {
            bool has_folder = folder && *folder;
            if (pass == 1 && !has_folder)
                continue;
            snprintf(path, sizeof path, "%s%s%s", pass == 1 ? folder : "", pass == 1 ? "/" : "",
                     names[k]);
            void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | (pass == 0 ? RTLD_NOLOAD : 0));
            if (library)
                return library;
        }
    return NULL;
}

/* ---- kernels ---- */

static int32_t
compile(const CiQueue *queue, const CiCudaState *state, const CiCudaText *text,
        const char *beginning, void **cubin)
{
    size_t size = strlen(beginning) + strlen(text->body) + 1;
    char *source = malloc(size);
    if (!source)
        return CI_ERR_MEMORY;
    snprintf(source, size, "%s%s", beginning, text->body);
    CiCudaCompile job = {.source = source,
                         .capability = state->capability,
                         .is_fast = text->is_fast,
                         .where = getenv("CINDUCTOR_NVRTC"),
                         .cache = queue->runtime->cache};
    int32_t status = (int32_t)ci_cuda_compile(&job);
    *cubin = job.cubin;
    free(source);
    return status;
}

static int
find_functions(CiCudaState *state, CiCudaLoaded *loaded, const void *cubin)
{
    const CiCudaText *text = loaded->text;
    int result = state->driver.module_load(&loaded->module, cubin);
    for (int k = 0; k < text->count && !result; k++)
        result = state->driver.module_function(&loaded->functions[k], loaded->module,
                                               text->names[k]);
    return result;
}

static int32_t
load(const CiQueue *queue, CiCudaState *state, CiCudaLoaded *loaded, const char *beginning)
{
    void *cubin = NULL;
    int32_t status = compile(queue, state, loaded->text, beginning, &cubin);
    if (!status && find_functions(state, loaded, cubin))
        status = CI_ERR_DEVICE;
    free(cubin);
    return status;
}

static CiCudaLoaded *
find_loaded(const CiCudaState *state, const CiCudaText *text, int variant)
{
    CiCudaLoaded *loaded = state->loaded;
    while (loaded && (loaded->text != text || loaded->variant != variant))
        loaded = loaded->next;
    return loaded;
}

int32_t
ci_cuda_load_text(const CiQueue *queue, CiCudaState *state, const CiCudaText *text, int variant,
                  const char *beginning, const CUfunction **functions)
{
    int32_t status = CI_OK;
    pthread_mutex_lock(&state->lock);
    CiCudaLoaded *loaded = find_loaded(state, text, variant);
    if (!loaded) {
        loaded = calloc(1, sizeof *loaded);
        status = loaded ? CI_OK : CI_ERR_MEMORY;
        if (loaded) {
            *loaded = (CiCudaLoaded){.text = text, .variant = variant};
            status = load(queue, state, loaded, beginning);
        }
        if (status) {
            free(loaded);
        } else {
            loaded->next = state->loaded;
            state->loaded = loaded;
        }
    }
    *functions = status ? NULL : loaded->functions;
    pthread_mutex_unlock(&state->lock);
    return status;
}

void
ci_cuda_forget_texts(CiCudaState *state)
{
    for (CiCudaLoaded *next, *loaded = state->loaded; loaded; loaded = next) {
        next = loaded->next;
        free(loaded);
    }
    state->loaded = NULL;
}
