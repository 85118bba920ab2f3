/* Recordings of a partition (CUDA graphs), one per key: finds, adds and drops them, and lends them
 * memory. */
#include <stdio.h>
#include <string.h>

#include "runtime/record.h"

CiRecordings *
ci_recordings_new(CiContext *ctx, int words, int nblocks, int max_moving, const char *why_not)
{
    CiRecordings *recordings = CI_NEW(ctx, CiRecordings);
    recordings->words = words;
    recordings->nblocks = nblocks;
    recordings->is_moving = CI_NEW_ARRAY(ctx, bool, words);
    recordings->places = CI_NEW_ARRAY(ctx, CiPlaces, words);
    recordings->max_moving = max_moving;
    pthread_mutex_init(&recordings->lock, NULL);
    if (why_not)
        snprintf(recordings->why_not, sizeof recordings->why_not, "%s", why_not);
    for (int k = 0; k < CI_MAX_RECORDINGS && !why_not; k++) {
        recordings->list[k].key = CI_NEW_ARRAY(ctx, int64_t, words);
        recordings->memories[k].bytes = CI_NEW_ARRAY(ctx, int64_t, nblocks + 1);
        recordings->memories[k].blocks = CI_NEW_ARRAY(ctx, void *, nblocks + 1);
    }
    return recordings;
}

static CiRecording *
find(CiRecordings *recordings, const int64_t *key)
{
    size_t bytes = sizeof *key * (size_t)recordings->words;
    for (int k = 0; k < CI_MAX_RECORDINGS; k++) {
        CiRecording *recording = &recordings->list[k];
        if (recording->used && !memcmp(recording->key, key, bytes))
            return recording;
    }
    return NULL;
}

/* True if two keys or more are remembered, and none has the word. */
static bool
is_another(const CiRecordings *recordings, int word, int64_t value)
{
    int nkeys = 0;
    for (int k = 0; k < CI_MAX_RECORDINGS; k++) {
        const CiRecording *recording = &recordings->list[k];
        if (recording->used && recording->key[word] == value)
            return false;
        nkeys += recording->used != 0;
    }
    return nkeys >= 2;
}

/* True if the last calls had the memory in two places at most. */
static bool
is_in_place(CiPlaces *places, int64_t address)
{
    if (address == places->known[0] || address == places->known[1]) {
        places->calls += places->calls < CI_PLACED;
    } else {
        *places = (CiPlaces){{address, places->known[0]}, places->calls < 0 ? places->calls : 0};
    }
    return places->calls == CI_PLACED;
}

/* True for an argument from the third address on that the word has. */
static bool
is_moving(CiRecordings *recordings, int word, int64_t address)
{
    if (!recordings->is_moving[word] && recordings->nmoving < recordings->max_moving && is_another(recordings, word, address)) {
        recordings->is_moving[word] = true;
        recordings->nmoving++;
    }
    return recordings->is_moving[word];
}

/* Results in two places each may have more combinations than keys are remembered: they are copied again. */
static void
count_missed(CiRecordings *recordings)
{
    if (++recordings->nmissed < 2 * CI_PLACED)
        return;
    recordings->nmissed = 0;
    for (int n = 0; n < recordings->words; n++)
        recordings->places[n].calls = -CI_UNPLACED;
}

/* Clears the addresses of memory that is copied. True if the key has one that could be. */
static bool
clear_copied(CiRecordings *recordings, int64_t *key, const CiKeyWord *words)
{
    bool has_place = false;
    for (int n = 0; n < recordings->words; n++) {
        if (words[n] == CI_WORD_stays || !key[n])
            continue;
        if (words[n] == CI_WORD_result ? !is_in_place(&recordings->places[n], key[n]) : is_moving(recordings, n, key[n]))
            key[n] = 0;
        has_place |= words[n] == CI_WORD_result && key[n];
    }
    return has_place;
}

/* The one that was used the longest ago has this key from now on; what it had is the caller's to drop. */
static CiRecording
replace(CiRecordings *recordings, const int64_t *key)
{
    CiRecording *oldest = NULL;
    for (int k = 0; k < CI_MAX_RECORDINGS; k++) {
        CiRecording *recording = &recordings->list[k];
        if (!recording->is_busy && (!oldest || recording->used < oldest->used))
            oldest = recording;
    }
    if (!oldest)
        return (CiRecording){.made = NULL};
    CiRecording had = *oldest;
    memcpy(oldest->key, key, sizeof *key * (size_t)recordings->words);
    *oldest = (CiRecording){.key = oldest->key, .used = recordings->time};
    return had;
}

static void
set_busy(CiRecording *recording, bool is_busy)
{
    if (!recording)
        return;
    recording->is_busy = is_busy;
    if (recording->memory)
        recording->memory->is_busy = is_busy;
}

CiRecording *
ci_recordings_enter(CiRecordings *recordings, const CiQueue *queue, int64_t *key, const CiKeyWord *words)
{
    CiRecording had = {.made = NULL};
    pthread_mutex_lock(&recordings->lock);
    recordings->time++;
    bool has_place = !recordings->why_not[0] && clear_copied(recordings, key, words);
    CiRecording *found = recordings->why_not[0] ? NULL : find(recordings, key);
    if (!found && !recordings->why_not[0])
        had = replace(recordings, key);
    if (!found && has_place)
        count_missed(recordings);
    else if (has_place)
        recordings->nmissed -= recordings->nmissed > 0;
    if (found)
        found->used = recordings->time;
    bool is_free = found && !found->is_busy && !(found->memory && found->memory->is_busy);
    found = is_free ? found : NULL;
    set_busy(found, true);
    recordings->launched += !found;
    pthread_mutex_unlock(&recordings->lock);
    if (had.made)
        ci_recordings_drop(recordings, queue, &had);
    return found;
}

void
ci_recordings_leave(CiRecordings *recordings, CiRecording *recording, bool is_replayed)
{
    pthread_mutex_lock(&recordings->lock);
    set_busy(recording, false);
    recordings->replayed += is_replayed;
    recordings->launched += !is_replayed;
    recordings->lacks_memory = !is_replayed;
    pthread_mutex_unlock(&recordings->lock);
}

/* ---- memory ---- */

/* One of that stream and these sizes, or one that is free; NULL: there is neither. */
static CiRecordMemory *
find_memory(CiRecordings *recordings, const CiQueue *queue, const int64_t *bytes)
{
    CiRecordMemory *vacant = NULL;
    for (int k = 0; k < CI_MAX_RECORDINGS; k++) {
        CiRecordMemory *memory = &recordings->memories[k];
        if (!memory->users)
            vacant = memory;
        else if (!memory->is_busy && memory->queue.stream == queue->stream &&
                 !memcmp(memory->bytes, bytes, sizeof *bytes * (size_t)recordings->nblocks))
            return memory;
    }
    return vacant;
}

static void
set_free(CiRecordings *recordings, CiRecordMemory *memory)
{
    pthread_mutex_lock(&recordings->lock);
    memory->users = 0;
    memory->is_busy = false;
    pthread_mutex_unlock(&recordings->lock);
}

/* Nothing is where nothing is wanted. */
static void
give(const CiQueue *queue, int count, void *const *blocks, const int64_t *bytes)
{
    for (int k = 0; k < count; k++)
        if (bytes[k])
            ci_device_release(queue, blocks[k], (size_t)bytes[k]);
}

static int32_t
fill(CiRecordMemory *memory, const CiQueue *queue, int count, const int64_t *bytes)
{
    int32_t status = CI_OK;
    int n = 0;
    memory->queue = *queue;
    memcpy(memory->bytes, bytes, sizeof *bytes * (size_t)count);
    for (; n < count && !status; n += !status)
        if (bytes[n])
            status = ci_device_allocate(queue, (size_t)bytes[n], &memory->blocks[n]);
    if (status)
        give(queue, n, memory->blocks, bytes);
    return status;
}

bool
ci_recordings_take(CiRecordings *recordings, CiRecording *recording, const CiQueue *queue,
                   const int64_t *bytes)
{
    pthread_mutex_lock(&recordings->lock);
    CiRecordMemory *memory = find_memory(recordings, queue, bytes);
    bool is_new = memory && !memory->users++;
    if (memory)
        memory->is_busy = true;
    pthread_mutex_unlock(&recordings->lock);
    if (is_new && fill(memory, queue, recordings->nblocks, bytes)) {
        set_free(recordings, memory);
        memory = NULL;
    }
    recording->memory = memory;
    return memory != NULL;
}

/* Frees a recording and, if it is unused, its memory. It is unknown whether another stream still
 * exists and how far it is, so all streams are waited for. */
void
ci_recordings_drop(CiRecordings *recordings, const CiQueue *queue, const CiRecording *had)
{
    CiRecordMemory *memory = had->memory;
    if (had->made)
        queue->backend->device->record_close(queue, had->made);
    if (!memory)
        return;
    pthread_mutex_lock(&recordings->lock);
    bool is_last = memory->users == 1;
    memory->users -= !is_last;
    memory->is_busy = is_last || (memory->is_busy && !had->is_busy);
    pthread_mutex_unlock(&recordings->lock);
    if (!is_last)
        return;
    CiQueue all = {queue->backend, queue->runtime, queue->index, NULL};
    if (memory->queue.stream != queue->stream)
        (void)all.backend->device->synchronize(&all);
    give(queue, recordings->nblocks, memory->blocks, memory->bytes);
    set_free(recordings, memory);
}

/* ---- what becomes of it ---- */

void
ci_recordings_refuse(CiRecordings *recordings, const CiQueue *queue, const char *function)
{
    char text[CI_WHY_NOT_RECORDED / 2];
    const CiDevice *device = queue->backend->device;
    const char *said = device->last_error ? device->last_error(queue, text, sizeof text) : NULL;
    pthread_mutex_lock(&recordings->lock);
    if (!recordings->why_not[0])
        snprintf(recordings->why_not, sizeof recordings->why_not, "%s of device '%s' failed%s%s", function,
                 device->name, said ? ": " : "", said ? said : "");
    pthread_mutex_unlock(&recordings->lock);
}

void
ci_recordings_query(CiRecordings *recordings, CiRecordingUse *out)
{
    pthread_mutex_lock(&recordings->lock);
    out->replayed = recordings->replayed;
    out->launched = recordings->launched;
    out->copied = recordings->nmoving;
    for (int k = 0; k < CI_MAX_RECORDINGS; k++)
        out->recordings += !recordings->list[k].is_busy && recordings->list[k].made;
    snprintf(out->why_not, sizeof out->why_not, "%s",
             recordings->why_not[0] || !recordings->lacks_memory
                 ? recordings->why_not
                 : "there was no memory for another recording");
    pthread_mutex_unlock(&recordings->lock);
}

void
ci_recordings_close(CiRecordings *recordings, const CiQueue *queue)
{
    for (int k = 0; k < CI_MAX_RECORDINGS; k++)
        if (recordings->list[k].made)
            queue->backend->device->record_close(queue, recordings->list[k].made);
    for (int k = 0; k < CI_MAX_RECORDINGS; k++)
        if (recordings->memories[k].users)
            give(queue, recordings->nblocks, recordings->memories[k].blocks,
                 recordings->memories[k].bytes);
    pthread_mutex_destroy(&recordings->lock);
}
