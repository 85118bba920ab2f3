/* Memory of the dummy's devices: a list of malloc's blocks, each with its device. Memory that other processes open is a
 * file without a name, which they find through /proc while the process that made it lives. */
#define _GNU_SOURCE
#include "_card.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Block Block;
struct Block {
    Block *next;
    char *at;
    size_t size;
    int card;
    bool is_mapped; /* maps a file */
    int file;       /* the file made for it; 0 if there is none, or it is another process's */
};

static Block *blocks;

/* Returns the index of the device that owns the memory, or -1. */
int
dummy_card_of(const void *address)
{
    int card = -1;
    pthread_mutex_lock(&dummy_lock);
    for (Block *b = blocks; b && card < 0; b = b->next)
        if ((const char *)address >= b->at && (const char *)address <= b->at + b->size)
            card = b->card;
    pthread_mutex_unlock(&dummy_lock);
    return card;
}

void
dummy_free_block(void *address)
{
    pthread_mutex_lock(&dummy_lock);
    for (Block **b = &blocks; *b; b = &(*b)->next)
        if ((*b)->at == address) {
            Block *found = *b;
            *b = found->next;
            if (found->is_mapped)
                munmap(found->at, found->size);
            else
                memset(found->at, 0xd7, found->size); /* a later read gets nonsense */
            if (found->file)
                close(found->file);
            if (!found->is_mapped)
                free(found->at);
            free(found);
            testing_lives(LIVE_blocks, -1);
            break;
        }
    pthread_mutex_unlock(&dummy_lock);
}

static void
add_block(Block *block)
{
    pthread_mutex_lock(&dummy_lock);
    block->next = blocks;
    blocks = block;
    testing_lives(LIVE_blocks, 1);
    pthread_mutex_unlock(&dummy_lock);
}

int32_t
dummy_allocate(const CiQueue *queue, size_t size, void **out)
{
    int32_t status = dummy_enter_card(CALL_allocate, queue);
    if (status)
        return status;
    Block *block = calloc(1, sizeof *block);
    char *at = aligned_alloc(64, (size + 127) / 64 * 64);
    if (!block || !at) {
        free(block);
        free(at);
        return CI_ERR_MEMORY;
    }
    memset(at, 0xd7, size);
    *block = (Block){.at = at, .size = size, .card = queue->index};
    add_block(block);
    *out = at;
    return CI_OK;
}

/* Maps the file as a new block. The block owns the file if it was made here; otherwise the file
 * is closed. */
static int32_t
map_file(const CiQueue *queue, int file, size_t size, bool is_made, void **out)
{
    Block *block = calloc(1, sizeof *block);
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (!block || at == MAP_FAILED || !is_made)
        close(file);
    if (block && at != MAP_FAILED) {
        *block = (Block){NULL, at, size, queue->index, true, is_made ? file : 0};
        add_block(block);
        *out = at;
        return CI_OK;
    }
    free(block);
    return CI_ERR_MEMORY;
}

int32_t
dummy_share_allocate(const CiQueue *queue, size_t size, void **out)
{
    int32_t status = dummy_enter_card(CALL_share_allocate, queue);
    int file = status ? -1 : memfd_create("cinductor_dummy", MFD_CLOEXEC);
    size = size ? size : 1;
    if (file < 0)
        return status ? status : CI_ERR_MEMORY;
    if (ftruncate(file, (off_t)size)) {
        close(file);
        return CI_ERR_MEMORY;
    }
    return map_file(queue, file, size, true, out);
}

void
dummy_share_release(const CiQueue *queue, void *block)
{
    (void)queue;
    dummy_free_block(block);
}

/* Writes the path and the identity of the file, because its descriptor may refer to another file
 * later. */
int32_t
dummy_share_name(const CiQueue *queue, const void *block, CiShareName *name)
{
    int32_t status = dummy_enter(CALL_share_name);
    struct stat is;
    int file = 0;
    (void)queue;
    pthread_mutex_lock(&dummy_lock);
    for (Block *b = blocks; b; b = b->next)
        file = b->at == block ? b->file : file;
    pthread_mutex_unlock(&dummy_lock);
    if (status || fstat(file, &is))
        return CI_ERR_DEVICE;
    memset(name, 0, sizeof *name);
    snprintf(name->bytes, sizeof name->bytes, "/proc/%ld/fd/%d %llu", (long)getpid(), file,
             (unsigned long long)is.st_ino);
    return CI_OK;
}

int32_t
dummy_share_open(const CiQueue *queue, const CiShareName *name, void **out, size_t *size)
{
    int32_t status = dummy_enter_card(CALL_share_open, queue);
    char path[40];
    unsigned long long number = 0;
    struct stat is;
    if (status)
        return status;
    bool is_name = memchr(name->bytes, 0, sizeof name->bytes) &&
                   sscanf(name->bytes, "%39s %llu", path, &number) == 2;
    int file = is_name ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0 || fstat(file, &is) || is.st_ino != number) {
        if (file >= 0)
            close(file);
        return dummy_refuse("no process shares such memory");
    }
    *size = (size_t)is.st_size;
    return map_file(queue, file, *size, false, out);
}

/* Copies need no special host memory here. */
int32_t
dummy_host_allocate(const CiQueue *queue, size_t size, void **block)
{
    (void)queue;
    *block = malloc(size ? size : 1);
    pthread_mutex_lock(&dummy_lock);
    testing_lives(LIVE_blocks, *block != NULL);
    pthread_mutex_unlock(&dummy_lock);
    return *block ? CI_OK : CI_ERR_MEMORY;
}

void
dummy_host_release(const CiQueue *queue, void *block, size_t size)
{
    (void)queue;
    memset(block, 0xd7, size);
    free(block);
    pthread_mutex_lock(&dummy_lock);
    testing_lives(LIVE_blocks, -1);
    pthread_mutex_unlock(&dummy_lock);
}
