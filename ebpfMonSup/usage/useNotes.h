/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last use of each PV, as long as it is not yet in the database: who has read it, written it, subscribed to it, or has
 * a channel to it, and when. What one client does again and again is one note. Any thread.
 */
#ifndef EBPFMON_USENOTES_H
#define EBPFMON_USENOTES_H

#include <stddef.h>
#include <stdint.h>

#define EBPFMON_USE_NOTES 200000 /* PVs times kinds that may be noted; further ones are counted as lost */

/* The numbers are in database files: never change one. */
typedef enum {
    ebpfMonUseRead = 1,
    ebpfMonUseWrite = 2,
    ebpfMonUseSubscribe = 3,
    ebpfMonUseConnect = 4   /* it has a channel */
} ebpfMonUseKind;

typedef struct {
    char     ioc[61], record[61];
    char     channel[128];  /* as the client wrote it */
    char     who[192];
    ebpfMonUseKind kind;
    int64_t  first, last;   /* s since 1970, UTC; since the note was taken last */
    uint64_t count;         /* uses that were seen; of subscriptions and channels 0: nobody counts their beginnings */
} ebpfMonUse;

typedef struct ebpfMonUseNotes ebpfMonUseNotes;

ebpfMonUseNotes *ebpfMonUseNotesNew(void); /* NULL without memory */
void ebpfMonUseNotesFree(ebpfMonUseNotes *notes);

/* Notes are wanted, or not (any more). */
void ebpfMonUseNotesSetWanted(ebpfMonUseNotes *notes, int wanted);
int ebpfMonUseNotesAreWanted(const ebpfMonUseNotes *notes);

/*
 * A use by the client "identity" (a number that tells clients apart, not 0). "channel": the PV as the client wrote it; what
 * is before its first dot is the record. Nonzero: this client is another one than before, and the caller is to say by
 * …SetWho who it is.
 */
int ebpfMonUseNotesAdd(ebpfMonUseNotes *notes, const char *ioc, const char *channel, ebpfMonUseKind kind,
                       uint64_t identity, int64_t now, unsigned count);
void ebpfMonUseNotesSetWho(ebpfMonUseNotes *notes, const char *ioc, const char *channel, ebpfMonUseKind kind,
                           const char *who);

/* Takes at most "max" notes that are due: a client's first use, and then the newest from time to time; with "all" each one.
 * "cursor": begins with 0. Their number; 0: there are no more. */
unsigned ebpfMonUseNotesTake(ebpfMonUseNotes *notes, size_t *cursor, int64_t now, int all, ebpfMonUse *uses, unsigned max);

/* These could not be written: they are noted again. */
void ebpfMonUseNotesGiveBack(ebpfMonUseNotes *notes, const ebpfMonUse *uses, unsigned count);

/* Forgets what is in the database, if there is not much room left. */
void ebpfMonUseNotesForget(ebpfMonUseNotes *notes);

/* Uses that were not noted: there was no room, or no memory. */
uint64_t ebpfMonUseNotesCountLost(ebpfMonUseNotes *notes);

#endif
