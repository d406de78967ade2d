/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of the cross-checks (model/audits.h) for the PVs AUDIT and AUDIT_CNT. */
#ifndef EBPFMON_AUDITTEXT_H
#define EBPFMON_AUDITTEXT_H

#include "model/audits.h"

/* Begin with the audits, and all else 0. Publishing thread only. */
typedef struct {
    ebpfMonAudits *audits; /* the caller's */
    int hasFound; /* nonzero: some check had failed at the last publication */
} ebpfMonAuditText;

/* Publishes the results. Logs a message when the first check fails, and again after a reset. */
void ebpfMonAuditTextPublish(ebpfMonAuditText *text);

#endif
