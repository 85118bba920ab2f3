/* The struct of a recipe: recipe.c makes and runs it, saved.c writes it down. */
#ifndef CX_RECIPE_H
#define CX_RECIPE_H

#include "replay/result.h"

typedef struct CxPiece {
    CxPieceKind kind;
    int number; /* source or return */
    int memo;   /* >= 0: made once, kept there */
    CiKind value_kind;
    PyObject *object; /* constant, type */
    PyObject *names;  /* keys, field names */
    Py_ssize_t nkids;
    struct CxPiece **kids;
    CiDtype dtype; /* views */
    int rank;
    int64_t *layout; /* sizes, strides, offset; sizes: an int that is a size */
    int *numbers;    /* the same as numbers of the guards' table; -1: it is what layout says */
    bool is_readonly, is_whole, varies;
} CxPiece;

struct CxResult {
    CxState *state;
    CxPiece *root;
    CxPiece **pieces;
    int npieces, cappieces, nmemos, nreturns;
    CxShape *shapes; /* per result buffer, or NULL */
};

/* A new piece at the end of a recipe; NULL with an exception. */
CxPiece *cx_piece_new(CxResult *result, CxPieceKind kind);
/* Room for the shapes of the program's buffers, none of which is set. */
int cx_result_open_shapes(CxResult *result, const CxProgram *program);
/* The buffer that this piece shows whole is made in its shape. */
void cx_piece_shapes(CxResult *result, const CxProgram *program, const CxPiece *piece);

/* saved.c: whether it has an object, and how many numbers say where a view lies. */
bool cx_piece_has_object(CxPieceKind kind);
int cx_piece_layout_count(const CxPiece *piece);

#endif
