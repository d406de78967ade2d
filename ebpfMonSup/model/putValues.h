/* SPDX-License-Identifier: BSD-3-Clause */
/* Published values: puts, unexpected puts, and the rules that find them. */
#ifndef EBPFMON_PUTVALUES_H
#define EBPFMON_PUTVALUES_H

#include <stdint.h>
#include <epicsTime.h>
#include "model/iocValues.h"
#include "model/put.h"

#define EBPFMON_PUTS_MAX       200 /* puts that are kept, of each kind */
#define EBPFMON_UNEXPECTED_MAX 64  /* unexpected puts that are kept */
#define EBPFMON_NO_PUT         "no put yet" /* the text if there was no put */
#define EBPFMON_NO_UNEXPECTED  "no unexpected put yet"

typedef struct {
    char     name[EBPFMON_NAME_SIZE]; /* an IOC; or address:port of a server that is no watched IOC */
    uint64_t puts, denied; /* puts that passed the filter */
} ebpfMonPutIoc;

/* The kinds of puts. Automatic puts are kept apart: a link that writes ten times a second would displace the puts of
 * people. */
typedef enum {
    ebpfMonPutByClient,
    ebpfMonPutAutomatic, /* see ebpfMonPutIsAutomatic */
    ebpfMonPutKinds
} ebpfMonPutKind;

/* A put stays where it is; its order changes. */
typedef struct {
    unsigned kept;         /* valid entries of put[] and order[] */
    uint8_t  order[EBPFMON_PUTS_MAX]; /* indices of put[], the newest one first */
    ebpfMonPut put[EBPFMON_PUTS_MAX];
} ebpfMonPutList;

/* The place of a put in the two lists. The newest 200 of all puts are among the newest 200 of each kind. */
typedef struct {
    uint8_t kind;
    uint8_t index;         /* of put[] */
} ebpfMonPutPlace;

typedef struct {
    uint64_t count;        /* puts that passed the filter */
    uint64_t denied;       /* of these */
    uint64_t automatic;    /* of these */
    double   rate;
    epicsTimeStamp rateTime; /* since then the rate has this value */
    unsigned iocCount;     /* valid entries of ioc[]. An entry stays for ever; the last one counts for all other IOCs */
    ebpfMonPutIoc ioc[EBPFMON_IOCS_MAX];
    ebpfMonPutList  of[ebpfMonPutKinds];
    ebpfMonPutPlace place[EBPFMON_PUTS_MAX]; /* of both kinds, the newest put first */
    unsigned        places;                  /* valid entries of place[] */
    uint64_t        placed;                  /* puts that ever were in it */
} ebpfMonPutValues;

/* Places where unexpected puts are shown. An acknowledgement in one place is for the puts that were shown there. */
typedef enum {
    ebpfMonShownByPvs,
    ebpfMonShownByShell,
    ebpfMonShownByCode, /* ebpfMon.h */
    ebpfMonShownCount
} ebpfMonShown;

/* Unexpected puts are numbered from 1 on, whatever the filter says. Those after "acknowledged" are open. The newest
 * ones are kept: number n is at put[(n - 1) % EBPFMON_UNEXPECTED_MAX]. */
typedef struct {
    uint64_t count;
    uint64_t acknowledged;
    uint64_t shown[ebpfMonShownCount]; /* the highest number that was shown there */
    int      open;         /* count - acknowledged, at most INT_MAX */
    unsigned kept;         /* valid entries of order[] and put[] */
    uint8_t  order[EBPFMON_UNEXPECTED_MAX]; /* indices of put[], the newest one first */
    ebpfMonPut put[EBPFMON_UNEXPECTED_MAX];
} ebpfMonUnexpectedValues;

typedef struct {
    char     file[256];    /* the file with the rules; empty: none */
    unsigned count;
    int      refused;      /* nonzero: the last file was refused; the rules before it stay */
    char     message[512];
} ebpfMonRuleValues;

#endif
