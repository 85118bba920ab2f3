/* Properties of a device for the scheduler: plain data, filled in by the device. */
#ifndef CI_IR_TARGET_H
#define CI_IR_TARGET_H

#include "ir/op.h"

typedef struct CiTarget {
    const char *device;            /* "cpu" */
    const char *backend;           /* "c" */
    bool has_trees;                /* runs loops and branches around nests inside one kernel */
    bool has_batches;              /* library calls of a stack may be made one problem after another */
    bool has_lanes_across_threads; /* GPU: lanes of a row are threads of a block */
    int64_t row_bytes; /* most bytes of scratch an outer iteration may hold (stays in near cache) */
    bool has_short_rows; /* rows of unknown length have a second form, for where they are short */
    bool has_rows_of_any_size; /* scratch may be of a size that only a launch knows */
    int64_t tile_rows; /* of a tile of two axes, in which what lies across is turned; 0: none */
    bool has_templates;        /* kernels of csrc/kernels */
    bool has_margins;          /* folds over both axes of a table in one pass */
    bool splits_running;       /* scans and packs in chunks, side by side, in two launches */
    bool chains_running;       /* in one, where a chunk waits for those before it */
    bool has_own_order;        /* of float scans, too: chunks of them may begin with sums of others */
    int64_t chunk_elements;    /* elements of work worth a chunk of its own */
    int64_t tree_elements;     /* a statement with more of them is none of a tree's */
    int max_buffers;           /* arrays one kernel may take; INT_MAX: any number */
    int max_fused_nests;
    /* Several threads may combine at one element at once; NULL: never. */
    bool (*has_atomic)(CiOp op, CiDtype dtype);
    bool dtypes[CI_DTYPE_COUNT]; /* that kernels compute in */
    const int64_t *choices; /* values of choices.def that the user asks for; NULL: the rows' */
    bool *asked; /* by row of choices.def: it had an effect on this compile; NULL: not recorded */
} CiTarget;

#endif
