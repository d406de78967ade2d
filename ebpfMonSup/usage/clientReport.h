/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients as tables for a person, and as published values. They take the lock of the table. Any thread. */
#ifndef EBPFMON_CLIENTREPORT_H
#define EBPFMON_CLIENTREPORT_H

#include "common/textReport.h"
#include "usage/clientTable.h"

/* ebpfMonClients: the clients of the IOCs whose names match. */
void ebpfMonClientReportAddClients(ebpfMonTextReport *report, ebpfMonClientTable *table, const char *iocPattern);

/* ebpfMonUsers: the channels to PVs that match, by the name that the client wrote or by the record's. */
void ebpfMonClientReportAddUsers(ebpfMonTextReport *report, ebpfMonClientTable *table, const char *pvPattern);

/* What the patterns of the published values let pass, to the group ebpfMonGroupClients; tells its listener. One thread. */
void ebpfMonClientReportPublish(ebpfMonClientTable *table);

#endif
