/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CA links of one IOC, and which of them are not connected; its links of pvAccess. Base has no list of them, so all
 * link fields are gone through now and then; in between, the struct caLink (dbCaPvt.h) of each link is read. Only the
 * thread of unconnected.c uses this module.
 */
#ifndef EBPFMON_IOCLINKS_H
#define EBPFMON_IOCLINKS_H

#include "host/memory.h"
#include "host/procInfo.h"
#include "ioc/catalogue.h"

#define EBPFMON_CA_LINKS_MAX 20000 /* of an IOC; more are not looked at */

typedef struct {
    uint64_t at, ca;        /* its struct link, and its struct caLink */
    uint32_t record;        /* index in the catalogue */
    uint32_t field;         /* … and in its fields */
    int      isConnected, wasConnected;
    uint64_t since;         /* monotonic ns: it is not connected since then, or before; 0: it is */
} ebpfMonCaLink;

/* A link of pvAccess. Whether it is connected is not known. */
typedef struct {
    uint64_t key;           /* ebpfMonPvaLinkKey */
    uint32_t record, field;
} ebpfMonIocPvaLink;

typedef struct {
    uint32_t id;            /* ebpfMonTarget.iocId */
    pid_t    pid;
    char     name[EBPFMON_IOCNAME_SIZE];
    ebpfMonCatalogue *cat;  /* a reference of its own */
    ebpfMonCaLink *link;
    size_t   links, room;
    ebpfMonMemPart *part;   /* of each link, to read its caLink */
    char    *bytes;
    ebpfMonIocPvaLink *pva;
    size_t   pvas, pvaRoom;
    const ebpfMonCatalogue *walked; /* the catalogue that was gone through; NULL: none */
    uint64_t walkAt;        /* monotonic ns: then all fields are gone through again … */
    uint64_t notBefore;     /* … and not before this, if a link has changed */
    int      isRead;        /* the last update was possible */
    int      isSeen;        /* unconnected.c's own */
} ebpfMonCaLinkIoc;

/* Reads them. "now": monotonic ns. ioc->isRead says whether it could. */
void ebpfMonIocLinksUpdate(ebpfMonCaLinkIoc *ioc, uint64_t now);
void ebpfMonIocLinksClear(ebpfMonCaLinkIoc *ioc);

/* The name of the channel that the link asks for. 0, or -1. */
int ebpfMonIocLinksReadName(const ebpfMonCaLinkIoc *ioc, const ebpfMonCaLink *link, char *name, size_t size);

/* The link of pvAccess that asks for this PV. NULL: none. *isOne 0: it is one of several. */
const ebpfMonIocPvaLink *ebpfMonIocLinksFindPva(const ebpfMonCaLinkIoc *ioc, const char *pv, int *isOne);

#endif
