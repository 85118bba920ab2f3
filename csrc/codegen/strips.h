/* Shared declarations of the pass `strips`. */
#ifndef CI_CODEGEN_STRIPS_H
#define CI_CODEGEN_STRIPS_H

#include "codegen/codegen.h"
#include "codegen/varying.h"

typedef struct CiStripGroup {
    CiStmts body;
    const CiExpr *var;
    int number;
    int *local;                /* value -> what stands for it here, and one */
    const CiExpr **from, **to; /* symbols that were bound elsewhere, and what they are here */
    int nsymbols;
} CiStripGroup;

typedef struct CiStripper {
    CiBuild b;
    /* of the loop that is being cut */
    CiVarying varying;
    bool is_of_points;                 /* iterations run in order: loops inside, and lanes there */
    const CiExpr *var, *first, *count; /* the loop's; of the strip */
    int64_t length;                    /* of memory for a strip */
    int ngroups;
    CiMap *groups;        /* statement -> its group's number */
    int *made_in;         /* per value: the group, or 0 */
    const CiStmt **lets;  /* per value */
    int *uses;            /* per value */
    bool *crosses;        /* per value: another group reads it */
    bool *is_in_place;    /* per value: a load that the call makes in place */
    const CiStmt **store; /* per value: of a call, which stores its results itself */
    CiMap *dropped;       /* these stores */
    CiMap *accesses;      /* memory -> how many statements access it, and one */
    CiMemory **memory_of; /* per value that crosses */
    CiMap *bound;         /* symbol -> its bind */
    int nbound;
    CiMap *owners;       /* memory -> the number of the group that alone uses it, or -1 */
    CiMap *longer;      /* memory that several groups use -> its like, for a strip */
    CiStripGroup group; /* that is open; number 0: none */
} CiStripper;

/* strip_groups.c. Fills what is asked here, from the loop's body; false where it cannot be cut. */
bool ci_strip_survey(CiStripper *s, const CiStmt *loop);
/* Like ci_strip_survey, for a loop whose iterations may run in any order but are not lanes. */
bool ci_strip_survey_points(CiStripper *s, const CiStmt *loop);
int ci_strip_group(const CiStripper *s, const CiStmt *stmt);
/* True if the statement belongs to no group: it is a call or contains one. */
bool ci_strip_is_cut(const CiStripper *s, const CiStmt *stmt);
bool ci_strip_is_of_lanes(const CiStripper *s, const CiStmt *stmt);
bool ci_strip_ends_group(const CiStripper *s, const CiStmt *stmt);
/* True if the elements have a constant stride, one element per iteration: a call reads them in
 * place. */
bool ci_strip_is_line(const CiStripper *s, const CiStmt *stmt, const CiExpr **step);

#endif
