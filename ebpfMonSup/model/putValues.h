/* SPDX-License-Identifier: BSD-3-Clause */
/* Published: puts, the unexpected ones among them, and the rules that tell them apart. */
#ifndef EBPFMON_PUTVALUES_H
#define EBPFMON_PUTVALUES_H

#include <stdint.h>
#include <epicsTime.h>
#include "model/iocValues.h"
#include "model/put.h"

#define EBPFMON_PUTS_MAX       200 /* recent puts kept, of each kind */
#define EBPFMON_UNEXPECTED_MAX 64  /* unexpected puts kept */
#define EBPFMON_NO_PUT         "no put yet" /* in place of the newest put */
#define EBPFMON_NO_UNEXPECTED  "no unexpected put yet"

typedef struct {
    char     name[EBPFMON_NAME_SIZE]; /* an IOC, or the address:port of a server that is no watched one */
    uint64_t puts, denied; /* that passed the filter */
} ebpfMonPutIoc;

/* Who made a put. What machines write is kept for itself: a link that writes ten times a second would leave nothing of
 * what people wrote. */
typedef enum {
    ebpfMonPutByClient,
    ebpfMonPutAutomatic, /* ebpfMonPutIsAutomatic */
    ebpfMonPutKinds
} ebpfMonPutKind;

typedef struct {
    unsigned kept;         /* valid entries of put[] */
    unsigned newest;       /* its index; the one before it is at (newest + EBPFMON_PUTS_MAX - 1) % EBPFMON_PUTS_MAX */
    ebpfMonPut put[EBPFMON_PUTS_MAX];
} ebpfMonPutList;

/* Where a put is: the newest 200 of all are among the newest 200 of each kind. */
typedef struct {
    uint8_t kind;
    uint8_t index;
} ebpfMonPutPlace;

typedef struct {
    uint64_t count;        /* that passed the filter */
    uint64_t denied;       /* of those */
    uint64_t automatic;    /* of those */
    double   rate;
    epicsTimeStamp rateTime; /* since when it is so */
    unsigned iocCount;     /* valid entries of ioc[]: an entry stays for good; the last one counts for all others */
    ebpfMonPutIoc ioc[EBPFMON_IOCS_MAX];
    ebpfMonPutList  of[ebpfMonPutKinds];
    ebpfMonPutPlace place[EBPFMON_PUTS_MAX]; /* of put number n at [n % EBPFMON_PUTS_MAX] */
    uint64_t        placed;                  /* number of the next put */
} ebpfMonPutValues;

/* Where unexpected puts are shown: who acknowledges there can mean only those that were shown there. */
typedef enum {
    ebpfMonShownByPvs,
    ebpfMonShownByShell,
    ebpfMonShownByCode, /* ebpfMon.h */
    ebpfMonShownCount
} ebpfMonShown;

/* Unexpected puts are numbered from 1 on, whatever the filter says; those above "acknowledged" are open. The newest
 * ones are kept, number n at put[(n - 1) % EBPFMON_UNEXPECTED_MAX]. */
typedef struct {
    uint64_t count;
    uint64_t acknowledged;
    uint64_t shown[ebpfMonShownCount]; /* the highest number that was shown there */
    int      open;         /* count - acknowledged, as far as an int has it */
    ebpfMonPut put[EBPFMON_UNEXPECTED_MAX];
} ebpfMonUnexpectedValues;

typedef struct {
    char     file[256];    /* in force; empty: none */
    unsigned count;
    int      refused;      /* the last load was; the rules before it are in force */
    char     message[512];
} ebpfMonRuleValues;

#endif
