/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/bpf.h>

#include "probe/ring.h"

#define HEADER 8  /* bytes before each event: its length with two flags, and a number that only the kernel uses */
#define WOKEN  64 /* more than the number of rings of any file */

static size_t getPageSize(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

int ebpfMonRingOpen(ebpfMonRing *ring, int fd, size_t size, size_t longest, volatile uint32_t *sleeps)
{
    size_t page = getPageSize();
    void *own, *kernels;

    memset(ring, 0, sizeof(*ring));
    longest = (longest + 7) / 8 * 8;
    ring->joined = malloc(longest);
    if (!ring->joined)
        return -1;
    own = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    kernels = own == MAP_FAILED ? own : mmap(NULL, page + size, PROT_READ, MAP_SHARED, fd, (off_t)page);
    if (kernels == MAP_FAILED) {
        if (own != MAP_FAILED)
            munmap(own, page);
        free(ring->joined);
        ring->joined = NULL;
        return -1;
    }
    *ring = (ebpfMonRing){
        .consumer = own, .producer = kernels, .data = (const uint8_t *)kernels + page, .size = size, .sleeps = sleeps,
        .joined = ring->joined, .longest = longest, .fd = fd, .mapped = kernels,
    };
    return 0;
}

void ebpfMonRingClose(ebpfMonRing *ring)
{
    if (ring->mapped) {
        munmap(ring->consumer, getPageSize());
        munmap(ring->mapped, getPageSize() + ring->size);
        free(ring->joined);
    }
    memset(ring, 0, sizeof(*ring));
}

/* The kernel writes the length, with its flags, after the event. */
static uint32_t readHeader(const ebpfMonRing *ring, unsigned long at)
{
    return __atomic_load_n((const uint32_t *)(ring->data + (at & (ring->size - 1))), __ATOMIC_ACQUIRE);
}

/* The data of the event at "at", in one piece. */
static const uint8_t *getData(ebpfMonRing *ring, unsigned long at, size_t size)
{
    size_t from = (at + HEADER) & (ring->size - 1), first = ring->size - from;

    if (size <= first)
        return ring->data + from;
    memcpy(ring->joined, ring->data + from, first);
    memcpy(ring->joined + first, ring->data, size - first);
    return ring->joined;
}

static unsigned long getEnd(const ebpfMonRing *ring)
{
    return ring->hasEnd ? ring->end : __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
}

void ebpfMonRingSetEnd(ebpfMonRing *ring)
{
    ring->end = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
    ring->hasEnd = 1;
}

unsigned ebpfMonRingRead(ebpfMonRing *ring, ebpfMonRingFn event, void *arg, int *isWhole)
{
    unsigned long at = *ring->consumer, begin = at, before = getEnd(ring);
    unsigned n = 0;

    while (at != getEnd(ring) && at - begin < ring->size) {
        uint32_t header = readHeader(ring, at), size = header & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

        if (header & BPF_RINGBUF_BUSY_BIT)
            break;
        if (!(header & BPF_RINGBUF_DISCARD_BIT) && size <= ring->longest) {
            event(arg, getData(ring, at, size), size);
            n++;
        }
        at += (size + HEADER + 7) / 8 * 8;
        __atomic_store_n(ring->consumer, at, __ATOMIC_RELEASE);
    }
    *isWhole = (long)(at - before) >= 0;
    ring->hasEnd = 0;
    return n;
}

int ebpfMonRingBeginSleep(ebpfMonRing *ring, uint32_t which)
{
    unsigned long at = *ring->consumer;

    *ring->sleeps = which;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (at == __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE))
        return 1;
    /* A program that still writes an event looks at the flag afterwards. But its event may be of a kind that wakes
     * nobody, and then finished events behind it would wait, too. */
    return which == EBPFMON_RING_ALL && readHeader(ring, at) & BPF_RINGBUF_BUSY_BIT;
}

void ebpfMonRingEndSleep(ebpfMonRing *ring)
{
    *ring->sleeps = 0;
}

int ebpfMonRingsNew(void)
{
    return epoll_create1(EPOLL_CLOEXEC);
}

/* Edge-triggered (EPOLLET): an event that is there and not read does not wake the reader. Only a program that wakes it
 * does. */
int ebpfMonRingsAdd(int rings, const ebpfMonRing *ring)
{
    struct epoll_event woken = { .events = EPOLLIN | EPOLLET };

    return epoll_ctl(rings, EPOLL_CTL_ADD, ring->fd, &woken);
}

void ebpfMonRingsRemove(int rings, const ebpfMonRing *ring)
{
    epoll_ctl(rings, EPOLL_CTL_DEL, ring->fd, NULL);
}

void ebpfMonRingsClear(int rings)
{
    struct epoll_event woken[WOKEN];

    epoll_wait(rings, woken, WOKEN, 0);
}
