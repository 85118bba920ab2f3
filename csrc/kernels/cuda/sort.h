/* Numbers of the radix sort that its kernels (sort.cu) and its launches (device/cuda/sort.c) share. */
#ifndef CI_KERNELS_CUDA_SORT_H
#define CI_KERNELS_CUDA_SORT_H

#define CI_SORT_THREADS 256      /* of a block: one for each value of a digit */
#define CI_SORT_TILE_BYTES 24576 /* keys of a block */
#define CI_SORT_DIGITS 2048      /* counts of a row: of the digits of each pass, */
#define CI_SORT_COUNTS 2304      /* then tiles that have begun in each */

#endif
