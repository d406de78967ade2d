/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsAtomic.h>
#include <epicsMutex.h>

#include "common/hash.h"
#include "common/text.h"
#include "model/put.h"
#include "uses/useNotes.h"

#define BUCKETS      65536 /* a power of two */
#define AGAIN_SECONDS 60   /* repeated reads or puts of one client are written once in this time */
#define STILL_SECONDS 600  /* a channel or subscription that is still there is written once in this time */

typedef struct note {
    struct note *next;     /* in its bucket */
    uint64_t identity;     /* of the client */
    int64_t  first, last;  /* first and last use since "taken" (s since 1970) */
    int64_t  taken;        /* when the note was last taken; 0: never */
    uint64_t count;
    uint8_t  kind;
    uint8_t  isNew;        /* a use that counts is by another client than when the note was last taken */
    uint8_t  isChanged;    /* there was a use since it was last taken */
    uint8_t  isUnnamed;    /* "who" is not that of the last use yet: the caller sets it */
    char    *channel, *who; /* NULL: not known */
    char     names[];      /* "ioc\0record" */
} note;

struct ebpfMonUseNotes {
    epicsMutexId lock;     /* guards what follows, except "wanted" */
    note    *bucket[BUCKETS];
    size_t   count;
    uint64_t lost;
    int      wanted;       /* atomic */
};

ebpfMonUseNotes *ebpfMonUseNotesNew(void)
{
    ebpfMonUseNotes *notes = calloc(1, sizeof(*notes));

    if (notes)
        notes->lock = epicsMutexMustCreate();
    return notes;
}

static void freeNote(note *n)
{
    free(n->channel);
    free(n->who);
    free(n);
}

void ebpfMonUseNotesFree(ebpfMonUseNotes *notes)
{
    if (!notes)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        for (note *n = notes->bucket[i], *next; n; n = next) {
            next = n->next;
            freeNote(n);
        }
    epicsMutexDestroy(notes->lock);
    free(notes);
}

void ebpfMonUseNotesSetWanted(ebpfMonUseNotes *notes, int wanted)
{
    epicsAtomicSetIntT(&notes->wanted, wanted);
}

int ebpfMonUseNotesAreWanted(const ebpfMonUseNotes *notes)
{
    return epicsAtomicGetIntT(&notes->wanted);
}

static note **findPlace(ebpfMonUseNotes *notes, const char *ioc, const char *channel, ebpfMonUseKind kind)
{
    size_t iocLength = strlen(ioc), length = ebpfMonPutGetRecordLength(channel);
    uint64_t hash = ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, ioc, iocLength);
    note **place;

    hash = ebpfMonHashFnv64(hash, channel, length) + (uint64_t)kind;
    for (place = &notes->bucket[(hash ^ hash >> 32) % BUCKETS]; *place; place = &(*place)->next) {
        const char *record = (*place)->names + iocLength + 1;

        if ((*place)->kind == kind && strcmp((*place)->names, ioc) == 0 && strncmp(record, channel, length) == 0 &&
            !record[length])
            break;
    }
    return place;
}

/* Finds or makes the note. NULL: there is no room, or no memory. */
static note *getNote(ebpfMonUseNotes *notes, const char *ioc, const char *channel, ebpfMonUseKind kind)
{
    note **place = findPlace(notes, ioc, channel, kind), *known = *place;
    size_t iocSize = strlen(ioc) + 1, length = ebpfMonPutGetRecordLength(channel);

    if (known)
        return known;
    if (notes->count < EBPFMON_USE_NOTES)
        *place = calloc(1, sizeof(note) + iocSize + length + 1);
    if (!*place) {
        notes->lost++;
        return NULL;
    }
    notes->count++;
    (*place)->kind = (uint8_t)kind;
    memcpy((*place)->names, ioc, iocSize);
    memcpy((*place)->names + iocSize, channel, length);
    return *place;
}

static void setText(char **to, const char *text)
{
    if (*to && strcmp(*to, text) == 0)
        return;
    free(*to);
    *to = strdup(text);
}

static void noteLast(note *n, const char *channel, uint64_t identity, int64_t at, unsigned count)
{
    int isOther = n->identity != identity;

    if (isOther) {
        setText(&n->channel, channel);
        n->isUnnamed = 1;
    }
    n->identity = identity;
    /* A look finds several clients at one PV in turn, and finds them again each time: there, another client does
     * not make the use a new one. Its name is written when the note is due. */
    n->isNew |= (uint8_t)(isOther && count);
    n->last = at;
}

int ebpfMonUseNotesAddLate(ebpfMonUseNotes *notes, const char *ioc, const char *channel, ebpfMonUseKind kind,
                           uint64_t identity, int64_t now, int64_t age, unsigned count)
{
    int64_t at = now - age;
    int isOther = 0;
    note *n;

    if (!ebpfMonUseNotesAreWanted(notes) || !ebpfMonPutGetRecordLength(channel))
        return 0;
    epicsMutexMustLock(notes->lock);
    n = getNote(notes, ioc, channel, kind);
    if (n) {
        if (!n->isChanged || at < n->first)
            n->first = at;
        if (!age || at >= n->last) { /* else it is not the last use; without an age, the clock was set back */
            isOther = n->identity != identity;
            noteLast(n, channel, identity, at, count);
        }
        n->isChanged = 1;
        n->count += count;
    }
    epicsMutexUnlock(notes->lock);
    return isOther;
}

int ebpfMonUseNotesAdd(ebpfMonUseNotes *notes, const char *ioc, const char *channel, ebpfMonUseKind kind,
                       uint64_t identity, int64_t now, unsigned count)
{
    return ebpfMonUseNotesAddLate(notes, ioc, channel, kind, identity, now, 0, count);
}

void ebpfMonUseNotesSetWho(ebpfMonUseNotes *notes, const char *ioc, const char *channel, ebpfMonUseKind kind,
                           const char *who)
{
    note *n;

    epicsMutexMustLock(notes->lock);
    n = *findPlace(notes, ioc, channel, kind);
    if (n) {
        setText(&n->who, who);
        n->isUnnamed = 0;
    }
    epicsMutexUnlock(notes->lock);
}

static int isDue(const note *n, int64_t now)
{
    int again = n->kind == ebpfMonUseSubscribe || n->kind == ebpfMonUseConnect ? STILL_SECONDS : AGAIN_SECONDS;

    return n->isNew || now >= n->taken + again || now < n->taken; /* earlier: the clock was set back */
}

static void takeNote(note *n, int64_t now, ebpfMonUse *use)
{
    *use = (ebpfMonUse){ .kind = (ebpfMonUseKind)n->kind, .first = n->first, .last = n->last, .count = n->count };
    ebpfMonTextCopy(use->ioc, sizeof(use->ioc), n->names);
    ebpfMonTextCopy(use->record, sizeof(use->record), n->names + strlen(n->names) + 1);
    ebpfMonTextCopy(use->channel, sizeof(use->channel), n->channel ? n->channel : "");
    ebpfMonTextCopy(use->who, sizeof(use->who), n->who ? n->who : "");
    n->taken = now;
    n->isNew = n->isChanged = 0;
    n->count = 0;
}

unsigned ebpfMonUseNotesTake(ebpfMonUseNotes *notes, size_t *cursor, int64_t now, int all, ebpfMonUse *uses,
                             unsigned max)
{
    unsigned taken = 0;

    epicsMutexMustLock(notes->lock);
    for (; *cursor < BUCKETS && taken < max; ++*cursor) {
        note *n = notes->bucket[*cursor];

        for (; n && taken < max; n = n->next)
            if (n->isChanged && !n->isUnnamed && (all || isDue(n, now)))
                takeNote(n, now, &uses[taken++]);
        if (n)
            break; /* the rest of this bucket comes next time */
    }
    epicsMutexUnlock(notes->lock);
    return taken;
}

void ebpfMonUseNotesGiveBack(ebpfMonUseNotes *notes, const ebpfMonUse *uses, unsigned count)
{
    epicsMutexMustLock(notes->lock);
    for (unsigned i = 0; i < count; i++) {
        note *n = *findPlace(notes, uses[i].ioc, uses[i].record, uses[i].kind);

        if (!n)
            continue;
        if (!n->isChanged)
            n->last = uses[i].last;
        n->first = uses[i].first;
        n->count += uses[i].count;
        n->isChanged = n->isNew = 1;
    }
    epicsMutexUnlock(notes->lock);
}

/* Drops notes that are written and whose last use was before this time, until half of the room is free; under the
 * lock. */
static void dropWritten(ebpfMonUseNotes *notes, int64_t before)
{
    for (size_t i = 0; i < BUCKETS && notes->count > EBPFMON_USE_NOTES / 2; i++)
        for (note **place = &notes->bucket[i]; *place;) {
            note *n = *place;

            if (n->isChanged || n->last >= before) {
                place = &n->next;
                continue;
            }
            *place = n->next;
            freeNote(n);
            notes->count--;
        }
}

void ebpfMonUseNotesForget(ebpfMonUseNotes *notes, int64_t now)
{
    epicsMutexMustLock(notes->lock);
    dropWritten(notes, now - STILL_SECONDS); /* what is still there would be noted anew by the next look, and written */
    if (notes->count >= EBPFMON_USE_NOTES)
        dropWritten(notes, INT64_MAX);
    epicsMutexUnlock(notes->lock);
}

void ebpfMonUseNotesAddLost(ebpfMonUseNotes *notes, uint64_t count)
{
    epicsMutexMustLock(notes->lock);
    notes->lost += count;
    epicsMutexUnlock(notes->lock);
}

void ebpfMonUseNotesResetLost(ebpfMonUseNotes *notes)
{
    epicsMutexMustLock(notes->lock);
    notes->lost = 0;
    epicsMutexUnlock(notes->lock);
}

uint64_t ebpfMonUseNotesCountLost(ebpfMonUseNotes *notes)
{
    uint64_t lost;

    epicsMutexMustLock(notes->lock);
    lost = notes->lost;
    epicsMutexUnlock(notes->lock);
    return lost;
}
