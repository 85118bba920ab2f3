/* Texts of the kernels in this folder, one array for each file NAME.cu, which tools/embed_kernels.py writes when the
 * core is built. The head of a file says which types and macros must be defined before its text. */
#ifndef CI_KERNELS_CUDA_TEXTS_H
#define CI_KERNELS_CUDA_TEXTS_H

extern const char ci_cuda_fft_text[];
extern const char ci_cuda_linalg_text[];
extern const char ci_cuda_matmul_text[];
extern const char ci_cuda_quantile_text[];
extern const char ci_cuda_scatter_text[];
extern const char ci_cuda_search_text[];
extern const char ci_cuda_slide_text[];
extern const char ci_cuda_sort_text[];
extern const char ci_cuda_sort_rows_text[];
extern const char ci_cuda_sums_text[];

#endif
