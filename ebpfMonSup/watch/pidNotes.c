/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <epicsAtomic.h>
#include <epicsMutex.h>

#include "watch/pidNotes.h"

struct ebpfMonPidNotes {
    epicsMutexId lock;                     /* guards what follows */
    pid_t        pids[EBPFMON_PID_NOTES];  /* 0: none */
    unsigned     added;                    /* its remainder is the oldest place */
    int          count;                    /* of notes; atomic: it is read without the lock */
};

ebpfMonPidNotes *ebpfMonPidNotesNew(void)
{
    ebpfMonPidNotes *notes = calloc(1, sizeof(*notes));

    if (notes)
        notes->lock = epicsMutexMustCreate();
    return notes;
}

void ebpfMonPidNotesFree(ebpfMonPidNotes *notes)
{
    if (!notes)
        return;
    epicsMutexDestroy(notes->lock);
    free(notes);
}

void ebpfMonPidNotesAdd(ebpfMonPidNotes *notes, pid_t pid)
{
    pid_t *place;

    epicsMutexMustLock(notes->lock);
    place = &notes->pids[notes->added++ % EBPFMON_PID_NOTES];
    if (!*place)
        epicsAtomicIncrIntT(&notes->count);
    *place = pid;
    epicsMutexUnlock(notes->lock);
}

int ebpfMonPidNotesTake(ebpfMonPidNotes *notes, pid_t pid)
{
    int found = 0;

    if (!epicsAtomicGetIntT(&notes->count))
        return 0;
    epicsMutexMustLock(notes->lock);
    for (unsigned i = 0; i < EBPFMON_PID_NOTES; i++)
        if (notes->pids[i] == pid) {
            notes->pids[i] = 0;
            found++;
        }
    epicsAtomicAddIntT(&notes->count, -found);
    epicsMutexUnlock(notes->lock);
    return found != 0;
}
