/* Library calls on device memory: the rows of library.def, and kernels as CUDA text, compiled on
 * first use. */
#ifndef CI_DEVICE_CUDA_LIBRARY_H
#define CI_DEVICE_CUDA_LIBRARY_H

#include "device/cuda/driver.h"

/* The device's takes_extern and run_extern. */
bool ci_cuda_takes_extern(const CiExternItem *item);
bool ci_cuda_records_extern(const CiExternItem *item);
int32_t ci_cuda_run_extern(const CiQueue *queue, CiOp op, const CiExternCall *call);

#define LIBRARY(name, takes, run, records)                                                                  \
    bool takes(const CiExternItem *item);                                                          \
    int32_t run(const CiQueue *queue, const CiExternCall *call);
#include "device/cuda/library.def"

/* Some kernels in one text, for several dtypes. */
typedef struct CiCudaText {
    const char *body; /* of kernels/cuda/texts.h */
    const char *const *names;
    int count; /* of kernels */
    bool is_fast; /* products and sums in one rounding */
} CiCudaText;

#define CI_CUDA_MAX_FUNCTIONS 8
struct CiCudaLoaded {
    CiCudaLoaded *next;
    const CiCudaText *text;
    int variant;
    CUmodule module; /* ends with the context */
    CUfunction functions[CI_CUDA_MAX_FUNCTIONS];
};

/* Compiles the text after `beginning`, which differs for each variant (a number chosen by the
 * text's owner). Stores the kernels in *functions, in order of their names. The context is
 * current. */
int32_t ci_cuda_load_text(const CiQueue *queue, CiCudaState *state, const CiCudaText *text,
                          int variant, const char *beginning, const CUfunction **functions);
void ci_cuda_forget_texts(CiCudaState *state);

/* sort.c. The beginning of a text that orders elements. T: the bits of an element. K: an unsigned
 * integer at least as wide. key(x) < key(y) if x comes before y; NaN comes last, and with `alike`
 * zeros of both signs are equal. back(key(x)) is x. Also declares rows of views. */
void ci_cuda_print_keys(char *out, size_t capacity, CiDtype dtype, bool alike);
bool ci_cuda_has_keys(CiDtype dtype);

/* Rows of a view along one axis, and where each begins: kernels take it by value. */
typedef struct CiCudaRows {
    int64_t rows, length, step; /* elements from one to the next in a row */
    int64_t sizes[CI_MAX_RANK], strides[CI_MAX_RANK]; /* of the other axes */
    int rank;                                         /* how many these are */
} CiCudaRows;

/* library.c. The rows of operand k; the result follows the operands. elements: each element is a
 * row. */
CiCudaRows ci_cuda_rows(const CiExternCall *call, int k, int axis);
CiCudaRows ci_cuda_elements(const CiExternCall *call, int k);

/* sort.c. One sort along rows: what it works in, and how it goes. Its functions are called between
 * ci_cuda_enter and finish, which gives the memory back and leaves. */
typedef struct CiCudaSort {
    const CiQueue *queue;
    CiCudaContextScope scope;
    CiCudaRows from;
    const CiCudaRows *to; /* elements or positions in order are stored there, at y; NULL: nowhere */
    CUdeviceptr y;
    bool wants_positions; /* of the elements in order, too */
    int passes;      /* of 8 bits of the keys; 0: all of an element's */
    const CUfunction *kernels;
    int64_t tiles;
    int key_bytes;
    CUdeviceptr block; /* all of what follows, and its size; 0: there is none */
    size_t bytes;
    CUdeviceptr keys[2], positions[2], counts, states;
    int result;
} CiCudaSort;
int32_t ci_cuda_sort(CiCudaSort *s, const void *elements, CiDtype dtype, bool alike);
/* Rows of keys, and of 32-bit positions in the row, in order. */
CUdeviceptr ci_cuda_sorted_keys(const CiCudaSort *s);
CUdeviceptr ci_cuda_sorted_positions(const CiCudaSort *s);
/* Where nothing has failed so far. */
void ci_cuda_sort_launch(CiCudaSort *s, CUfunction kernel, int64_t blocks, int64_t rows,
                         int threads, int64_t shared_bytes, void **parameters);
int32_t ci_cuda_sort_finish(CiCudaSort *s, int32_t status);
/* The unsigned type of 1, 2, 4 or 8 bytes; NULL: there is none. */
const char *ci_cuda_unsigned(int size);
/* The type that f32, f64 and integers are added in: integers wrap, so theirs has no sign. */
const char *ci_cuda_number(CiDtype dtype);
/* A library of CUDA's by its names, the newest first: one that is loaded, in the folder that a
 * variable of the environment names, or the loader's; NULL: there is none. */
void *ci_cuda_open_library(const char *const *names, size_t count, const char *environment);
/* cufft.c. A transform of rows of n points; false if it could not be issued. in_step, in_row: elements between the points of
 * a row, and between rows. */
typedef struct CiCufft CiCufft;
typedef enum CiCufftType {
    CI_CUFFT_complex = 0x29,
    CI_CUFFT_real_to_complex = 0x2a,
    CI_CUFFT_complex_to_real = 0x2c
} CiCufftType;
typedef struct CiCufftWork {
    int type, direction; /* -1: forward, 1: backward */
    bool is_double;
    int64_t n, rows;
    int64_t in_step, in_row, out_step, out_row;
    CUdeviceptr in, out;
} CiCufftWork;
bool ci_cufft_is_there(void);
bool ci_cufft_transform(CiCudaState *state, const CiCufftWork *work, CUstream stream);
void ci_cufft_shut(CiCudaState *state);

#endif
