/* Kernels by copy and patch: machine code is put together of pieces that a compiler has made when
 * cinductor was built (stencils.h), each with its numbers, jumps and constants entered. The technique
 * is that of Xu and Kjolstad, "Copy-and-patch compilation" (OOPSLA 2021), and of CPython 3.13's JIT.
 *
 *   translate.c  the statements of a proc -> stencils
 *   copy.c       stencils -> code
 *   backend.c    the backend "stencil": its kernels, and the interpreter's where there are none */
#ifndef CI_DEVICE_STENCIL_STENCIL_H
#define CI_DEVICE_STENCIL_STENCIL_H

#include "ir/proc.h"

/* Kinds of values that are entered in a copy. */
typedef enum CiStencilHole {
    CI_STENCIL_number, /* of 32 bits with a sign */
    CI_STENCIL_count,  /* of 31 bits */
    CI_STENCIL_wide,   /* of 64 bits */
    CI_STENCIL_next,   /* the way to the stencil after it */
    CI_STENCIL_target, /* to another one */
    CI_STENCIL_pool    /* to a constant */
} CiStencilHole;

typedef struct CiStencilLocation {
    uint16_t offset;
    uint8_t kind;   /* CiStencilHole */
    uint8_t number; /* of hole_0 … */
    int32_t addend;
} CiStencilLocation;

typedef struct CiStencil {
    char name[28];
    uint16_t start, size; /* of its code */
    uint16_t first, count; /* places */
} CiStencil;

/* tools/make_stencils.py writes them; stencils are in the order of their names. There are none where
 * cinductor was not built for x86-64. */
extern const unsigned char ci_stencil_code[], ci_stencil_pool[];
extern const CiStencilLocation ci_stencil_locations[];
extern const CiStencil ci_stencils[];
extern const int ci_stencil_count, ci_stencil_pool_bytes;

/* Code under way. Positions count from the beginning of the pool, which comes first. */
typedef struct CiStencilCode {
    CiContext *ctx;
    unsigned char *bytes;
    int size, capacity;
    int *labels; /* their positions, -1: not placed yet */
    int nlabels, caplabels;
    struct CiStencilJump {
        int place, label;
    } *jumps;
    int njumps, capjumps;
} CiStencilCode;

/* copy.c */
CiStencilCode *ci_stencil_code_new(CiContext *ctx);
const CiStencil *ci_stencil_find(const char *name); /* NULL: there is none */
/* Appends a copy with these numbers; label: of its target. */
void ci_stencil_copy(CiStencilCode *code, const CiStencil *stencil, int64_t first, int64_t second,
                     int label);
/* Enters the first number of a copy at this position again. */
void ci_stencil_enter_numbers(CiStencilCode *code, int start, const CiStencil *stencil, int64_t first);
int ci_stencil_label(CiStencilCode *code);
void ci_stencil_location_label(CiStencilCode *code, int label); /* here */
void ci_stencil_enter_jumps(CiStencilCode *code);            /* when all labels are placed */
/* Memory that may be executed, and not written, with the code in it; NULL: the system gives none. */
void *ci_stencil_map(const CiStencilCode *code, size_t *bytes);
void ci_stencil_unmap(void *memory, size_t bytes);

/* translate.c: appends the function of a proc, and returns its position; fails through the code's
 * context with CI_ERR_UNSUPPORTED and the reason where no stencils do what it does. */
int ci_stencil_translate(CiStencilCode *code, const CiKernels *kernels, const CiProc *proc);

#endif
