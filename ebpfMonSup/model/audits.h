/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The results of cross-checks. What the monitor sees in two ways must agree. If it does not, although nothing was lost,
 * something that we take as certain is wrong. Any thread.
 */
#ifndef EBPFMON_AUDITS_H
#define EBPFMON_AUDITS_H

#include <stdint.h>

#include <epicsTime.h>

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
