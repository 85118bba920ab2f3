/* Queries the BLAS library that NumPy uses. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "state/state.h"

enum { MOST = 16 }; /* BLAS libraries in a process */

/* Queries OpenBLAS, whose functions have prefixes in NumPy's wheels and in some distributions. */
static int
threads_of(const char *path)
{
    static const char *const names[] = {
        "scipy_openblas_get_num_threads64_", "openblas_get_num_threads64_",
        "scipy_openblas_get_num_threads", "openblas_get_num_threads"};
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    int threads = 0;

    for (size_t k = 0; library != NULL && !threads && k < sizeof names / sizeof *names; k++) {
        int (*function)(void);
        *(void **)&function = dlsym(library, names[k]);
        threads = function != NULL ? function() : 0;
    }
    if (library != NULL)
        dlclose(library); /* its user keeps it loaded */
    return threads;
}

typedef struct Paths {
    char *paths[MOST];
    int count;
} Paths;

/* Collects the libraries. None may be opened here: a thread that loads one waits for this
 * traversal, and holds the lock that opening needs. */
static int
look(struct dl_phdr_info *info, size_t size, void *found)
{
    Paths *blas = found;
    (void)size;
    if (strstr(info->dlpi_name, "blas") != NULL && blas->count < MOST)
        blas->paths[blas->count++] = strdup(info->dlpi_name);
    return 0;
}

int
cx_library_threads(void)
{
    Paths blas = {.count = 0};
    int most = 0;
    dl_iterate_phdr(look, &blas);
    for (int k = 0; k < blas.count; k++) {
        int threads = blas.paths[k] != NULL ? threads_of(blas.paths[k]) : 0;
        most = threads > most ? threads : most;
        free(blas.paths[k]);
    }
    return most;
}
