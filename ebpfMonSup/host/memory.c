/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/worker.h"
#include "host/foreign.h"
#include "host/memory.h"
#include "host/procRead.h"

/* --- our own memory ---
 *
 * Files: proc(5), Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst of the kernel. */

#define LEVELS_MAX 32 /* of nested control groups */

/* One version of control groups: where it is mounted, and its files. */
typedef struct {
    const char *mark;  /* in the line of /proc/self/cgroup */
    const char *top;
    const char *limit, *used, *reclaimable;
} groupKind;

static const groupKind kinds[] = {
    { "0::", "/sys/fs/cgroup", "memory.max", "memory.current", "\ninactive_file " },
    { ":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "\ntotal_inactive_file " },
};

/* In one control group. What was read from files and is not used goes when memory is needed. */
static uint64_t findLeftInGroup(const groupKind *kind, const char *folder)
{
    char path[PATH_MAX], text[8192];
    uint64_t limit, used, reclaimable = 0;

    snprintf(path, sizeof(path), "%s/%s", folder, kind->limit);
    if (ebpfMonProcReadFile(path, text, sizeof(text)) <= 0)
        return UINT64_MAX;
    limit = ebpfMonProcFindNumber(text, "", UINT64_MAX); /* "max" is no number */
    snprintf(path, sizeof(path), "%s/%s", folder, kind->used);
    if (limit == UINT64_MAX || ebpfMonProcReadFile(path, text, sizeof(text)) <= 0)
        return UINT64_MAX;
    used = ebpfMonProcFindNumber(text, "", 0);
    snprintf(path, sizeof(path), "%s/memory.stat", folder);
    if (ebpfMonProcReadFile(path, text, sizeof(text)) > 0)
        reclaimable = ebpfMonProcFindNumber(text, kind->reclaimable, 0);
    used = used > reclaimable ? used - reclaimable : 0;
    return limit > used ? limit - used : 0;
}

/* In the control group of this process, and in those around it. */
static uint64_t findLeftInGroups(const groupKind *kind, const char *groups)
{
    uint64_t left = UINT64_MAX, n;
    char folder[PATH_MAX / 2], *end;
    const char *p = strstr(groups, kind->mark);

    if (!p)
        return left;
    p += strlen(kind->mark);
    snprintf(folder, sizeof(folder), "%s%.*s", kind->top, (int)strcspn(p, "\n"), p);
    for (int i = 0; i < LEVELS_MAX && strlen(folder) >= strlen(kind->top); i++) {
        n = findLeftInGroup(kind, folder);
        left = n < left ? n : left;
        end = strrchr(folder, '/');
        if (!end)
            break;
        *end = 0;
    }
    return left;
}

/* Of the addresses that this process may use. */
static uint64_t findLeftOfAddresses(void)
{
    struct rlimit limit;
    char text[128];
    uint64_t used;

    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        ebpfMonProcReadText(0, "statm", text, sizeof(text)) <= 0)
        return UINT64_MAX;
    used = ebpfMonProcFindNumber(text, "", 0) * (uint64_t)sysconf(_SC_PAGESIZE);
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

uint64_t ebpfMonOwnMemoryLeft(void)
{
    uint64_t left = findLeftOfAddresses(), n;
    char text[8192];

    if (ebpfMonProcReadFile("/proc/meminfo", text, sizeof(text)) > 0) {
        n = ebpfMonProcFindNumber(text, "MemAvailable:", UINT64_MAX / 1024) * 1024;
        left = n < left ? n : left;
    }
    if (ebpfMonProcReadText(0, "cgroup", text, sizeof(text)) > 0)
        for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
            n = findLeftInGroups(&kinds[i], text);
            left = n < left ? n : left;
        }
    return left;
}

/* --- memory of other processes --- */

/* One read: swapping in a page of a disk that works takes milliseconds. */
#define READ_SECONDS 0.25

/* What may be read of one process from flush to flush. 100,000 records take 100 MiB and 0.3 s. Bytes and CPU time may
 * be once more for each STEP_BYTES of memory of its own that it really has: so a fake must pay for them, and 1,000,000
 * records fit. */
#define CHARGED_PART 8 /* processes of a user whose others cost too much get an eighth (host/foreign.h) */
#define STEP_BYTES   ((uint64_t)256 << 20)
#define STEPS_MAX    8
#define BYTES_MAX    ((uint64_t)1 << 30)
#define CPU_NS_MAX   (2 * EBPFMON_SECOND_NS)
#define WAIT_NS_MAX  (10 * EBPFMON_SECOND_NS)

#define PARTS_A_CALL 1024 /* UIO_MAXIOV of the kernel */

#define PAUSE_NS    100000000ull /* a long reading pauses this often */

#define BLOCK_BITS  15
#define BLOCK_SIZE  ((size_t)1 << BLOCK_BITS)
#define BLOCK_COUNT 8192 /* 256 MiB at most, a power of two; a catalogue of 100,000 records takes 100 MiB */
#define AHEAD       8    /* blocks that are read at once where the block before them was read: on a busy host the way to
                          * the reader and back (host/foreign.h) takes longer than to copy a block */
#define SPARES      128  /* 4 MiB: what a small IOC needs */

typedef struct {
    uint64_t base;  /* 0: empty */
    size_t   valid; /* bytes from base on; 0: its beginning cannot be read, for example in front of a variable */
    char    *data;
} block;

struct ebpfMonMem {
    pid_t pid;
    block blocks[BLOCK_COUNT]; /* direct mapped */
    uint16_t used[BLOCK_COUNT]; /* those that have memory: most looks need few */
    unsigned usedCount;
    uint64_t waited;            /* ns, for what was read since it was made */
    /* since the flush */
    uint64_t bytes, waitedBefore, cpu; /* read, 0: nothing; CPU time of this thread at the first read */
    unsigned part;              /* the budget is divided by this … */
    unsigned times;             /* … and multiplied by this; 0: its memory was not looked at yet */
    int      isOver;
    /* what the caller does meanwhile */
    void   (*pause)(void *arg); /* NULL: nothing */
    void    *arg;
    int      mayPause, isPaused;
    uint64_t pausedAt;          /* monotonic ns, the last time, or when it was allowed */
    uint64_t paused;            /* ns of CPU time since it was made */
};

/* Memory of blocks for the next reads: to map and unmap a block costs as much as to read it. One list for the process,
 * because a list for each IOC would be large. */
static struct {
    ebpfMonLazyMutex lock;
    unsigned         count;
    char            *data[SPARES];
} spares = { .lock = EBPFMON_LAZY_MUTEX };

/* Not malloc, which would keep the memory of a large catalogue for ever. NULL: there is no memory. */
static char *getBlockData(void)
{
    char *data;

    ebpfMonLazyMutexLock(&spares.lock);
    data = spares.count ? spares.data[--spares.count] : NULL;
    ebpfMonLazyMutexUnlock(&spares.lock);
    if (data)
        return data;
    data = mmap(NULL, BLOCK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return data == MAP_FAILED ? NULL : data;
}

static void giveBlockData(char *data)
{
    int isKept;

    ebpfMonLazyMutexLock(&spares.lock);
    isKept = spares.count < SPARES;
    if (isKept)
        spares.data[spares.count++] = data;
    ebpfMonLazyMutexUnlock(&spares.lock);
    if (!isKept)
        munmap(data, BLOCK_SIZE);
}

ebpfMonMem *ebpfMonMemNew(pid_t pid)
{
    ebpfMonMem *mem = calloc(1, sizeof(*mem));

    if (mem)
        mem->pid = pid;
    return mem;
}

void ebpfMonMemFree(ebpfMonMem *mem)
{
    if (!mem)
        return;
    ebpfMonMemFlush(mem);
    free(mem);
}

void ebpfMonMemFlush(ebpfMonMem *mem)
{
    if (!mem->bytes)
        return; /* nothing was read: callers flush before and after, for each IOC each second */
    for (unsigned i = 0; i < mem->usedCount; i++) {
        block *b = &mem->blocks[mem->used[i]];

        giveBlockData(b->data);
        memset(b, 0, sizeof(*b));
    }
    mem->usedCount = 0;
    mem->bytes = mem->cpu = 0;
    mem->times = 0;
    mem->isOver = 0;
}

void ebpfMonMemSetPause(ebpfMonMem *mem, void (*pause)(void *arg), void *arg)
{
    mem->pause = pause;
    mem->arg = arg;
}

void ebpfMonMemAllowPause(ebpfMonMem *mem, int allowed)
{
    mem->mayPause = allowed;
    mem->pausedAt = ebpfMonClockMonotonic();
}

/* What is done meanwhile is no cost of this process. */
static void pauseIfDue(ebpfMonMem *mem)
{
    uint64_t before;

    if (!mem->mayPause || !mem->pause || ebpfMonClockMonotonic() - mem->pausedAt < PAUSE_NS)
        return;
    mem->mayPause = 0;
    before = ebpfMonClockThreadCpu();
    mem->isPaused = 1;
    mem->pause(mem->arg);
    mem->isPaused = 0;
    before = ebpfMonClockThreadCpu() - before;
    mem->cpu += before;
    mem->paused += before;
    ebpfMonMemAllowPause(mem, 1);
}

int ebpfMonMemIsPaused(const ebpfMonMem *mem)
{
    return mem->isPaused;
}

uint64_t ebpfMonMemGetPaused(const ebpfMonMem *mem)
{
    return mem->paused;
}

uint64_t ebpfMonMemGetWaited(const ebpfMonMem *mem)
{
    return mem->waited;
}

int ebpfMonMemIsOver(const ebpfMonMem *mem)
{
    return mem->isOver;
}

/* Nonzero: more than this many times the least budget was used. */
static int isBeyond(const ebpfMonMem *mem, uint64_t cpu, unsigned times)
{
    return mem->bytes > BYTES_MAX * times / mem->part || cpu - mem->cpu > CPU_NS_MAX * times / mem->part ||
           mem->waited - mem->waitedBefore > WAIT_NS_MAX / mem->part;
}

/* Its memory is looked at only if the least budget does not suffice. */
static unsigned findTimes(ebpfMonMem *mem)
{
    uint64_t steps;

    if (!mem->times) {
        steps = ebpfMonProcOwnMemory(mem->pid) / STEP_BYTES;
        mem->times = 1 + (unsigned)(steps < STEPS_MAX ? steps : STEPS_MAX);
    }
    return mem->times;
}

/* Nonzero: so many bytes more may be read. It is a sign of progress, too: a budget bounds how many there are. */
static int spendBudget(ebpfMonMem *mem, size_t bytes)
{
    uint64_t cpu = ebpfMonClockThreadCpu();

    ebpfMonWorkerGiveSignHere();
    if (!mem->bytes) {
        mem->waitedBefore = mem->waited;
        mem->cpu = cpu;
        mem->part = ebpfMonForeignIsCharged(mem->pid) ? CHARGED_PART : 1;
    }
    mem->bytes += bytes;
    mem->isOver |= isBeyond(mem, cpu, 1) && isBeyond(mem, cpu, findTimes(mem));
    if (mem->isOver)
        errno = EDQUOT;
    return !mem->isOver;
}

/* Some bytes of another process, read by a job that can be abandoned. */
typedef struct {
    pid_t    pid;
    uint64_t addr;
    size_t   len;
    ssize_t  got;
    int      err;
    char     bytes[];
} memoryJob;

static void runMemoryJob(void *data)
{
    memoryJob *j = data;
    struct iovec to = { j->bytes, j->len }, from = { (void *)(uintptr_t)j->addr, j->len };

    j->got = process_vm_readv(j->pid, &to, 1, &from, 1, 0);
    j->err = errno;
}

/* Reads a part of another process' memory. As process_vm_readv: it ends at the first page that is not there. */
static ssize_t readForeign(pid_t pid, uint64_t addr, void *buf, size_t len)
{
    static const ebpfMonForeignJob job = { runMemoryJob, free };
    memoryJob *j;
    ssize_t got;
    int err;

    if (addr < 4096 || addr > ((uint64_t)1 << 62)) {
        errno = EFAULT;
        return -1;
    }
    j = malloc(sizeof(*j) + len);
    if (!j)
        return -1;
    *j = (memoryJob){ .pid = pid, .addr = addr, .len = len };
    if (ebpfMonForeignRun(pid, READ_SECONDS, &job, j))
        return -1;
    got = j->got;
    err = j->err;
    if (got > 0)
        memcpy(buf, j->bytes, (size_t)got);
    free(j);
    errno = err;
    return got;
}

int ebpfMonMemReadNow(pid_t pid, uint64_t addr, void *buf, size_t len)
{
    ssize_t n = readForeign(pid, addr, buf, len);

    if (n == (ssize_t)len)
        return 0;
    if (n >= 0)
        errno = EFAULT;
    return -1;
}

/* Many parts, read by a job that can be abandoned. */
typedef struct {
    pid_t  pid;
    size_t parts;
    char  *buf;
    int    isRead;
    struct iovec from[PARTS_A_CALL];
    ebpfMonMemPart part[];
} partsJob;

static void runPartsJob(void *data)
{
    partsJob *j = data;
    struct iovec to;
    size_t at = 0;

    for (size_t i = 0; i < j->parts;) {
        size_t n = 0, size = 0;

        for (; i < j->parts && n < PARTS_A_CALL; i++, n++) {
            j->from[n] = (struct iovec){ (void *)(uintptr_t)j->part[i].addr, j->part[i].size };
            size += j->part[i].size;
        }
        to = (struct iovec){ j->buf + at, size };
        if (process_vm_readv(j->pid, &to, 1, j->from, n, 0) != (ssize_t)size)
            return;
        at += size;
    }
    j->isRead = 1;
}

static void dropPartsJob(void *data)
{
    partsJob *j = data;

    free(j->buf);
    free(j);
}

int ebpfMonMemReadParts(pid_t pid, const ebpfMonMemPart *part, size_t parts, void *buf, size_t bytes)
{
    static const ebpfMonForeignJob job = { runPartsJob, dropPartsJob };
    partsJob *j = calloc(1, sizeof(*j) + parts * sizeof(*part));
    int isRead;

    if (!j)
        return -1;
    j->pid = pid;
    j->parts = parts;
    j->buf = malloc(bytes ? bytes : 1);
    memcpy(j->part, part, parts * sizeof(*part));
    if (!j->buf) {
        free(j);
        return -1;
    }
    if (ebpfMonForeignRun(pid, READ_SECONDS, &job, j))
        return -1;
    isRead = j->isRead;
    if (isRead)
        memcpy(buf, j->buf, bytes);
    dropPartsJob(j);
    if (!isRead)
        errno = EFAULT;
    return isRead ? 0 : -1;
}

/* One call for all of it: what is read ends at the first page that is not there. */
int ebpfMonMemTextNow(pid_t pid, uint64_t addr, char *buf, size_t size)
{
    ssize_t n = readForeign(pid, addr, buf, size - 1);

    buf[n > 0 ? n : 0] = 0;
    return n > 0 ? (int)strlen(buf) : -1;
}

static block *placeOf(ebpfMonMem *mem, uint64_t base)
{
    return &mem->blocks[(base >> BLOCK_BITS) & (BLOCK_COUNT - 1)];
}

static int isCached(ebpfMonMem *mem, uint64_t base)
{
    return base && placeOf(mem, base)->base == base;
}

/* A row of blocks of another process, read by a job that can be abandoned. The blocks keep the memory of the job, so
 * nothing is copied. */
typedef struct {
    pid_t    pid;
    uint64_t addr;
    unsigned count;
    ssize_t  got;
    char    *data[AHEAD];
} blocksJob;

static void runBlocksJob(void *data)
{
    blocksJob *j = data;
    struct iovec to[AHEAD], from = { (void *)(uintptr_t)j->addr, j->count * BLOCK_SIZE };

    for (unsigned i = 0; i < j->count; i++)
        to[i] = (struct iovec){ j->data[i], BLOCK_SIZE };
    j->got = process_vm_readv(j->pid, to, j->count, &from, 1, 0);
}

static void dropBlocksJob(void *data)
{
    blocksJob *j = data;

    for (unsigned i = 0; i < j->count; i++)
        if (j->data[i])
            giveBlockData(j->data[i]);
    free(j);
}

/* For as many blocks as there is memory for. NULL: for none. */
static blocksJob *makeBlocksJob(pid_t pid, uint64_t base, unsigned most)
{
    blocksJob *j = calloc(1, sizeof(*j));

    if (!j)
        return NULL;
    j->pid = pid;
    j->addr = base;
    while (j->count < most && (j->data[j->count] = getBlockData()) != NULL)
        j->count++;
    if (j->count)
        return j;
    free(j);
    return NULL;
}

/* Puts a block in its place, and forgets what was there. "data" is the block's from now on; NULL: there was no
 * memory. */
static void setBlock(ebpfMonMem *mem, uint64_t base, size_t valid, char *data)
{
    block *b = placeOf(mem, base);

    if (!data)
        return;
    if (b->data)
        giveBlockData(b->data);
    else
        mem->used[mem->usedCount++] = (uint16_t)(b - mem->blocks);
    *b = (block){ .base = base, .valid = valid, .data = data };
}

/* How many blocks to read from this one on: more than one if it seems that they are needed next, as far as none of them
 * is cached. */
static unsigned countAhead(ebpfMonMem *mem, uint64_t base)
{
    unsigned n = 1;

    if (isCached(mem, base - BLOCK_SIZE) && placeOf(mem, base - BLOCK_SIZE)->valid == BLOCK_SIZE)
        while (n < AHEAD && !isCached(mem, base + n * BLOCK_SIZE))
            n++;
    return n;
}

static void readBlocks(ebpfMonMem *mem, uint64_t base)
{
    static const ebpfMonForeignJob job = { runBlocksJob, dropBlocksJob };
    uint64_t before = ebpfMonForeignGetCost();
    unsigned n;
    blocksJob *j;

    pauseIfDue(mem);
    n = countAhead(mem, base);
    j = spendBudget(mem, n * BLOCK_SIZE) ? makeBlocksJob(mem->pid, base, n) : NULL;
    if (!j)
        return;
    if (ebpfMonForeignRun(mem->pid, READ_SECONDS, &job, j))
        j = NULL; /* the job frees it */
    mem->waited += ebpfMonForeignGetCost() - before;
    for (unsigned i = 0; j && i < j->count && j->got > (ssize_t)(i * BLOCK_SIZE); i++) {
        size_t left = (size_t)j->got - i * BLOCK_SIZE;

        setBlock(mem, base + i * BLOCK_SIZE, left < BLOCK_SIZE ? left : BLOCK_SIZE, j->data[i]);
        j->data[i] = NULL;
    }
    if (j)
        dropBlocksJob(j);
    if (!isCached(mem, base)) /* so that later reads of this block do not try again */
        setBlock(mem, base, 0, getBlockData());
}

/* The block of an address; NULL: it could not be read now. */
static block *findBlock(ebpfMonMem *mem, uint64_t addr)
{
    uint64_t base = addr & ~(uint64_t)(BLOCK_SIZE - 1);

    if (!isCached(mem, base))
        readBlocks(mem, base);
    return isCached(mem, base) ? placeOf(mem, base) : NULL;
}

int ebpfMonMemRead(ebpfMonMem *mem, uint64_t addr, void *buf, size_t len)
{
    char *out = buf;

    if (addr < 4096 || addr > ((uint64_t)1 << 62)) {
        errno = EFAULT;
        return -1;
    }
    while (len > 0) {
        size_t at = addr & (BLOCK_SIZE - 1);
        size_t n = BLOCK_SIZE - at < len ? BLOCK_SIZE - at : len;
        block *b = findBlock(mem, addr);

        if (b && at + n <= b->valid) {
            memcpy(out, b->data + at, n);
        } else {
            uint64_t before = ebpfMonForeignGetCost();
            int failed = !spendBudget(mem, n) || ebpfMonMemReadNow(mem->pid, addr, out, n);

            mem->waited += ebpfMonForeignGetCost() - before;
            if (failed)
                return -1;
        }
        addr += n;
        out += n;
        len -= n;
    }
    return 0;
}

uint64_t ebpfMonMemPtr(ebpfMonMem *mem, uint64_t addr)
{
    uint64_t p;

    return ebpfMonMemRead(mem, addr, &p, sizeof(p)) ? 0 : p;
}

int ebpfMonMemStr(ebpfMonMem *mem, uint64_t addr, char *buf, size_t size)
{
    size_t have = 0;

    while (have < size) {
        size_t at = (addr + have) & 63, n = 64 - at; /* never over the end of a mapping by much */
        char *end;

        if (n > size - have)
            n = size - have;
        if (ebpfMonMemRead(mem, addr + have, buf + have, n))
            break;
        end = memchr(buf + have, 0, n);
        if (end)
            return 0;
        have += n;
    }
    if (size)
        buf[0] = 0;
    return -1;
}
