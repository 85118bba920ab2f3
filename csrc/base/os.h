/* Files and paths. Functions return a status: none needs a context, and none jumps. */
#ifndef CI_BASE_OS_H
#define CI_BASE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CiFileInfo {
    int64_t size;
    int64_t mtime_ns;
    uint32_t mode;
    uint32_t uid;
    bool is_regular, is_directory;
} CiFileInfo;

/* All return 0 or an errno. */
int ci_os_stat(const char *path, CiFileInfo *info);          /* does not follow a last link */
int ci_os_read(const char *path, void **data, size_t *size); /* malloc'ed, caller frees */
int ci_os_touch(const char *path); /* sets the time of the last change to now */
/* Temp file beside it + rename, mode 0600: readers see the old file or the new one. */
int ci_os_write_atomic(const char *path, const void *data, size_t size);
int ci_os_make_directories(const char *path); /* each new one 0700 */
int ci_os_resolve(const char *path, char *out, size_t capacity);
/* Looks a program up in PATH, or takes a path; 0 and its absolute path, or an error. */
int ci_os_find_program(const char *name, char *out, size_t capacity);
/* Functions of a library that dlopen returned: names, and where pointers to them go in a struct. */
typedef struct CiOsFunction {
    const char *name;
    size_t offset;
} CiOsFunction;
#define CI_OS_COUNT(functions) (sizeof(functions) / sizeof *(functions))
/* Stores the pointers in the struct at `out`. Returns NULL, or the name that the library lacks. */
const char *ci_os_find_functions(void *library, const CiOsFunction *functions, size_t count, void *out);
int64_t ci_os_time_ns(void); /* monotonic */
int64_t ci_os_thread_ns(void); /* processor time of this thread */
/* Tells the process that made it from those that fork makes of it. */
typedef struct CiOsMark CiOsMark;
CiOsMark *ci_os_mark_new(void); /* NULL without memory */
void ci_os_mark_free(CiOsMark *mark);
bool ci_os_is_marked(const CiOsMark *mark); /* asks nothing of the system, where that can be */
/* The address range of the library that contains a function; 0 to 0 if unknown. */
typedef struct CiAddresses {
    uintptr_t begin, end;
} CiAddresses;
CiAddresses ci_os_library(void (*function)(void));
/* The digest of this library's code that its linker has left in it, in hex; false where it has not.
 */
bool ci_os_build_id(char *out, size_t capacity);

#endif
