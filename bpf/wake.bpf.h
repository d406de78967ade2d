/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * How events reach the reader of a ring without waking it for each. The reader sets a flag when it goes to sleep. Each
 * event is committed without a wake-up; then its program looks at the flag, clears it, and wakes the reader. So an IOC
 * pays for one wake-up after a silence, and for none in a flood.
 *
 * No event is left unseen. Commit and look are here, set and look are in probe/ring.c, each with a full barrier in
 * between: here it is the one in bpf_ringbuf_commit(), which ends with an xchg() of the event's header
 * (kernel/bpf/ringbuf.c). So either this program sees the flag, or the reader sees the event. The flag is cleared by a
 * plain store, because kernels before 5.12 have no other atomic operation than addition. If two programs clear it, both
 * wake the reader; and whoever has cleared a flag that was set again meanwhile wakes the reader after that.
 */
#ifndef EBPFMON_WAKE_BPF_H
#define EBPFMON_WAKE_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define WAKE_BYTES 8

/* After an event was committed to this ring. "sleeps": its flag. An empty record carries the wake-up: it is taken before
 * the flag is cleared. Without room for it the reader has much to read; it looks by itself after a second at most. */
static __always_inline void wakeReader(void *ring, volatile __u32 *sleeps)
{
    void *empty;

    if (!*sleeps)
        return;
    empty = bpf_ringbuf_reserve(ring, WAKE_BYTES, 0);
    if (!empty)
        return;
    *sleeps = 0;
    bpf_ringbuf_discard(empty, BPF_RB_FORCE_WAKEUP);
}

#endif
