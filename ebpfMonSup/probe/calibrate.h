/* SPDX-License-Identifier: BSD-3-Clause */
/* What a trap costs on this machine. The monitor measures it on functions of its own, before it touches an IOC. */
#ifndef EBPFMON_CALIBRATE_H
#define EBPFMON_CALIBRATE_H

#include <stdint.h>

#include "ebpfMonTable.h"

typedef struct ebpfMonCosts {
    double entryNs;  /* ns; a trap on an instruction that the kernel emulates, with a program that returns at once */
    double returnNs; /* ns; a trap at the return of a function */
    double steppedNs;/* ns; a trap on an instruction that the kernel single-steps */
    double coldNs;   /* ns; what a trap takes longer on a CPU that was busy with other things for long */
} ebpfMonCosts;

/* Measures the costs; takes a third of a second, in which it mostly sleeps. A cost that cannot be measured gets the
 * value of documentation/develop/overhead.md. After ebpfMonKernelLoad, before the follower starts. */
void ebpfMonCalibrate(ebpfMonCosts *costs);

/* Sets a probe on a function of our own and removes it: does this kernel allow probes? 0 or errno. *inFolder: the probe
 * needed no file (closer.h). After ebpfMonKernelLoad. */
int ebpfMonProbeTry(int *inFolder);

/* The time (ns) that these traps took from the IOC: what each trap costs, what the programs took in them, and, as an
 * estimate, what the IOC loses because of the caches. "stepped": the part of its entry probes that the kernel
 * single-steps, 0 to 1. Any thread. */
double ebpfMonCostOf(const ebpfMonCosts *costs, const struct ebpfMonHits *hits, double stepped);

/* The time (ns) that programs of this run time took from an IOC, with what it loses because of the caches. Any
 * thread. */
double ebpfMonCostOfPrograms(uint64_t ns);

#endif
