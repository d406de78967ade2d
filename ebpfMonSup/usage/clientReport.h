/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the clients as tables for a person, and as published values. All functions take the lock of the client
 * table. */
#ifndef EBPFMON_CLIENTREPORT_H
#define EBPFMON_CLIENTREPORT_H

#include "common/textReport.h"
#include "usage/clientTable.h"

/* Adds the clients of the IOCs with a matching name (command ebpfMonClients). Any thread. */
void ebpfMonClientReportAddClients(ebpfMonTextReport *report, ebpfMonClientTable *table, const char *iocPattern);

/* Adds the channels with a matching PV: the name that the client used, or the record's name (command ebpfMonUsers). Any
 * thread. */
void ebpfMonClientReportAddUsers(ebpfMonTextReport *report, ebpfMonClientTable *table, const char *pvPattern);

/* Publishes the clients that match the patterns of the published values, and notifies the group ebpfMonGroupClients.
 * The looking thread. Without memory it does nothing. */
void ebpfMonClientReportPublish(ebpfMonClientTable *table);

#endif
