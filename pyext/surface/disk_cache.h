/* Functions of the module about the disk cache. */
#ifndef CX_DISK_CACHE_H
#define CX_DISK_CACHE_H

#include "state/state.h"

PyObject *cx_cache_info(PyObject *module, PyObject *unused);
PyObject *cx_cache_stores(PyObject *module, PyObject *unused);
PyObject *cx_cache_directory(PyObject *module, PyObject *unused);
PyObject *cx_set_cache_directory(PyObject *module, PyObject *path);
PyObject *cx_read_call(PyObject *module, PyObject *key);
PyObject *cx_has_call(PyObject *module, PyObject *key);
PyObject *cx_write_call(PyObject *module, PyObject *args);

#endif
