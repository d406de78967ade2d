/* SPDX-License-Identifier: BSD-3-Clause */
/* Published: how the monitor itself fares, what it lost, what it costs, and which packets it reads. */
#ifndef EBPFMON_STATEVALUES_H
#define EBPFMON_STATEVALUES_H

#include <stdint.h>

#define EBPFMON_LOSSES_MAX 16

typedef enum {
    ebpfMonStarting,
    ebpfMonRunning,
    ebpfMonDegraded, /* runs, but something asked for cannot be had: stateMessage */
    ebpfMonFailed
} ebpfMonState;

typedef struct {
    char     reason[40];
    uint64_t count;
} ebpfMonLossRow;

/* Events that the monitor missed, since the last reset. */
typedef struct {
    uint64_t count;      /* of all kinds */
    unsigned kinds;
    ebpfMonLossRow by[EBPFMON_LOSSES_MAX];
} ebpfMonLossValues;

/* What is seen in two ways and does not agree, since the last reset of the losses. */
typedef struct {
    uint64_t count;
    char     text[256];
} ebpfMonAuditValues;

typedef struct {
    double   iocs;       /* taken from all watched IOCs together, percent of one core */
    double   trapNs;     /* calibrated: one trap at a function's entry */
    double   cpu;        /* the monitor's own, percent of one core */
    double   memory;     /* the monitor's own, MB: resident, and the kernel's tables */
} ebpfMonCostValues;

typedef enum { ebpfMonWireOff, ebpfMonWireOn, ebpfMonWireTrouble } ebpfMonWireState;

typedef struct {
    ebpfMonWireState state;
    double   rate;       /* packets a second */
    uint64_t lost;       /* packets that the kernel dropped, and gaps */
    uint64_t gaps;
    unsigned circuits;
} ebpfMonPacketValues;

#endif
