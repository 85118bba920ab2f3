/* What NumPy's library of matrix products does by itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "state/state.h"

/* OpenBLAS, as NumPy's wheels and as distributions name its functions. */
static int
ask(const char *path)
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
        dlclose(library); /* who loaded it holds it */
    return threads;
}

static int
look(struct dl_phdr_info *info, size_t size, void *most)
{
    (void)size;
    int threads = strstr(info->dlpi_name, "blas") != NULL ? ask(info->dlpi_name) : 0;
    *(int *)most = threads > *(int *)most ? threads : *(int *)most;
    return 0;
}

int
cx_library_threads(void)
{
    int most = 0;
    dl_iterate_phdr(look, &most);
    return most;
}
