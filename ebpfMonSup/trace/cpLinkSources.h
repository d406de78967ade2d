/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which chain set a CP link going: the monitor that the link got has the time stamp of the record that it came from, and
 * a chain that was kept has the stamps of its records. Also from one IOC of this host to another. Event thread only,
 * under ebpfMonTargetsLock.
 */
#ifndef EBPFMON_CPLINKSOURCES_H
#define EBPFMON_CPLINKSOURCES_H

#include "model/put.h"
#include "watch/target.h"

typedef struct {
    ebpfMonChainId chain; /* iocId 0: not known */
    uint32_t place;       /* of the record among the chain's, as they were noted */
    char     record[EBPFMON_NAME_SIZE], root[EBPFMON_NAME_SIZE]; /* the record, and what its chain began with */
    char     ioc[EBPFMON_NAME_SIZE]; /* empty: the same */
} ebpfMonCpLinkSource;

/* A record of a chain that was kept was stamped. Root and record by their index in the catalogue. */
void ebpfMonCpLinkSourcesAdd(const ebpfMonChainId *chain, uint32_t root, uint32_t place, uint32_t index, uint64_t stamp);

/* "link": as in struct ebpfMonHandOver, of a link of record "root". 0, or -1: none is known (yet). */
int ebpfMonCpLinkSourcesFind(ebpfMonTarget *t, uint32_t root, const uint8_t *link, ebpfMonCpLinkSource *source);

#endif
