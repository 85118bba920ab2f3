/* Tiles of a factor in shared memory, in the order that `multiply` reads (ir/proc.h). */
#ifndef CI_KERNELS_GPU_TILES_H
#define CI_KERNELS_GPU_TILES_H

#include "kernels/kernels.h"

enum {
    CI_TILE_CHUNK = 8, /* elements that are neighbours in memory and in a tile */
    CI_TILE_LINE = 64  /* elements of a line of a tile, 128 bytes; steps of one `multiply` */
};

/* The tiles of a factor, which has rows (or columns) and steps. */
typedef struct CiTile {
    const CiHole *hole;
    CiDtype dtype;
    const CiExpr *side_var, *step_var;       /* of the hole */
    const CiExpr *side_extent, *step_extent;
    int side, threads;                       /* rows or columns of a tile; threads that fill it */
    int steps;                               /* of the tiles that are filled together: a multiple of a line */
    const CiSymbols *others;                 /* of the hole */
    CiMemory *memory;
    bool is_across; /* chunks are along rows (columns), not along steps */
    bool is_copied;
    int lanes;      /* elements that are computed at once */
} CiTile;

/* Allocates `copies` tiles from a byte of shared memory on, which moves to their end. */
void ci_tile_open(CiBuild *b, CiTile *tile, const char *stem, int copies, int64_t *offset);
int64_t ci_tile_size(const CiTile *tile);
/* A thread's share of the copies, or of the elements that are computed, of the tile at `position`. */
void ci_tile_bring(CiBuild *b, const CiTile *tile, const CiExpr *thread, const CiExpr *position,
                   const CiExpr *first_side, const CiExpr *first_step);
/* e % count if is_rest, else e / count; a symbol below the limit. */
const CiExpr *ci_tile_part(CiBuild *b, const CiExpr *e, int64_t count, bool is_rest, int64_t limit);

#endif
