/* How a machine runs the axes of a kernel: in lanes, in tiles, in chunks that are shared out among threads.
 *
 * Labels follow from the kernel and the machine alone, and none changes a bit of the results. So no kernel has
 * them. Codegen writes them into procs; the scheduler asks here where scratch would fit.
 *
 * Lanes. Exactly one axis has them: the last outer one, of which all stages then work on a tile, or the last inner
 * axis of each stage. Locals and rows are per lane if the lanes are outside.
 *
 * Tiles. Where an elementwise kernel reads an array across, one outer axis has rows of tiles: a unit is a tile of that
 * axis and the last. Where a row is folded for each pair of points of these axes and depends on the last alone, the
 * rows of a tile are transposed for all of its points.
 *
 * Chunks. If the outer axes give too little parallel work and the first stage is one long fold, the fold is split. A chunk
 * is a power of two times the fold's block, or the subtrees of a pairwise fold, and a finishing function folds the partial
 * results in order. A loop that scans or packs with order-free operations is split likewise. If units start in order, it is
 * chained instead, in one function. Then a chunk that fits in a core's cache waits for the running prefix of the chunks
 * before it, and publishes the prefix including its own total. */
#ifndef CI_ANALYSIS_LABELS_H
#define CI_ANALYSIS_LABELS_H

#include "analysis/choices.h"
#include "analysis/cost.h"
#include "ir/kernel.h"

typedef struct CiLabels {
    int *tiles;         /* by outer axis: iterations of a tile, or 0 */
    int *lane_axes;     /* by stage: the inner axis that runs in lanes, or -1 */
    bool has_lanes;     /* the last outer axis runs in lanes, in tiles */
    bool is_chained;    /* a chunk starts from the prefix that the one before publishes */
    bool totals_first;  /* of a chain: each chunk computes its total before it waits */
    const CiExpr *chunk; /* elements of a chunk; NULL: chunks are subtrees, or there are none */
    const CiExpr *chunks; /* at least one, which says how much was packed; NULL: it is not split */
    const CiExpr *unit_work; /* elements that one unit accesses: how many units are worth a thread */
} CiLabels;

/* A kernel whose labels are being chosen. */
typedef struct CiLabeller {
    CiContext *ctx;
    CiSym *sym;
    const CiMachine *machine;
    const CiKernel *kernel;
    CiLabels *labels;
} CiLabeller;

/* The labels of a kernel with loops, whose axes are merged. */
CiLabels ci_labels(CiContext *ctx, CiSym *sym, const CiMachine *machine, const CiKernel *kernel);
/* The labels of a leaf of a tree, which one thread runs. */
CiLabels ci_labels_of_leaf(CiContext *ctx, CiSym *sym, const CiMachine *machine, const CiKernel *leaf);
/* Rows of a few columns are contiguous where an order of sums of the machine's own runs across them. */
bool ci_wants_rows_along(CiContext *ctx, CiSym *sym, const CiMachine *machine, const CiKernel *kernel);

/* Bytes of a unit's scratch up to the end of the first `count` placements, in whole lines of a cache. */
const CiExpr *ci_labels_rows_end(CiSym *sym, const CiLabels *labels, const CiKernel *kernel, int count);

/* chunks.c: the first stage in chunks. */
bool ci_can_split(const CiMachine *machine, const CiKernel *kernel);
/* Sets chunks of the kernel's reduction or scan of `length` elements, if it is long. tile: points of a unit. */
void ci_label_chunks(CiLabeller *l, const CiExpr *length, int64_t tile);

/* lane_rows.c: lanes on the last axis, each with a row, where rows are read again; false if none are. */
bool ci_label_lane_rows(CiLabeller *l);

/* tree_work.c: the elements that a unit of a tree accesses: one iteration of its outer loops. */
const CiExpr *ci_tree_work(CiSym *sym, const CiKernel *kernel);
/* The points of a kernel's outer axes. */
CiAmount ci_kernel_points(const CiKernel *kernel);
/* The elements that all units access; CI_INFINITY: no bound is known. */
int64_t ci_kernel_work(CiSym *sym, const CiKernel *kernel);
/* The largest value of e, or more, for all values of a symbol in [low, limit), when it is known at which end that is;
 * else NULL. */
const CiExpr *ci_largest_over(CiSym *sym, const CiExpr *e, const CiExpr *symbol, int64_t low, const CiExpr *limit);
/* Bytes of the widest element that nests of the stage load or store; at least 1. */
int64_t ci_stage_widest_element(const CiStage *stage);

#endif
