/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads a BPF ring (BPF_MAP_TYPE_RINGBUF; documentation of the kernel, bpf/ringbuf.rst). The kernel part wakes the
 * reader only while it sleeps: bpf/common/wake.bpf.h. We do not use libbpf's reader, because it does not tell if it has
 * read everything up to a certain time, and does not look again before it sleeps. One thread at a time may use a ring.
 *
 * The reading thread calls Read. If nothing has come for a while, it calls BeginSleep. If that returns nonzero, it
 * waits until the file of its rings is readable. Then it calls EndSleep, and Read again.
 */
#ifndef EBPFMON_RING_H
#define EBPFMON_RING_H

#include <stddef.h>
#include <stdint.h>

/* All pointers but "joined" go to memory that is shared with the kernel; a test has memory of its own. Only probe/ and
 * its tests use the members. */
typedef struct {
    unsigned long       *consumer; /* bytes that were read so far; we write it */
    const unsigned long *producer; /* bytes that were written or reserved so far; the kernel writes it */
    const uint8_t       *data;
    size_t               size;     /* bytes of the data; a power of two */
    volatile uint32_t   *sleeps;   /* nonzero: the reader sleeps, and which events wake it. Both sides write it */
    uint8_t             *joined;   /* our copy of an event that is cut in two by the end of the data */
    size_t               longest;  /* bytes of the longest event, a multiple of 8 */
    int                  fd;       /* of the map; stays the caller's. Without a kernel: fd -1, mapped NULL */
    void                *mapped;
    unsigned long        end;      /* of the next read, … */
    int                  hasEnd;   /* … if this is nonzero */
} ebpfMonRing;

/* "data" is valid during the call only. */
typedef void (*ebpfMonRingFn)(void *arg, const void *data, size_t size);

/* Maps the ring of the BPF map "fd", which has "size" bytes and events of "longest" bytes at most. "sleeps": its flag
 * (see above); stays the caller's. 0, or -1 with errno. (The kernel offers to map the data twice, one after the other,
 * so that no event is cut in two. But then the data count twice as memory of this process, so we map them once.) */
int ebpfMonRingOpen(ebpfMonRing *ring, int fd, size_t size, size_t longest, volatile uint32_t *sleeps);
void ebpfMonRingClose(ebpfMonRing *ring); /* a ring that is not open does no harm */

/* The next read goes not beyond the events that are there now. Of two rings, for which this is called one after the
 * other, and which are read then in the other order: an event of the ring that is read first, which was written before
 * one of the other, is read before it. */
void ebpfMonRingSetEnd(ebpfMonRing *ring);

/* Calls "event" for each event that has come, for as many bytes as the ring has at most. Returns the number of events.
 * *isWhole gets nonzero if all events were read that came before the call. It can be 0, because a program may still
 * write an event that stands before others. */
unsigned ebpfMonRingRead(ebpfMonRing *ring, ebpfMonRingFn event, void *arg, int *isWhole);

#define EBPFMON_RING_ALL 1u /* any event wakes the reader */

/* Begin: from now on events wake the reader. "which": EBPFMON_RING_ALL, or another value but 0 which the program that
 * writes the events knows. Returns nonzero if it may sleep; 0: there is something to read. End: events do not wake it
 * any more. */
int ebpfMonRingBeginSleep(ebpfMonRing *ring, uint32_t which);
void ebpfMonRingEndSleep(ebpfMonRing *ring);

/* --- a file for several rings: it can be read when one of them wakes the reader --- */

int ebpfMonRingsNew(void); /* -1 with errno; the caller closes it */
int ebpfMonRingsAdd(int rings, const ebpfMonRing *ring); /* 0, or -1 with errno */
void ebpfMonRingsRemove(int rings, const ebpfMonRing *ring);
void ebpfMonRingsClear(int rings); /* forgets which rings woke the reader */

#endif
