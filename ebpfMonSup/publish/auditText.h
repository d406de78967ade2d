/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of the cross-checks (model/audits.h) for the PVs AUDIT and AUDIT_CNT. */
#ifndef EBPFMON_AUDITTEXT_H
#define EBPFMON_AUDITTEXT_H

/* Begin with all 0. Publishing thread only. */
typedef struct {
    int hasFound; /* nonzero: some check had failed at the last publication */
} ebpfMonAuditText;

/* Publishes the results. Logs a message when the first check fails, and again after a reset. */
void ebpfMonAuditTextPublish(ebpfMonAuditText *text);

#endif
