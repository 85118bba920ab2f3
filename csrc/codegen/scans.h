/* Loops that accumulate or count as they go, shared out to the threads of a block. */
#ifndef CI_CODEGEN_SCANS_H
#define CI_CODEGEN_SCANS_H

#include "codegen/grid.h"

/* True if the loop scans or compresses and its iterations are otherwise independent. */
bool ci_scan_fits(const CiBuild *b, const CiStmt *loop);
/* bytes: of shared memory that the block has so far. */
void ci_scan_share(CiBuild *b, int threads, int64_t *bytes,
                   const CiStmt *loop);
/* Neighbours that one access of a thread moves. */
int ci_scan_lanes(const CiBuild *b, const CiStmt *loop);

#endif
