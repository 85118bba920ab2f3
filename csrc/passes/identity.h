/* Which memory can be told apart from outside: what a pass must know before one node takes
 * another's place.
 *
 * A value that only computations read may be any node with the same numbers. One that is returned,
 * seen through a returned view, or written to is also a piece of memory: it must stay as fresh, or
 * as shared, as the user made it. */
#ifndef CI_PASSES_IDENTITY_H
#define CI_PASSES_IDENTITY_H

#include "ir/graph.h"

typedef enum CiIdentity {
    CI_IDENTITY_returned =
        1, /* an object of the user: a result, a written value, what a region carries */
    CI_IDENTITY_observed =
        2, /* its memory can be told apart: returned, written to, or the base of such a view */
    CI_IDENTITY_viewed = 4, /* views read it, so its strides matter */
    CI_IDENTITY_written = 8 /* a write makes a new version of it, through a view of this node */
} CiIdentity;

/* A pass's state for a node, in node->mark. */
typedef struct CiNodeInfo {
    unsigned flags;      /* of CiIdentity */
    int uses;            /* at least the number of uses it has */
    bool is_new;         /* made by this pass */
    CiNode *replacement; /* what stands for it now, or NULL */
} CiNodeInfo;

/* Gives every node of the graph a fresh CiNodeInfo. */
void ci_identity_mark(CiGraph *g);
/* The info of a node, made on first sight for nodes added since. */
CiNodeInfo *ci_node_info(CiGraph *g, CiNode *node);
/* Just made: nothing reads it and it stands for nothing yet, so it can still become anything. */
bool ci_identity_is_unclaimed(const CiNodeInfo *info);
/* Makes memory of its own, and computes what is in it from its operands alone. */
bool ci_node_is_fresh(const CiNode *node);
/* NULL when b may stand for a everywhere, else the reason. */
const char *ci_identity_why_not_replace(CiGraph *g, CiNode *a, CiNode *b);
/* Records that b stands for a. */
void ci_identity_replace(CiGraph *g, CiNode *a, CiNode *b);
/* Follows replacements. */
CiNode *ci_identity_forward(CiNode *node);
void ci_identity_forward_args(CiNode *node);
/* Results of the body and writes. */
void ci_identity_forward_ends(CiGraph *g);

#endif
