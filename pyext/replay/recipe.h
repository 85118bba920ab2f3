/* A recipe: the steps that build a call's result from the program's returns. recipe.c creates and runs it, saved.c saves it. */
#ifndef CX_RECIPE_H
#define CX_RECIPE_H

#include "replay/result.h"
#include "state/array.h"

typedef struct CxPiece {
    CxPieceKind kind;
    int number; /* of a source or return */
    int memo;   /* >= 0: index in the memo, because the object occurs several times */
    CiKind value_kind;
    PyObject *object; /* constant, type */
    PyObject *names;  /* keys, field names */
    Py_ssize_t nkids;
    struct CxPiece **kids;
    CiDtype dtype; /* views */
    int rank;
    int64_t *layout; /* sizes, strides, offset; sizes: of an int that is a size */
    int *numbers;    /* indices of the guards' table for the same; -1: use `layout` */
    CxAccess access;
    bool is_whole, varies;
} CxPiece;

struct CxResult {
    CxState *state;
    CxPiece *root;
    CxPiece **pieces;
    int npieces, cappieces, nmemos, nreturns;
    CxShape *shapes; /* per result buffer, or NULL */
};

/* Appends a piece to a recipe; NULL with an exception. */
CxPiece *cx_piece_new(CxResult *result, CxPieceKind kind);
/* Allocates unset shapes for the program's buffers. */
int cx_result_open_shapes(CxResult *result, const CxProgram *program);
/* Makes the buffer that this piece returns as a whole in the piece's shape. */
void cx_piece_shapes(CxResult *result, const CxProgram *program, const CxPiece *piece);

/* saved.c: the kind with this word, -1 if there is none; true if the piece has an object; the
 * number of values in its layout. */
int cx_piece_kind_of(PyObject *word);
bool cx_piece_has_object(CxPieceKind kind);
int cx_piece_layout_count(const CxPiece *piece);

#endif
