/* SPDX-License-Identifier: BSD-3-Clause */
/* Published values: searches and beacons. Rates per second. */
#ifndef EBPFMON_SEARCHVALUES_H
#define EBPFMON_SEARCHVALUES_H

#include <stdint.h>
#include <epicsTime.h>
#include "model/recordValues.h"

#define EBPFMON_SEARCH_NAME_SIZE 80 /* bytes of a channel's name, which may have a field and modifiers; a name that
                                     * was cut ends with "..." */

/* A name that clients search for, and nobody answers. */
typedef struct {
    char     name[EBPFMON_SEARCH_NAME_SIZE];
    char     who[64];      /* the last client that searched, its protocol, and about how many clients there are */
    uint64_t count;        /* number of searches */
    epicsTimeStamp first, last;
} ebpfMonSearchRow;

typedef struct {
    char     name[40];     /* address:port and protocol */
    double   rate;         /* searched names */
    uint64_t count;
    unsigned never;        /* names that it searches for and nobody answers; a lower bound */
} ebpfMonSearchClientRow;

typedef struct {
    char     name[40];     /* address:port and protocol */
    uint64_t count, restarts;
    epicsTimeStamp began;  /* when it was first heard, or last restarted */
} ebpfMonBeaconRow;

typedef struct {
    uint64_t count;        /* searched names */
    double   rate;
    uint64_t replaced;     /* names, clients and servers that made room for others, because a table was full */
    unsigned never;        /* names that nobody answers */
    unsigned names;        /* names in name[], the most searched first */
    ebpfMonSearchRow name[EBPFMON_TOP_MAX];
    unsigned clients;      /* clients in client[], those with most searches first */
    ebpfMonSearchClientRow client[EBPFMON_TOP_MAX];
    uint64_t beacons;
    double   beaconRate;
    unsigned heard;        /* servers that were heard */
    unsigned servers;      /* servers in server[], the newest or last restarted first */
    ebpfMonBeaconRow server[EBPFMON_TOP_MAX];
} ebpfMonSearches;

#endif
