/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cross-checks: what the monitor sees in two ways must agree. Where it does not although nothing was lost, something that
 * we take for certain is not. Any thread. One per process, as the losses: any room may find a disagreement.
 */
#ifndef EBPFMON_AUDITS_H
#define EBPFMON_AUDITS_H

#include <stdint.h>

#include <epicsTime.h>

typedef enum {
    ebpfMonAuditPutNotInside,  /* an IOC has answered a put that was not seen in it */
    ebpfMonAuditPutNumber,     /* between two puts of a thread there was one that was not seen */
    ebpfMonAuditProcessings,   /* the trap on dbProcess counts a record otherwise than we do */
    ebpfMonAuditRootSum,       /* the chains of all roots processed otherwise than their records did */
    ebpfMonAuditHistogram,     /* the histogram of a root has more chains, or fewer, than there were */
    ebpfMonAuditKinds
} ebpfMonAudit;

typedef struct {
    uint64_t count[ebpfMonAuditKinds];
    ebpfMonAudit lastKind;
    char     last[120];       /* what the last one was about: an IOC, a PV, a record; "": there was none */
    epicsTimeStamp time;      /* … and when */
} ebpfMonAudits;

/* "about": an IOC, a PV, a record. */
void ebpfMonAuditsAdd(ebpfMonAudit kind, uint64_t count, const char *about);

/* Since the start, or the last reset. */
void ebpfMonAuditsGet(ebpfMonAudits *audits);
void ebpfMonAuditsReset(void);

/* As a sentence for operators. */
const char *ebpfMonAuditName(ebpfMonAudit kind);

#endif
