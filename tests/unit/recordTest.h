/* SPDX-License-Identifier: BSD-3-Clause */
/* For the tests of records: an IOC in the test program with the shipped db files, and a monitor that the test plays. */
#ifndef RECORDTEST_H
#define RECORDTEST_H

#include "model/published.h"
#include "model/filter.h"
#include "model/ops.h"

#define DEADLINE 5.0 /* s */

/* The requests of records and commands to the monitor. */
typedef struct {
    ebpfMonFilter inForce;
    unsigned generations, started, resets;
    int      busy;   /* atomic: nonzero while a filter is not applied yet */
    int      polls;  /* atomic: number of questions whether a filter is applied */
    int      levelSet;
    ebpfMonOpStatus status; /* the result of its operations */
} recordTestMonitor;

extern recordTestMonitor fakeMonitor;

/* Loads the databases with P=T:, runs two filter commands, and starts the IOC. */
void recordTestBegin(void);
void recordTestEnd(void);

/* Acts as a monitor that runs, and publishes some values. */
void recordTestRun(void);

/* Publishes a change of this group, now. */
void change(ebpfMonGroup group);
void addPut(unsigned n, const char *pv, const char *val);

/* A test that passes if the PV has this value (as text) before the deadline. */
void expect(const char *pv, const char *value);
void putText(const char *pv, const char *text);

#endif
