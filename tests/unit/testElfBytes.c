/* SPDX-License-Identifier: BSD-3-Clause */
/* code/elfBytes.h: the bytes are those of the file, and the budget of work ends it, on a slow host as on a fast one; so
 * a hostile file ends soon. code/imageCache.h: what took too much CPU time is read again later. Both clocks are this
 * program's. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <epicsUnitTest.h>
#include <testMain.h>
#include "code/elfBytes.h"
#include "code/elfSymbols.h"
#include "code/image.h"
#include "common/clock.h"
#include "../ioc/hostile.h"

#define SIZE    (40u * 4096u + 100u) /* more than is kept */
#define READS   20000
#define MEGA    (1u << 20)
#define SLOW    10000000ull   /* ns between two looks at the clock; each read of the file has one look */
#define STOPPED 6000000000ull
#define HOSTILE_SECONDS 5.0   /* an ordinary host takes 1 s; without counting work it is a minute */

static _Atomic uint64_t step; /* ns by which the clock advances at each look */
static _Atomic uint64_t cpu, later;

uint64_t ebpfMonClockThreadCpu(void)
{
    return cpu += step;
}

uint64_t ebpfMonClockMonotonic(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * EBPFMON_SECOND_NS + (uint64_t)now.tv_nsec + later;
}

static uint8_t content[SIZE];

static FILE *makeFile(void)
{
    FILE *file = tmpfile();

    for (unsigned i = 0; i < SIZE; i++)
        content[i] = (uint8_t)(rand() >> 8);
    if (!file || fwrite(content, 1, SIZE, file) != SIZE || fflush(file))
        testAbort("no temporary file");
    return file;
}

static void testContent(int fd)
{
    ebpfMonElfBytes *b = ebpfMonElfBytesNew(fd);
    unsigned wrong = 0;

    for (unsigned i = 0; i < READS; i++) {
        static const size_t sizes[] = { 1, 8, 64, 511, 512, 513, 9000 };
        uint8_t buf[9000];
        size_t want = sizes[(unsigned)rand() % 7], at = (size_t)rand() % (SIZE + 50);
        size_t have = at >= SIZE ? 0 : SIZE - at < want ? SIZE - at : want;

        wrong += ebpfMonElfBytesRead(b, buf, want, at) != have || memcmp(buf, content + (at < SIZE ? at : 0), have);
    }
    testOk(!wrong && !ebpfMonElfBytesIsOver(b), "%d reads, %u of them wrong", READS, wrong);
    ebpfMonElfBytesFree(b);
}

static void testEnds(int fd)
{
    ebpfMonElfBytes *b = ebpfMonElfBytesNew(fd);
    uint8_t buf[600];

    testOk1(ebpfMonElfBytesRead(b, buf, 8, SIZE - 3) == 3);
    testOk1(ebpfMonElfBytesRead(b, buf, 8, UINT64_MAX) == 0 && ebpfMonElfBytesRead(b, buf, 8, UINT64_MAX - 7) == 0);
    testOk1(ebpfMonElfBytesRead(b, buf, 600, INT64_MAX) == 0 && ebpfMonElfBytesRead(b, buf, 600, UINT64_MAX) == 0);
    if (ftruncate(fd, 5000))
        testAbort("ftruncate");
    testOk1(ebpfMonElfBytesRead(b, buf, 8, 30 * 4096) == 0 && ebpfMonElfBytesRead(b, buf, 600, 4900) == 100);
    ebpfMonElfBytesFree(b);
}

static void testBudgets(int fd)
{
    ebpfMonElfBytes *b = ebpfMonElfBytesNew(fd);
    char *buf = malloc(64 * MEGA);
    unsigned n;

    if (!buf)
        testAbort("no memory");
    for (n = 0; n < 100 && !ebpfMonElfBytesIsOver(b); n++)
        ebpfMonElfBytesRead(b, buf, 64 * MEGA, 0);
    testOk(n == 8 && ebpfMonElfBytesIsOver(b) == EFBIG, "the limit is reached after %u x 64 MiB", n);
    testOk1(ebpfMonElfBytesRead(b, buf, 8, 0) == 0 && ebpfMonElfBytesRead(b, buf, 1000, 0) == 0);
    ebpfMonElfBytesFree(b);
    b = ebpfMonElfBytesNew(fd);
    ebpfMonElfBytesRead(b, buf, 8, 0);
    step = SLOW;
    for (n = 0; n < 1000 && ebpfMonElfBytesRead(b, buf, 8, 0) == 8; n++)
        ; /* all of a page that is kept */
    testOk(n == 1000 && !ebpfMonElfBytesIsOver(b), "a slow host: the limit is not reached after %u small reads", n);
    step = STOPPED;
    for (n = 0; n < 1000 && ebpfMonElfBytesRead(b, buf, 8, 0) == 8; n++)
        ;
    testOk(n > 1 && n < 200 && ebpfMonElfBytesIsOver(b) == ETIME,
           "a host that stands still: the limit is reached after %u small reads", n);
    step = 0;
    ebpfMonElfBytesFree(b);
    free(buf);
}

/* Work that is no reading, and small reads, end as well. The CPU clock stands still. */
static void testWork(int fd)
{
    ebpfMonElfBytes *b = ebpfMonElfBytesNew(fd);
    uint8_t buf[8];
    unsigned n;

    ebpfMonElfBytesSpend(b, 500u * MEGA);
    testOk1(!ebpfMonElfBytesIsOver(b) && ebpfMonElfBytesRead(b, buf, 8, 0) == 8);
    ebpfMonElfBytesSpend(b, UINT64_MAX);
    testOk1(ebpfMonElfBytesIsOver(b) == EFBIG && ebpfMonElfBytesRead(b, buf, 8, 0) == 0);
    ebpfMonElfBytesFree(b);
    b = ebpfMonElfBytesNew(fd);
    for (n = 0; n < 10 * MEGA && ebpfMonElfBytesRead(b, buf, 8, 0) == 8; n++)
        ;
    testOk(n > 100000 && n < 2 * MEGA && ebpfMonElfBytesIsOver(b) == EFBIG, "the limit is reached after %u small reads",
           n);
    ebpfMonElfBytesFree(b);
}

static double findCpuSeconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* 12 KiB on disk, with a string table and a symbol table of a gigabyte each: searched for as many names as possible. */
static void testHostileFile(void)
{
    static const char *const names[] = {"dbProcess", "pdbbase", "a1", "a2", "a3", "a4", "a5", "a6", "a7",
                                        "a8",        "a9",      "b1", "b2", "b3", "b4", "b5", "b6", "b7",
                                        "b8",        "b9",      "c1", "c2", "c3", "c4", "c5", "c6"};
    enum { NAMES = sizeof(names) / sizeof(names[0]) };
    ebpfMonElfSymbol found[NAMES];
    FILE *tmp = tmpfile();
    ebpfMonElfFile file;
    double begin;

    if (!tmp || hostileWriteSparseElf(fileno(tmp)) || ebpfMonElfOpen(&file, fileno(tmp)))
        testAbort("no hostile file");
    begin = findCpuSeconds();
    ebpfMonElfFind(&file, names, NAMES, found);
    begin = findCpuSeconds() - begin;
    testOk(ebpfMonElfIsOver(&file) == EFBIG, "a hostile file uses up its work");
    testOk(begin < HOSTILE_SECONDS, "after %.2f s of CPU", begin);
    ebpfMonElfClose(&file);
    fclose(tmp);
}

/* Returns 0, or errno. */
static int look(ebpfMonImageCache *cache)
{
    ebpfMonImage image;
    int rc = ebpfMonImageRead(cache, getpid(), &image);

    return rc < 0 ? errno : rc ? ENOENT : 0;
}

/* This program has all of EPICS Base mapped. */
static void testReadAgain(void)
{
    ebpfMonImageCache *cache = ebpfMonImageCacheNew();

    step = SLOW;
    testOk(look(cache) == 0, "a slow host: this program is an IOC");
    ebpfMonImageCacheFree(cache);
    cache = ebpfMonImageCacheNew();
    step = STOPPED;
    testOk1(look(cache) == EFBIG);
    step = 0;
    testOk(look(cache) == EFBIG, "the host is fast again: the program is not read again at once");
    later = 11 * EBPFMON_SECOND_NS;
    step = STOPPED;
    testOk(look(cache) == EFBIG, "after 10 s it is read again, but the host stands still");
    step = 0;
    later += 11 * EBPFMON_SECOND_NS;
    testOk(look(cache) == EFBIG, "10 s later it is not read, because the wait has doubled");
    later += 11 * EBPFMON_SECOND_NS;
    testOk(look(cache) == 0, "20 s later it is read, and is an IOC");
    ebpfMonImageCacheFree(cache);
}

MAIN(testElfBytes)
{
    FILE *file;

    testPlan(20);
    srand(1);
    file = makeFile();
    testContent(fileno(file));
    testEnds(fileno(file));
    testBudgets(fileno(file));
    testWork(fileno(file));
    fclose(file);
    testHostileFile();
    testReadAgain();
    return testDone();
}
