/* Files through POSIX calls. Every descriptor is close-on-exec, every interrupted call is repeated,
 * and a file that is written is complete before its name points to it. */
#define _GNU_SOURCE
#include "base/os.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int
ci_os_stat(const char *path, CiFileInfo *info)
{
    struct stat st;
    memset(info, 0, sizeof *info);
    if (lstat(path, &st) != 0)
        return errno;
    info->size = st.st_size;
    info->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    info->mode = st.st_mode & 07777;
    info->uid = st.st_uid;
    info->is_regular = S_ISREG(st.st_mode);
    info->is_directory = S_ISDIR(st.st_mode);
    return 0;
}

int
ci_os_touch(const char *path)
{
    return utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) ? errno : 0;
}

/* Reads to the end, whatever size the file said it had: /proc files say 0. */
static int
read_all(int fd, size_t guess, void **data, size_t *size)
{
    size_t capacity = guess + 64, used = 0;
    char *bytes = malloc(capacity);
    for (;;) {
        if (!bytes)
            return ENOMEM;
        ssize_t got = read(fd, bytes + used, capacity - used - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int error = errno;
            free(bytes);
            return error;
        }
        used += (size_t)got;
        if (got == 0)
            break;
        if (capacity - used == 1) {
            capacity *= 2;
            char *more = realloc(bytes, capacity);
            if (!more)
                free(bytes);
            bytes = more;
        }
    }
    bytes[used] = 0;
    *data = bytes;
    *size = used;
    return 0;
}

int
ci_os_read(const char *path, void **data, size_t *size)
{
    *data = NULL;
    *size = 0;
    /* Without NONBLOCK a named pipe would hang the open. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno;
    struct stat st;
    int error = 0;
    if (fstat(fd, &st) != 0)
        error = errno;
    else if (!S_ISREG(st.st_mode))
        error = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    else
        error = read_all(fd, (size_t)st.st_size, data, size);
    close(fd);
    return error;
}

static int
write_all(int fd, const void *data, size_t size)
{
    const char *bytes = data;
    while (size > 0) {
        ssize_t put = write(fd, bytes, size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno;
        bytes += put;
        size -= (size_t)put;
    }
    return 0;
}

int
ci_os_write_atomic(const char *path, const void *data, size_t size)
{
    char temporary[PATH_MAX];
    int length = snprintf(temporary, sizeof temporary, "%s.tmp-XXXXXX", path);
    if (length < 0 || (size_t)length >= sizeof temporary)
        return ENAMETOOLONG;
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return errno;
    int error = write_all(fd, data, size);
    if (close(fd) != 0 && !error)
        error = errno;
    if (!error && rename(temporary, path) != 0)
        error = errno;
    if (error)
        unlink(temporary);
    return error;
}

int
ci_os_make_directories(const char *path)
{
    char part[PATH_MAX];
    size_t length = strlen(path);
    if (length == 0)
        return ENOENT;
    if (length >= sizeof part)
        return ENAMETOOLONG;
    memcpy(part, path, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (part[i] != '/' && part[i] != 0)
            continue;
        char kept = part[i];
        part[i] = 0;
        int error = mkdir(part, 0700) == 0 ? 0 : errno;
        part[i] = kept;
        /* Parents that cannot be written are fine as long as they are there. */
        if (error && error != EEXIST && !(kept && (error == EROFS || error == EACCES)))
            return error;
    }
    struct stat st;
    if (stat(path, &st) != 0)
        return errno;
    return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
}

int
ci_os_resolve(const char *path, char *out, size_t capacity)
{
    char *real = realpath(path, NULL);
    if (!real)
        return errno;
    int error = strlen(real) < capacity ? 0 : ENAMETOOLONG;
    if (!error)
        strcpy(out, real);
    free(real);
    return error;
}

static bool
is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Links stay: what a program does may depend on the name it is called by. */
static int
make_absolute(const char *path, char *out, size_t capacity)
{
    char folder[PATH_MAX] = "";
    if (*path != '/' && !getcwd(folder, sizeof folder))
        return errno;
    int length = snprintf(out, capacity, *path == '/' ? "%s%s" : "%s/%s", folder, path);
    return length >= 0 && (size_t)length < capacity ? 0 : ENAMETOOLONG;
}

int
ci_os_find_program(const char *name, char *out, size_t capacity)
{
    if (strchr(name, '/'))
        return is_program(name) ? make_absolute(name, out, capacity) : ENOENT;
    const char *path = getenv("PATH");
    if (!path || !*name)
        return ENOENT;
    for (; *path; path += strspn(path, ":")) {
        size_t width = strcspn(path, ":");
        /* Relative entries would make the answer depend on the working directory. */
        int length = *path == '/' ? snprintf(out, capacity, "%.*s/%s", (int)width, path, name) : -1;
        if (length >= 0 && (size_t)length < capacity && is_program(out))
            return 0;
        path += width;
    }
    return ENOENT;
}

const char *
ci_os_find_functions(void *library, const CiOsFunction *functions, size_t count, void *out)
{
    for (size_t k = 0; k < count; k++) {
        void *symbol = dlsym(library, functions[k].name);
        if (!symbol)
            return functions[k].name;
        memcpy((char *)out + functions[k].offset, &symbol, sizeof symbol);
    }
    return NULL;
}

static int64_t
read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t
ci_os_time_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t
ci_os_thread_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* In a page that is zeroed in a child, if the kernel supports such pages. */
struct CiOsMark {
    int64_t process;
    bool is_wiped;
};

CiOsMark *
ci_os_mark_new(void)
{
    CiOsMark *mark = mmap(NULL, sizeof *mark, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                          -1, 0);
    if (mark == MAP_FAILED)
        return NULL;
    mark->process = getpid();
#ifdef MADV_WIPEONFORK
    mark->is_wiped = madvise(mark, sizeof *mark, MADV_WIPEONFORK) == 0;
#endif
    return mark;
}

void
ci_os_mark_free(CiOsMark *mark)
{
    if (mark)
        munmap(mark, sizeof *mark);
}

bool
ci_os_is_marked(const CiOsMark *mark)
{
    return mark->is_wiped || mark->process == getpid();
}

/* One library that is loaded: whether the address is in one of its segments, and from where to
 * where they are. dladdr would look through all of its symbols. */
static int
look_at_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    CiAddresses *found = arg;
    uintptr_t low = UINTPTR_MAX, high = 0;
    bool is_there = false;
    (void)size;
    for (int k = 0; k < info->dlpi_phnum; k++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[k];
        uintptr_t begin = info->dlpi_addr + segment->p_vaddr, end = begin + segment->p_memsz;
        if (segment->p_type != PT_LOAD)
            continue;
        low = begin < low ? begin : low;
        high = end > high ? end : high;
        is_there |= found->begin >= begin && found->begin < end;
    }
    if (is_there)
        *found = (CiAddresses){low, high};
    return is_there;
}

typedef struct BuildId {
    uintptr_t inside; /* an address in the library */
    char *out;
    size_t capacity;
} BuildId;

/* A segment of notes, each a head, a name and what it says, both filled up to four bytes. */
static bool
read_notes(const char *at, size_t size, BuildId *wanted)
{
    const char *end = at + size;
    while ((size_t)(end - at) > sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) head;
        memcpy(&head, at, sizeof head);
        const char *name = at + sizeof head, *what = name + (head.n_namesz + 3) / 4 * 4;
        bool is_it =
            head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && !memcmp(name, "GNU", 4);
        if (is_it && 2 * (size_t)head.n_descsz < wanted->capacity) {
            for (uint32_t k = 0; k < head.n_descsz; k++)
                snprintf(wanted->out + 2 * k, 3, "%02x", (unsigned char)what[k]);
            return true;
        }
        at = what + (head.n_descsz + 3) / 4 * 4;
    }
    return false;
}

static int
look_for_notes(struct dl_phdr_info *info, size_t size, void *arg)
{
    BuildId *wanted = arg;
    CiAddresses here = {wanted->inside, 0};
    if (!look_at_library(info, size, &here))
        return 0;
    for (int k = 0; k < info->dlpi_phnum; k++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[k];
        const char *at = (const char *)(uintptr_t)(info->dlpi_addr + segment->p_vaddr);
        if (segment->p_type == PT_NOTE && read_notes(at, segment->p_memsz, wanted))
            return 1;
    }
    return -1;
}

bool
ci_os_build_id(char *out, size_t capacity)
{
    BuildId wanted = {(uintptr_t)ci_os_build_id, out, capacity};
    return dl_iterate_phdr(look_for_notes, &wanted) == 1;
}

CiAddresses
ci_os_library(void (*function)(void))
{
    CiAddresses found = {(uintptr_t)function, 0};
    return dl_iterate_phdr(look_at_library, &found) ? found : (CiAddresses){0, 0};
}
