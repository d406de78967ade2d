/* SPDX-License-Identifier: BSD-3-Clause */
/* code/elfFile.h: the bytes are those of the file, and the budget of work ends it, on a slow host as on a fast one; so
 * a hostile file ends soon. code/image.h: what took too much CPU time is read again later. Both clocks are this
 * program's. host/foreign.h, code/symbolFile.h: what is no file is not opened. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <epicsUnitTest.h>
#include <testMain.h>
#include "code/elfFile.h"
#include "code/elfSymbols.h"
#include "code/image.h"
#include "code/symbolFile.h"
#include "common/clock.h"
#include "host/foreign.h"
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

/* Nonzero: somebody opened the file since the last call. */
static int wasOpened(int watch)
{
    char events[4096];
    int opened = 0;

    while (read(watch, events, sizeof(events)) > 0)
        opened = 1;
    return opened;
}

/* A pipe where a file with symbols belongs. A device would be opened in the same way. */
static void testPipe(void)
{
    char folder[] = "/tmp/testElfBytesXXXXXX", under[40], path[120];
    int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), file;
    ebpfMonSymbolPlaces places = { .pid = getpid(), .program = "/" };
    ebpfMonSymbolSearch search = { 0 };
    ebpfMonElfFile elf;

    if (self < 0 || ebpfMonElfOpen(&elf, self) || !mkdtemp(folder))
        testAbort("no file of this program, or no folder");
    snprintf(places.folders, sizeof(places.folders), "%s", folder);
    snprintf(under, sizeof(under), "%s/%.2s", folder, elf.buildId);
    snprintf(path, sizeof(path), "%s/%.38s.debug", under, elf.buildId + 2);
    if (!elf.buildId[0] || mkdir(under, 0700) || mkfifo(path, 0600) || inotify_add_watch(watch, path, IN_OPEN) < 0) {
        testSkip(4, "no build-id, or no pipe");
    } else {
        file = open(path, O_PATH | O_CLOEXEC);
        close(file);
        if (wasOpened(watch))
            testSkip(1, "this kernel tells of more than opens");
        else
            testOk(!ebpfMonSymbolFileAdd(&elf, &places, &search) && !wasOpened(watch), "it is not opened for symbols");
        errno = 0;
        testOk1(ebpfMonForeignOpenFile(path) == -1 && errno == ENXIO);
        file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        testOk(file >= 0 && wasOpened(watch), "whoever opens it is seen");
        close(file);
        file = ebpfMonForeignOpenFile("/proc/self/exe");
        testOk(file >= 0 && lseek(file, 0, SEEK_END) == lseek(self, 0, SEEK_END), "a file is opened");
        close(file);
    }
    ebpfMonElfClose(&elf);
    unlink(path);
    rmdir(under);
    rmdir(folder);
    close(watch);
    close(self);
}

MAIN(testElfBytes)
{
    FILE *file;

    testPlan(24);
    srand(1);
    file = makeFile();
    testContent(fileno(file));
    testEnds(fileno(file));
    testBudgets(fileno(file));
    testWork(fileno(file));
    fclose(file);
    testHostileFile();
    testReadAgain();
    testPipe();
    return testDone();
}
