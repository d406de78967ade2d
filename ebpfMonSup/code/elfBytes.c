/* SPDX-License-Identifier: BSD-3-Clause */
/* See elfBytes.h. pread, so a file that is truncated while it is open gives short reads and not a signal. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
#include "code/elfBytes.h"
#include "common/clock.h"

#define WORK_MAX   (512ull << 20)
#define READ_WORK  512u         /* of one read, and of what the caller does with the bytes */
#define FILE_WORK  1024u        /* … of a read that goes to the kernel */
#define CPU_MAX    (10 * EBPFMON_SECOND_NS)
#define PAGE       4096u
#define PAGES      16u
#define SMALL      512u         /* bytes of a read that uses them */
#define LOOK_EVERY 64u          /* small reads: to ask for the time costs more than one of them */

struct ebpfMonElfBytes {
    int      fd;
    int      over;              /* as …IsOver */
    uint64_t work;
    uint64_t cpu;               /* CPU time of the thread (ns) at the begin */
    unsigned small;             /* reads since the time was asked for */
    struct {
        uint64_t number;        /* in the file; UINT64_MAX: none */
        size_t   have;          /* bytes of it, less at the end of the file */
    } page[PAGES];
    char     data[PAGES][PAGE];
};

ebpfMonElfBytes *ebpfMonElfBytesNew(int fd)
{
    ebpfMonElfBytes *b = malloc(sizeof(*b)); /* to clear all pages would cost more than most files need */

    if (!b)
        return NULL;
    b->fd = fd;
    b->over = 0;
    b->work = 0;
    b->cpu = ebpfMonClockThreadCpu();
    b->small = 0;
    for (unsigned i = 0; i < PAGES; i++)
        b->page[i].number = UINT64_MAX;
    return b;
}

void ebpfMonElfBytesFree(ebpfMonElfBytes *bytes)
{
    free(bytes);
}

int ebpfMonElfBytesIsOver(const ebpfMonElfBytes *bytes)
{
    return bytes->over;
}

static void checkTime(ebpfMonElfBytes *b)
{
    b->small = 0;
    if (!b->over && ebpfMonClockThreadCpu() - b->cpu > CPU_MAX)
        b->over = ETIME;
}

void ebpfMonElfBytesSpend(ebpfMonElfBytes *b, uint64_t work)
{
    b->work = work < UINT64_MAX - b->work ? b->work + work : UINT64_MAX;
    if (!b->over && b->work > WORK_MAX)
        b->over = EFBIG;
}

static size_t readFile(ebpfMonElfBytes *b, char *buf, size_t len, uint64_t offset)
{
    size_t done = 0;

    ebpfMonElfBytesSpend(b, FILE_WORK);
    checkTime(b);
    while (!b->over && done < len && offset + done <= INT64_MAX) {
        ssize_t n = pread(b->fd, buf + done, len - done, (off_t)(offset + done));

        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

/* What is kept of a page, from "skip" on; bytes. */
static size_t readPage(ebpfMonElfBytes *b, char *buf, size_t len, uint64_t number, size_t skip)
{
    unsigned i = (unsigned)(number % PAGES);
    size_t left;

    if (b->page[i].number != number) {
        b->page[i].number = UINT64_MAX;
        b->page[i].have = readFile(b, b->data[i], PAGE, number * PAGE);
        b->page[i].number = number;
    }
    left = b->page[i].have > skip ? b->page[i].have - skip : 0;
    len = len < left ? len : left;
    memcpy(buf, b->data[i] + skip, len);
    return len;
}

size_t ebpfMonElfBytesRead(ebpfMonElfBytes *bytes, void *buf, size_t len, uint64_t offset)
{
    size_t done = 0;

    ebpfMonElfBytesSpend(bytes, (uint64_t)len + READ_WORK);
    if (len > SMALL || offset > INT64_MAX - SMALL)
        return readFile(bytes, buf, len, offset);
    if (++bytes->small >= LOOK_EVERY)
        checkTime(bytes);
    while (!bytes->over && done < len) {
        size_t skip = (size_t)((offset + done) % PAGE), want = len - done < PAGE - skip ? len - done : PAGE - skip;
        size_t n = readPage(bytes, (char *)buf + done, want, (offset + done) / PAGE, skip);

        done += n;
        if (n < want)
            break;
    }
    return done;
}
