/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CA links of one IOC, and which of them are not connected. Base has no list of them, so all link fields are gone
 * through now and then; in between, the struct caLink (dbCaPvt.h) of each link is read. Only unconnected.c uses this.
 */
#ifndef EBPFMON_CALINKS_H
#define EBPFMON_CALINKS_H

#include <stdint.h>
#include <sys/types.h>

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

typedef struct {
    uint32_t id;            /* ebpfMonTarget.iocId */
    pid_t    pid;
    char     name[EBPFMON_IOCNAME_SIZE];
    ebpfMonCatalogue *cat;  /* a reference of its own */
    ebpfMonCaLink *link;
    size_t   links, room;
    ebpfMonMemPart *part;   /* of each link, to read its caLink */
    char    *bytes;
    const ebpfMonCatalogue *walked; /* the catalogue that was gone through; NULL: none */
    uint64_t walkAt;        /* monotonic ns: then all fields are gone through again … */
    uint64_t notBefore;     /* … and not before this, if a link has changed */
    int      isRead;        /* the last update was possible */
    int      isSeen;        /* unconnected.c's own */
} ebpfMonCaLinkIoc;

void ebpfMonCaLinkIocUpdate(ebpfMonCaLinkIoc *ioc, uint64_t now);
void ebpfMonCaLinkIocClear(ebpfMonCaLinkIoc *ioc);

/* The name of the channel that the link asks for. 0, or -1. */
int ebpfMonCaLinkReadName(const ebpfMonCaLinkIoc *ioc, const ebpfMonCaLink *link, char *name, size_t size);

#endif
