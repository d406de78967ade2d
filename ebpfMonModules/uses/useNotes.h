/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notes the last use of each PV until it is written to the file: who read it, wrote it, subscribed to it, or has a
 * channel to it, and when. There is one note for each IOC, record and kind of use. Any thread; the module has a lock of
 * its own.
 */
#ifndef EBPFMON_USENOTES_H
#define EBPFMON_USENOTES_H

#include <stddef.h>
#include <stdint.h>

#define EBPFMON_USE_NOTES 200000 /* notes at most. Uses that would need more are counted as lost */

/* The numbers are in database files: never change one. */
typedef enum {
    ebpfMonUseRead = 1,
    ebpfMonUseWrite = 2,
    ebpfMonUseSubscribe = 3,
    ebpfMonUseConnect = 4   /* a channel without subscription */
} ebpfMonUseKind;

typedef struct {
    char     ioc[61], record[61];
    char     channel[128];  /* the name as the client wrote it */
    char     who[192];
    ebpfMonUseKind kind;
    int64_t  first, last;   /* the first and last use since the note was last written (s since 1970, UTC) */
    uint64_t count;         /* uses in this time; 0 for subscriptions and channels, which are not counted */
} ebpfMonUse;

typedef struct ebpfMonUseNotes ebpfMonUseNotes;

ebpfMonUseNotes *ebpfMonUseNotesNew(void); /* NULL without memory */
void ebpfMonUseNotesFree(ebpfMonUseNotes *notes);

/* Nonzero: uses are noted. 0, as at first: ebpfMonUseNotesAdd does nothing. */
void ebpfMonUseNotesSetWanted(ebpfMonUseNotes *notes, int wanted);
int ebpfMonUseNotesAreWanted(const ebpfMonUseNotes *notes);

/*
 * Notes "count" uses by the client "identity" (a number for each client, not 0) at "now" (s since 1970). "channel": the
 * PV as the client wrote it; the record is the part before its first dot. Nonzero: another client made the use before,
 * so the caller must set the name of this one by ebpfMonUseNotesSetWho; until then the note is not taken.
 */
int ebpfMonUseNotesAdd(ebpfMonUseNotes *notes, const char *ioc, const char *channel, ebpfMonUseKind kind,
                       uint64_t identity, int64_t now, unsigned count);
/* The same of a use that was "age" seconds before "now". A newer one stays the last use. */
int ebpfMonUseNotesAddLate(ebpfMonUseNotes *notes, const char *ioc, const char *channel, ebpfMonUseKind kind,
                           uint64_t identity, int64_t now, int64_t age, unsigned count);
void ebpfMonUseNotesSetWho(ebpfMonUseNotes *notes, const char *ioc, const char *channel, ebpfMonUseKind kind,
                           const char *who);

/* Takes at most "max" notes that are due. A note is due one minute (reads and puts) or ten (subscriptions and channels)
 * after it was last taken, and at once if another client reads or puts; "all": each changed note is due. "cursor": 0 at
 * the first call of a series, then unchanged.
 * Returns the number of notes; 0: there are no more. */
unsigned ebpfMonUseNotesTake(ebpfMonUseNotes *notes, size_t *cursor, int64_t now, int all, ebpfMonUse *uses,
                             unsigned max);

/* Notes again the uses that were taken but could not be written. */
void ebpfMonUseNotesGiveBack(ebpfMonUseNotes *notes, const ebpfMonUse *uses, unsigned count);

/* So many uses were taken, and have no place in the file. */
void ebpfMonUseNotesAddLost(ebpfMonUseNotes *notes, uint64_t count);

/* If more than half of the room is used, forgets notes that are written and were not used for ten minutes; if all of it
 * is used, also others that are written. "now": s since 1970. */
void ebpfMonUseNotesForget(ebpfMonUseNotes *notes, int64_t now);

/* How many uses were not noted since the last reset, because there was no room or no memory. */
uint64_t ebpfMonUseNotesCountLost(ebpfMonUseNotes *notes);
void ebpfMonUseNotesResetLost(ebpfMonUseNotes *notes);

#endif
