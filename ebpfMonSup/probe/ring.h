/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reader of a BPF ring (BPF_MAP_TYPE_RINGBUF; the kernel's documentation bpf/ringbuf.rst), which the kernel part
 * wakes only while it sleeps: bpf/wake.bpf.h. libbpf's reader does not tell whether it has read all up to a time, nor
 * looks again before it sleeps. One thread at a time may use a ring.
 *
 * A reader reads; if nothing comes for a while, it begins to sleep, and if that returns nonzero, waits for the file of its
 * rings; then it ends its sleep, and reads.
 */
#ifndef EBPFMON_RING_H
#define EBPFMON_RING_H

#include <stddef.h>
#include <stdint.h>

/* In shared memory, but for "sleeps" of a test. Seen by probe/ and its tests only. */
typedef struct {
    unsigned long       *consumer; /* bytes read so far; we write it */
    const unsigned long *producer; /* bytes taken so far; the kernel writes it */
    const uint8_t       *data;
    size_t               size;     /* of the data; a power of two */
    volatile uint32_t   *sleeps;   /* both sides write it */
    uint8_t             *joined;   /* an event that is cut in two by the end of the data, put together: ours */
    size_t               longest;  /* … has so many bytes at most; a multiple of 8 */
    int                  fd;       /* of the map; the caller's. These two: -1 and NULL without a kernel */
    void                *mapped;
} ebpfMonRing;

/* "data" is valid during the call only. */
typedef void (*ebpfMonRingFn)(void *arg, const void *data, size_t size);

/* Maps the ring of the map "fd" with "size" bytes, whose events have "longest" bytes at most. "sleeps": its flag. 0, or -1
 * with errno. (The kernel offers the data twice, one behind the other, so that no event is cut in two. But mapped memory
 * counts as ours each time, so we map it once.) */
int ebpfMonRingOpen(ebpfMonRing *ring, int fd, size_t size, size_t longest, volatile uint32_t *sleeps);
void ebpfMonRingClose(ebpfMonRing *ring); /* one that is not open does no harm */

/* Hands over what has come, at most as many bytes as the ring has. Returns the number of events. *isWhole is nonzero if
 * all is read that came before the call: a program may be at work still on an event before others. */
unsigned ebpfMonRingRead(ebpfMonRing *ring, ebpfMonRingFn event, void *arg, int *isWhole);

/* From now on an event wakes the reader. Nonzero: it may sleep; 0: there is something to read. */
int ebpfMonRingBeginSleep(ebpfMonRing *ring);
void ebpfMonRingEndSleep(ebpfMonRing *ring);

/* --- a file for several rings: it can be read when one of them wakes the reader --- */

int ebpfMonRingsNew(void); /* -1 with errno; the caller closes it */
int ebpfMonRingsAdd(int rings, const ebpfMonRing *ring); /* 0, or -1 with errno */
void ebpfMonRingsRemove(int rings, const ebpfMonRing *ring);
void ebpfMonRingsClear(int rings); /* forgets who woke the reader */

#endif
