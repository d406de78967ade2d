/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include "common/clock.h"

/* --- clocks --- */

#define BETWEEN_NS 200 /* ns, twice the greatest error. Three readings take 100 ns, and more on a machine without a fast
                        * clock: then the best of all tries counts */
#define TRIES      16

static uint64_t readClock(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * EBPFMON_SECOND_NS + (uint64_t)t.tv_nsec;
}

/* A time namespace has another CLOCK_MONOTONIC and CLOCK_BOOTTIME than the kernel part (time_namespaces(7)): by so many
 * ns. */
static struct {
    pthread_once_t once;
    int64_t offset, bootOffset;
} timeNamespace = { .once = PTHREAD_ONCE_INIT };

static void readOffset(void)
{
    FILE *file = fopen("/proc/self/timens_offsets", "re"); /* Linux 5.6 */
    long long seconds = 0, ns = 0;

    if (file && fscanf(file, "monotonic %lld %lld", &seconds, &ns) == 2)
        timeNamespace.offset = seconds * (int64_t)EBPFMON_SECOND_NS + ns;
    if (file && fscanf(file, " boottime %lld %lld", &seconds, &ns) == 2)
        timeNamespace.bootOffset = seconds * (int64_t)EBPFMON_SECOND_NS + ns;
    if (file)
        fclose(file);
}

static uint64_t getOffset(void)
{
    pthread_once(&timeNamespace.once, readOffset);
    return (uint64_t)timeNamespace.offset;
}

int64_t ebpfMonClockGetBootOffset(void)
{
    getOffset();
    return timeNamespace.bootOffset;
}

uint64_t ebpfMonClockMonotonic(void)
{
    return readClock(CLOCK_MONOTONIC) - getOffset();
}

uint64_t ebpfMonClockNextLook(uint64_t now)
{
    return (now / EBPFMON_SILENT_NS + 1) * EBPFMON_SILENT_NS;
}

double ebpfMonClockSeconds(void)
{
    return (double)ebpfMonClockMonotonic() / (double)EBPFMON_SECOND_NS;
}

uint64_t ebpfMonClockThreadCpu(void)
{
    return readClock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t ebpfMonClockProcessCpu(pid_t pid)
{
    struct timespec ts;
    clockid_t id;

    if (clock_getcpuclockid(pid, &id) || clock_gettime(id, &ts))
        return 0;
    return (uint64_t)ts.tv_sec * EBPFMON_SECOND_NS + (uint64_t)ts.tv_nsec;
}

uint64_t ebpfMonClockReal(void)
{
    return readClock(CLOCK_REALTIME);
}

int64_t ebpfMonClockUnixSeconds(void)
{
    return (int64_t)(ebpfMonClockReal() / EBPFMON_SECOND_NS);
}

struct timespec ebpfMonClockTimespec(uint64_t ns)
{
    ns += getOffset();
    return (struct timespec){ (time_t)(ns / EBPFMON_SECOND_NS), (long)(ns % EBPFMON_SECOND_NS) };
}

uint64_t ebpfMonClockOffsetBetween(ebpfMonClockRead monotonic, ebpfMonClockRead real)
{
    uint64_t offset = 0, least = UINT64_MAX;

    for (int i = 0; i < TRIES && least > BETWEEN_NS; i++) {
        uint64_t before = monotonic(), at = real(), between = monotonic() - before;

        if (between < least) {
            least = between;
            offset = at - before - between / 2;
        }
    }
    return offset;
}

uint64_t ebpfMonClockUnixOffset(void)
{
    return ebpfMonClockOffsetBetween(ebpfMonClockMonotonic, ebpfMonClockReal);
}

epicsTimeStamp ebpfMonClockStamp(uint64_t realNs)
{
    epicsTimeStamp stamp;

    epicsTimeFromTime_t(&stamp, (time_t)(realNs / EBPFMON_SECOND_NS));
    stamp.nsec = (epicsUInt32)(realNs % EBPFMON_SECOND_NS);
    return stamp;
}

epicsTimeStamp ebpfMonClockWallTime(uint64_t monotonicNs)
{
    return ebpfMonClockStamp(monotonicNs + ebpfMonClockUnixOffset());
}

int ebpfMonClockIsSince(uint64_t stamp, uint64_t realNs)
{
    return ((stamp & 0xffffffff) + POSIX_TIME_AT_EPICS_EPOCH) * EBPFMON_SECOND_NS + (stamp >> 32) >= realNs;
}

int ebpfMonClockIsAhead(uint64_t stamp)
{
    return ebpfMonClockIsSince(stamp, ebpfMonClockReal() + 2 * EBPFMON_SECOND_NS);
}

/* --- steps of the clock --- */

#define SURE_NS 1000000 /* two readings of the offset differ by less if nobody set the clock */
#define NEVER_S 4000000000 /* the time to which the timer is set: in 2096 */

/* The kernel counts the sets as expirations (fs/timerfd.c, timerfd_clock_was_set); to read them from the timer would
 * only tell that there were any. */
static uint64_t countSets(const ebpfMonClockSteps *steps)
{
    char text[512];
    ssize_t size = steps->info >= 0 ? pread(steps->info, text, sizeof(text) - 1, 0) : 0;
    const char *ticks;

    text[size > 0 ? size : 0] = 0;
    ticks = strstr(text, "ticks: ");
    return ticks ? strtoull(ticks + strlen("ticks: "), NULL, 10) : steps->sets;
}

void ebpfMonClockStepsBegin(ebpfMonClockSteps *steps)
{
    struct itimerspec at = { .it_value = { .tv_sec = NEVER_S } };
    char name[64];

    memset(steps, 0, sizeof(*steps));
    steps->info = -1;
    steps->file = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", steps->file);
    if (steps->file >= 0 &&
        (timerfd_settime(steps->file, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL) ||
         (steps->info = open(name, O_RDONLY | O_CLOEXEC)) < 0))
        ebpfMonClockStepsEnd(steps);
    steps->at = ebpfMonClockMonotonic();
    steps->offset = ebpfMonClockUnixOffset();
}

void ebpfMonClockStepsEnd(ebpfMonClockSteps *steps)
{
    if (steps->info >= 0)
        close(steps->info);
    if (steps->file >= 0)
        close(steps->file);
    steps->info = steps->file = -1;
}

ebpfMonClockStep ebpfMonClockStepsLook(ebpfMonClockSteps *steps, uint64_t *since)
{
    uint64_t at = ebpfMonClockMonotonic(), before = steps->sets, offset = 0;

    for (int tries = 0; tries < TRIES; tries++) {
        steps->sets = countSets(steps);
        offset = ebpfMonClockUnixOffset();
        if (countSets(steps) == steps->sets)
            break;
    }
    *since = steps->at + offset - SURE_NS;
    steps->at = at;
    return ebpfMonClockStepsJudge(steps, steps->sets - before, offset);
}

/* If it was set several times, it may have gone forward and back. If it was set once, two readings of the offset tell
 * how far, to BETWEEN_NS. To that it may go back: between two looks at a record that both count it lies a trap, which
 * takes longer. */
ebpfMonClockStep ebpfMonClockStepsJudge(ebpfMonClockSteps *steps, uint64_t sets, uint64_t offset)
{
    int64_t back = (int64_t)(steps->offset - offset);

    steps->offset = offset;
    if (sets > 1 || back >= (int64_t)EBPFMON_SECOND_NS)
        return ebpfMonClockWentBack;
    if (back <= (sets ? BETWEEN_NS : SURE_NS))
        return ebpfMonClockGoesOn;
    return sets ? ebpfMonClockSetBack : ebpfMonClockWentBack;
}
