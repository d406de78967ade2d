/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which chain caused a CP link to process its record. The monitor event that the link got has the time stamp of the
 * record that it watches; chains that were kept have the time stamps of their records. The two records can be in
 * different IOCs of this host. Event thread only.
 */
#ifndef EBPFMON_CPLINKSOURCES_H
#define EBPFMON_CPLINKSOURCES_H

#include "ebpfMonEvent.h"
#include "model/put.h"
#include "watch/target.h"

/* A CP link that processed its record. */
typedef struct {
    uint8_t  start[EBPFMON_CALINK_SIZE]; /* of its struct caLink, as in struct ebpfMonHandOver */
    char     name[EBPFMON_NAME_SIZE + 8]; /* the record that it watches; empty: not read yet */
    uint32_t sourcePid; /* the watched IOC that has this record; 0: not known */
} ebpfMonCpLink;

typedef enum {
    ebpfMonCpLinkFound,
    ebpfMonCpLinkAwaited, /* the chain may not have ended yet, or a read is wanted */
    ebpfMonCpLinkUnknown  /* no IOC whose chains we see has the record, or the link cannot be read */
} ebpfMonCpLinkResult;

/* The chain that caused a CP link to process its record. */
typedef struct {
    ebpfMonChainId chain; /* iocId 0: not known */
    uint32_t place;       /* of the watched record among the chain's records, in the order of their time stamps */
    char     record[EBPFMON_NAME_SIZE]; /* the watched record */
    char     root[EBPFMON_NAME_SIZE];   /* the record that its chain began with */
    char     ioc[EBPFMON_NAME_SIZE];    /* its IOC; empty: the IOC of the link */
} ebpfMonCpLinkSource;

typedef struct ebpfMonCpLinkSources ebpfMonCpLinkSources;

ebpfMonCpLinkSources *ebpfMonCpLinkSourcesNew(ebpfMonTargets *targets); /* NULL without memory */
void ebpfMonCpLinkSourcesFree(ebpfMonCpLinkSources *sources); /* NULL does no harm */

/* A record of a kept chain has this time stamp (as struct ebpfMonChainRec has it). "root" and "index": the chain's
 * root and the record in the catalogue of the chain's IOC. */
void ebpfMonCpLinkSourcesAdd(ebpfMonCpLinkSources *sources, const ebpfMonChainId *chain, uint32_t root, uint32_t place,
                             uint32_t index, uint64_t stamp);

/* The chain that caused a CP link of record "root" of IOC "t". "link": with its start; the rest becomes known at the
 * first call. Only then the memory of the IOC is read, by ebpfMonTargetsGetReads. Under ebpfMonTargetsLock. */
ebpfMonCpLinkResult ebpfMonCpLinkSourcesFind(const ebpfMonCpLinkSources *sources, ebpfMonTarget *t, uint32_t root,
                                             ebpfMonCpLink *link, ebpfMonCpLinkSource *source);

#endif
