/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients of the table, and those that packets show: as published values, and as texts for a person. */
#ifndef EBPFMON_CLIENTREPORT_H
#define EBPFMON_CLIENTREPORT_H

#include <epicsTime.h>

#include "clients/clientTable.h"
#include "common/textReport.h"

/* --- what is published --- */

#define EBPFMON_CLIENT_ROWS 200
#define EBPFMON_CLIENT_PATTERN 61

typedef struct {
    char     name[128];   /* user@address:port */
    char     ioc[61];
    char     command[64]; /* command of a client on this host; "": not known */
    uint32_t pid;         /* its process id; 0: not known */
    unsigned channels, subscriptions; /* its channels that match the pattern, and their subscriptions */
    epicsTimeStamp since; /* time at which the oldest of these channels was created */
    int64_t  bytes;       /* bytes that it has received since it connected; -1: not known */
} ebpfMonClientRow;

/* The looking thread writes all of it at once; the patterns are written by those who set them. */
typedef struct {
    int      isKnown;     /* there was a look */
    char     iocPattern[EBPFMON_CLIENT_PATTERN]; /* pattern of IOCs; "": all */
    char     pvPattern[EBPFMON_CLIENT_PATTERN];
    unsigned count;       /* clients that match */
    unsigned rows;        /* clients in row[], those with most channels first */
    unsigned channels, subscriptions; /* of all clients that match */
    unsigned unread;      /* IOCs with clients that could not be read at the last look */
    double   look;        /* ms; CPU time of the last look */
    ebpfMonClientRow row[EBPFMON_CLIENT_ROWS];
} ebpfMonClientValues;

/* --- reports ---
 *
 * Writes the clients as tables for a person, and as published values. All functions take the lock of the client
 * table.
 */

/* Makes the values of the clients that match the patterns in "shown", which stay. The looking thread. Without memory it
 * does nothing. */
void ebpfMonClientReportPublish(ebpfMonClientTable *table, ebpfMonClientValues *shown);

/* Adds the clients of the IOCs with a matching name (command ebpfMonClients). Any thread. */
void ebpfMonClientReportAddClients(ebpfMonTextReport *report, ebpfMonClientTable *table, const char *iocPattern);

/* Adds the channels with a matching PV: the name that the client used, or the record's name (command ebpfMonUsers). Any
 * thread. */
void ebpfMonClientReportAddUsers(ebpfMonTextReport *report, ebpfMonClientTable *table, const char *pvPattern);

#endif
