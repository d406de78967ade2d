/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Serves NTTables over PV Access, with pvDatabase of Base: texts have any length, and each column has its type. If Base
 * was built without PV Access, nothing is served. The caller makes one call at a time.
 */
#ifndef EBPFMON_PVASERVE_H
#define EBPFMON_PVASERVE_H

#include "record/tableRows.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *name;  /* of its field in the NTTable */
    const char *label; /* the title that people read */
} ebpfMonPvaColumn;

/* Begins to serve a table, which has no rows at first. Make the first call before the PVA server starts, because the
 * server uses only the providers that exist then. "table": the name of the PV; "group": its access security group.
 * NULL: the table is not served, and the error log says why. */
void *ebpfMonPvaServeAdd(const char *table, const char *group, const ebpfMonPvaColumn *name,
                         const ebpfMonTableCells *cells, unsigned columns);
/* Sets the content; subscribers get it in one update. */
void ebpfMonPvaServePost(void *served, const ebpfMonTableCells *cells, unsigned columns,
                         const ebpfMonTableMoment *moment);
/* Removes the table. */
void ebpfMonPvaServeRemove(void *served);
/* Nonzero: this IOC has a PVA server, and it does not run: pvAccessCPP starts none where "lo" is the only interface. */
int ebpfMonPvaServeIsMissing(void);

#ifdef __cplusplus
}
#endif

#endif
