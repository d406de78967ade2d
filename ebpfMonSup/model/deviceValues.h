/* SPDX-License-Identifier: BSD-3-Clause */
/* Published: who waits for which port of asyn. Times in ms. */
#ifndef EBPFMON_DEVICEVALUES_H
#define EBPFMON_DEVICEVALUES_H

#include <stdint.h>
#include "model/put.h"

#define EBPFMON_DEVICE_ROWS 100

typedef struct {
    char     port[64];  /* its name; with the address behind a blank, if it has several */
    char     ioc[EBPFMON_NAME_SIZE];
    char     user[EBPFMON_NAME_SIZE];   /* record; that of the chain's root in brackets; else the address of the user */
    char     behind[EBPFMON_NAME_SIZE]; /* who had the port for longest, in the longest wait; empty: nobody */
    int32_t  reason;
    uint64_t count, timeouts; /* requests that were served; that left the queue because they waited for too long */
    double   waitMean, waitP99, waitMax; /* NaN: none was seen from its begin on */
    double   serveMean, serveMax;
} ebpfMonDeviceRow;

typedef struct {
    char     state[160];   /* what is watched, or why not */
    unsigned iocs;         /* whose ports are watched */
    unsigned rows;         /* longest time in all first */
    uint64_t requests, timeouts, lost;
    double   cost;         /* percent of one core: the traps */
    ebpfMonDeviceRow row[EBPFMON_DEVICE_ROWS];
} ebpfMonDeviceValues;

#endif
