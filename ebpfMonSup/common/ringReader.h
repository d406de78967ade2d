/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that reads the entries that the kernel part writes into a ring. After a pause the first entry wakes the thread; then
 * it looks at short intervals (common/pace.h) until nothing comes any more. It sleeps until an entry or another thread wakes
 * it, or until something is due.
 */
#ifndef EBPFMON_RINGREADER_H
#define EBPFMON_RINGREADER_H

#include <stdint.h>

typedef struct ebpfMonRingReader ebpfMonRingReader;

/* The work of the thread. All functions except "free" are called on this thread. */
typedef struct {
    const char *name; /* of the thread */
    /* Reads the entries that have come, and does the work that is due. Nonzero: an entry came. */
    unsigned (*read)(void *arg);
    /* Monotonic ns when something is due even if nothing comes. */
    uint64_t (*getDue)(void *arg);
    /* The file that can be read when an entry wakes it. */
    int  (*getFile)(void *arg);
    /* From now on an entry wakes the thread. 0: an entry has come meanwhile. */
    int  (*beginSleep)(void *arg);
    void (*endSleep)(void *arg);
    /* Called last, when the thread ends. */
    void (*finish)(void *arg);
    /* Frees "arg", with the reader. NULL: it stays the caller's. */
    void (*free)(void *arg);
} ebpfMonRingReaderCalls;

/* The calls are copied, but for the name. The thread does not run yet. NULL without memory. */
ebpfMonRingReader *ebpfMonRingReaderNew(const ebpfMonRingReaderCalls *calls, void *arg);
void ebpfMonRingReaderFree(ebpfMonRingReader *reader); /* after a successful stop; NULL does no harm */

int ebpfMonRingReaderStart(ebpfMonRingReader *reader); /* 0, or -1 without memory */
/* Ends the thread; one that does not run does no harm, as NULL. 0, or -1: it still runs. */
int ebpfMonRingReaderStop(ebpfMonRingReader *reader);

/* Wakes the thread for work that no entry announces. "reader": an ebpfMonRingReader; NULL: nothing happens. Any thread, whether
 * the reader runs or not. */
void ebpfMonRingReaderWake(void *reader);

#endif
