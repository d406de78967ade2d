/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * How events reach the reader of a ring without a wake-up for each event. The reader sets a flag when it goes to sleep.
 * A program commits each event without a wake-up. Then it looks at the flag; if it is set, it clears it and wakes the
 * reader. So an IOC pays for one wake-up after a pause, and for none in a flood.
 *
 * No event stays unread. A program commits, then looks at the flag; the reader sets the flag (probe/ring.c), then looks
 * at the ring. Both have a full barrier in between. Here it is the one in bpf_ringbuf_commit(), which ends with an
 * xchg() of the event's header (kernel/bpf/ringbuf.c). So either the program sees the flag, or the reader sees the
 * event. The flag is cleared by a plain store, because kernels before 5.12 have no atomic operation except addition. If
 * two programs clear it, both wake the reader. If a program clears a flag that was set again meanwhile, it wakes the
 * reader after that.
 */
#ifndef EBPFMON_WAKE_BPF_H
#define EBPFMON_WAKE_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define WAKE_BYTES 8

/* Wakes the reader, if it sleeps. Call it after an event was committed to this ring. "sleeps": the flag of the ring. An
 * empty record carries the wake-up, and its room is reserved before a flag is cleared. If there is no room, the
 * reader has much to read; it also looks by itself. "other": the flag of another ring, whose reader this one wakes;
 * NULL: none. Whoever clears it wakes this reader after that, also if the reader was woken meanwhile. */
static __always_inline void wakeReader(void *ring, volatile __u32 *sleeps, volatile __u32 *other)
{
    void *empty;

    if (!*sleeps)
        return;
    empty = bpf_ringbuf_reserve(ring, WAKE_BYTES, 0);
    if (!empty)
        return;
    if (other)
        *other = 0;
    *sleeps = 0;
    bpf_ringbuf_discard(empty, BPF_RB_FORCE_WAKEUP);
}

/* The silence is over: wakes the reader, whether it sleeps or is about to. It looks at the flag after it has read the
 * empty record, so it sees that the flag was cleared. */
static __always_inline void breakSilence(void *ring, volatile __u32 *silent)
{
    void *empty;

    if (!*silent)
        return;
    *silent = 0;
    empty = bpf_ringbuf_reserve(ring, WAKE_BYTES, 0);
    if (empty)
        bpf_ringbuf_discard(empty, BPF_RB_FORCE_WAKEUP);
}

#endif
