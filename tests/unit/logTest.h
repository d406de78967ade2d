/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the tests of the logs: a folder for each test, puts, and the published numbers of written and lost lines. The
 * tests use the logs as the monitor does, by export/log/putLogs.h.
 */
#ifndef EBPFMON_LOGTEST_H
#define EBPFMON_LOGTEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* unshare */
#endif
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <epicsThread.h>
#include <epicsTime.h>
#include <epicsUnitTest.h>
#include <errlog.h>
#include <testMain.h>

#include "common/clock.h"
#include "export/log/putLogs.h"
#include "model/published.h"
#include "putTest.h"

#define DEADLINE 20.0 /* s */

static ebpfMonPutLogs *logs; /* made by the test */
static char dir[128];
static int alone; /* the test has namespaces of its own */
static uint64_t linesBefore, lostBefore;

/* Nonzero if the condition became true before the deadline. */
static inline int until(int (*condition)(const void *), const void *arg)
{
    double end = ebpfMonClockSeconds() + DEADLINE;

    while (!condition(arg)) {
        if (ebpfMonClockSeconds() > end)
            return 0;
        epicsThreadSleep(0.01);
    }
    return 1;
}

static inline uint64_t written(void)
{
    uint64_t n = ebpfMonPublishedLock()->log.written;

    ebpfMonPublishedUnlock();
    return n - linesBefore;
}

static inline uint64_t lost(void)
{
    uint64_t n = ebpfMonPublishedLock()->log.lost;

    ebpfMonPublishedUnlock();
    return n - lostBefore;
}

static inline void begin(void)
{
    linesBefore += written();
    lostBefore += lost();
}

static inline int isInTrouble(const void *text)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    int is = published->log.state == ebpfMonLogTrouble && strstr(published->log.message, text);

    ebpfMonPublishedUnlock();
    return is;
}

static inline int isFine(const void *unused)
{
    int is = ebpfMonPublishedLock()->log.state == ebpfMonLogOk;

    ebpfMonPublishedUnlock();
    return is;
}

static inline const char *pathOf(const char *name)
{
    static char path[4][256];
    static unsigned n;

    n = (n + 1) % 4;
    snprintf(path[n], sizeof(path[n]), "%s/%s", dir, name);
    return path[n];
}

static inline int hasFile(const void *path)
{
    return access(path, F_OK) == 0;
}

static inline char *contents(const char *path, size_t *len)
{
    FILE *f = fopen(path, "r");
    char *text = NULL;
    struct stat st;

    *len = 0;
    if (!f)
        return NULL;
    if (fstat(fileno(f), &st) == 0 && (text = malloc((size_t)st.st_size + 1)) != NULL) {
        *len = fread(text, 1, (size_t)st.st_size, f);
        text[*len] = 0;
    }
    fclose(f);
    return text;
}

/* Marks in seen[] the numbers of the lines "pv":"P<number>". Returns the number of whole lines, or -1 if one is not
 * whole. */
static inline int readLines(const char *path, unsigned char *seen, unsigned size)
{
    size_t len;
    char *text = contents(path, &len), *line = text, *end;
    int n = 0;

    if (!text)
        return 0;
    while ((end = strchr(line, '\n')) && n >= 0) {
        char *pv = strstr(line, "\"pv\":\"P");
        unsigned number;

        *end = 0;
        if (line[0] != '{' || end[-1] != '}' || strstr(line + 1, "{\"time\"")) {
            testDiag("%s: %s", path, line);
            n = -2;
        } else if (pv && sscanf(pv + 7, "%u", &number) == 1 && number < size && seen) {
            seen[number]++;
        }
        n++;
        line = end + 1;
    }
    if (n >= 0 && *line)
        n = -1;
    free(text);
    return n;
}

static inline void putNumber(unsigned number)
{
    ebpfMonPut p = somePut(number);

    sprintf(p.pv, "P%u", number);
    ebpfMonPutLogsAddPut(logs, &p);
}

static inline long startJsonLog(const char *file, double maxMB, double hours, int keep)
{
    return ebpfMonPutLogsAddJson(logs, pathOf(file), maxMB, hours, keep, ebpfMonLogAll);
}

static inline int wroteMany(const void *number)
{
    return written() >= *(const uint64_t *)number;
}

static inline void writeUntil(uint64_t number)
{
    testOk(until(wroteMany, &number), "%" PRIu64 " lines written, %" PRIu64 " wanted", written(), number);
}

/* As root: a network namespace with a loopback interface, and a mount namespace. */
static inline void useOwnNamespaces(void)
{
    struct ifreq ifr = {.ifr_name = "lo"};
    int fd;

    if (unshare(CLONE_NEWNS | CLONE_NEWNET) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return;
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    ifr.ifr_flags = IFF_UP | IFF_RUNNING;
    alone = ioctl(fd, SIOCSIFFLAGS, &ifr) == 0;
    close(fd);
}

static inline int removeOne(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    return remove(path);
}

static inline void removeAll(const char *path)
{
    nftw(path, removeOne, 8, FTW_DEPTH | FTW_PHYS);
}

/* Call this before the first test. */
static inline void makeLogFolder(const char *test)
{
    setenv("TZ", "UTC", 1); /* caPutLog writes local times */
    tzset();
    snprintf(dir, sizeof(dir), "%s/%s-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", test);
    if (!mkdtemp(dir))
        testAbort("no folder for the test: %s", strerror(errno));
}

#endif
