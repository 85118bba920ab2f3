/* Streams and events of devices, and the stream that this thread's calls go to. */
#ifndef CX_STREAM_H
#define CX_STREAM_H

#include "state/device_array.h"

extern PyType_Spec cx_stream_spec, cx_event_spec;
extern PyMethodDef cx_stream_methods[];
extern PyMethodDef cx_host_copy_methods[];
extern PyMethodDef cx_shared_methods[];
/* An event of the queue's device, and what the device calls one. */
PyObject *cx_event_new(CxState *state, const CiQueue *queue);
void *cx_event_of(PyObject *event);
int cx_streams_init(CxState *state, PyObject *module);
/* Puts the stream in force into the queue, where it is one of the queue's device; *stream is its
 * object, a new reference (code that a run calls may put another one in force), or NULL for the device's
 * own. */
int cx_enter_stream(CxState *state, CiQueue *queue, PyObject **stream);
/* device_memory.c: the same for a call with these arguments, some of them NULL: what others do with
 * their memory is done before. */
int cx_device_enter(CxState *state, CiQueue *queue, PyObject **stream, PyObject *const *objects,
                    int count);

#endif
