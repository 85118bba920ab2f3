/* A program while it is made of lines. */
#ifndef CI_RUNTIME_FLATTEN_H
#define CI_RUNTIME_FLATTEN_H

#include "runtime/run_verifier.h"

typedef struct CiFlatten {
    CiProgram *program;
    CiContext *ctx;
    const CiWrapper *wrapper;
    CiValuesBuilder builder;
    int *slot_of; /* per buffer of the wrapper; -1: none yet */
    int *step_of; /* per line: the step to jump to for the code after it */
    int *result_of; /* per buffer of the loops: its number among results, or -1 */
    bool has_region;
    int npartitions;    /* that are done */
    int partition_step; /* of the one that is open */
} CiFlatten;

/* flatten_partition.c: called before and after the steps of a line. */
void ci_flatten_open_partition(CiFlatten *flat, int line);
void ci_flatten_close_partition(CiFlatten *flat, int line);

/* flatten_names.c */
const char *ci_flatten_copy_text(CiContext *ctx, const char *text); /* NULL: "" */
/* Of the steps that a line has become. */
void ci_flatten_name_steps(CiFlatten *flat, const CiLine *line);
void ci_flatten_name_slots(CiFlatten *flat);
/* needs: program->watch. */
void ci_flatten_verifier(CiFlatten *flat);

#endif
