/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The results of cross-checks. What the monitor sees in two ways must agree. If it does not, although nothing was lost,
 * something that we take as certain is wrong. Any thread.
 */
#ifndef EBPFMON_AUDITS_H
#define EBPFMON_AUDITS_H

#include <stdint.h>
#include <epicsTime.h>
#include <stddef.h>

/* --- losses ---
 *
 * The events that the user part lost. (The kernel part counts its own: map "lost".) Any thread; no lock. */

typedef enum {
    ebpfMonLossGone,  /* an event of an IOC that the monitor had forgotten */
    ebpfMonLossParts, /* a chain that comes in parts, and for which there was no place */
    ebpfMonLossOwnPut, /* a client's put to the monitor's own PVs; it was judged, but not logged */
    ebpfMonLossSkipped, /* the kernel did not run a program of ours. Not counted here, but by the kernel */
    ebpfMonLossUrgent, /* a connection of CA or PVA with urgent data: what followed was not read from its packets */
    ebpfMonLossCircuits, /* a connection of CA or PVA that is not followed any more: there were too many */
    ebpfMonLossWrongSum, /* a packet of TCP with a wrong checksum: no host accepts it */
    ebpfMonLossOwnAddress, /* a packet of TCP that came from outside, with an address of this host as its source */
    ebpfMonLossForged, /* packets of a put to a watched IOC, in a connection of which the IOC has got nothing */
    ebpfMonLossReused, /* packets of a put in a connection whose begin was not seen; a later one has its ends */
    ebpfMonLossDoubtful, /* packets like a put to a watched IOC, which has not made it; nothing shows that it is one */
    ebpfMonLossKinds
} ebpfMonLoss;

/* All 0 at first. Only the functions use the member. */
typedef struct {
    size_t count[ebpfMonLossKinds]; /* atomic */
} ebpfMonLosses;

/* Counts one lost event. */
void ebpfMonLossesAdd(ebpfMonLosses *losses, ebpfMonLoss kind);
/* How many were counted. */
uint64_t ebpfMonLossesGet(const ebpfMonLosses *losses, ebpfMonLoss kind);

/* --- audits --- */

typedef enum {
    ebpfMonAuditPutNotInside,  /* an IOC has answered a put, and we saw no put in the IOC */
    ebpfMonAuditPutNumber,     /* between two puts of a thread there was one that we did not see */
    ebpfMonAuditProcessings,   /* the probe at dbProcess() counts other processings of a record than we do */
    ebpfMonAuditKinds
} ebpfMonAudit;

typedef struct {
    uint64_t count[ebpfMonAuditKinds];
    ebpfMonAudit lastKind;
    char     last[120];       /* the IOC, PV or record of the last one; "": there was none */
    epicsTimeStamp time;      /* time of the last one */
} ebpfMonAuditResults;

typedef struct ebpfMonAudits ebpfMonAudits;

ebpfMonAudits *ebpfMonAuditsNew(void);         /* NULL without memory */
void ebpfMonAuditsFree(ebpfMonAudits *audits); /* NULL does no harm */

/* Adds "count" disagreements. "about": an IOC, a PV or a record; it is copied. */
void ebpfMonAuditsAdd(ebpfMonAudits *audits, ebpfMonAudit kind, uint64_t count, const char *about);

/* Copies the disagreements since the start or the last reset. */
void ebpfMonAuditsGet(ebpfMonAudits *audits, ebpfMonAuditResults *results);
void ebpfMonAuditsReset(ebpfMonAudits *audits);

/* A sentence for operators. */
const char *ebpfMonAuditName(ebpfMonAudit kind);

#endif
