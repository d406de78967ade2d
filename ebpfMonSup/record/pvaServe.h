/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Serves NTTables over PV Access, by pvDatabase of Base: strings of any length, a type for each column. Without PV
 * Access in Base nothing is served. The caller calls one at a time.
 */
#ifndef EBPFMON_PVASERVE_H
#define EBPFMON_PVASERVE_H

#include "record/tableRows.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *name;  /* of the field */
    const char *label; /* what people read */
} ebpfMonPvaColumn;

/* Serves a table without rows. The first one before the PVA server starts, which asks those providers that there are
 * then. "group": of access security. NULL: not served, a message says why. */
void *ebpfMonPvaServeAdd(const char *table, const char *group, const ebpfMonPvaColumn *name,
                         const ebpfMonTableCells *cells, unsigned columns);
/* New content, which subscribers get. */
void ebpfMonPvaServePost(void *served, const ebpfMonTableCells *cells, unsigned columns,
                         const ebpfMonTableMoment *moment);
/* Ends the service of the table. */
void ebpfMonPvaServeRemove(void *served);

#ifdef __cplusplus
}
#endif

#endif
