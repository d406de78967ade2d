/* SPDX-License-Identifier: BSD-3-Clause */
/* For the tests of records: an IOC in the test program with the shipped db files, and a monitor that the test plays. */
#ifndef RECORDTEST_H
#define RECORDTEST_H

#include "model/published.h"
#include "model/filter.h"
#include "model/ops.h"

#define DEADLINE 5.0 /* s */

/* What the records and commands asked of the monitor. */
typedef struct {
    ebpfMonFilter inForce;
    unsigned generations, started, resets;
    int      busy;   /* atomic: a filter is not applied yet */
    int      polls;  /* atomic: so often it was asked whether a filter is applied */
    int      levelSet;
    ebpfMonOpStatus status; /* what becomes of its operations */
    unsigned logResets, rotations;
    int      logReport;
} recordTestMonitor;

extern recordTestMonitor fakeMonitor;

/* Loads the databases with P=T:, gives two filter commands and starts the IOC. */
void recordTestBegin(void);
void recordTestEnd(void);

/* The monitor runs and publishes some values. */
void recordTestRun(void);

/* The group has changed now. */
void change(ebpfMonGroup group);
void addPut(unsigned n, const char *pv, const char *val);

/* Passes if the PV has this value (as text) before DEADLINE has passed. */
void expect(const char *pv, const char *value);
void putText(const char *pv, const char *text);

#endif
