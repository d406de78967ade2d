/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsString.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "code/elfSymbols.h"
#include "shared/functionSite.h"
#include "code/machine.h"
#include "code/mapping.h"
#include "code/symbolFile.h"
#include "shared/usdt.h"
#include "host/foreign.h"
#include "host/memory.h"

#define LOOK_SECONDS 2.0
#define CODE_MAX     4096 /* bytes of a function, to see its branches */
#define CODE_UNSIZED 64   /* … whose symbol does not say how long it is */

typedef struct {
    pid_t pid;
    ebpfMonFunctionWanted wanted;
    /* the result */
    ebpfMonFunctionPlaces *places;
    unsigned room;
    int      isTooMany;
    unsigned objects; /* files that match the pattern */
    int      err;     /* why one of them, or the list of them, cannot be read */
    int      isFuse;
    uint64_t hash;    /* of the mappings of these files */
    char     refusal[160]; /* why a USDT probe that is there cannot be had */
} Look;

static int isWanted(const Look *look, const char *path)
{
    const char *pattern = look->wanted.object, *name = strrchr(path, '/');

    return epicsStrGlobMatch(strchr(pattern, '/') || !name ? path : name + 1, pattern);
}

/* The exact place that the caller asks for; its instruction is not looked at. */
static void setExact(ebpfMonSite *site, uint64_t offset, uint64_t vaddr)
{
    *site = (ebpfMonSite){ .cls = ebpfMonSiteStepped, .offset = offset, .vaddr = vaddr, .canReturn = 1 };
    snprintf(site->insn, sizeof(site->insn), "offset");
}

/* Adds a place. NULL: there is no room. */
static ebpfMonFunctionPlace *addPlace(Look *look, const char *path, const ebpfMonMapping *map, const char *name,
                                      const ebpfMonSite *site)
{
    unsigned room = look->room ? 2 * look->room : 4;
    ebpfMonFunctionPlace *place;

    if (look->places->count == EBPFMON_FUNCTION_SITES) {
        look->isTooMany = 1;
        return NULL;
    }
    if (look->places->count == look->room) {
        void *more = realloc(look->places, sizeof(*look->places) + room * sizeof(*place));

        if (!more)
            return NULL;
        look->places = more;
        look->room = room;
    }
    place = &look->places->place[look->places->count++];
    memset(place, 0, sizeof(*place));
    snprintf(place->path, sizeof(place->path), "%s", path);
    snprintf(place->name, sizeof(place->name), "%s", name);
    place->dev = map->dev;
    place->ino = map->ino;
    place->address = map->start + (site->offset - map->offset);
    place->site = *site;
    return place;
}

/* Where a function at "vaddr" can be probed. 0, or -1: nowhere. */
static int pickFunctionSite(const Look *look, ebpfMonElfFile *file, uint64_t vaddr, uint64_t codeSize,
                            ebpfMonSite *site)
{
    uint8_t code[CODE_MAX];
    uint64_t offset;
    size_t len;

    if (ebpfMonElfOffset(file, vaddr, PF_X, &offset))
        return -1;
    if (look->wanted.offset || !ebpfMonMachineFind(file->machine)) {
        setExact(site, offset + look->wanted.offset, vaddr + look->wanted.offset);
        return 0;
    }
    len = codeSize ? codeSize : CODE_UNSIZED;
    len = ebpfMonElfRead(file, vaddr, code, len < sizeof(code) ? len : sizeof(code));
    ebpfMonMachineFind(file->machine)->pickSite(code, len, look->wanted.args, look->wanted.needReturn, site);
    site->offset = offset + site->skip;
    site->vaddr = vaddr + site->skip;
    return site->cls == ebpfMonSiteNone || (look->wanted.needReturn && !site->canReturn) ? -1 : 0;
}

/* Adds the places of all functions that match, without the parts that the compiler has moved away (".cold"). */
static void findMatching(Look *look, ebpfMonElfFile *file, const char *path, const ebpfMonMapping *map)
{
    ebpfMonElfFunction *found = malloc(EBPFMON_FUNCTION_SITES * sizeof(*found));
    unsigned count;
    ebpfMonSite site;

    if (!found)
        return;
    count = ebpfMonElfFunctionsFind(file, look->wanted.symbol, found, EBPFMON_FUNCTION_SITES);
    look->isTooMany |= count > EBPFMON_FUNCTION_SITES;
    for (unsigned i = 0; i < count && !look->isTooMany; i++)
        if (!strstr(found[i].name, ".cold") &&
            pickFunctionSite(look, file, found[i].vaddr, found[i].size, &site) == 0 &&
            !addPlace(look, path, map, found[i].name, &site))
            break;
    free(found);
}

/* A file that is looked at for USDT probes. */
typedef struct {
    Look *look;
    ebpfMonElfFile *file;
    const char *path;
    const ebpfMonMapping *map;
    unsigned before; /* places of other files */
} Probed;

/* Two notes may name one place, which is probed once. */
static int isNew(const Probed *p, const ebpfMonSite *site)
{
    const ebpfMonFunctionPlaces *places = p->look->places;

    for (unsigned i = p->before; i < places->count; i++)
        if (places->place[i].site.offset == site->offset)
            return 0;
    return 1;
}

/* Nonzero ends the search: one place that cannot be had would make all counts wrong. */
static int takeUsdt(void *arg, const ebpfMonUsdtProbe *probe)
{
    Probed *p = arg;
    struct ebpfMonQuerySite operands;
    ebpfMonFunctionPlace *place;
    uint64_t bias, semaphore;
    ebpfMonSite site;
    char why[120] = "the file is not mapped as it says";

    if (ebpfMonMappingBias(p->file->segment, p->file->nSegments, p->map, &bias) ||
        ebpfMonUsdtPlace(p->file, probe, p->look->wanted.args, bias, &site, &semaphore, &operands, why, sizeof(why))) {
        snprintf(p->look->refusal, sizeof(p->look->refusal), "%.40s: %s", probe->name, why);
        return 1;
    }
    if (!isNew(p, &site))
        return 0;
    place = addPlace(p->look, p->path, p->map, probe->name, &site);
    if (!place)
        return 1;
    place->semaphore = semaphore;
    place->operands = operands;
    return 0;
}

/* The places in one file. */
static void findPlaces(Look *look, ebpfMonElfFile *file, const char *path, const ebpfMonMapping *map)
{
    const char *name = look->wanted.symbol;
    ebpfMonElfSymbol symbol;
    ebpfMonSite site;

    if (look->wanted.isUsdt) {
        Probed probed = { look, file, path, map, look->places->count };

        ebpfMonUsdtFind(file, name, takeUsdt, &probed);
    } else if (!name[0]) {
        setExact(&site, look->wanted.offset, 0);
        addPlace(look, path, map, "", &site);
    } else if (ebpfMonFunctionIsPattern(name)) {
        findMatching(look, file, path, map);
    } else if (ebpfMonElfFind(file, &name, 1, &symbol) &&
               pickFunctionSite(look, file, symbol.vaddr, symbol.size, &site) == 0) {
        addPlace(look, path, map, name, &site);
    }
}

/* A FUSE file is not for us: see image.c. */
static void lookForFunctions(Look *look, const ebpfMonMapping *map)
{
    char path[160];
    ebpfMonElfFile file;
    struct statfs fs;
    struct stat st;
    int fd = -1;

    if (ebpfMonMappingFindPath(look->pid, map, path, sizeof(path), &st) == 0)
        fd = ebpfMonForeignOpenFile(path);
    if (fd < 0 || fstatfs(fd, &fs)) {
        look->err = errno;
    } else if (fs.f_type == FUSE_SUPER_MAGIC) {
        look->isFuse = 1;
    } else if (ebpfMonElfOpen(&file, fd) == 0) {
        look->objects++;
        findPlaces(look, &file, path, map);
        ebpfMonElfClose(&file);
    }
    if (fd >= 0)
        close(fd);
}

/* The files of the process that match, each once: its mappings follow one another. */
static void lookAtFiles(void *data)
{
    Look *look = data;
    ebpfMonMappings mappings;
    ebpfMonMapping map;
    dev_t dev = 0;
    ino_t ino = 0;

    if (ebpfMonMappingsOpen(&mappings, look->pid)) {
        look->err = errno;
        return;
    }
    while (!look->isTooMany && !look->refusal[0] && ebpfMonMappingsReadNext(&mappings, &map)) {
        if (map.dev == dev && map.ino == ino)
            continue;
        dev = map.dev;
        ino = map.ino;
        if (isWanted(look, map.path))
            lookForFunctions(look, &map);
    }
    ebpfMonMappingsClose(&mappings);
}

/* FNV-1a. */
static uint64_t addToHash(uint64_t hash, uint64_t number)
{
    for (unsigned i = 0; i < sizeof(number); i++)
        hash = (hash ^ (number >> 8 * i & 0xff)) * 0x100000001b3ull;
    return hash;
}

static void hashMappings(void *data)
{
    uint64_t hash = 0xcbf29ce484222325ull;
    Look *look = data;
    ebpfMonMappings mappings;
    ebpfMonMapping map;

    if (ebpfMonMappingsOpen(&mappings, look->pid))
        return;
    while (ebpfMonMappingsReadNext(&mappings, &map)) {
        if (!isWanted(look, map.path))
            continue;
        hash = addToHash(addToHash(hash, map.start), map.offset);
        hash = addToHash(addToHash(hash, (uint64_t)map.dev), (uint64_t)map.ino);
    }
    ebpfMonMappingsClose(&mappings);
    look->hash = hash;
}

static void describeFailure(const Look *look, char *why, size_t size)
{
    if (look->refusal[0])
        snprintf(why, size, "%s", look->refusal);
    else if (look->isTooMany)
        snprintf(why, size, "more than %d %s match \"%s\"", EBPFMON_FUNCTION_SITES,
                 look->wanted.isUsdt ? "places" : "functions", look->wanted.symbol);
    else if (look->objects && look->wanted.isUsdt)
        snprintf(why, size, "no file like \"%s\" has a USDT probe %s", look->wanted.object, look->wanted.symbol);
    else if (look->objects)
        snprintf(why, size, "no file like \"%s\" has a function %s where it can be probed", look->wanted.object,
                 look->wanted.symbol);
    else if (look->isFuse)
        snprintf(why, size, "\"%s\" lies in a FUSE file system, where no probe is set", look->wanted.object);
    else if (look->err)
        snprintf(why, size, "\"%s\" cannot be read: %s", look->wanted.object, strerror(look->err));
    else
        snprintf(why, size, "no file like \"%s\" is mapped", look->wanted.object);
}

static void dropFunctionLook(void *data)
{
    Look *look = data;

    free(look->places);
    free(look);
}

int ebpfMonFunctionIsPattern(const char *symbol)
{
    return strpbrk(symbol, "*?") != NULL;
}

uint64_t ebpfMonFunctionMappings(pid_t pid, const ebpfMonFunctionWanted *wanted)
{
    static const ebpfMonForeignJob job = { hashMappings, dropFunctionLook };
    Look *look = calloc(1, sizeof(*look));
    uint64_t hash;

    if (!look)
        return 0;
    look->pid = pid;
    look->wanted = *wanted;
    if (ebpfMonForeignRun(pid, LOOK_SECONDS, &job, look))
        return 0;
    hash = look->hash;
    dropFunctionLook(look);
    return hash;
}

ebpfMonFunctionPlaces *ebpfMonFunctionFind(pid_t pid, const ebpfMonFunctionWanted *wanted, char *why, size_t size)
{
    static const ebpfMonForeignJob job = { lookAtFiles, dropFunctionLook };
    Look *look = calloc(1, sizeof(*look));
    ebpfMonFunctionPlaces *places = NULL;

    why[0] = 0;
    if (look)
        look->places = calloc(1, sizeof(*look->places));
    if (!look || !look->places) {
        free(look);
        snprintf(why, size, "out of memory");
        return NULL;
    }
    look->pid = pid;
    look->wanted = *wanted;
    if (ebpfMonForeignRun(pid, LOOK_SECONDS, &job, look)) {
        snprintf(why, size, "its files do not answer");
        return NULL;
    }
    if (look->places->count && !look->isTooMany && !look->refusal[0]) {
        places = look->places;
        look->places = NULL;
    } else {
        describeFailure(look, why, size);
    }
    dropFunctionLook(look);
    return places;
}

/* --- code that is known by its address --- */

#define LOOK_SECONDS 2.0
#define PROLOGUE_MAX 64   /* bytes of a function: its prologue */

typedef struct {
    pid_t    pid;
    uint64_t address;
    unsigned args;
    int      needReturn;
    /* the result */
    ebpfMonFunctionPlace place;
    uint64_t found;
} PlaceLook;

/* Calls "each" for the mapped code of the process, until it returns nonzero. */
static void visitMappings(PlaceLook *look, int (*each)(PlaceLook *look, const ebpfMonMapping *map))
{
    ebpfMonMappings mappings;
    ebpfMonMapping map;

    if (ebpfMonMappingsOpen(&mappings, look->pid))
        return;
    while (ebpfMonMappingsReadNext(&mappings, &map) && !each(look, &map))
        ;
    ebpfMonMappingsClose(&mappings);
}

/* --- code ----------------------------------------------------------------------------------------- */

static void pickSite(PlaceLook *look, size_t room)
{
    ebpfMonSite *site = &look->place.site;
    uint64_t offset = site->offset;

    uint8_t code[PROLOGUE_MAX];
    size_t len = room < sizeof(code) ? room : sizeof(code);

    if (ebpfMonMemReadNow(look->pid, look->address, code, len))
        return;
    ebpfMonMachineHost()->pickSite(code, len, look->args, look->needReturn, site);
    site->offset = offset + site->skip;
    look->found = site->cls != ebpfMonSiteNone && (!look->needReturn || site->canReturn);
}

static int takeCode(PlaceLook *look, const ebpfMonMapping *map)
{
    struct stat st;

    if (look->address < map->start || look->address >= map->end)
        return 0;
    if (ebpfMonMappingFindPath(look->pid, map, look->place.path, sizeof(look->place.path), &st))
        return 1;
    look->place.site.offset = look->address - map->start + map->offset;
    pickSite(look, (size_t)(map->end - look->address));
    return 1;
}

static void findCode(void *data)
{
    visitMappings(data, takeCode);
}

int ebpfMonCodePlaceFind(pid_t pid, uint64_t address, unsigned args, int needReturn, ebpfMonFunctionPlace *place)
{
    static const ebpfMonForeignJob job = { findCode, free };
    PlaceLook *look = calloc(1, sizeof(*look));
    int found;

    if (!look)
        return -1;
    *look = (PlaceLook){ .pid = pid, .address = address, .args = args, .needReturn = needReturn };
    if (ebpfMonForeignRun(pid, LOOK_SECONDS, &job, look))
        return -1;
    *place = look->place;
    found = look->found != 0;
    free(look);
    return found ? 0 : -1;
}

/* --- variables ------------------------------------------------------------------------------------ */

/* The difference between addresses in the process and vaddrs of the file, by the segment that is mapped here. */
static int findBias(const ebpfMonElfFile *file, const ebpfMonMapping *map, uint64_t *bias)
{
    for (unsigned i = 0; i < file->nSegments; i++) {
        const ebpfMonElfSegment *s = &file->segment[i];

        if ((s->flags & PF_X) && map->offset <= s->offset && s->offset - map->offset < map->end - map->start) {
            *bias = map->start - map->offset + s->offset - s->vaddr;
            return 0;
        }
    }
    return -1;
}

/* The look for variables; its other members stand in "place". */
typedef struct {
    PlaceLook place;
    unsigned count;     /* the last name is the anchor; without one, it is the only name */
    char     name[EBPFMON_VARIABLES_MAX + 1][64];
    ebpfMonSymbolPlaces symbols;
    /* the result */
    unsigned known;
    ebpfMonVariable found[EBPFMON_VARIABLES_MAX + 1];
} VariableLook;

/* A file without symbols of its own defines at most the anchor; a program not even that. */
static unsigned searchSymbols(VariableLook *look, ebpfMonElfFile *file, ebpfMonElfSymbol *symbol)
{
    const char *names[EBPFMON_VARIABLES_MAX + 1];
    ebpfMonSymbolSearch search = { 0 };
    unsigned n, last = look->count - 1;

    for (unsigned i = 0; i < look->count; i++)
        names[i] = look->name[i];
    n = ebpfMonElfFind(file, names, look->count, symbol);
    while (last && n <= 1 && (symbol[last].vaddr || ebpfMonElfIsProgram(file)) &&
           ebpfMonSymbolFileAdd(file, &look->symbols, &search))
        n = ebpfMonElfFind(file, names, look->count, symbol);
    ebpfMonSymbolFilesClose(file);
    return symbol[last].vaddr ? n : 0;
}

/* A FUSE file is not for us: see image.c. */
static int takeVariables(PlaceLook *place, const ebpfMonMapping *map)
{
    VariableLook *look = (VariableLook *)place; /* its first member */
    ebpfMonElfSymbol symbol[EBPFMON_VARIABLES_MAX + 1];
    ebpfMonElfFile file;
    struct statfs fs;
    struct stat st;
    uint64_t bias;
    char path[4352];
    int fd;

    if (ebpfMonMappingFindPath(place->pid, map, path, sizeof(path), &st))
        return 0;
    fd = ebpfMonForeignOpenFile(path);
    if (fd < 0)
        return 0;
    if (fstatfs(fd, &fs) == 0 && fs.f_type != FUSE_SUPER_MAGIC && ebpfMonElfOpen(&file, fd) == 0) {
        snprintf(look->symbols.program, sizeof(look->symbols.program), "%s", map->path);
        look->known = searchSymbols(look, &file, symbol);
        if (look->known && findBias(&file, map, &bias))
            look->known = 0;
        for (unsigned i = 0; look->known && i < look->count; i++)
            if (symbol[i].vaddr)
                look->found[i] = (ebpfMonVariable){ bias + symbol[i].vaddr, symbol[i].size };
        ebpfMonElfClose(&file);
    }
    close(fd);
    return look->known != 0;
}

static void searchVariables(void *data)
{
    visitMappings(data, takeVariables);
}

unsigned ebpfMonVariablesFind(pid_t pid, const char *anchor, const char *const *names, unsigned count,
                              ebpfMonVariable *found)
{
    static const ebpfMonForeignJob job = { searchVariables, free };
    VariableLook *look = calloc(1, sizeof(*look));
    unsigned known;

    memset(found, 0, count * sizeof(*found));
    if (!look)
        return 0;
    look->place.pid = pid;
    ebpfMonSymbolPlacesInit(&look->symbols);
    look->symbols.pid = pid;
    for (look->count = 0; look->count < count; look->count++)
        snprintf(look->name[look->count], sizeof(look->name[0]), "%s", names[look->count]);
    if (anchor)
        snprintf(look->name[look->count++], sizeof(look->name[0]), "%s", anchor);
    if (ebpfMonForeignRun(pid, LOOK_SECONDS, &job, look))
        return 0;
    memcpy(found, look->found, count * sizeof(*found));
    known = look->known - (look->known && anchor);
    free(look);
    return known;
}

uint64_t ebpfMonVariableFind(pid_t pid, const char *symbol)
{
    ebpfMonVariable found;

    ebpfMonVariablesFind(pid, NULL, &symbol, 1, &found);
    return found.address;
}
