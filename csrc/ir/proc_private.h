/* Shared declarations of the files that verify procs. */
#ifndef CI_IR_PROC_PRIVATE_H
#define CI_IR_PROC_PRIVATE_H

#include "ir/proc.h"

typedef struct CiProcSymbol {
    const CiExpr *symbol;
    int lanes; /* in which it has a value of its own; 1: it has one */
} CiProcSymbol;

/* The state of verification at a statement. At the end of a block its additions are removed. */
typedef struct CiProcVerifier {
    CiContext *ctx;
    CiSym *sym;
    const CiProc *proc;
    bool *is_alive, *is_defined; /* by value */
    int *values;                 /* alive ones, in order of definition */
    int nvalues, capvalues;
    const CiMemory **memories;
    int nmemories, capmemories;
    CiProcSymbol *symbols;
    int nsymbols, capsymbols;
    const CiExpr **facts; /* each at least 0 */
    int nfacts, capfacts;
    int nblocks, nloops, nunrolled; /* around the statement */
    int ngrids, nmeets;             /* loops of the kind around it: at most one of each */
    const CiExpr *thread;           /* the variable of a loop over threads around it, or NULL */
    int nshared;                    /* memories that are declared outside that loop */
    int nproofs, nunproved;
} CiProcVerifier;

/* The statement's own line, without what is inside of it. */
void ci_stmt_print(CiText *out, const CiStmt *stmt);

/* proc_bounds.c. Ends with what the proc breaks; stmt: where, or NULL. */
_Noreturn void ci_proc_fail(CiProcVerifier *v, const CiStmt *stmt, const char *why);

/* proc_tickets.c: checks that units which wait for others never wait forever. */
void ci_proc_verify_turns(CiProcVerifier *v);

/* proc_bounds.c: adds what the tests of a statement say where they hold, or where they do not. */
/* smaller + by <= larger */
void ci_proc_add_fact(CiProcVerifier *v, const CiExpr *smaller, const CiExpr *larger, int64_t by);
void ci_proc_add_tests(CiProcVerifier *v, const CiStmt *stmt, bool negated);
/* Counts the access where its lanes are not proved to lie inside of its memory; one of which it is
 * known that they do not is an error. */
void ci_proc_prove_access(CiProcVerifier *v, const CiStmt *stmt, int lanes);

#endif
