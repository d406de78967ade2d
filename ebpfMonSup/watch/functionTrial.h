/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tries functions of a program that has no symbols of its own: they were recognised by their code, or their addresses
 * are in a file of symbols, which its maker may have made wrongly. The kernel part counts the traps at dbScanUnlock
 * whose argument is no record of the catalogue, and the records that were seen to process. This module knows no IOC and
 * no clock. No lock: only the follower uses it.
 */
#ifndef EBPFMON_FUNCTIONTRIAL_H
#define EBPFMON_FUNCTIONTRIAL_H

#include <stdint.h>

typedef enum {
    ebpfMonFunctionsOpen,  /* not yet known */
    ebpfMonFunctionsRight, /* a record was seen to process */
    ebpfMonFunctionsWrong  /* what seems to be dbScanUnlock is another function */
} ebpfMonFunctionsVerdict;

typedef struct {
    ebpfMonFunctionsVerdict verdict; /* once it is not open, it stays */
    uint64_t strange;                /* traps so far whose argument is no record */
} ebpfMonFunctionTrial;

/* "strange": such traps since the last look; "counted": processings that were counted so far. Nonzero: the verdict
 * changed. */
int ebpfMonFunctionTrialLook(ebpfMonFunctionTrial *trial, uint64_t strange, uint64_t counted);

#endif
