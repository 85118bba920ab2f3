/* Partitions of a program for recordings (CUDA graphs): device work is recorded once and replayed in later calls. A partition
 * is a range of lines whose only effects are device work. Work that the host repeats in each call is between partitions: a host
 * library call, a copy, a jump, a check.
 *
 * A partition lists everything it needs from outside: memory, and the symbols of its expressions,
 * also those from which the sizes of its buffers are derived. It belongs to one block: one in a
 * loop runs in each iteration, with the iteration's number among its sizes. A loop of a known number
 * of iterations that only launches and exchanges buffers can be part of one, with all of them.
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
    CiSide side;     /* side of the device that runs all its lines */
    /* After hoisting: from the first allocation to the last free of memory that lives only in the
     * partition. Allocations for others come before these lines, frees of others' memory after
     * them. */
    int own_first, own_last;
    int nlaunches;   /* includes the device's library calls, and all iterations of loops */
    const CiBuffer **takes; /* buffers that it uses but does not allocate, and scalars of kernels */
    int ntakes, captakes;
    const CiBuffer **gives; /* buffers that it stores and later lines use */
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
/* Checks partitions independently of their construction: they contain only recordable lines of one
 * device and block, and list all their inputs and outputs. Every recordable launch is in one
 * partition. Fails with CI_ERR_INTERNAL. */
void ci_partitions_verify(const CiPartitions *partitions);
void ci_partitions_print(CiText *out, const CiPartitions *partitions);

#endif
