/* SPDX-License-Identifier: BSD-3-Clause */
/* Published values: the clients that are connected to the CA servers of the watched IOCs. */
#ifndef EBPFMON_CLIENTVALUES_H
#define EBPFMON_CLIENTVALUES_H

#include <stdint.h>
#include <epicsTime.h>

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

/* The room usage/ writes all of it at once; the patterns are written by those who set them. */
typedef struct {
    char     iocPattern[EBPFMON_CLIENT_PATTERN]; /* pattern of IOCs; "": all */
    char     pvPattern[EBPFMON_CLIENT_PATTERN];
    unsigned count;       /* clients that match */
    unsigned rows;        /* clients in row[], those with most channels first */
    unsigned channels, subscriptions; /* of all clients that match */
    unsigned unread;      /* IOCs with clients that could not be read at the last look */
    double   look;        /* ms; CPU time of the last look */
    ebpfMonClientRow row[EBPFMON_CLIENT_ROWS];
} ebpfMonClientValues;

#endif
