/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which records an IOC has: names, aliases, types, addresses and field layout, read from its memory.
 *
 * The walk is dbBase.recordTypeList → dbRecordType.recList → dbRecordNode (dbBase.h); the members that we use are the
 * same since EPICS 3.14. The offset of a field in a record comes from the IOC's own dbFldDes. A catalogue does not
 * change after it was read, except its links (recordLinks.h). Links change only under the lock that all their readers
 * hold. A catalogue is shared by reference count: any thread may call Hold and Release.
 */
#ifndef EBPFMON_CATALOGUE_H
#define EBPFMON_CATALOGUE_H

#include <stddef.h>
#include <stdint.h>
#include "ebpfMonBase.h"
#include "host/memory.h"
#include "ioc/baseLayout.h"
#include "ioc/linkTable.h"

#define EBPFMON_RECORDS_LIMIT 2000000 /* more than this is not a database but garbage */
#define EBPFMON_FIELDS_LIMIT  1024    /* of one record type; Base's largest, aSub, has some 400 */

/* dbFldTypes.h: dbfType of EPICS 7. Types of older releases are translated (ebpfMonBaseReleaseType). */
enum {
    ebpfMonDbfString, ebpfMonDbfChar, ebpfMonDbfUchar, ebpfMonDbfShort, ebpfMonDbfUshort, ebpfMonDbfLong,
    ebpfMonDbfUlong, ebpfMonDbfInt64, ebpfMonDbfUint64, ebpfMonDbfFloat, ebpfMonDbfDouble, ebpfMonDbfEnum,
    ebpfMonDbfMenu, ebpfMonDbfDevice, ebpfMonDbfInlink, ebpfMonDbfOutlink, ebpfMonDbfFwdlink,
    ebpfMonDbfNoaccess
};

_Static_assert((int)ebpfMonDbfInlink == EBPFMON_DBF_INLINK && (int)ebpfMonDbfFwdlink == EBPFMON_DBF_FWDLINK,
               "the kernel part numbers the types alike");

typedef struct {
    uint64_t addr;   /* of its dbFldDes */
    uint64_t ftPvt;  /* dbMenu or dbDeviceMenu */
    char     name[16];
    uint16_t type;   /* dbfType */
    uint16_t offset; /* in the record */
    uint16_t size;
    int16_t  special;
    uint16_t rtype;  /* index of its record type */
    /* array fields: where the record keeps the elements and how many there are; 0/0: no array */
    uint16_t arrayPtr, arrayCount;
} ebpfMonField;

typedef struct {
    char     name[64];
    uint32_t firstField, fieldCount; /* in catalogue.fields */
    uint32_t recSize;
    int      valField;  /* index in catalogue.fields, -1: none */
    uint32_t links;     /* of its fields, how many are links */
    uint32_t records;   /* without aliases */
    uint8_t  stamps;    /* EBPFMON_STAMPS_…; the follower's own, as the next two */
    uint16_t devs;
    struct ebpfMonDevSup *dev; /* by DTYP, its device supports; NULL: not read */
} ebpfMonRecType;

typedef struct ebpfMonDevSup {
    char    name[41]; /* a choice of DTYP */
    uint8_t stamps;   /* EBPFMON_STAMPS_…: of its records that are I/O Intr, if their type is of Base */
} ebpfMonDevSup;

/* Does the time stamp of a record of this type, or with this device support, show each processing? */
#define EBPFMON_STAMPS_BASE    0 /* it is of Base: ioc/recordLinks.c knows when */
#define EBPFMON_STAMPS_UNKNOWN 1
#define EBPFMON_STAMPS_SEEN    2 /* it did so far */
#define EBPFMON_STAMPS_NOT     3
#define EBPFMON_STAMPS_UNLOCKED 4 /* no, nor those of the records behind it: it completes without its lock set */
#define EBPFMON_STAMPS_ASLEEP  5 /* unknown, and its driver has requested no scan for long (device supports only) */

#define EBPFMON_REC_TSE  1 /* its time stamp does not move with each processing, or moves without one: only the trap
                            * counts it. documentation/develop/counting.md lists which */
#define EBPFMON_REC_WALK 2 /* it can process others without moving its time stamp: its chain is always looked at */
#define EBPFMON_REC_UNDEFINED 4 /* an mbbo or mbboDirect with UDF: as EBPFMON_REC_TSE, if anything processes it */
#define EBPFMON_REC_SCANS 8 /* SSCN is set: while it is simulated, it is in another scan list without a put to SCAN
                             * (recGbl.c, recGblCheckSimm) */
#define EBPFMON_REC_STAMPED 16 /* its device support may set its time stamp without processing it: only the trap counts
                                * it */
#define EBPFMON_REC_UNLOCKED 32 /* its type completes without its lock set: only the trap counts what is behind it */
#define EBPFMON_REC_TIMED 64 /* TSE or TSEL: its time stamp comes from elsewhere. Without EBPFMON_REC_TSE: it may go
                              * back now and then, so the count is a lower bound */
#define EBPFMON_REC_SETS_TSE 128 /* its device support may set TSE */

typedef struct {
    uint64_t addr;
    uint32_t name;      /* offset in catalogue.pool */
    uint16_t rtype;
    uint8_t  flags;     /* EBPFMON_REC_… */
    uint8_t  dev;       /* 1 + DTYP, if the record is I/O Intr and its device support is not Base's; else 0. The
                         * follower's own */
    uint32_t *to;       /* records that it processes through database links, one entry for each link; then
                         * as many entries with the index of the link's field */
    uint32_t toCount;
    uint32_t fwd;       /* the record at the end of its FLNK, UINT32_MAX: none in this IOC */
} ebpfMonRecord;

/* Offsets in dbCommon. */
typedef struct {
    uint16_t time, pact, ppn, lset, disp, sevr, stat, tse, tsel, phas, proc;
    uint16_t spvt; /* 0: there is none, and scan lists cannot be followed */
} ebpfMonCommon;

typedef struct ebpfMonCatalogue {
    int       refs;
    uint64_t  since;          /* monotonic ns: its records were read first; the same in a catalogue of one IOC that has
                               * only other names for them (ebpfMonRecordLinksTakeOver) */
    uint32_t  count, aliases;
    ebpfMonRecord  *rec;      /* in the order of their addresses */
    ebpfMonRecType *rtype;
    uint32_t  rtypes;
    ebpfMonField   *field;    /* by record type */
    uint32_t *fieldByAddr;    /* indexes of field, in the order of the dbFldDes' addresses */
    uint32_t  fields;
    char     *pool;           /* names */
    size_t    poolSize;
    uint32_t *byName;         /* hash table: 1 + index in names */
    uint32_t  byNameSize;
    struct { uint32_t name, rec; } *names; /* records and aliases */
    uint32_t  nameCount;
    ebpfMonCommon common;
    const ebpfMonBaseRelease *_Atomic base; /* the follower may choose another one that is alike */
    ebpfMonLinkTable *links;  /* the output links that write into this database */
} ebpfMonCatalogue;

/* Reads the catalogue without its links. NULL with a diagnosis in "why": there is no database, or it cannot be
 * believed. NULL with an empty "why": the database of this IOC is not there yet. */
ebpfMonCatalogue *ebpfMonCatalogueRead(ebpfMonMem *mem, uint64_t pdbbase, char *why, size_t size);

/* One reference more; returns "cat", which may be NULL. */
ebpfMonCatalogue *ebpfMonCatalogueHold(ebpfMonCatalogue *cat);
/* One less; the last one frees it. NULL does no harm. */
void ebpfMonCatalogueRelease(ebpfMonCatalogue *cat);

/* The number of nodes in the lists of all record types. If it changes, records were added. This is much cheaper than to
 * read the catalogue. 0: there is no database yet, -1: it cannot be read. */
long ebpfMonCatalogueCountNodes(ebpfMonMem *mem, uint64_t pdbbase);

/* Nonzero: both have the same records and fields, at the same addresses. Their names and aliases may differ. */
int ebpfMonCatalogueHasSameRecords(const ebpfMonCatalogue *a, const ebpfMonCatalogue *b);

/* --- Finding; any thread that holds a reference. Indexes are those of "rec". --- */

long ebpfMonCatalogueFind(const ebpfMonCatalogue *cat, const char *name); /* aliases too; -1: none */
long ebpfMonCatalogueFindAddr(const ebpfMonCatalogue *cat, uint64_t precord); /* -1: none */

/* The field that this dbFldDes describes; the field of this name of a record type. NULL: none. */
const ebpfMonField *ebpfMonCatalogueField(const ebpfMonCatalogue *cat, uint64_t pfldDes);
const ebpfMonField *ebpfMonCatalogueFieldNamed(const ebpfMonCatalogue *cat, uint16_t rtype, const char *name);

/* The field that begins at an address inside a record, and the record's index. NULL: none does. */
const ebpfMonField *ebpfMonCatalogueFieldAt(const ebpfMonCatalogue *cat, uint64_t addr, uint32_t *index);

/* Nonzero: indexes and slots of one are those of the other. Of one IOC. */
static inline int ebpfMonCatalogueGoesOn(const ebpfMonCatalogue *cat, const ebpfMonCatalogue *older)
{
    return cat->since == older->since;
}

static inline const char *ebpfMonCatalogueName(const ebpfMonCatalogue *cat, uint32_t index)
{
    return cat->pool + cat->rec[index].name;
}

/* Where EBPFMON_STAMPS_… of this record is: that of its type, or of its device support. The follower's own. */
static inline uint8_t *ebpfMonCatalogueStamps(const ebpfMonCatalogue *cat, uint32_t index)
{
    ebpfMonRecType *type = &cat->rtype[cat->rec[index].rtype];
    unsigned dev = cat->rec[index].dev;

    return type->stamps == EBPFMON_STAMPS_BASE && dev && dev <= type->devs ? &type->dev[dev - 1].stamps
                                                                            : &type->stamps;
}

/* Makes the table of names after all names were read. Part of the reading. 0; 1: too many names have the same
 * hash; -1: no memory. */
int ebpfMonCatalogueIndexNames(ebpfMonCatalogue *cat);

#endif
