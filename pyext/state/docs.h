/* Rows of the tables of methods and attributes, with signatures and docstrings from
 * python/cinductor/_core.pyi. A name that is not there has no CX_DOC_ macro, so that its row does
 * not compile. */
#ifndef CX_DOCS_H
#define CX_DOCS_H

#include <core_docs.h> /* made by tools/core_docs.py in the build folder */

#define CX_FUNCTION(name, function, flags) {#name, function, flags, CX_DOC_##name}
#define CX_METHOD(type, name, function, flags) {#name, function, flags, CX_DOC_##type##_##name}
#define CX_GETTER(type, name, get, set, closure) {#name, get, set, CX_DOC_##type##_##name, closure}
#define CX_MEMBER(type, name, kind, object, field, flags)                                          \
    {#name, kind, offsetof(object, field), flags, CX_DOC_##type##_##name}
/* A function that takes keywords, as a PyCFunction. */
#define CX_KEYWORDS(function) (PyCFunction)(void (*)(void))(function)

#endif
