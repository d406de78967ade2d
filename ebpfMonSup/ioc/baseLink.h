/* SPDX-License-Identifier: BSD-3-Clause */
/* A link field (link.h, struct link) as it lies in the memory of an IOC of any release. */
#ifndef EBPFMON_BASELINK_H
#define EBPFMON_BASELINK_H

#include "host/lateReads.h"
#include "host/memory.h"
#include "ioc/baseRelease.h"
#include "ioc/catalogue.h"

typedef struct {
    uint64_t owner;   /* the record that has it */
    uint64_t value;   /* constantStr, if it is a constant */
    uint64_t pvname, pvt;
    int16_t  type, pvlMask;
} ebpfMonLink;

/* Reads a link; 0, or -1: it cannot be read. The first function reads through the cache of "mem", the second one
 * directly, the third one without the lock of its caller (lateReads.h). */
int ebpfMonLinkRead(ebpfMonMem *mem, const ebpfMonBaseRelease *base, uint64_t at, ebpfMonLink *link);
int ebpfMonLinkReadNow(pid_t pid, const ebpfMonBaseRelease *base, uint64_t at, ebpfMonLink *link);
int ebpfMonLinkReadLate(ebpfMonLateReads *reads, pid_t pid, const ebpfMonBaseRelease *base, uint64_t at,
                        ebpfMonLink *link);

/* Where a database link leads. */
typedef struct {
    uint32_t rec;     /* index of the record */
    uint64_t addrAt;  /* its DBADDR, by which the link writes */
    uint64_t pfldDes; /* of the field */
} ebpfMonLinkEnd;

/* Finds the end of a link of "owner" whose type is EBPFMON_LINK_DB. 0; -1: the link does not look like one of a known
 * release. */
int ebpfMonLinkFindEnd(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint64_t owner, const ebpfMonLink *link,
                       ebpfMonLinkEnd *end);

#endif
