/* Streams and events of devices, and the current stream of a thread. */
#ifndef CX_STREAM_H
#define CX_STREAM_H

#include "state/device_array.h"

extern PyType_Spec cx_stream_spec, cx_event_spec;
extern PyMethodDef cx_stream_methods[];
extern PyMethodDef cx_host_copy_methods[];
extern PyMethodDef cx_shared_methods[];
extern PyMethodDef cx_group_methods[];
/* A new event of the queue's device, and the device's handle of one. */
PyObject *cx_event_new(CxState *state, const CiQueue *queue);
void *cx_event_of(PyObject *event);
int cx_streams_init(CxState *state, PyObject *module);
/* Sets the queue's stream to the current one, if that belongs to the queue's device. *stream is
 * its object, a new reference (code of a run may change the current stream), or NULL for the
 * default stream. */
int cx_enter_stream(CxState *state, CiQueue *queue, PyObject **stream);
/* device_memory.c: the same for a call with these arguments, some of them NULL. Earlier work on
 * their memory is waited for. */
int cx_device_enter(CxState *state, CiQueue *queue, PyObject **stream, PyObject *const *objects,
                    int count);

#endif
