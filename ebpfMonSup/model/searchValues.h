/* SPDX-License-Identifier: BSD-3-Clause */
/* Published: searches and beacons. Rates per second. */
#ifndef EBPFMON_SEARCHVALUES_H
#define EBPFMON_SEARCHVALUES_H

#include <stdint.h>
#include <epicsTime.h>
#include "model/recordValues.h"

#define EBPFMON_SEARCH_NAME_SIZE 80 /* a channel name may carry a field and modifiers; what is cut ends in "..." */

/* A name that clients ask for and nobody answers. */
typedef struct {
    char     name[EBPFMON_SEARCH_NAME_SIZE];
    char     who[64];      /* the last client that asked, its protocol, and about how many there are */
    uint64_t count;        /* questions */
    epicsTimeStamp first, last;
} ebpfMonSearchRow;

typedef struct {
    char     name[40];     /* address:port and protocol */
    double   rate;         /* names asked for */
    uint64_t count;
    unsigned never;        /* of the names that nobody answers, those it asks for; a lower bound */
} ebpfMonSearchClientRow;

typedef struct {
    char     name[40];     /* address:port and protocol */
    uint64_t count, restarts;
    epicsTimeStamp began;  /* first heard of, or its last restart */
} ebpfMonBeaconRow;

typedef struct {
    uint64_t count;        /* names asked for */
    double   rate;
    uint64_t replaced;     /* names, clients and servers that were given up for others: a table was full */
    unsigned never;        /* names that nobody answers */
    unsigned names;        /* … of them in name[], most asked first */
    ebpfMonSearchRow name[EBPFMON_TOP_MAX];
    unsigned clients;      /* loudest first */
    ebpfMonSearchClientRow client[EBPFMON_TOP_MAX];
    uint64_t beacons;
    double   beaconRate;
    unsigned heard;        /* servers */
    unsigned servers;      /* … of them in server[], newest or last restarted first */
    ebpfMonBeaconRow server[EBPFMON_TOP_MAX];
} ebpfMonSearches;

#endif
