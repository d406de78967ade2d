/* SPDX-License-Identifier: BSD-3-Clause */
/* Published values: the state of the monitor itself, what it lost, what it costs, and the packets that it reads. */
#ifndef EBPFMON_STATEVALUES_H
#define EBPFMON_STATEVALUES_H

#include <stdint.h>

#define EBPFMON_LOSSES_MAX 16
#define EBPFMON_LOSS_SECONDS 60 /* so long after the last loss there is an alarm */

typedef enum {
    ebpfMonStarting,
    ebpfMonRunning,
    ebpfMonDegraded, /* it runs, but cannot do everything: stateMessage tells what */
    ebpfMonFailed
} ebpfMonState;

typedef struct {
    char     reason[40];
    uint64_t count;
} ebpfMonLossRow;

/* Events that the monitor missed, since the last reset. */
typedef struct {
    uint64_t count;      /* sum of all kinds */
    int      isGrowing;  /* it has grown in the last EBPFMON_LOSS_SECONDS */
    char     newest[40]; /* the reason that has grown last; empty: none */
    unsigned kinds;
    ebpfMonLossRow by[EBPFMON_LOSSES_MAX];
} ebpfMonLossValues;

/* Cross-checks that failed since the last reset of the losses. */
typedef struct {
    uint64_t count;
    char     text[256];
} ebpfMonAuditValues;

typedef struct {
    double   iocs;       /* percent of one core that is taken from all watched IOCs together */
    double   trapNs;     /* ns of one trap at the entry of a function, as measured at the start */
    double   cpu;        /* percent of one core that the monitor takes */
    double   memory;     /* MB of the monitor: resident memory, and the tables in the kernel */
} ebpfMonCostValues;

/* All of it in one light. */
typedef enum { ebpfMonHostOk, ebpfMonHostWarning, ebpfMonHostTrouble } ebpfMonHostLight;

typedef struct {
    ebpfMonHostLight status;
    char     text[256]; /* the worst cause */
} ebpfMonHostValues;

typedef enum { ebpfMonWireOff, ebpfMonWireOn, ebpfMonWireTrouble } ebpfMonWireState;

typedef struct {
    ebpfMonWireState state;
    double   rate;       /* packets per second */
    uint64_t lost;       /* packets that the kernel dropped, and gaps */
    int      isLosing;   /* it has grown in the last EBPFMON_LOSS_SECONDS */
    uint64_t gaps;
    unsigned circuits;
} ebpfMonPacketValues;

#endif
