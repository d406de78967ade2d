/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include "code/binary.h"
#include "code/callSites.h"
#include "code/elfSymbols.h"
#include "code/machine.h"
#include "code/unwind.h"

/* --- calls that take and release lock sets --- */

#define CODE_MAX 4096u /* bytes of scanList, to see its branches */

/* The functions that are looked for: first called functions, then their callers. */
enum {
    LOCK, UNLOCK, LOCK_MANY, PROCESS, CALLED,
    SCAN_LIST = CALLED, MUTEX_UNLOCK, PUT_FIELD, READERS, NAMES = READERS + 4
};

_Static_assert((int)LOCK == (int)ebpfMonCalledLock && (int)UNLOCK == (int)ebpfMonCalledUnlock &&
               (int)LOCK_MANY == (int)ebpfMonCalledLockMany && (int)PROCESS == (int)ebpfMonCalledProcess,
               "numbers of the functions");

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

    if (call.called != ebpfMonCalledUnlock && call.called != ebpfMonCalledProcess && caller != ebpfMonCallerReader &&
        caller != ebpfMonCallerScanList) {
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
        if (sites->site[i].called != PROCESS || !symbol[PROCESS].vaddr)
            addCall(calls, file, &sites->site[i], findCaller(symbol, sites->site[i].caller, scanList));
    calls->putFieldLocks = calls->putFieldLocks == 1;
    if (scanList)
        addEnds(calls, file, scanList, unlocks);
done:
    free(sites);
    free(unlocks);
    return calls;
}
