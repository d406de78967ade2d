/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that reads what the kernel part writes into a ring. After a silence the first entry wakes it; then it looks at
 * short intervals (common/pace.h) until nothing comes any more. It sleeps until an entry or somebody wakes it, or until
 * something is due.
 */
#ifndef EBPFMON_RINGREADER_H
#define EBPFMON_RINGREADER_H

#include <stdint.h>

typedef struct ebpfMonRingReader ebpfMonRingReader;

/* What it does, always on its own thread but for "free". */
typedef struct {
    const char *name; /* of the thread */
    /* All that is to be done with what has come, and with what is due. Nonzero: something came. */
    unsigned (*read)(void *arg);
    /* Monotonic ns when something is due even if nothing comes. */
    uint64_t (*getDue)(void *arg);
    /* The file that can be read when an entry wakes it. */
    int  (*getFile)(void *arg);
    /* From now on an entry wakes it. 0: one has come meanwhile. */
    int  (*beginSleep)(void *arg);
    void (*endSleep)(void *arg);
    /* The last that is done. */
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

/* There is something to do that no entry tells. "reader": an ebpfMonRingReader; NULL: nothing happens. Any thread, whether
 * it runs or not. */
void ebpfMonRingReaderWake(void *reader);

#endif
