/* Shared declarations of the pass `strips`, which cuts a loop at its calls: a strip of iterations runs the statements
 * before a call, then the call once for the strip, then the statements after it. A group is a run of statements between
 * two calls. */
#ifndef CI_CODEGEN_STRIPS_H
#define CI_CODEGEN_STRIPS_H

#include "codegen/codegen.h"
#include "codegen/varying.h"

typedef struct CiStripGroup {
    CiStmts body;
    const CiExpr *var;
    int number;
    int *local;                /* value -> 1 + the value that replaces it in this group; 0: none */
    const CiExpr **from, **to; /* symbols bound in another group, and their replacements */
    int nsymbols;
} CiStripGroup;

typedef struct CiStripper {
    CiBuild b;
    /* The following describe the loop that is being cut. */
    CiVarying varying;
    bool is_of_points;                 /* the loop is over points, which run in order; its inner loops have the lanes */
    const CiExpr *var, *first, *count; /* variable of the loop; range of the strip */
    int64_t length;                    /* elements of the memory for a strip */
    int ngroups;
    CiMap *groups;        /* statement -> its group's number */
    int *made_in;         /* per value: the group that computes it, or 0 */
    const CiStmt **lets;  /* per value: its statement */
    int *uses;            /* per value: number of uses */
    bool *crosses;        /* per value: another group reads it */
    bool *is_in_place;    /* per value: a load whose elements the call reads directly from memory */
    const CiStmt **store; /* per value: the store whose elements the call writes directly to memory */
    CiMap *dropped;       /* set: the stores that calls replace */
    CiMap *accesses;      /* memory -> 1 + number of statements that access it */
    CiMemory **memory_of; /* per value that crosses: memory of one strip */
    CiMap *bound;         /* symbol -> the statement that binds it */
    int nbound;
    CiMap *owners;       /* memory -> the number of the group that alone uses it, or -1 */
    CiMap *longer;      /* memory that several groups use -> the larger memory that replaces it, for a strip */
    CiStripGroup group; /* the group under construction; number 0: none */
} CiStripper;

/* strip_groups.c. Assigns the statements of the loop's body to groups and fills s; false if the loop cannot be cut. */
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
