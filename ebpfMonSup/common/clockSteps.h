/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notices that somebody set the clock of the host back. Then the clock of EPICS Base (epicsGeneralTime.c) repeats its
 * last time until the host's clock has caught up, so time stamps do not show who processed.
 */
#ifndef EBPFMON_CLOCKSTEPS_H
#define EBPFMON_CLOCKSTEPS_H

#include <stdint.h>

/* It has no owner and no lock: one thread uses it. */
typedef struct {
    int      file;   /* a timerfd that tells if the clock was set; -1: none */
    uint64_t offset; /* of the wall clock to the monotonic one, when it was looked at last; ns */
} ebpfMonClockSteps;

/* Begins. Without a file for it only steps of a millisecond or more are noticed that are still there at the next
 * look. */
void ebpfMonClockStepsBegin(ebpfMonClockSteps *steps);
void ebpfMonClockStepsEnd(ebpfMonClockSteps *steps);

/* Nonzero: since the last look the clock may have gone back. */
int ebpfMonClockStepsLook(ebpfMonClockSteps *steps);

/* The same, if the offset is this now. "wasSet": the kernel says that the clock was set since the last look; 0 if it
 * does not know. */
int ebpfMonClockStepsJudge(ebpfMonClockSteps *steps, int wasSet, uint64_t offset);

#endif
