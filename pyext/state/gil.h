/* Where the lock is held. CX_ENTRY opens every function that Python calls; a block without the
 * lock is between CX_RELEASE and CX_TAKE and touches no Python object. A callback from inside
 * such a block takes the lock with CX_CALLBACK_BEGIN, whoever holds it. */
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
