/* Macros for the GIL.
 *
 * CX_ENTRY opens every function that Python calls. Code between CX_RELEASE and CX_TAKE runs
 * without the GIL and touches no Python object. A callback from such code takes the GIL with
 * CX_CALLBACK_BEGIN. */
#ifndef CX_GIL_H
#define CX_GIL_H

#include <assert.h>

#include "state/compat.h"

#define CX_ENTRY() assert(PyGILState_Check())

#define CX_RELEASE(saved)                                                                          \
    do {                                                                                           \
        assert(PyGILState_Check());                                                                \
        (saved) = PyEval_SaveThread();                                                             \
    } while (0)
#define CX_TAKE(saved)                                                                             \
    do {                                                                                           \
        PyEval_RestoreThread(saved);                                                               \
        (saved) = NULL;                                                                            \
    } while (0)

#define CX_CALLBACK_BEGIN() PyGILState_STATE cx_gil_ = PyGILState_Ensure()
#define CX_CALLBACK_END() PyGILState_Release(cx_gil_)

#endif
