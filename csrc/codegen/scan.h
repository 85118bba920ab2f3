/* Parallel scans and compresses: a loop is cut into parts, each part starts from the total of the parts before it. Three
 * policies say how the parts run (CiScanPolicy); scan.c has the algorithm that they share. */
#ifndef CI_CODEGEN_SCAN_H
#define CI_CODEGEN_SCAN_H

#include "codegen/instantiate.h"

#define CI_MAX_CELLS 16

/* A value that a loop carries from element to element: the running value of a scan, or the count of a compress. */
typedef struct CiCell {
    CiMemory *memory;
    CiOp fold, scan;        /* e.g. sum and cumsum; a compress, which counts, has these too */
    int value;              /* what an element contributes: the operand of a scan, the mask of a compress */
    bool is_count;
    const CiExpr *position; /* of the element along the scanned axis; NULL: a compress */
} CiCell;

typedef struct CiScan CiScan;

/* How the parts of a loop run; scan.c has a table of the policies. */
typedef struct CiScanPolicy {
    void (*enter)(CiScan *s);         /* enters the loop over parts; sets `part` */
    CiMemory *const *(*total)(CiScan *s); /* computes what the part adds: a register for each cell */
    void (*carry)(CiScan *s);         /* sets the cells to their values before the part */
    void (*run)(CiScan *s);           /* runs the loop's body for the elements of the part */
} CiScanPolicy;

/* The state of a policy is a struct whose first field is this one. */
struct CiScan {
    CiBuild b;
    const CiScanPolicy *policy;
    const CiStmt *loop;
    CiStmts before, after; /* statements of the proc before and after the loop; the last part runs `after` */
    CiCell cells[CI_MAX_CELLS];
    int ncells;
    const CiExpr *parts, *part;  /* number of parts; index of the current one */
    const CiExpr *first, *count; /* elements of the current part */
};

/* The number of the value that a scan combines, or of a compress's mask. */
int ci_cell_operand(const CiStmt *stmt);
/* Finds the cells of the loop's scans and compresses. */
void ci_scan_find_cells(CiScan *s);
/* Copies the statements of the body that do not depend on cells. The copy yields what each cell adds. */
CiStmts ci_scan_lift(const CiScan *s);

/* Emits phase one, which stores the total of each part in into[k][part]. */
void ci_scan_add_totals(CiScan *s, CiMemory *const *into);
/* Emits phase two, which runs the loop's body for the elements of each part. */
void ci_scan_add_elements(CiScan *s);

/* Functions of the policies whose parts are chunks of a proc's only loop. ci_scan_begin_chunks moves the proc's body to
 * s and leaves the proc an empty one. */
void ci_scan_begin_chunks(CiScan *s);
void ci_scan_enter_chunk(CiScan *s);
CiMemory *const *ci_scan_total_of_chunk(CiScan *s);
void ci_scan_run_chunk(CiScan *s);

/* split_scan.c: splits the builder's proc in two: the totals of all chunks, and their elements. */
void ci_split_scan(CiBuild *b);

/* block_scan.c: true if the loop scans or compresses and its iterations are otherwise independent. */
bool ci_block_scan_fits(const CiBuild *b, const CiStmt *loop);
/* Distributes the loop over the threads of a block. *bytes: shared memory that the block uses so far; increased. */
void ci_block_scan(CiBuild *b, int threads, int64_t *bytes, const CiStmt *loop);
/* Contiguous elements that one access of a thread loads or stores. */
int ci_block_scan_lanes(const CiBuild *b, const CiStmt *loop);

#endif
