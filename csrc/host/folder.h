/* Folders in which compiled code is cached or built: which ones are trusted, a folder for one
 * build, and the removal of leftovers of dead processes.
 *
 * Ownership: a build's folder and the lock of a key are held by flock, which the kernel releases
 * when their process dies for any reason. So a sweep removes what it can lock, and no process waits
 * for a dead one. On file systems without flock, age decides. */
#ifndef CI_HOST_FOLDER_H
#define CI_HOST_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#define CI_FOLDER_PATH 4096

/* NULL, or why code must not be loaded from there: each folder on its resolved path is this user's
 * or root's and not others' to write to, or is sticky, as /tmp is. The last one is this user's
 * alone, and made where it is missing, unless is_shared. resolved has CI_FOLDER_PATH bytes. */
const char *ci_folder_why_not(const char *path, bool is_shared, char *resolved);
/* Temporary folders, best first ($TMPDIR, /tmp, ...); NULL after the last. */
const char *ci_folder_temporary(int number);

/* A private folder for a build. */
typedef struct CiBuildFolder {
    char path[CI_FOLDER_PATH]; /* "" when none is open */
    int lock;
    int root; /* 0: the folder asked for; then those for what is temporary */
} CiBuildFolder;

/* Opens one in `first` ("": nowhere) or, from root `root` on, where it can be. False when there is
 * no place, and why (of `capacity` bytes) tells of the first that was tried: why is kept when it
 * tells something already. */
bool ci_build_folder_open(CiBuildFolder *folder, const char *first, int root, char *why,
                          size_t capacity);
void ci_build_folder_close(CiBuildFolder *folder); /* removes it with all that is in it */
/* 0, or the errno for which nothing of some size can be written there. */
int ci_build_folder_trouble(const CiBuildFolder *folder);

/* Takes the lock that a file represents, waiting at most timeout_s for its holder. */
typedef enum CiLockStatus { CI_LOCK_taken, CI_LOCK_none, CI_LOCK_stopped } CiLockStatus;
CiLockStatus ci_lock_take(const char *path, double timeout_s, bool (*should_stop)(void *arg),
                          void *arg, int *lock);
void ci_lock_give(const char *path, int lock);

/* Removes builds' folders, locks and half-written files whose owners are gone. */
void ci_folder_sweep(const char *directory);
void ci_folder_remove(const char *directory); /* with all that is in it; follows no links */
void ci_folder_each(const char *directory,
                    void (*visit)(void *arg, const char *path, const char *name), void *arg);
bool ci_folder_is_key(const char *text, size_t length); /* 64 hexadecimal digits */

#endif
