/* SPDX-License-Identifier: BSD-3-Clause */
/* The cross-checks as the PVs AUDIT and AUDIT_CNT show them. */
#ifndef EBPFMON_AUDITTEXT_H
#define EBPFMON_AUDITTEXT_H

/* Publishing thread only. A message is printed when the first disagreement is found. */
typedef struct {
    int hasFound; /* at the last publication */
} ebpfMonAuditText;

void ebpfMonAuditTextPublish(ebpfMonAuditText *text);

#endif
