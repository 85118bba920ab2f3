/* The program parted for a recorder: one that takes down what a device is given, once, and gives it
 * again in later calls (a CUDA graph). Runs of lines that do nothing else are partitions; what the host
 * does anew each time, a library call of its own, a copy, a jump, a check, stands between them.
 *
 * A partition says all that it needs from outside: memory, and numbers by the symbols that its
 * expressions are made of, also where memory that it takes has only sizes derived of them. It is of one
 * block: one in a loop is run in each turn, with the turn's number among its sizes.
 *
 *   partitions f {
 *     p0: lines 6 to 14 on device 0
 *       takes in0, in1
 *       gives buf4
 *       sizes s0, t1
 *     # line 15, extern: a call on the host
 *     p1: ...
 *   } */
#ifndef CI_WRAPPER_PARTITION_H
#define CI_WRAPPER_PARTITION_H

#include "wrapper/wrapper.h"

typedef struct CiPartition {
    int first, last; /* lines */
    CiSide side;     /* the one whose device does all of it */
    /* Hoisted: from the first allocation of memory that is its own, born and freed in it, to the last free of
     * such. In front of them is what it allocates for others, behind them what it frees of others. */
    int own_first, own_last;
    int nlaunches;   /* library calls of the device's among them */
    const CiBuffer **takes; /* memory that it uses, and did not make, scalars of kernels too */
    int ntakes, captakes;
    const CiBuffer **gives; /* what it stores and others look at; made in it, or taken */
    int ngives, capgives;
    const CiExpr **symbols;
    int nsymbols, capsymbols;
} CiPartition;

typedef struct CiPartitions {
    const CiWrapper *wrapper;
    CiPartition *list;
    int count, capacity;
} CiPartitions;

CiPartitions *ci_partition(const CiWrapper *wrapper);
/* Whatever made them: partitions hold only lines that a recorder takes, of one device and block, and
 * name all that comes from outside or goes there; no launch that could be in one is in none. Fails with
 * CI_ERR_INTERNAL. */
void ci_partitions_verify(const CiPartitions *partitions);
void ci_partitions_print(CiText *out, const CiPartitions *partitions);

#endif
