/* SPDX-License-Identifier: BSD-3-Clause */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "code/binary.h"
#include "code/callSites.h"
#include "code/elfSymbols.h"
#include "code/machine.h"
#include "code/recognise.h"
#include "code/unwind.h"

/* --- calls that take and release lock sets --- */

#define CODE_MAX 4096u /* bytes of scanList, to see its branches */

/* The functions that are looked for: first called functions, then their callers. */
enum {
    LOCK, UNLOCK, LOCK_MANY, PROCESS, CALLED,
    SCAN_LIST = CALLED, MUTEX_UNLOCK, PUT_FIELD, READERS, NAMES = READERS + 4
};

_Static_assert((int)LOCK == (int)ebpfMonCalledLock && (int)UNLOCK == (int)ebpfMonCalledUnlock &&
               (int)LOCK_MANY == (int)ebpfMonCalledLockMany, "numbers of the functions");

static const char *const names[NAMES] = {
    "dbScanLock", "dbScanUnlock", "dbScanLockMany", "dbProcess", "scanList", "epicsMutexUnlock",
    "dbPutField",
    "dbGetField", "dbChannelGetField", "dbChannel_get_count", "db_post_single_event",
};

/* Nonzero: each of the three is called in this function, and once. */
static int isChainLoop(const ebpfMonCallSites *sites, uint64_t function)
{
    unsigned n[CALLED] = { 0 };

    for (unsigned i = 0; i < sites->count; i++)
        if (sites->site[i].caller == function)
            n[sites->site[i].called]++;
    return n[LOCK] == 1 && n[UNLOCK] == 1 && n[PROCESS] == 1;
}

/* In a stripped file: of the functions with a chain the one that also takes and releases a mutex several times, that of
 * its list. 0: there is none, or more than one. */
static uint64_t findScanList(const ebpfMonCallSites *sites, const ebpfMonCallSites *unlocks)
{
    uint64_t found = 0;

    for (unsigned i = 0; unlocks && i < sites->count; i++) {
        uint64_t function = sites->site[i].caller;
        unsigned n = 0;

        if (sites->site[i].called != PROCESS || !isChainLoop(sites, function))
            continue;
        for (unsigned k = 0; k < unlocks->count; k++)
            n += unlocks->site[k].caller == function;
        if (n < 2)
            continue;
        if (found) {
            found = 0;
            break;
        }
        found = function;
    }
    return found;
}

#define INSN_MAX 16 /* bytes of an instruction */

/* Where the instruction at "vaddr" leads; *length is 0: it cannot be read. */
static ebpfMonFlow readFlow(const ebpfMonElfFile *file, uint64_t vaddr, unsigned *length)
{
    const ebpfMonMachine *machine = ebpfMonMachineFind(file->machine);
    uint8_t code[INSN_MAX];
    uint64_t to;
    size_t len = ebpfMonElfRead(file, vaddr, code, sizeof(code));

    *length = machine->getLength(code, len);
    return *length ? machine->getFlow(code, *length, vaddr, &to) : ebpfMonFlowNext;
}

static int isJump(const ebpfMonElfFile *file, uint64_t vaddr)
{
    unsigned length;

    return readFlow(file, vaddr, &length) == ebpfMonFlowJump;
}

/* Nonzero: an instruction with this flow can leave the function "begin … end", and is not a jump to one of "ends". */
static int leavesFunction(ebpfMonFlow flow, uint64_t vaddr, uint64_t target, uint64_t begin, uint64_t end,
                          const ebpfMonCallSites *ends)
{
    if (flow == ebpfMonFlowLeave)
        return 1;
    if ((flow != ebpfMonFlowJump && flow != ebpfMonFlowBranch) || (target >= begin && target < end))
        return 0;
    for (unsigned i = 0; i < ends->count; i++)
        if (ends->site[i].vaddr == vaddr)
            return flow != ebpfMonFlowJump;
    return 1;
}

/* Nonzero: scanList can end in another way than by a jump to epicsMutexUnlock, or this is not known. */
static int hasOtherEnds(const ebpfMonElfFile *file, uint64_t scanList, const ebpfMonCallSites *unlocks)
{
    const ebpfMonMachine *machine = ebpfMonMachineFind(file->machine);
    uint8_t code[CODE_MAX + INSN_MAX];
    size_t len = ebpfMonElfRead(file, scanList, code, sizeof(code)), end = 0, at;
    unsigned n;

    while (end < len && end < CODE_MAX && ebpfMonUnwindFindBegin(file, scanList + end) == scanList)
        end++;
    if (!end || end == CODE_MAX)
        return 1;
    for (at = 0; at < end; at += n) {
        uint64_t vaddr = scanList + at, target = 0;
        ebpfMonFlow flow;

        n = machine->getLength(code + at, len - at);
        if (!n)
            return 1;
        flow = machine->getFlow(code + at, n, vaddr, &target);
        if (leavesFunction(flow, vaddr, target, scanList, scanList + end, unlocks))
            return 1;
    }
    return 0;
}

/* Where the program goes on when a call returns: the next instruction that costs little, before anything else is
 * called. */
static uint64_t findBehind(const ebpfMonElfFile *file, uint64_t vaddr)
{
    uint64_t offset;
    uint8_t code[64];
    unsigned length;
    ebpfMonSite site;
    size_t len;

    if (readFlow(file, vaddr, &length) != ebpfMonFlowCall || ebpfMonElfOffset(file, vaddr + length, PF_X, &offset))
        return 0;
    len = ebpfMonElfRead(file, vaddr + length, code, sizeof(code));
    ebpfMonMachineFind(file->machine)->pickSite(code, len, 0, 0, &site);
    return offset + site.skip;
}

/* A list has ended when the stack pointer is above the one noted here (dropEndedPasses, bpf/thread/heldLocks.bpf.h). If
 * a register has the return address, the stack pointer at the entry is that of the caller. Then this place is not taken
 * for a cheap one, and no pass is watched. */
static void pickEntry(const ebpfMonElfFile *file, uint64_t function, ebpfMonSite *site)
{
    const ebpfMonMachine *machine = ebpfMonMachineFind(file->machine);
    uint8_t code[CODE_MAX];
    uint64_t offset;
    size_t len;

    if (ebpfMonElfOffset(file, function, PF_X, &offset))
        return;
    len = ebpfMonElfRead(file, function, code, sizeof(code));
    machine->pickSite(code, len, EBPFMON_ARG1, 0, site);
    if (machine->returnsByRegister && site->canReturn)
        site->cls = ebpfMonSiteStepped;
    site->offset = offset + site->skip;
    site->vaddr = function + site->skip;
}

static ebpfMonCaller findCaller(const ebpfMonElfSymbol *symbol, uint64_t caller, uint64_t scanList)
{
    if (scanList && caller == scanList)
        return ebpfMonCallerScanList;
    if (symbol[PUT_FIELD].vaddr && caller == symbol[PUT_FIELD].vaddr)
        return ebpfMonCallerPutField;
    for (unsigned k = READERS; k < NAMES; k++)
        if (symbol[k].vaddr && symbol[k].vaddr == caller)
            return ebpfMonCallerReader;
    return ebpfMonCallerOther;
}

static void addCall(ebpfMonCalls *calls, const ebpfMonElfFile *file, const ebpfMonCallSite *site, ebpfMonCaller caller)
{
    ebpfMonCall call = { .offset = site->offset, .called = (uint8_t)site->called, .caller = (uint8_t)caller };

    if (call.called != ebpfMonCalledUnlock && caller != ebpfMonCallerReader && caller != ebpfMonCallerScanList) {
        call.behind = findBehind(file, site->vaddr);
        if (!call.behind)
            calls->knowsBehind = 0;
    }
    calls->putFieldLocks += caller == ebpfMonCallerPutField && call.called == ebpfMonCalledLock;
    calls->call[calls->count++] = call;
}

/* The last calls of scanList. */
static void addEnds(ebpfMonCalls *calls, const ebpfMonElfFile *file, uint64_t scanList, const ebpfMonCallSites *unlocks)
{
    calls->endsOtherwise = hasOtherEnds(file, scanList, unlocks);
    for (unsigned i = 0; i < unlocks->count; i++)
        if (unlocks->site[i].caller == scanList && isJump(file, unlocks->site[i].vaddr))
            calls->call[calls->count++] = (ebpfMonCall){ .offset = unlocks->site[i].offset,
                                                         .called = ebpfMonCalledListEnd,
                                                         .caller = ebpfMonCallerScanList };
}

ebpfMonCalls *ebpfMonCallsRead(ebpfMonElfFile *file)
{
    ebpfMonElfSymbol symbol[NAMES];
    ebpfMonCallSites *sites, *unlocks = NULL;
    uint64_t scanList = 0;
    ebpfMonCalls *calls;

    ebpfMonElfFind(file, names, NAMES, symbol);
    sites = ebpfMonCallSitesFind(file, names, symbol, CALLED);
    if (sites && symbol[PROCESS].vaddr) /* dbScan.c is a part of the file that has dbProcess */
        unlocks = ebpfMonCallSitesFind(file, &names[MUTEX_UNLOCK], &symbol[MUTEX_UNLOCK], 1);
    calls = sites ? calloc(1, sizeof(*calls) + sizeof(calls->call[0]) * (sites->count + (unlocks ? unlocks->count : 0)))
                  : NULL;
    if (!calls)
        goto done;
    calls->complete = (sites->complete & (1u << LOCK)) && (sites->complete & (1u << UNLOCK));
    calls->knowsBehind = !!(sites->complete & (1u << LOCK_MANY));
    if (unlocks)
        scanList = symbol[SCAN_LIST].vaddr ? symbol[SCAN_LIST].vaddr : findScanList(sites, unlocks);
    if (scanList && isChainLoop(sites, scanList))
        pickEntry(file, scanList, &calls->scanList);
    if (calls->scanList.cls == ebpfMonSiteNone)
        scanList = 0;
    for (unsigned i = 0; i < sites->count; i++)
        if (sites->site[i].called != PROCESS)
            addCall(calls, file, &sites->site[i], findCaller(symbol, sites->site[i].caller, scanList));
    calls->putFieldLocks = calls->putFieldLocks == 1;
    if (scanList)
        addEnds(calls, file, scanList, unlocks);
done:
    free(sites);
    free(unlocks);
    return calls;
}

/* --- what a file contains --- */

/*
 * A program without symbols is an IOC if it holds two texts of iocInit (iocInit.c; the same from EPICS
 * 3.14 to 7), whether it has a shell and a CA server or not. Only programs are searched for these texts: a library that
 * exports nothing is of no use to anyone.
 */

#define MAX_FUNCTION 4096u     /* bytes of code read per function, to see its branches */
#define OLD_NAMES    2
#define SCAN_NOW     ((int)ebpfMonFnCount + (int)ebpfMonVarCount + OLD_NAMES)
#define NAMES        (SCAN_NOW + 1)

const char *const ebpfMonFnNames[ebpfMonFnCount] = {
    "dbPut", "dbPutField", "dbProcessNotify", "rsrvCheckPut", "camessage", "dbScanLock", "dbScanUnlock",
    "dbScanUnlockMany", "dbCaPutLinkCallback", "recGblFwdLink", "dbProcess",
    "callbackRequest", "callbackRequestDelayed", "scanOnceCallback", "epicsRingPointerPop",
};

/* What does the same in older releases, with the same first argument. */
static const struct { ebpfMonFn fn; const char *name; } oldNames[OLD_NAMES] = {
    { ebpfMonFnProcessNotify, "dbPutNotify" }, { ebpfMonFnScanOnce, "scanOnce" },
};

static const unsigned fnArgs[ebpfMonFnCount] = {
    [ebpfMonFnPut] = EBPFMON_ARG1 | EBPFMON_ARG2 | EBPFMON_ARG3 | EBPFMON_ARG4,
    [ebpfMonFnPutField] = EBPFMON_ARG1 | EBPFMON_ARG2 | EBPFMON_ARG3 | EBPFMON_ARG4,
    [ebpfMonFnProcessNotify] = EBPFMON_ARG1, [ebpfMonFnCheckPut] = EBPFMON_ARG1,
    [ebpfMonFnCamessage] = EBPFMON_ARG1, [ebpfMonFnScanLock] = EBPFMON_ARG1,
    [ebpfMonFnScanUnlock] = EBPFMON_ARG1, [ebpfMonFnScanUnlockMany] = EBPFMON_ARG1,
    [ebpfMonFnCaPutLink] = EBPFMON_ARG1, [ebpfMonFnFwdLink] = EBPFMON_ARG1, [ebpfMonFnProcess] = EBPFMON_ARG1,
    [ebpfMonFnCallback] = EBPFMON_ARG1, [ebpfMonFnCallbackDelayed] = EBPFMON_ARG1,
    [ebpfMonFnScanOnce] = EBPFMON_ARG1 | EBPFMON_ARG3, [ebpfMonFnRingPop] = EBPFMON_ARG1,
};

static const char *const varNames[ebpfMonVarCount] = {
    "pdbbase", "interruptAccept", "asActive", "epicsReleaseVersion", "clientQ", "lset_stack_count",
};

void ebpfMonImageFileFree(ebpfMonKnown *known)
{
    if (known)
        free((void *)known->binary.calls);
    free(known);
}

/* Fills the site of one function. */
static void findSite(const ebpfMonElfFile *file, const ebpfMonElfSymbol *sym, ebpfMonFn fn, ebpfMonSite *site)
{
    uint8_t code[MAX_FUNCTION];
    uint64_t size = sym->size ? sym->size : 64, offset;
    size_t len = size < sizeof(code) ? (size_t)size : sizeof(code);

    if (!sym->vaddr || ebpfMonElfOffset(file, sym->vaddr, PF_X, &offset))
        return;
    len = ebpfMonElfRead(file, sym->vaddr, code, len);
    ebpfMonMachineFind(file->machine)->pickSite(code, len, fnArgs[fn], fn == ebpfMonFnPut, site);
    site->offset = offset + site->skip;
    site->vaddr = sym->vaddr + site->skip;
}

/* The release is a macro in Base, so there is no variable of that name; its text is what coreRelease,
 * the neighbour of dbProcess, prints (epicsRelease.c, epicsVersion.h): "EPICS R7.0.8.1", and "EPICS 7.0..."
 * in the Python builds of epicscorelibs. libCom has the same text (osdAssert.c), which is all that EPICS 3.14 shows.
 * Of several texts the one of the highest release counts, with "R" before without. */
static void findRelease(const ebpfMonElfFile *file, ebpfMonElfSymbol *var)
{
    int best = 0;

    for (uint64_t at = 0; (at = ebpfMonElfSearch(file, "EPICS ", at)) != 0;) {
        char text[sizeof("EPICS R7.")] = "";
        int isR, rank;

        ebpfMonElfRead(file, at, text, sizeof(text) - 1);
        isR = text[6] == 'R';
        if (text[6 + isR] < '3' || text[6 + isR] > '9' || text[7 + isR] != '.')
            continue;
        rank = 2 * text[6 + isR] + isR;
        if (rank <= best)
            continue;
        best = rank;
        var->vaddr = at;
    }
}

static void useOldNames(ebpfMonElfSymbol *found, ebpfMonBinary *b)
{
    for (int i = 0; i < OLD_NAMES; i++) {
        ebpfMonFn fn = oldNames[i].fn;

        if (found[fn].vaddr)
            continue;
        found[fn] = found[ebpfMonFnCount + ebpfMonVarCount + i];
        b->oldNames |= found[fn].vaddr ? 1u << fn : 0;
    }
}

/* Nonzero: it can be in another file than dbProcess: in libCom, and in EPICS 3.14 in librsrvIoc. */
static int isElsewhere(int fn)
{
    return fn == ebpfMonFnRingPop || fn == ebpfMonFnCheckPut || fn == ebpfMonFnCamessage;
}

#define CHECKPUT_CALLS 4u /* camessage.c: write_action, write_notify_action, access_rights_reply; caservertask.c:
                           * showChanList */

/* A static Base may be compiled so that the compiler puts copies of rsrvCheckPut into its callers: then a probe there
 * sees no put. The IOC is watched as one without this function. */
static void dropCopied(const ebpfMonElfFile *file, ebpfMonElfSymbol *found, ebpfMonBinary *b)
{
    ebpfMonElfSymbol *check = &found[ebpfMonFnCheckPut];
    ebpfMonCallSites *sites = check->vaddr ? ebpfMonCallSitesFind(file, &ebpfMonFnNames[ebpfMonFnCheckPut], check, 1) :
                                             NULL;

    b->isCheckCopied = sites && sites->count < CHECKPUT_CALLS && (sites->complete & 1);
    if (b->isCheckCopied)
        memset(check, 0, sizeof(*check));
    free(sites);
}

static int usesLocks(const ebpfMonElfSymbol *found)
{
    const ebpfMonElfSymbol *lock = &found[ebpfMonFnScanLock], *unlock = &found[ebpfMonFnScanUnlock];

    return lock->isImported || lock->vaddr || unlock->isImported || unlock->vaddr;
}

/* Nonzero: it has all that makes an IOC. */
static int isIoc(const ebpfMonElfSymbol *found)
{
    return found[ebpfMonFnProcess].vaddr && found[ebpfMonFnCount + ebpfMonVarBase].vaddr;
}

/* Nonzero: it has no symbols, and yet is the program of an IOC. */
static int isStrippedIoc(const ebpfMonElfFile *file, const ebpfMonElfSymbol *found)
{
    static const char *const texts[] = { "Starting iocInit", "iocRun: %s" };
    Elf64_Shdr table, strings;

    if (isIoc(found) || !ebpfMonElfIsProgram(file) || ebpfMonElfTable(file, SHT_SYMTAB, &table, &strings))
        return 0;
    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (!ebpfMonElfSearch(file, texts[i], 0))
            return 0;
    return 1;
}

/* How a file is known. */
typedef struct {
    int isStripped;   /* it is an IOC without symbols of its own */
    int isRecognised; /* as ebpfMonBinary has it */
    int isOldNotify;
    int isContradicted; /* as ebpfMonBinary has it */
} Knowledge;

/* The last way: by what the functions do. */
static void recogniseFunctions(const ebpfMonElfFile *file, ebpfMonElfSymbol *found, Knowledge *how)
{
    ebpfMonRecognised by;

    if (ebpfMonRecognise(file->fd, &by))
        return;
    memcpy(found, by.fn, sizeof(by.fn));
    memcpy(found + ebpfMonFnCount, by.var, sizeof(by.var));
    how->isRecognised = 1;
    how->isOldNotify = by.isOldNotify;
}

/* Nonzero: the program itself contradicts the symbols of another file: it says that an address is in the midst of a
 * function. A probe there could be in the midst of an instruction, and end the IOC. Two builds have one build-id if a
 * site sets it to a number of its own (-Wl,--build-id=0x...). */
static int isContradicted(const ebpfMonElfFile *file, const ebpfMonElfSymbol *found)
{
    for (int i = 0; i < NAMES; i++)
        if ((i < ebpfMonFnCount || i >= (int)ebpfMonFnCount + (int)ebpfMonVarCount) && found[i].vaddr &&
            ebpfMonUnwindIsInside(file, found[i].vaddr))
            return 1;
    return 0;
}

/* Finds the names in the file; of a stripped IOC also in the files with its symbols, until there are enough. */
static void findSymbolNames(ebpfMonElfFile *file, const ebpfMonSymbolPlaces *places, ebpfMonElfSymbol *found,
                            Knowledge *how)
{
    ebpfMonSymbolSearch search = { 0 };
    const char *names[NAMES];

    memcpy(names, ebpfMonFnNames, sizeof(ebpfMonFnNames));
    memcpy(names + ebpfMonFnCount, varNames, sizeof(varNames));
    for (int i = 0; i < OLD_NAMES; i++)
        names[ebpfMonFnCount + ebpfMonVarCount + i] = oldNames[i].name;
    names[SCAN_NOW] = "scanIoImmediate";
    ebpfMonElfFind(file, names, NAMES, found);
    how->isStripped = isStrippedIoc(file, found);
    while (how->isStripped && !isIoc(found) && ebpfMonSymbolFileAdd(file, places, &search)) {
        ebpfMonElfFind(file, names, NAMES, found);
        if (!isContradicted(file, found))
            continue;
        how->isContradicted = 1;
        ebpfMonSymbolFileDrop(file);
        ebpfMonElfFind(file, names, NAMES, found);
    }
    if (how->isStripped && !isIoc(found))
        recogniseFunctions(file, found, how);
}

static void fillKnown(ebpfMonElfFile *file, ebpfMonElfSymbol *found, const Knowledge *how, ebpfMonKnown *k)
{
    ebpfMonBinary *b = &k->binary;

    memcpy(b->buildId, file->buildId, sizeof(b->buildId));
    memcpy(k->var, found + ebpfMonFnCount, sizeof(k->var));
    memcpy(k->segment, file->segment, sizeof(k->segment));
    k->nSegments = file->nSegments;
    k->isProgram = file->hasInterp;
    b->isIoc = isIoc(found);
    if (!how->isRecognised)
        dropCopied(file, found, b);
    if (!ebpfMonMachineIsHost(file->machine))
        b->foreign = ebpfMonMachineFind(file->machine)->name;
    b->isNameless = (how->isStripped && !b->isIoc) || (b->isIoc && b->foreign);
    b->isRecognised = how->isRecognised;
    b->isStripped = how->isStripped;
    b->isContradicted = how->isContradicted;
    useOldNames(found, b);
    if (how->isOldNotify)
        b->oldNames |= 1u << ebpfMonFnProcessNotify;
    for (int fn = 0; fn < ebpfMonFnCount; fn++)
        if (b->isIoc || isElsewhere(fn))
            findSite(file, &found[fn], (ebpfMonFn)fn, &b->site[fn]);
    if ((b->isIoc || b->isNameless || found[ebpfMonFnRingPop].vaddr) && !k->var[ebpfMonVarRelease].vaddr)
        findRelease(file, &k->var[ebpfMonVarRelease]);
    b->usesLocks = usesLocks(found);
    /* of a program with a static Base nobody knows */
    b->scansNow = found[SCAN_NOW].isImported || (b->isIoc && ebpfMonElfIsProgram(file));
    if (b->usesLocks && !b->isRecognised) /* without names: the entries are probed */
        b->calls = ebpfMonCallsRead(file);
}

int ebpfMonImageFileRead(int fd, const ebpfMonSymbolPlaces *places, ebpfMonKnown **known)
{
    ebpfMonElfSymbol found[NAMES];
    int over, any = 0, isOfInterest;
    Knowledge how = { 0 };
    ebpfMonElfFile file;

    *known = NULL;
    if (ebpfMonElfOpen(&file, fd))
        return 0;
    findSymbolNames(&file, places, found, &how);
    for (int i = 0; i < NAMES; i++)
        any |= found[i].vaddr != 0;
    isOfInterest = any || usesLocks(found) || found[SCAN_NOW].isImported || how.isStripped;
    if (isOfInterest)
        *known = calloc(1, sizeof(**known));
    if (*known)
        fillKnown(&file, found, &how, *known);
    over = ebpfMonElfIsOver(&file);
    ebpfMonSymbolFilesClose(&file);
    ebpfMonElfClose(&file);
    return isOfInterest && !*known ? ENOMEM : over;
}
