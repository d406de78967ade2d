/* SPDX-License-Identifier: BSD-3-Clause */
/* What a trap costs on this machine, measured on a function of our own before any target is touched. */
#ifndef EBPFMON_CALIBRATE_H
#define EBPFMON_CALIBRATE_H

#include "ebpfMonTable.h"

typedef struct {
    double entryNs;  /* a trap on an emulated instruction, with a program that leaves at once */
    double returnNs; /* the return of a probed function, on top of that */
    double steppedNs;/* a trap on a single-stepped instruction */
    double walkNs;   /* one record looked at by a snapshot */
} ebpfMonCosts;

/* Some milliseconds. Where it cannot be measured, the values of documentation/OVERHEAD.md stand in. */
void ebpfMonCalibrate(ebpfMonCosts *costs);

/* ns that these hits took from the target. "stepped": of its entry probes, which part is single-stepped. */
double ebpfMonCostOf(const ebpfMonCosts *costs, const struct ebpfMonHits *hits, double stepped);

#endif
