/* SPDX-License-Identifier: BSD-3-Clause */
/* The clocks of this host, in ns. Any thread. */
#ifndef EBPFMON_CLOCK_H
#define EBPFMON_CLOCK_H

#include <stdint.h>
#include <time.h>
#include <epicsTime.h>

#define EBPFMON_SECOND_NS 1000000000ull

/* CLOCK_MONOTONIC: the clock of the kernel part (bpf_ktime_get_ns). */
uint64_t ebpfMonClockMonotonic(void);

/* The same in seconds, for deadlines and rates. */
double ebpfMonClockSeconds(void);

/* CPU time that this thread has used; ns. */
uint64_t ebpfMonClockThreadCpu(void);

/* CLOCK_REALTIME: ns since 1970, UTC. Packets carry it. */
uint64_t ebpfMonClockReal(void);

/* The same in seconds. */
int64_t ebpfMonClockUnixSeconds(void);

/* A time in ns, as the functions of pthread take it. */
struct timespec ebpfMonClockTimespec(uint64_t ns);

/* From monotonic time to time since 1970, UTC; ns. Both clocks are read anew in each call. */
uint64_t ebpfMonClockUnixOffset(void);

/* The same with any two clocks. A thread can lose its CPU between two readings for any time. So the first clock is read
 * before and after the second one, again and again, until little time has passed in between: the error is at most half of
 * this time. */
typedef uint64_t (*ebpfMonClockRead)(void);
uint64_t ebpfMonClockOffsetBetween(ebpfMonClockRead monotonic, ebpfMonClockRead real);

/* EPICS time of a time since 1970, UTC. */
epicsTimeStamp ebpfMonClockStamp(uint64_t realNs);

/* EPICS time of a monotonic time. Both clocks are read anew in each call, so a step of the wall clock does no harm. */
epicsTimeStamp ebpfMonClockWallTime(uint64_t monotonicNs);

#endif
