/* SPDX-License-Identifier: BSD-3-Clause */
/* Published values: the IOCs of this host. */
#ifndef EBPFMON_IOCVALUES_H
#define EBPFMON_IOCVALUES_H

#include <stdint.h>
#include "model/level.h"
#include "model/put.h"

#define EBPFMON_IOCS_MAX 256
#define EBPFMON_OTHERS_MAX 64

typedef struct {
    char     name[EBPFMON_NAME_SIZE];
    int32_t  pid;
    char     version[40];  /* "7.0.8.1" */
    uint32_t records;
    ebpfMonLevel level;    /* the level at which it is watched now */
    char     note[160];    /* empty; or why it is not watched at the level that the operator asked for, or a
                            * diagnosis */
    double   cost;         /* percent of one core that is taken from it */
    double   timed;        /* percent of the last minutes in which the chains of its scan lists were timed; NaN: its
                            * level is below chains */
    uint64_t procCount;    /* processings of its records that match the filter */
} ebpfMonIocRow;

typedef struct {
    unsigned gone;  /* IOCs that are gone: the first rows, with process 0 */
    unsigned count; /* IOCs: the rows behind them */
    unsigned rows;  /* with the other servers behind them */
    ebpfMonIocRow ioc[EBPFMON_IOCS_MAX];
    double   timed; /* the least of all IOCs; NaN: there is none */
    uint64_t slowUntimed; /* passes of scan lists that may have had a slow chain, which was not timed */
    unsigned shown; /* records of watched IOCs that match the filter's pattern */
} ebpfMonIocValues;

/* Servers of Channel Access and pvAccess in which no records of EPICS Base were found. They have rows behind those of
 * the IOCs, as far as there is room. */
typedef struct {
    unsigned count;
    ebpfMonIocRow ioc[EBPFMON_OTHERS_MAX];
} ebpfMonOtherServerValues;

#endif
