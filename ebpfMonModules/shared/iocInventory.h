/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the inventory of an IOC from its memory: its records with types, aliases, info tags and fields, and its
 * environment. Names and types come from the catalogue. All else is read again at each call.
 *
 * Reading 100,000 records takes one or two seconds. All reads go through ebpfMonMem, so they have limits: if an IOC
 * does not answer, or its lists are longer than possible, the reading ends with an error. All texts are clean,
 * but the info tags keep tabs and ends of lines (common/text.h). No shared state; any thread, without a lock.
 */
#ifndef EBPFMON_IOCINVENTORY_H
#define EBPFMON_IOCINVENTORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/worker.h"
#include "host/memory.h"
#include "ioc/catalogue.h"
#include "model/packetServers.h"
#include "watch/target.h"

/* --- fields as text ---
 *
 * Reads a field of a record as text, in the form of a database file: numbers, strings, choices of menus, links. No
 * state; any thread, without a lock.
 */

#define EBPFMON_FIELD_TEXT 1024 /* bytes of a text; a longer one ends in "..." */

/* "precord": the record's address in the IOC. 0: "text" is set, and clean (common/text.h). -1: the field cannot be
 * read, or its type has no text. */
int ebpfMonFieldTextRead(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint64_t precord, const ebpfMonField *field,
                         char *text, size_t size);

/* The same of a record by its index, and a field by its name. "": it cannot be read ("mem" may be NULL), or there is
 * none of this name. Returns "text". */
const char *ebpfMonFieldTextReadNamed(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint32_t record, const char *name,
                                      char *text, size_t size);

/* --- reading --- */

#define EBPFMON_INV_ALIASES 64       /* of one record, at most; and so the next two */
#define EBPFMON_INV_INFOS   128
#define EBPFMON_INV_FIELDS  80

typedef struct {
    const char *name, *value;
} ebpfMonInventoryPair;

/* A record. It is valid only during the call of the sink that gets it. */
typedef struct {
    uint32_t    index;  /* in the catalogue */
    const char *name, *type;
    const char *alias[EBPFMON_INV_ALIASES];
    ebpfMonInventoryPair info[EBPFMON_INV_INFOS];   /* in the order of the database file */
    ebpfMonInventoryPair field[EBPFMON_INV_FIELDS]; /* the requested fields that the type has and that are not empty */
    unsigned    aliases, infos, fields;
} ebpfMonInventoryRecord;

/* Adds type, aliases, info tags and fields to the open object. */
struct ebpfMonJson; /* export/shared/jsonGen.h */
void ebpfMonInventoryRecordAddJson(const ebpfMonInventoryRecord *record, struct ebpfMonJson *json);

/* The fields and variables that whatrecord and people look for, and NULL at the end. */
extern const char *const ebpfMonInventoryFields[], *const ebpfMonInventoryVariables[];

/* What is needed to read an IOC, copied under the targets lock. */
typedef struct {
    pid_t    pid;
    uint64_t start;
    uint32_t iocId;
    char     name[61], version[40];
    uint64_t pdbbase;
    ebpfMonCatalogue *cat; /* one reference, which the owner of this struct releases */
    /* A server that is not EPICS Base: there is no catalogue, and no record can be read. */
    ebpfMonPacketServers *packetServers; /* they know its PVs, by iocId; NULL: it is an IOC of Base */
    uint16_t caPort, pvaPort;            /* 0: it does not serve this protocol */
} ebpfMonInventoryIoc;

typedef struct {
    /* Gets each variable. */
    void (*variable)(void *arg, const char *name, const char *value);
    /* Gets each record. Returns nonzero to end the reading; then the caller sets "why". */
    int (*record)(void *arg, const ebpfMonInventoryRecord *record);
    void *arg;
} ebpfMonInventorySink;

/* Calls sink->record for each record. "fieldNames": the fields to read, and NULL at the end. "worker": the calling
 * thread, for signs of progress; when it is to stop, the reading ends. May be NULL. 0, or -1: "why" says what is
 * wrong. */
int ebpfMonInventoryReadRecords(const ebpfMonInventoryIoc *ioc, const char *const *fieldNames, ebpfMonWorker *worker,
                                const ebpfMonInventorySink *sink, char *why, size_t size);

/* Calls sink->variable for each of these variables that has a value. "names": their names, and NULL at the end;
 * "more": further names, separated by blanks. In addition it always passes EPICS_VERSION, IOCNAME, HOSTNAME and
 * IOC_STARTED, and the ports RSRV_SERVER_PORT and PVAS_SERVER_PORT at which the IOC listens. If the IOC does not set
 * them, the monitor finds their values. It never fails. */
void ebpfMonInventoryReadVariables(const ebpfMonInventoryIoc *ioc, const char *const *names, const char *more,
                                   const ebpfMonInventorySink *sink);

/* --- the IOCs to read ---
 *
 * Lists the IOCs that have an inventory to read now. No state.
 */

/* Lists the IOCs that the filter selects and that have completed iocInit, and behind them the servers that are not
 * EPICS Base; "packetServers" NULL: without these. The caller releases each catalogue and frees the list. NULL: there
 * is none, or no memory. Any thread; takes the targets lock. */
ebpfMonInventoryIoc *ebpfMonIocListTake(ebpfMonTargets *targets, ebpfMonPacketServers *packetServers, unsigned *count);

#endif
