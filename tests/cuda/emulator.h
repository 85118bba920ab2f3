/* Runs CUDA kernels on the host, one thread of one block at a time. The fake driver calls it for
 * a "cubin" of the fake NVRTC. */
#ifndef EMULATOR_H
#define EMULATOR_H

#include <stddef.h>

/* Returns NULL if the image is not a library of the fake NVRTC. */
void *emulator_open(const void *image);
void emulator_close(void *module);
void *emulator_find(void *module, const char *name);
#define EMULATOR_MAX_BYTES 4096
/* The values of the parameters one after the other, each at a multiple of 16. */
void emulator_pack(const void *function, void *const *parameters, char *values, size_t room);
/* values: as packed. */
void emulator_launch(void *function, unsigned grid_x, unsigned grid_y, unsigned threads,
                     unsigned shared_bytes, char *values);

#endif
