/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "code/elfSymbols.h"
#include "code/mapping.h"
#include "common/array.h"
#include "common/text.h"
#include "host/foreign.h"
#include "host/serverSockets.h"
#include "shared/iocInventory.h"
#include "ioc/baseLayout.h"
#include "ioc/baseLink.h"
#include "export/shared/jsonGen.h" /* the last one: epicsVersion.h makes a macro of epicsReleaseVersion */

/* --- environment variables --- */

/*
 * The environment variables of a process as they are now. /proc/PID/environ has only the variables with which the
 * process was started. epicsEnvSet (in st.cmd) calls setenv, which makes a new list at "environ" of the C library
 * (environ(7)). So this module reads that list from the memory of the process; only if it cannot find the list, it
 * reads the file.
 */

#define EBPFMON_ENV_MAX   4096       /* variables that are read */
#define EBPFMON_ENV_BYTES (256 * 1024) /* of all of them; the rest is left out */

typedef struct {
    char    *text;     /* "NAME=value", each with its NUL; any bytes, because another process made them */
    size_t   size;
    unsigned count;
    int      isOfStart; /* these are the variables with which the process was started */
} ebpfMonEnvironment;

#define MAPS_MAX     (4u << 20) /* bytes */
#define MAPS_SECONDS 0.5
#define FILE_SECONDS 0.5
#define VALUE_MAX    4096       /* a longer variable is left out */

/* Looks for "environ" in a mapped file, as a job: a file system may never answer. */
typedef struct {
    pid_t    pid;
    ebpfMonMapping map;     /* its path is "name" */
    char     name[4096];
    int      isFound;
    uint64_t address;       /* of the variable, in the process */
} symbolLook;

static void lookForSymbol(void *data)
{
    static const char *const names[] = {"environ"};
    symbolLook *look = data;
    ebpfMonElfSymbol symbol;
    ebpfMonElfFile file;
    struct stat st;
    uint64_t bias;
    char path[4352];
    int fd = -1;

    if (ebpfMonMappingFindPath(look->pid, &look->map, path, sizeof(path), &st) == 0)
        fd = ebpfMonForeignOpenFile(path);
    if (fd < 0)
        return;
    if (ebpfMonElfOpen(&file, fd) == 0) {
        if (ebpfMonElfFind(&file, names, 1, &symbol) && symbol.vaddr &&
            ebpfMonMappingBias(file.segment, file.nSegments, &look->map, &bias) == 0) {
            look->isFound = 1;
            look->address = bias + symbol.vaddr;
        }
        ebpfMonElfClose(&file);
    }
    close(fd);
}

/* 0: it is not in this file. */
static uint64_t findInFile(pid_t pid, const ebpfMonMapping *map)
{
    static const ebpfMonForeignJob job = { lookForSymbol, free };
    symbolLook *look = calloc(1, sizeof(*look));
    uint64_t address = 0;

    if (!look)
        return 0;
    look->pid = pid;
    look->map = *map;
    snprintf(look->name, sizeof(look->name), "%s", map->path);
    look->map.path = look->name;
    if (ebpfMonForeignRun(pid, FILE_SECONDS, &job, look))
        return 0;
    if (look->isFound)
        address = look->address;
    free(look);
    return address;
}

static int isLibc(const char *path)
{
    const char *file = strrchr(path, '/') + 1;

    return strncmp(file, "libc.so", 7) == 0 || strncmp(file, "libc-", 5) == 0 || strncmp(file, "ld-musl", 7) == 0;
}

/* Where the variable "environ" is: in the program, if that has a copy of its own (copy relocation) or the whole C
 * library, else in the C library. The program's code is the first that is mapped. 0: not found. */
static uint64_t findVariable(pid_t pid)
{
    char name[32], *maps, *next;
    uint64_t address = 0;
    int isFirst = 1;

    snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
    maps = ebpfMonForeignReadAll(pid, name, MAPS_SECONDS, MAPS_MAX);
    if (!maps)
        return 0;
    for (char *line = maps; *line && !address; line = next) {
        ebpfMonMapping map;

        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = 0;
        if (!ebpfMonMappingParse(line, &map))
            continue;
        if (isFirst || isLibc(map.path))
            address = findInFile(pid, &map);
        isFirst = 0;
    }
    free(maps);
    return address;
}

static int addEnvVariable(ebpfMonEnvironment *env, size_t *room, const char *text)
{
    size_t size = strlen(text) + 1;

    if (env->size + size > EBPFMON_ENV_BYTES || ebpfMonArrayGrow(&env->text, room, env->size + size, 4096, 1))
        return -1;
    memcpy(env->text + env->size, text, size);
    env->size += size;
    env->count++;
    return 0;
}

/* The list as it is now. The process may change it meanwhile (setenv): then some of it is left out. Nonzero: it has
 * some. */
static int readList(pid_t pid, ebpfMonMem *mem, ebpfMonEnvironment *env)
{
    uint64_t variable = findVariable(pid), list = variable ? ebpfMonMemPtr(mem, variable) : 0;
    char text[VALUE_MAX];
    size_t room = 0;

    for (unsigned i = 0; list && i < EBPFMON_ENV_MAX; i++) {
        uint64_t at = ebpfMonMemPtr(mem, list + 8u * i);

        if (!at)
            break;
        if (ebpfMonMemStr(mem, at, text, sizeof(text)) < 0 || !strchr(text, '='))
            continue;
        if (addEnvVariable(env, &room, text))
            break;
    }
    return env->count > 0;
}

/* 0; -1: it cannot be read, or no memory. "mem" is a reader of this process. May take a second. */
static int readEnvironment(pid_t pid, ebpfMonMem *mem, ebpfMonEnvironment *env)
{
    char name[32], *file;
    ssize_t n;

    memset(env, 0, sizeof(*env));
    if (readList(pid, mem, env))
        return 0;
    env->isOfStart = 1;
    snprintf(name, sizeof(name), "/proc/%d/environ", (int)pid);
    file = malloc(EBPFMON_ENV_BYTES);
    n = file ? ebpfMonForeignReadFile(pid, name, FILE_SECONDS, file, EBPFMON_ENV_BYTES) : -1;
    if (n <= 0) {
        free(file);
        return -1;
    }
    env->text = file;
    env->size = (size_t)n;
    file[n] = 0;
    for (size_t at = 0; at < env->size; at += strlen(file + at) + 1)
        env->count++;
    return 0;
}

static void freeEnvironment(ebpfMonEnvironment *env)
{
    free(env->text);
    memset(env, 0, sizeof(*env));
}

/* The value of a variable; NULL: there is none. */
static const char *getEnvironment(const ebpfMonEnvironment *env, const char *name)
{
    size_t length = strlen(name);

    for (size_t at = 0; at < env->size; at += strlen(env->text + at) + 1)
        if (strncmp(env->text + at, name, length) == 0 && env->text[at + length] == '=')
            return env->text + at + length + 1;
    return NULL;
}

/* --- fields as text --- */

#define CHOICES_MAX 10000 /* of a menu, or of the device supports of a type */
#define STRING_MAX  256

#define LINK_INST_IO 12 /* types of links, of Base's link.h */
#define LINK_JSON    8

typedef union {
    int8_t i8; uint8_t u8; int16_t i16; uint16_t u16; int32_t i32; uint32_t u32; int64_t i64; uint64_t u64;
    float f; double d;
} number;

static int readString(ebpfMonMem *mem, uint64_t at, const ebpfMonField *field, char *text, size_t size)
{
    char raw[STRING_MAX];
    size_t n = field->size < sizeof(raw) ? field->size : sizeof(raw);

    if (ebpfMonMemRead(mem, at, raw, n))
        return -1;
    ebpfMonTextCopyBytes(text, size, raw, strnlen(raw, n));
    return 0;
}

static int readChoice(ebpfMonMem *mem, const ebpfMonField *field, unsigned index, char *text, size_t size)
{
    struct layoutMenu menu = {{0}};
    struct layoutDeviceMenu device = {0};
    uint64_t names;
    char raw[STRING_MAX];

    if (!field->ftPvt)
        return -1;
    if (field->type == ebpfMonDbfDevice ? ebpfMonMemRead(mem, field->ftPvt, &device, sizeof(device))
                                        : ebpfMonMemRead(mem, field->ftPvt, &menu, sizeof(menu)))
        return -1;
    names = field->type == ebpfMonDbfDevice ? device.papChoice : menu.papChoiceValue;
    if (index >= (unsigned)(field->type == ebpfMonDbfDevice ? device.nChoice : menu.nChoice) || index >= CHOICES_MAX)
        return -1;
    if (ebpfMonMemStr(mem, ebpfMonMemPtr(mem, names + 8u * index), raw, sizeof(raw)))
        return -1;
    ebpfMonTextCopy(text, size, raw);
    return 0;
}

static void formatReal(double value, int isFloat, char *text, size_t size)
{
    /* the shortest text that reads back as the same number */
    for (int digits = isFloat ? 6 : 15; digits <= 17; digits++) {
        double back = 0;

        snprintf(text, size, "%.*g", digits, value);
        sscanf(text, "%lf", &back);
        if (isFloat ? (float)back == (float)value : back == value)
            return;
    }
}

static int readNumber(ebpfMonMem *mem, uint64_t at, const ebpfMonField *field, char *text, size_t size)
{
    number n = {0};

    if (field->size > sizeof(n) || ebpfMonMemRead(mem, at, &n, field->size))
        return -1;
    switch (field->type) {
    case ebpfMonDbfChar:   snprintf(text, size, "%d", n.i8); return 0;
    case ebpfMonDbfUchar:  snprintf(text, size, "%u", n.u8); return 0;
    case ebpfMonDbfShort:  snprintf(text, size, "%d", n.i16); return 0;
    case ebpfMonDbfEnum:
    case ebpfMonDbfUshort: snprintf(text, size, "%u", n.u16); return 0;
    case ebpfMonDbfLong:   snprintf(text, size, "%" PRId32, n.i32); return 0;
    case ebpfMonDbfUlong:  snprintf(text, size, "%" PRIu32, n.u32); return 0;
    case ebpfMonDbfInt64:  snprintf(text, size, "%" PRId64, n.i64); return 0;
    case ebpfMonDbfUint64: snprintf(text, size, "%" PRIu64, n.u64); return 0;
    case ebpfMonDbfFloat:  formatReal(n.f, 1, text, size); return 0;
    case ebpfMonDbfDouble: formatReal(n.d, 0, text, size); return 0;
    default:               return readChoice(mem, field, n.u16, text, size); /* menu, device */
    }
}

/* Adds the modifiers behind the PV name, in the form of a database file (dbGetString in dbStaticLib.c). */
static void addModifiers(char *text, size_t size, int type, int mask)
{
    static const char *const severity[] = {"", " MS", " MSI", " MSS"};
    size_t length = strlen(text);
    const char *process = mask & EBPFMON_PVL_PP ? " PP" :
                          mask & EBPFMON_PVL_CP ? " CP" : mask & EBPFMON_PVL_CPP ? " CPP" :
                          mask & EBPFMON_PVL_CA ? " CA" : type == ebpfMonDbfFwdlink ? "" : " NPP";

    snprintf(text + length, size - length, "%s%s", process,
             type == ebpfMonDbfFwdlink ? "" : mask & EBPFMON_PVL_MSMODE ? severity[mask & EBPFMON_PVL_MSMODE] : " NMS");
}

/* A constant, a JSON link, and the parameters of a driver ("@…") have their text as the first member of the link's
 * value. */
static int readLink(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint64_t at, const ebpfMonField *field, char *text,
                    size_t size)
{
    char raw[EBPFMON_FIELD_TEXT];
    ebpfMonLink link;
    int isPv;

    if (ebpfMonLinkRead(mem, cat->base, at, &link))
        return -1;
    isPv = link.type == EBPFMON_LINK_PV || link.type == EBPFMON_LINK_PN || link.type == EBPFMON_LINK_DB ||
           link.type == EBPFMON_LINK_CA;
    text[0] = 0;
    if (!isPv && link.type != EBPFMON_LINK_CONSTANT && link.type != LINK_JSON && link.type != LINK_INST_IO)
        return -1; /* an address of VME, CAMAC or such a bus: numbers, not a text */
    if (!isPv && !link.value)
        return 0;
    at = isPv ? link.pvname : link.value;
    if (ebpfMonMemStr(mem, at, raw, sizeof(raw)) && ebpfMonMemRead(mem, at, raw, sizeof(raw)))
        return -1; /* a text that is only longer than "raw" is cut */
    snprintf(text, size, "%s", link.type == LINK_INST_IO ? "@" : "");
    ebpfMonTextCopyBytes(text + strlen(text), size - strlen(text), raw, sizeof(raw));
    if (isPv)
        addModifiers(text, size, field->type, link.pvlMask);
    return 0;
}

int ebpfMonFieldTextRead(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint64_t precord, const ebpfMonField *field,
                         char *text, size_t size)
{
    uint64_t at = precord + field->offset;

    if (field->type == ebpfMonDbfString)
        return readString(mem, at, field, text, size);
    if (field->type == ebpfMonDbfInlink || field->type == ebpfMonDbfOutlink || field->type == ebpfMonDbfFwdlink)
        return readLink(mem, cat, at, field, text, size);
    if (field->type == ebpfMonDbfNoaccess)
        return -1;
    return readNumber(mem, at, field, text, size);
}

const char *ebpfMonFieldTextReadNamed(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint32_t record, const char *name,
                                      char *text, size_t size)
{
    const ebpfMonRecord *r = &cat->rec[record];
    const ebpfMonField *f = ebpfMonCatalogueFieldNamed(cat, r->rtype, name);

    text[0] = 0;
    if (f && mem && ebpfMonFieldTextRead(mem, cat, r->addr, f, text, size))
        text[0] = 0;
    return text;
}

/* --- reading --- */

#define EBPFMON_INV_VALUE   16384    /* bytes of a value; a longer one is cut and ends in "..." */

#define PORTION    2000  /* records that may be read with one budget of ebpfMonMem */
#define TYPES_MAX  4096
#define INFOS_MAX  1000  /* info tags of a record. A longer list is taken for damaged memory */
#define TEXT_BYTES (1u << 20) /* all texts of one record */

typedef struct { /* the layout of dbInfoNode (dbBase.h) */
    struct layoutNode node;
    uint64_t name, string;
} infoNode;

typedef struct {
    uint32_t rec, name;
} aliasOf;

typedef struct {
    const ebpfMonInventoryIoc *ioc;
    const ebpfMonInventorySink *sink;
    const char *const *fieldNames;
    ebpfMonWorker *worker;
    ebpfMonMem *mem;
    aliasOf   *alias;      /* sorted by record */
    unsigned   aliases;
    ebpfMonInventoryRecord record; /* the record that is read now */
    char      *text;       /* TEXT_BYTES: its texts */
    size_t     used;       /* bytes of "text" */
    unsigned   done;       /* records that were read */
    unsigned   nodes;      /* members of the lists of records, also aliases */
    char      *why;
    size_t     whySize;
} recordReader;

/* Sets "why" and returns -1. */
static int setFailure(recordReader *r, const char *format, ...) EPICS_PRINTF_STYLE(2, 3);

static int setFailure(recordReader *r, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(r->why, r->whySize, format, args);
    va_end(args);
    return -1;
}

static int compareAliases(const void *a, const void *b)
{
    const aliasOf *x = a, *y = b;

    return x->rec != y->rec ? (x->rec < y->rec ? -1 : 1) : (x->name > y->name) - (x->name < y->name);
}

static int collectAliases(recordReader *r)
{
    const ebpfMonCatalogue *cat = r->ioc->cat;

    r->alias = calloc(cat->aliases + 1u, sizeof(*r->alias));
    if (!r->alias)
        return setFailure(r, "out of memory");
    for (uint32_t i = 0; i < cat->nameCount && r->aliases < cat->aliases; i++)
        if (cat->names[i].rec < cat->count && cat->names[i].name != cat->rec[cat->names[i].rec].name)
            r->alias[r->aliases++] = (aliasOf){cat->names[i].rec, cat->names[i].name};
    qsort(r->alias, r->aliases, sizeof(*r->alias), compareAliases);
    return 0;
}

static void addAliases(recordReader *r)
{
    unsigned low = 0, high = r->aliases;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (r->alias[middle].rec < r->record.index)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < r->aliases && r->alias[low].rec == r->record.index && r->record.aliases < EBPFMON_INV_ALIASES; low++)
        r->record.alias[r->record.aliases++] = r->ioc->cat->pool + r->alias[low].name;
}

/* Returns room for a text of this record; NULL: there is none left. */
static char *takeRoom(recordReader *r, size_t size)
{
    char *at = r->text + r->used;

    if (r->used + size > TEXT_BYTES)
        return NULL;
    r->used += size;
    return at;
}

/* Reads a text of the IOC and cleans it; it is valid until the next record. A very long text is cut. NULL: the text
 * cannot be read, or is empty. */
static const char *keepText(recordReader *r, uint64_t at)
{
    char raw[EBPFMON_INV_VALUE], clean[EBPFMON_INV_VALUE], *kept;
    int length = ebpfMonMemStr(r->mem, at, raw, sizeof(raw));

    if (length < 0) { /* it cannot be read, or it is longer than "raw" */
        if (ebpfMonMemRead(r->mem, at, raw, sizeof(raw)))
            return NULL;
        memcpy(raw + sizeof(raw) - 4, "...", 4);
    }
    if (!raw[0])
        return NULL;
    ebpfMonTextCopySpaces(clean, sizeof(clean), raw);
    kept = takeRoom(r, strlen(clean) + 1);
    return kept ? strcpy(kept, clean) : NULL;
}

static int addInfos(recordReader *r, const struct layoutList *list)
{
    uint64_t at = list->first;

    if (list->count < 0 || list->count > INFOS_MAX)
        return setFailure(r, "the info tags of %s cannot be believed", r->record.name);
    for (int32_t i = 0; i < list->count && at && r->record.infos < EBPFMON_INV_INFOS; i++) {
        ebpfMonInventoryPair *info = &r->record.info[r->record.infos];
        infoNode node;

        if (ebpfMonMemRead(r->mem, at, &node, sizeof(node)))
            return setFailure(r, "the info tags of %s cannot be read", r->record.name);
        info->name = keepText(r, node.name);
        info->value = info->name ? keepText(r, node.string) : NULL;
        r->record.infos += info->value != NULL;
        at = node.node.next;
    }
    return 0;
}

static void addFields(recordReader *r)
{
    const ebpfMonRecord *rec = &r->ioc->cat->rec[r->record.index];
    char clean[EBPFMON_FIELD_TEXT];

    for (const char *const *name = r->fieldNames; *name && r->record.fields < EBPFMON_INV_FIELDS; name++) {
        const ebpfMonField *field = ebpfMonCatalogueFieldNamed(r->ioc->cat, rec->rtype, *name);
        ebpfMonInventoryPair *pair = &r->record.field[r->record.fields];
        char *kept;

        if (!field || ebpfMonFieldTextRead(r->mem, r->ioc->cat, rec->addr, field, clean, sizeof(clean)) || !clean[0])
            continue;
        kept = takeRoom(r, strlen(clean) + 1);
        if (!kept)
            continue;
        pair->name = *name;
        pair->value = strcpy(kept, clean);
        r->record.fields++;
    }
}

static int readRecord(recordReader *r, const struct layoutRecordNode *node)
{
    const ebpfMonCatalogue *cat = r->ioc->cat;
    long index = ebpfMonCatalogueFindAddr(cat, node->precord);

    if (index < 0)
        return setFailure(r, "its database changed while it was read");
    r->used = 0;
    r->record.index = (uint32_t)index;
    r->record.aliases = r->record.infos = r->record.fields = 0;
    r->record.name = ebpfMonCatalogueName(cat, r->record.index);
    r->record.type = cat->rtype[cat->rec[index].rtype].name;
    addAliases(r);
    if (addInfos(r, &node->infoList))
        return -1;
    addFields(r);
    if (++r->done > cat->count) /* a list without an end would fill the disk */
        return setFailure(r, "its lists have more than the %u records that it had", cat->count);
    if (r->done % PORTION == 0) {
        ebpfMonMemFlush(r->mem); /* begins a new budget */
        ebpfMonWorkerGiveSign(r->worker);
        if (r->worker && ebpfMonWorkerIsStopping(r->worker))
            return setFailure(r, "the monitor ends");
    }
    return r->sink->record(r->sink->arg, &r->record) ? -1 : 0;
}

static int readNodes(recordReader *r, uint64_t listAt)
{
    struct layoutList list;
    uint64_t at, prev = 0;

    if (ebpfMonMemRead(r->mem, listAt, &list, sizeof(list)) || list.count < 0 || list.count > EBPFMON_RECORDS_LIMIT)
        return setFailure(r, "a list of records cannot be read");
    at = list.first;
    for (int32_t i = 0; i < list.count && at; i++) {
        struct layoutRecordNode node;

        if (ebpfMonMemRead(r->mem, at, &node, sizeof(node)))
            return setFailure(r, "a record cannot be read");
        if (node.prev != prev || ++r->nodes > EBPFMON_RECORDS_LIMIT)
            return setFailure(r, "a list of records changed while it was read");
        prev = at;
        at = node.next;
        if (node.precord && !(node.flags & EBPFMON_ISALIAS) && readRecord(r, &node))
            return -1;
    }
    return 0;
}

static int readTypes(recordReader *r)
{
    uint64_t base = ebpfMonMemPtr(r->mem, r->ioc->pdbbase), at;
    struct layoutList list;

    if (!base || ebpfMonMemRead(r->mem, base + EBPFMON_RECORDTYPELIST, &list, sizeof(list)) || list.count < 0 ||
        list.count > TYPES_MAX)
        return setFailure(r, "its memory cannot be read");
    at = list.first;
    for (int32_t i = 0; i < list.count && at; i++) {
        uint64_t next = ebpfMonMemPtr(r->mem, at);

        if (readNodes(r, at + EBPFMON_RecordType_recList))
            return -1;
        at = next;
    }
    if (r->done != r->ioc->cat->count)
        return setFailure(r, "only %u of %u records could be read", r->done, r->ioc->cat->count);
    return 0;
}

/* If a record type does not have a field, it is left out. */
const char *const ebpfMonInventoryFields[] = {
    "DESC", "EGU", "PREC", "DTYP", "SCAN", "PINI", "ASG", "FTVL", "NELM", "HOPR", "LOPR", "DRVH", "DRVL", "HIHI",
    "HIGH", "LOW", "LOLO", "HHSV", "HSV", "LSV", "LLSV", "ZNAM", "ONAM", "CALC", "OCAL", "DOL", "INP", "OUT",
    "FLNK", "SIOL", "INPA", "INPB", "INPC", "INPD", "INPE", "INPF", "INPG", "INPH", "INPI", "INPJ", "INPK", "INPL",
    "INPM", "INPN", "INPO", "INPP", "INPQ", "INPR", "INPS", "INPT", "INPU", "OUTA", "OUTB", "OUTC", "OUTD", "OUTE",
    "OUTF", "OUTG", "OUTH", "OUTI", "OUTJ", "OUTK", "OUTL", "OUTM", "OUTN", "OUTO", "OUTP", NULL
};

const char *const ebpfMonInventoryVariables[] = {
    "EPICS_BASE", "TOP", "ARCH", "IOC", "EPICS_CA_ADDR_LIST", "EPICS_CA_MAX_ARRAY_BYTES", "PWD", "ENGINEER", "LOCATION",
    "CONTACT", NULL
};

static void addPairs(ebpfMonJson *json, const char *key, const ebpfMonInventoryPair *pair, unsigned count)
{
    if (!count)
        return;
    ebpfMonJsonOpenObject(json, key);
    for (unsigned i = 0; i < count; i++)
        ebpfMonJsonAddCleanText(json, pair[i].name, pair[i].value);
    ebpfMonJsonCloseObject(json);
}

void ebpfMonInventoryRecordAddJson(const ebpfMonInventoryRecord *record, ebpfMonJson *json)
{
    ebpfMonJsonAddText(json, "type", record->type);
    if (record->aliases) {
        ebpfMonJsonOpenList(json, "aliases");
        for (unsigned i = 0; i < record->aliases; i++)
            ebpfMonJsonWriteText(json, record->alias[i]);
        ebpfMonJsonCloseList(json);
    }
    addPairs(json, "info", record->info, record->infos);
    addPairs(json, "fields", record->field, record->fields);
}

int ebpfMonInventoryReadRecords(const ebpfMonInventoryIoc *ioc, const char *const *fieldNames, ebpfMonWorker *worker,
                                const ebpfMonInventorySink *sink, char *why, size_t size)
{
    recordReader *r = calloc(1, sizeof(*r));
    int status = -1;

    snprintf(why, size, "out of memory");
    if (!r)
        return -1;
    *r = (recordReader){ .ioc = ioc, .sink = sink, .fieldNames = fieldNames, .worker = worker, .why = why,
                         .whySize = size };
    r->text = malloc(TEXT_BYTES);
    r->mem = ebpfMonMemNew(ioc->pid);
    if (r->text && r->mem && collectAliases(r) == 0)
        status = readTypes(r);
    if (status == 0)
        why[0] = 0;
    ebpfMonMemFree(r->mem);
    free(r->alias);
    free(r->text);
    free(r);
    return status;
}

/* --- variables --- */

#define VALUE_SIZE 1024
#define SOCKETS_MAX 256
#define CA_PORT    5064
#define PVA_PORT   5075

static void passVariable(const ebpfMonInventorySink *sink, const char *name, const char *value)
{
    char clean[VALUE_SIZE];

    if (!value || !value[0])
        return;
    ebpfMonTextCopy(clean, sizeof(clean), value);
    sink->variable(sink->arg, name, clean);
}

/* "number" 0: passes nothing. */
static void passNumber(const ebpfMonInventorySink *sink, const char *name, unsigned number)
{
    char made[16];

    snprintf(made, sizeof(made), "%u", number);
    passVariable(sink, name, number ? made : NULL);
}

/* Passes the time at which the process started. It is computed from the age of the process, because the clock may
 * have been set since. Both clocks are read with their nanoseconds, so that it is the same second each time. */
static void passStart(const ebpfMonInventoryIoc *ioc, const ebpfMonInventorySink *sink)
{
    struct timespec sinceBoot, now;
    double ticks = (double)sysconf(_SC_CLK_TCK);
    char text[32];
    struct tm utc;
    time_t began;

    if (clock_gettime(CLOCK_BOOTTIME, &sinceBoot) || clock_gettime(CLOCK_REALTIME, &now))
        return;
    began = (time_t)((double)(now.tv_sec - sinceBoot.tv_sec) + 1e-9 * (double)(now.tv_nsec - sinceBoot.tv_nsec) +
                     (double)ioc->start / ticks);
    if (gmtime_r(&began, &utc) && strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc))
        passVariable(sink, "IOC_STARTED", text);
}

typedef struct {
    ebpfMonServerSocket *list;
    unsigned count;
} sockets;

static int isListening(const sockets *s, unsigned port)
{
    for (unsigned i = 0; i < s->count; i++)
        if (ntohs(s->list[i].port) == port)
            return 1;
    return 0;
}

/* Completes a port number if its last digit is missing. rsrv_init (caservertask.c) up to Base 7.0.8.1 (mended by commit
 * 772c10d90) cuts RSRV_SERVER_PORT to four digits (epicsSnprintf with sizeof(buf) - 1): 50641 becomes 5064. Returns
 * the port that begins with these digits and at which the process listens. 0: there is none, or there are several. */
static unsigned findWhole(const sockets *s, unsigned cut)
{
    unsigned found = 0;

    for (unsigned i = 0; i < s->count; i++) {
        unsigned port = ntohs(s->list[i].port);

        if (port / 10 != cut || port == found)
            continue;
        if (found)
            return 0;
        found = port;
    }
    return found;
}

/* The port that the environment of the IOC sets, or the usual one. The first name has precedence. */
static unsigned findConfigured(const ebpfMonEnvironment *env, const char *const names[2], unsigned usual)
{
    unsigned port = usual;

    for (int i = 1; i >= 0; i--) {
        const char *set = getEnvironment(env, names[i]);

        if (set && set[0])
            sscanf(set, "%u", &port);
    }
    return port;
}

/* Passes the port of a server. Base sets RSRV_SERVER_PORT and PVAS_SERVER_PORT in its environment (caservertask.c,
 * PVAServerRegister.cpp). An older Base does not; then it is the configured port. Nothing is passed if the process
 * does not listen at this port. */
static void passPort(const sockets *s, const ebpfMonEnvironment *env, const char *name, const char *const configured[2],
                     unsigned usual, const ebpfMonInventorySink *sink)
{
    const char *text = getEnvironment(env, name);
    unsigned port = 0;

    if (!text)
        port = findConfigured(env, configured, usual);
    else if (sscanf(text, "%u", &port) == 1 && !isListening(s, port))
        port = findWhole(s, port);
    passNumber(sink, name, isListening(s, port) ? port : 0);
}

static void passPorts(const ebpfMonInventoryIoc *ioc, const ebpfMonEnvironment *env, const ebpfMonInventorySink *sink)
{
    static const char *const ca[] = {"EPICS_CAS_SERVER_PORT", "EPICS_CA_SERVER_PORT"};
    static const char *const pva[] = {"EPICS_PVAS_SERVER_PORT", "EPICS_PVA_SERVER_PORT"};
    sockets open = {0};

    if (ioc->packetServers) { /* packets have proven its ports */
        passNumber(sink, "RSRV_SERVER_PORT", ioc->caPort);
        passNumber(sink, "PVAS_SERVER_PORT", ioc->pvaPort);
        return;
    }
    open.count = (unsigned)ebpfMonServerSocketsRead(&ioc->pid, 1, 1, SOCKETS_MAX, NULL, &open.list);
    passPort(&open, env, "RSRV_SERVER_PORT", ca, CA_PORT, sink);
    passPort(&open, env, "PVAS_SERVER_PORT", pva, PVA_PORT, sink);
    free(open.list);
}

static int isMade(const char *name)
{
    static const char *const made[] = {"EPICS_VERSION", "IOCNAME", "HOSTNAME", "IOC_STARTED", "RSRV_SERVER_PORT",
                                       "PVAS_SERVER_PORT", NULL};

    for (const char *const *m = made; *m; m++)
        if (strcmp(*m, name) == 0)
            return 1;
    return 0;
}

static void passMore(const ebpfMonEnvironment *env, const char *more, const ebpfMonInventorySink *sink)
{
    char name[64];
    int length;

    for (; sscanf(more, " %63s%n", name, &length) == 1; more += length)
        if (!isMade(name))
            passVariable(sink, name, getEnvironment(env, name));
}

void ebpfMonInventoryReadVariables(const ebpfMonInventoryIoc *ioc, const char *const *names, const char *more,
                                   const ebpfMonInventorySink *sink)
{
    ebpfMonMem *mem = ebpfMonMemNew(ioc->pid);
    ebpfMonEnvironment env = {0};
    const char *host, *name;
    char own[256] = "", version[sizeof("EPICS ") + sizeof(ioc->version)];

    if (mem)
        readEnvironment(ioc->pid, mem, &env);
    gethostname(own, sizeof(own) - 1);
    host = getEnvironment(&env, "HOSTNAME");
    name = getEnvironment(&env, "IOCNAME");
    snprintf(version, sizeof(version), "EPICS %s", ioc->version); /* as Base's EPICS_VERSION_STRING */
    passVariable(sink, "EPICS_VERSION", ioc->version[0] ? version : NULL);
    passVariable(sink, "IOCNAME", name && name[0] ? name : ioc->name);
    passVariable(sink, "HOSTNAME", host && host[0] ? host : own);
    passStart(ioc, sink);
    passPorts(ioc, &env, sink);
    for (; *names; names++)
        if (!isMade(*names))
            passVariable(sink, *names, getEnvironment(&env, *names));
    passMore(&env, more, sink);
    freeEnvironment(&env);
    ebpfMonMemFree(mem);
}

/* --- the IOCs to read --- */

static int isReady(ebpfMonTargets *targets, const ebpfMonTarget *t)
{
    return !t->gone && t->running && t->cat && t->wantedLevel > ebpfMonLevelOff && ebpfMonTargetIsCredible(targets, t);
}

static ebpfMonInventoryIoc makeOther(ebpfMonPacketServers *packetServers, const ebpfMonPacketServer *server)
{
    ebpfMonInventoryIoc ioc = { .pid = server->pid, .start = server->start, .iocId = server->id,
                                .packetServers = packetServers, .caPort = server->caPort, .pvaPort = server->pvaPort };

    memcpy(ioc.name, server->name, sizeof(ioc.name));
    return ioc;
}

ebpfMonInventoryIoc *ebpfMonIocListTake(ebpfMonTargets *targets, ebpfMonPacketServers *packetServers, unsigned *count)
{
    ebpfMonPacketServer other[EBPFMON_PACKET_SERVERS];
    unsigned others = packetServers ? ebpfMonPacketServersCopy(packetServers, other) : 0;
    ebpfMonInventoryIoc *list = NULL;
    unsigned all = others, n = 0;

    ebpfMonTargetsLock(targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next)
        all++;
    if (all)
        list = calloc(all, sizeof(*list));
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t && list; t = t->next) {
        if (!isReady(targets, t))
            continue;
        list[n] = (ebpfMonInventoryIoc){ .pid = t->pid, .start = t->start, .iocId = t->iocId,
                                         .pdbbase = t->image.pdbbase, .cat = ebpfMonCatalogueHold(t->cat) };
        strcpy(list[n].name, t->name);
        strcpy(list[n].version, t->version);
        n++;
    }
    ebpfMonTargetsUnlock(targets);
    for (unsigned i = 0; i < others && list; i++)
        list[n++] = makeOther(packetServers, &other[i]);
    *count = n;
    return list;
}
