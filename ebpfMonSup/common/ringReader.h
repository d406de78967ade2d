/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that reads the entries which the kernel part writes into a ring. After a pause, the first entry wakes the
 * thread. Then it looks at short intervals (common/pace.h) until nothing comes any more. It sleeps until an entry or
 * another thread wakes it, or until work is due.
 *
 * One reader can help another one: see ebpfMonRingReaderHelp.
 */
#ifndef EBPFMON_RINGREADER_H
#define EBPFMON_RINGREADER_H

#include <stdint.h>

typedef struct ebpfMonRingReader ebpfMonRingReader;

/* The work of the thread. The thread calls all these functions, except "free". While it sleeps, a helper calls "read",
 * "getDue", "beginSleep" and "endSleep" in its place. */
typedef struct {
    const char *name; /* name of the thread */
    /* Reads the entries that have come, and does the work that is due. Returns the number of entries that have just
     * come. *expects gets nonzero if more are expected at once, so that the thread looks again soon. */
    unsigned (*read)(void *arg, int *expects);
    /* Nonzero: something has come, and something that belongs to it has not; the thread looks again soon. It is called
     * after "read", also that of the reader that this one helps. NULL: this may always be so. */
    int  (*isIncomplete)(void *arg);
    /* Returns the time (monotonic ns) at which work is due even if nothing comes. */
    uint64_t (*getDue)(void *arg);
    /* Returns the file descriptor that becomes readable when an entry wakes the thread. */
    int  (*getFile)(void *arg);
    /* From now on an entry wakes the thread. Returns 0 if an entry has come meanwhile. */
    int  (*beginSleep)(void *arg);
    void (*endSleep)(void *arg);
    /* Called last, when the thread ends. */
    void (*finish)(void *arg);
    /* Frees "arg" together with the reader. NULL: "arg" stays the caller's. */
    void (*free)(void *arg);
} ebpfMonRingReaderCalls;

/* Makes a reader, whose thread does not run yet. "calls" is copied, except its name. NULL: no memory. */
ebpfMonRingReader *ebpfMonRingReaderNew(const ebpfMonRingReaderCalls *calls, void *arg);

/* While "helper" is awake and "helped" sleeps, the thread of "helper" does the work of both, and no entry wakes
 * "helped". For two rings of which the first one gets an entry shortly before the second one: who writes the second
 * entry then need not wake anybody. If either ring has many entries, each thread does its own work. Call it before
 * either starts; "helped" is started and stopped first, and freed after "helper" has ended. */
void ebpfMonRingReaderHelp(ebpfMonRingReader *helper, ebpfMonRingReader *helped);

/* Call it in "read" before work that may have to wait for others: until the next look, the thread of the helped reader
 * is woken for its entries. */
void ebpfMonRingReaderStopHelping(ebpfMonRingReader *helper);

void ebpfMonRingReaderFree(ebpfMonRingReader *reader); /* only after Stop returned 0; NULL does no harm */

int ebpfMonRingReaderStart(ebpfMonRingReader *reader); /* 0, or -1 without memory */
/* Ends the thread. Does nothing if it does not run, or with NULL. 0, or -1: it still runs. */
int ebpfMonRingReaderStop(ebpfMonRingReader *reader);

/* Wakes the thread for work that no entry announces. "reader": an ebpfMonRingReader; NULL: nothing happens. Any thread,
 * also while the reader does not run. */
void ebpfMonRingReaderWake(void *reader);

#endif
