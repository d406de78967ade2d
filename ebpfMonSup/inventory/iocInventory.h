/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an IOC has: its records with types, aliases, info tags and fields, and its environment, read from its memory. Names
 * and types come from the catalogue, the rest is read anew at each call.
 *
 * A reading takes a second or two for 100,000 records. It goes through ebpfMonMem, so an IOC that does not answer, or has
 * more than an IOC can have, ends it. All texts are clean (common/text.h).
 */
#ifndef EBPFMON_IOCINVENTORY_H
#define EBPFMON_IOCINVENTORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/worker.h"
#include "ioc/catalogue.h"

#define EBPFMON_INV_ALIASES 64       /* of a record */
#define EBPFMON_INV_INFOS   128
#define EBPFMON_INV_FIELDS  48
#define EBPFMON_INV_VALUE   16384    /* bytes of a value; what is cut ends in "..." */

typedef struct {
    const char *name, *value;
} ebpfMonInventoryPair;

/* Valid during the call that it is handed to. */
typedef struct {
    uint32_t    index;  /* in the catalogue */
    const char *name, *type;
    const char *alias[EBPFMON_INV_ALIASES];
    ebpfMonInventoryPair info[EBPFMON_INV_INFOS];   /* in the order of the database file */
    ebpfMonInventoryPair field[EBPFMON_INV_FIELDS]; /* those that the type has, and that are not empty */
    unsigned    aliases, infos, fields;
} ebpfMonInventoryRecord;

/* An IOC as it was when somebody looked. */
typedef struct {
    pid_t    pid;
    uint64_t start;
    uint32_t iocId;
    char     name[61], version[40];
    uint64_t pdbbase;
    ebpfMonCatalogue *cat; /* held */
} ebpfMonInventoryIoc;

typedef struct {
    /* "name" of each variable is one of those that were asked for. */
    void (*variable)(void *arg, const char *name, const char *value);
    /* Nonzero: that is enough, and "why" is the caller's. */
    int (*record)(void *arg, const ebpfMonInventoryRecord *record);
    void *arg;
} ebpfMonInventorySink;

/* Calls "record" for each record. With "fieldNames" (up to NULL) the fields of these names. "worker" gives signs of
 * progress, and ends the reading when it is stopping; NULL: none. 0, or -1 with "why". */
int ebpfMonInventoryReadRecords(const ebpfMonInventoryIoc *ioc, const char *const *fieldNames, ebpfMonWorker *worker,
                                const ebpfMonInventorySink *sink, char *why, size_t size);

/* Calls "variable" for each of these names (up to NULL) that has a value; and, whether they are asked for or not, for
 * EPICS_VERSION, IOCNAME, HOSTNAME and IOC_STARTED, which are made where the IOC does not have them. "more": further names,
 * with blanks between them. */
void ebpfMonInventoryReadVariables(const ebpfMonInventoryIoc *ioc, const char *const *names, const char *more,
                                   const ebpfMonInventorySink *sink);

#endif
