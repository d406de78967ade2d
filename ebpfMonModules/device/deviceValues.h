/* SPDX-License-Identifier: BSD-3-Clause */
/* Published values: who waits for which port of asyn. Times in ms. */
#ifndef EBPFMON_DEVICEVALUES_H
#define EBPFMON_DEVICEVALUES_H

#include <stdint.h>
#include "model/put.h"

#define EBPFMON_DEVICE_ROWS 100

typedef struct {
    char     port[64];  /* its name; after a blank its address, if it has several */
    char     ioc[EBPFMON_NAME_SIZE];
    char     user[EBPFMON_NAME_SIZE];   /* the record; or in brackets the root of its chain; or the address of the
                                         * asynUser */
    char     behind[EBPFMON_NAME_SIZE]; /* in the longest wait: the user that had the port for the longest time;
                                         * empty: nobody */
    int32_t  reason;
    uint64_t count, timeouts; /* requests that were served; requests that left the queue by a time-out */
    double   waitMean, waitP99, waitMax; /* NaN: no request was seen in the queue */
    double   serveMean, serveMax;
    double   silent;    /* how often the device did not answer this record; NaN: not known */
    char     link[EBPFMON_NAME_SIZE]; /* hardware link of the record, after the @: of StreamDevice its protocol file,
                                       * protocol and port */
} ebpfMonDeviceRow;

typedef struct {
    char     state[160];   /* what is watched, or why nothing is */
    unsigned iocs;         /* IOCs with watched ports */
    unsigned rows;         /* rows in use; the one with the longest time in all comes first */
    uint64_t requests, timeouts, lost;
    double   cost;         /* percent of one core; of the traps */
    ebpfMonDeviceRow row[EBPFMON_DEVICE_ROWS];
} ebpfMonDeviceValues;

#endif
