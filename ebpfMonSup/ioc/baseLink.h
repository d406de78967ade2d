/* SPDX-License-Identifier: BSD-3-Clause */
/* A link field (link.h, struct link) as it lies in the memory of an IOC of any release. */
#ifndef EBPFMON_BASELINK_H
#define EBPFMON_BASELINK_H

#include "host/lateReads.h"
#include "host/memory.h"
#include "ioc/baseLayout.h"
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

/* Nonzero: a link of CA that processes its record when the value changes. */
static inline int ebpfMonLinkIsCp(const ebpfMonLink *link)
{
    return link->type == EBPFMON_LINK_CA && (link->pvlMask & (EBPFMON_PVL_CP | EBPFMON_PVL_CPP));
}

/* --- links of pvAccess ---
 *
 * Links of pvAccess: a link field with JSON, {"pva": "PV"} or {"pva": {"pv": "PV", "proc": "CP", …}} (pvalink of both
 * QSRVs). No state; any thread. */

#define EBPFMON_PVA_LINK_TEXT 512 /* bytes of a link's text that are read: longer ones are not understood */

typedef struct {
    char pv[128]; /* as in the link */
    int  isCp;    /* nonzero: its monitor processes the record: proc is CP or CPP */
} ebpfMonPvaLink;

/* 0, or -1: this text is no link of pvAccess. */
int ebpfMonPvaLinkParse(const char *text, ebpfMonPvaLink *pva);

/* Nonzero: the link has a text of JSON, at address link->value. */
int ebpfMonPvaLinkIsJson(const ebpfMonLink *link);

/* A number that stands for links to this PV, and is no address. */
uint64_t ebpfMonPvaLinkKey(const char *pv);

#endif
