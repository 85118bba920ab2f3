/* The wrapper IR: what one call does, line by line, with buffers already placed. Several consumers read the
 * same lines and must agree: the C executor (runtime/execute), the Python printer, the JSON printer, the verifier.
 *
 * A slot holds one pointer while the program runs: an input, an allocation, or a view of nothing. */
#ifndef CI_WRAPPER_WRAPPER_H
#define CI_WRAPPER_WRAPPER_H

#include "ir/kernel.h"

typedef enum CiLineKind {
    CI_LINE_comment,
    CI_LINE_symbol,        /* symbol = size of an input's axis, or an expression of earlier ones */
    CI_LINE_assert_size,   /* an input's sizes and strides; checked by guards, printed for readers and checked by the Python wrapper */
    CI_LINE_alloc,         /* buffer: intermediate, from the device's allocator */
    CI_LINE_alloc_result,  /* buffer: leaves the program, from the caller */
    CI_LINE_reuse,         /* buffer takes over the memory of `other`, dead from here */
    CI_LINE_free,
    CI_LINE_copy_in,       /* host to device, device to host: `other` -> buffer */
    CI_LINE_copy_out,
    CI_LINE_launch,
    CI_LINE_extern,
    CI_LINE_for, CI_LINE_while, CI_LINE_if, CI_LINE_else, CI_LINE_end,
    CI_LINE_return
} CiLineKind;

typedef struct CiLine {
    CiLineKind kind;
    const CiBuffer *buffer, *other;
    const CiExpr *bytes;            /* alloc, free, copy */
    const CiKernel *kernel;         /* launch */
    const CiExternItem *ext;
    const CiExpr *symbol, *value;   /* symbol; for: var and extent */
    const char *text;               /* comment */
    int match;                      /* for/while/if/else: line of the matching end */
    CiLoc loc;
} CiLine;

typedef struct CiWrapper {
    CiContext *ctx;
    const CiKernels *kernels;       /* loops, buffers, results through it */
    CiLine *lines;
    int nlines, caplines;
} CiWrapper;

CiWrapper *ci_wrap(const CiKernels *kernels);
/* Every buffer is allocated before use, freed once, not used after; symbols are defined before use. */
void ci_wrapper_verify(const CiWrapper *wrapper);
void ci_wrapper_print_python(CiText *out, const CiWrapper *wrapper);
void ci_wrapper_print_json(CiText *out, const CiWrapper *wrapper);

#endif
