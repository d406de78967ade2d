/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "ioc/baseLayout.h"
#include "ioc/baseLink.h"
#include "model/put.h"
#include "put/threadJob.h"
#include "put/valueText.h"

void ebpfMonThreadJobReadScan(ebpfMonTarget *t, uint64_t precord, char *buf, size_t size)
{
    long index = t->cat ? ebpfMonCatalogueFindAddr(t->cat, precord) : -1;
    const ebpfMonField *f;
    uint8_t data[2];
    ebpfMonValue v = { .data = data, .len = sizeof(data), .type = ebpfMonDbfMenu, .size = 2, .count = 1 };

    buf[0] = 0;
    f = index >= 0 ? ebpfMonCatalogueFieldNamed(t->cat, t->cat->rec[index].rtype, "SCAN") : NULL;
    if (f && ebpfMonLateReadsGetBytes(t->eventThread.reads, t->pid, precord + f->offset, data, sizeof(data)) == 0)
        ebpfMonValueTextFormat(t, f, precord, &v, buf, size);
}

/* The record has CP links or has none; which of several it was is not known. "none": the text if it has none. */
static void describeCpLink(ebpfMonTarget *t, uint64_t precord, const char *none, char *buf, size_t size)
{
    long index = t->cat ? ebpfMonCatalogueFindAddr(t->cat, precord) : -1;
    const ebpfMonRecType *rt = index >= 0 ? &t->cat->rtype[t->cat->rec[index].rtype] : NULL;
    char name[EBPFMON_NAME_SIZE + 8] = "";
    unsigned n = 0;

    for (uint32_t i = 0; rt && i < rt->fieldCount; i++) {
        const ebpfMonField *f = &t->cat->field[rt->firstField + i];
        ebpfMonLink link;

        if (f->type != ebpfMonDbfInlink ||
            ebpfMonLinkReadLate(t->eventThread.reads, t->pid, t->cat->base, precord + f->offset, &link) ||
            link.type != EBPFMON_LINK_CA || !(link.pvlMask & (EBPFMON_PVL_CP | EBPFMON_PVL_CPP)))
            continue;
        if (n++ == 0 && ebpfMonLateReadsGetBytes(t->eventThread.reads, t->pid, link.pvname, name, sizeof(name)) == 0)
            name[sizeof(name) - 1] = 0;
        ebpfMonTextClean(name, sizeof(name));
    }
    if (n == 1)
        snprintf(buf, size, "CP link from %s", name[0] ? name : "?");
    else if (n)
        snprintf(buf, size, "one of %u CP links", n);
    else
        snprintf(buf, size, "%s", none);
}

void ebpfMonThreadJobDescribe(ebpfMonTarget *t, const char *comm, int isMain, uint64_t root, char *buf, size_t size)
{
    char scan[40];

    if (strncmp(comm, "scan-", 5) == 0) {
        snprintf(buf, size, "scan %.10s second", comm + 5);
    } else if (strncmp(comm, "cb", 2) == 0) {
        ebpfMonThreadJobReadScan(t, root, scan, sizeof(scan));
        if (strcmp(scan, "I/O Intr") == 0 || strcmp(scan, "Event") == 0)
            snprintf(buf, size, "%s", scan);
        else
            snprintf(buf, size, "callback in %.15s", comm);
    } else if (strcmp(comm, "scanOnce") == 0) {
        /* a CP link (dbCa.c before 7.0.10), or a put that found the record busy (RPRO, dbAccess.c) */
        describeCpLink(t, root, "queued once", buf, size);
    } else if (strcmp(comm, "dbCaLink") == 0) {
        describeCpLink(t, root, "thread dbCaLink", buf, size);
    } else if (isMain) {
        snprintf(buf, size, "%s", t->running ? "shell" : "start-up");
    } else {
        snprintf(buf, size, "thread %.15s", comm);
    }
}
