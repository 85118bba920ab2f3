/* Scans and compresses in parts: what the three policies share (scan.c). */
#ifndef CI_CODEGEN_SCAN_H
#define CI_CODEGEN_SCAN_H

#include "codegen/instantiate.h"

#define CI_MAX_CELLS 16

/* A value that is carried from element to element. */
typedef struct CiCell {
    CiMemory *memory;
    CiOp fold, scan;        /* sum and cumsum; also of a compress, which counts */
    int value;              /* what an element adds: that of a scan, the mask of a compress */
    bool is_count;
    const CiExpr *position; /* of an element in a scan; NULL: a compress */
} CiCell;

typedef struct CiScan CiScan;

/* How the parts of a loop run; see the table in scan.c. */
typedef struct CiScanPolicy {
    void (*enter)(CiScan *s);         /* enters the loop over parts; sets `part` */
    CiMemory *const *(*total)(CiScan *s); /* computes what the part adds: a register for each cell */
    void (*carry)(CiScan *s);         /* sets the cells to their values before the part */
    void (*run)(CiScan *s);           /* runs the loop's body for the elements of the part */
} CiScanPolicy;

/* A policy with a state of its own begins with this struct. */
struct CiScan {
    CiBuild b;
    const CiScanPolicy *policy;
    const CiStmt *loop;
    CiStmts before, after; /* statements of a proc around the loop; the last part runs those after it */
    CiCell cells[CI_MAX_CELLS];
    int ncells;
    const CiExpr *parts, *part;  /* number of parts; index of the current one */
    const CiExpr *first, *count; /* elements of the current part */
};

/* The value of a scan, or of a compress the mask. */
int ci_cell_operand(const CiStmt *stmt);
/* Finds the cells of the loop's scans and compresses. */
void ci_scan_find_cells(CiScan *s);
/* The statements of the body that do not depend on cells; the yield at the end is what cells add. */
CiStmts ci_scan_lift(const CiScan *s);

/* The first two phases of the algorithm: the total of each part, into into[k][part]; the elements of each part. */
void ci_scan_add_totals(CiScan *s, CiMemory *const *into);
void ci_scan_add_elements(CiScan *s);

/* The policies whose parts are chunks of the only loop of a proc. Takes the proc's body, and leaves an empty one. */
void ci_scan_begin_chunks(CiScan *s);
void ci_scan_enter_chunk(CiScan *s);
CiMemory *const *ci_scan_total_of_chunk(CiScan *s);
void ci_scan_run_chunk(CiScan *s);

/* split_scan.c: makes two procs of the builder's proc. */
void ci_split_scan(CiBuild *b);

/* block_scan.c: true if the loop scans or compresses and its iterations are otherwise independent. */
bool ci_block_scan_fits(const CiBuild *b, const CiStmt *loop);
/* bytes: of shared memory that the block has so far. */
void ci_block_scan(CiBuild *b, int threads, int64_t *bytes, const CiStmt *loop);
/* Neighbours that one access of a thread moves. */
int ci_block_scan_lanes(const CiBuild *b, const CiStmt *loop);

#endif
