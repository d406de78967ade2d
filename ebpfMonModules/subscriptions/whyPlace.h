/* SPDX-License-Identifier: BSD-3-Clause */
/* The record that a question of why.h is about: in which IOC it is, and its fields, read from the IOC's memory. */
#ifndef EBPFMON_WHYPLACE_H
#define EBPFMON_WHYPLACE_H

#include "host/memory.h"
#include "host/procInfo.h"
#include "ioc/catalogue.h"
#include "watch/target.h"

/* A record of a watched IOC. */
typedef struct {
    uint32_t iocId;
    pid_t    pid;
    char     ioc[EBPFMON_IOCNAME_SIZE];
    int      isRunning;    /* its iocInit is done */
    ebpfMonCatalogue *cat; /* one reference; NULL: no IOC that is watched has the record */
    ebpfMonMem *mem;       /* NULL: no memory */
    uint32_t record;       /* index in the catalogue */
    unsigned others;       /* further IOCs with such a record … */
    char     other[EBPFMON_IOCNAME_SIZE]; /* … the first of them … */
    pid_t    otherPid;
} ebpfMonWhyPlace;

/* The IOC with a record of this name; one that runs is taken before one that starts. 0, or -1: place->cat is NULL. The
 * caller clears it. Takes the lock of the targets. */
int ebpfMonWhyPlaceFind(ebpfMonTargets *targets, const char *record, ebpfMonWhyPlace *place);
void ebpfMonWhyPlaceClear(ebpfMonWhyPlace *place);

/* The text of a field; "" if it cannot be read, or the record has none of this name. */
const char *ebpfMonWhyReadText(const ebpfMonWhyPlace *place, const char *field, char *text, size_t size);
/* The same as a number. NaN: it is none. */
double ebpfMonWhyReadNumber(const ebpfMonWhyPlace *place, const char *field);
/* The name of its record type. */
const char *ebpfMonWhyGetType(const ebpfMonWhyPlace *place);

#endif
