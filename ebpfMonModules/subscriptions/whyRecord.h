/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is wrong with a record, or with the sources of its inputs, for the answer of why.h. Reads the memory of the IOC,
 * and what the core and other modules have published. It says what was read, and guesses nothing.
 */
#ifndef EBPFMON_WHYRECORD_H
#define EBPFMON_WHYRECORD_H

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

typedef enum { ebpfMonRecordNotRead, ebpfMonRecordFine, ebpfMonRecordUnknown, ebpfMonRecordStops } ebpfMonRecordState;

/* Reads the record twice, 0.3 s apart, and sets "text". "isStill": it did not process in between. */
ebpfMonRecordState ebpfMonWhyRecord(ebpfMonTargets *targets, const ebpfMonWhyPlace *place, int *isStill, char *text,
                                    size_t size);

/* Why a name is not connected for this client, or for anybody if it is "", as the module queues has published it; "":
 * it has not. Returns "text". */
const char *ebpfMonWhyFindUnconnected(const char *pv, const char *client, char *text, size_t size);

#endif
