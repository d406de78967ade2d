/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the user part share: userPart.c, userTables.c, userClosures.c. */
#ifndef EXPLORE_USEROWN_H
#define EXPLORE_USEROWN_H

#include <stdint.h>

#include "ebpfMonTable.h"
#include "ioc.h"
#include "helpers.h"

#define N    IOC_RECORDS_MAX
#define NONE 255
#define AREA (PLACES_MAX / 3) /* places of a set of closures: the present one, the one before, the next one */

/* The closures of all records, then the lists, then the groups, and where they are. */
typedef struct {
    uint32_t count;
    uint8_t list[AREA], ahead[AREA];
    uint32_t first[N], len[N];
    uint32_t listFirst[IOC_LISTS_MAX], listLen[IOC_LISTS_MAX];
    uint8_t group[N];
    uint32_t groupFirst[N], groupLen[N];
} Closures;

/* The stretches of chains: of one bank. */
typedef struct {
    int isUsed;
    uint8_t order[N], ahead[N];
} Stretches;

/* Only the thread of the user part uses it, but it must be as it was at the begin of each run: so it is shared
 * memory. */
typedef struct {
    struct ebpfMonTargetConf conf;
    int level;
    uint32_t sweeps, number, area, closureAt, bank;
    int hasPlan;
    uint64_t missed, unsure; /* of struct ebpfMonPassNotes, as they were read last */
    uint64_t puts;           /* ebpfMonPassNotes.putsBegun when the lists were read last */
    uint8_t flnk[N], out[N]; /* links as they were read; NONE: empty */
    uint8_t listOf[N];       /* the list of each record; NONE: none */
    uint64_t adjust[N];
    uint8_t isMissed[N];
    Stretches stretch[2];
    Closures closures;
} User;

extern User *user; /* in shared memory */

/* An epicsTimeStamp as a number that can be compared: its seconds are in the low half. */
static inline uint64_t userOrder(uint64_t time)
{
    return time << 32 | time >> 32;
}

/* --- userClosures.c */
uint8_t userIndexOf(const iocRecord *r); /* NONE: of NULL */
void userReadLinks(unsigned i);
void userMakeClosures(Closures *c, int withPlan);

/* --- userTables.c */
void userMark(unsigned i);
void userMarkMoved(void); /* the records that are in other lists than before */
void userBeginChange(void);
void userEndChange(void);
void userInstall(const Closures *c);
void userWriteSweeps(const Closures *c);
void userBeginCounting(void);
void userSettleCounting(void);
void userRenewSweeps(void);

#endif
