/* SPDX-License-Identifier: BSD-3-Clause */
/* What a trap costs on this machine, measured on a function of our own before any IOC is touched. */
#ifndef EBPFMON_CALIBRATE_H
#define EBPFMON_CALIBRATE_H

#include "ebpfMonTable.h"

typedef struct {
    double entryNs;  /* a trap on an emulated instruction, with a program that leaves at once */
    double returnNs; /* the return of a probed function, on top of that */
    double steppedNs;/* a trap on a single-stepped instruction */
} ebpfMonCosts;

/* Takes some milliseconds. What cannot be measured gets the value of documentation/OVERHEAD.md. The kernel part must be
 * loaded. */
void ebpfMonCalibrate(ebpfMonCosts *costs);

/* Sets a probe on a function of our own and removes it. 0 or errno. *inFolder: its link needed no file
 * (probe/linkFolder.h). The kernel part must be loaded. */
int ebpfMonProbeTry(int *inFolder);

/* ns that these traps took from the IOC: each trap as measured, and what the programs took in them. "stepped": which part of its entry probes is single-stepped, 0 to 1. Any
 * thread. */
double ebpfMonCostOf(const ebpfMonCosts *costs, const struct ebpfMonHits *hits, double stepped);

#endif
