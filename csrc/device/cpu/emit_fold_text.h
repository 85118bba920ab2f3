/* The functions of folds that are printed once per (fold, element type), and the expressions in
 * them. */
#ifndef CI_DEVICE_CPU_EMIT_FOLD_TEXT_H
#define CI_DEVICE_CPU_EMIT_FOLD_TEXT_H

#include "device/cpu/emit_cpu.h"

/* What accumulators start from, as a constant expression. */
const char *ci_cpu_fold_identity(CiCpuEmitter *c, CiOp fold, CiDtype dtype);
/* Does argmax or argmin go over to a value met later? NaN is the extreme; the first of equals
 * stays. */
const char *ci_cpu_fold_takes(CiCpuEmitter *c, CiOp fold, CiDtype dtype, const char *best,
                              const char *value);

#endif
