/* SPDX-License-Identifier: BSD-3-Clause */
/* Published: who is connected to the CA servers of the watched IOCs. */
#ifndef EBPFMON_CLIENTVALUES_H
#define EBPFMON_CLIENTVALUES_H

#include <stdint.h>
#include <epicsTime.h>

#define EBPFMON_CLIENT_ROWS 200
#define EBPFMON_CLIENT_PATTERN 61

typedef struct {
    char     name[128];   /* user@address:port */
    char     ioc[61];
    char     command[64]; /* of a client on this host; "" not known */
    uint32_t pid;         /* 0: not known */
    unsigned channels, subscriptions; /* of channels that match the pattern */
    epicsTimeStamp since; /* the oldest of them */
    int64_t  bytes;       /* that it took since it connected; -1: not known */
} ebpfMonClientRow;

/* Written by the room usage/, as a whole; the patterns by whoever sets them. */
typedef struct {
    char     iocPattern[EBPFMON_CLIENT_PATTERN]; /* "": all */
    char     pvPattern[EBPFMON_CLIENT_PATTERN];
    unsigned count;       /* clients that match */
    unsigned rows;        /* … of them in row[], most channels first */
    unsigned channels, subscriptions; /* of all that match */
    unsigned unread;      /* IOCs whose clients could not be read at the last look */
    double   look;        /* CPU time that the last look took; ms */
    ebpfMonClientRow row[EBPFMON_CLIENT_ROWS];
} ebpfMonClientValues;

#endif
