/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that reads the entries which the kernel part writes into a ring. The first entry after a pause wakes the
 * thread. It looks, and soon once more; then again and again, until a look finds nothing. Then it sleeps until an entry
 * or another thread wakes it, or until work is due. So nobody pays to wake it while entries come one after the other.
 */
#ifndef EBPFMON_RINGREADER_H
#define EBPFMON_RINGREADER_H

#include <stdint.h>

#define EBPFMON_READER_FIRST_NS 125000ull  /* from the look after it was woken to the next one */
#define EBPFMON_READER_NEXT_NS  2000000ull /* … and from then on: the longest that an entry waits while others come */

typedef struct ebpfMonRingReader ebpfMonRingReader;

/* The work of the thread. The thread calls all these functions, except "free" and "isAnnounced". */
typedef struct {
    const char *name; /* name of the thread */
    /* Reads the entries that have come, and does the work that is due. *expects gets nonzero if more are expected, so
     * that the thread looks again soon. */
    void (*read)(void *arg, int *expects);
    /* Returns the time (monotonic ns) at which work is due even if nothing comes. */
    uint64_t (*getDue)(void *arg);
    /* Returns the file descriptor that becomes readable when an entry wakes the thread. */
    int  (*getFile)(void *arg);
    /* From now on an entry wakes the thread. Returns 0 if an entry has come meanwhile. */
    int  (*beginSleep)(void *arg);
    void (*endSleep)(void *arg);
    /* Nonzero: since beginSleep, an entry of the ring before this one took the wake-up from the entries of this one.
     * Any thread. Needed only of a reader that is "next". */
    int  (*isAnnounced)(void *arg);
    /* Called last, when the thread ends. */
    void (*finish)(void *arg);
    /* Frees "arg" together with the reader. NULL: "arg" stays the caller's. */
    void (*free)(void *arg);
} ebpfMonRingReaderCalls;

/* Makes a reader, whose thread does not run yet. "calls" is copied, except its name. NULL: no memory. */
ebpfMonRingReader *ebpfMonRingReaderNew(const ebpfMonRingReaderCalls *calls, void *arg);

/* For two rings of which the first one gets an entry shortly before the second one: an entry that wakes the first
 * reader may take the wake-up from those of the second one, which the first reader wakes then. So who writes the second
 * entry need not wake anybody. Call it before either starts; "next" is freed after the other has ended. */
void ebpfMonRingReaderSetNext(ebpfMonRingReader *reader, ebpfMonRingReader *next);

void ebpfMonRingReaderFree(ebpfMonRingReader *reader); /* only after Stop returned 0; NULL does no harm */

int ebpfMonRingReaderStart(ebpfMonRingReader *reader); /* 0, or -1 without memory */
/* Ends the thread. Does nothing if it does not run, or with NULL. 0, or -1: it still runs. */
int ebpfMonRingReaderStop(ebpfMonRingReader *reader);

/* Wakes the thread for work that no entry announces. "reader": an ebpfMonRingReader; NULL: nothing happens. Any thread,
 * also while the reader does not run. */
void ebpfMonRingReaderWake(void *reader);

#endif
