/* SPDX-License-Identifier: BSD-3-Clause */
/* The clocks of this host, in ns. Any thread. */
#ifndef EBPFMON_CLOCK_H
#define EBPFMON_CLOCK_H

#include <epicsTime.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define EBPFMON_SECOND_NS 1000000000ull

/* The clock of the kernel part (bpf_ktime_get_ns); ns. It is CLOCK_MONOTONIC, but not in a time namespace. */
uint64_t ebpfMonClockMonotonic(void);

/* By so many ns start times in /proc are later than those of the kernel part: 0, but not in a time namespace. */
int64_t ebpfMonClockGetBootOffset(void);

/* The same in seconds, for deadlines and rates. */
double ebpfMonClockSeconds(void);

/* The CPU time that this thread has used; ns. */
uint64_t ebpfMonClockThreadCpu(void);

/* The CPU time that a process has used, also in threads that have ended; ns. 0: there is no such process. */
uint64_t ebpfMonClockProcessCpu(pid_t pid);

/* CLOCK_REALTIME, the clock of packets: ns since 1970, UTC. */
uint64_t ebpfMonClockReal(void);

/* The same in seconds. */
int64_t ebpfMonClockUnixSeconds(void);

/* A time of ebpfMonClockMonotonic as a timespec of CLOCK_MONOTONIC, for functions of pthread. */
struct timespec ebpfMonClockTimespec(uint64_t ns);

/* In a silence all threads look at the same moments, every EBPFMON_SILENT_NS, so that the CPU wakes once for all of
 * them. Returns the first such moment after "now" (monotonic ns). */
#define EBPFMON_SILENT_NS (10 * EBPFMON_SECOND_NS)
uint64_t ebpfMonClockNextLook(uint64_t now);

/* What to add to monotonic time to get the time since 1970, UTC; ns. Each call reads both clocks. */
uint64_t ebpfMonClockUnixOffset(void);

/* The same for any two clocks. A thread can lose its CPU between two readings for any time. So the first clock is read
 * before and after the second one, several times, until little time has passed in between. The error is at most half of
 * that time. */
typedef uint64_t (*ebpfMonClockRead)(void);
uint64_t ebpfMonClockOffsetBetween(ebpfMonClockRead monotonic, ebpfMonClockRead real);

/* The EPICS time of a time since 1970, UTC (ns). */
epicsTimeStamp ebpfMonClockStamp(uint64_t realNs);

/* Nonzero: this time stamp, as it lies in a record (seconds since 1990 in the lower half, ns in the upper half), is
 * later than now, by more than two clocks may differ (2 s). */
int ebpfMonClockIsAhead(uint64_t stamp);

/* Nonzero: it is not earlier than this, ns since 1970. */
int ebpfMonClockIsSince(uint64_t stamp, uint64_t realNs);

/* The EPICS time of a monotonic time (ns). Each call reads both clocks, so a step of the wall clock does no harm. */
epicsTimeStamp ebpfMonClockWallTime(uint64_t monotonicNs);

/* --- steps of the clock ---
 *
 * Notices that somebody set the clock of the host back. Then time stamps do not show who processed: a new one may be
 * earlier than the one before, or EPICS Base repeats its last time until the clock has caught up (epicsGeneralTime.c).
 */

/* It has no owner and no lock: one thread uses it. */
typedef struct {
    int      file;   /* a timerfd that the kernel tells of each set; -1: none */
    int      info;   /* its file in /proc, which says how often */
    uint64_t sets;   /* … until the last look */
    uint64_t at;     /* the last look, monotonic ns */
    uint64_t offset; /* of the wall clock to the monotonic one then; ns */
} ebpfMonClockSteps;

typedef enum {
    ebpfMonClockGoesOn,
    ebpfMonClockSetBack, /* once, by less than EBPFMON_SECOND_NS: within this time from now, only a record that
                          * processes before the step and after it may have a stamp that is not later than the one
                          * before */
    ebpfMonClockWentBack /* perhaps: by more, or it was set several times */
} ebpfMonClockStep;

/* Begins. Without a file for it only steps of a millisecond or more are noticed that are still there at the next
 * look. */
void ebpfMonClockStepsBegin(ebpfMonClockSteps *steps);
void ebpfMonClockStepsEnd(ebpfMonClockSteps *steps);

/* What it did since the last look. "since": the time of that look by the clock as it is now, ns since 1970, or a little
 * before. */
ebpfMonClockStep ebpfMonClockStepsLook(ebpfMonClockSteps *steps, uint64_t *since);

/* The same, if the offset is this now, and it was set so many times; 0 if nobody knows. */
ebpfMonClockStep ebpfMonClockStepsJudge(ebpfMonClockSteps *steps, uint64_t sets, uint64_t offset);

#endif
