/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include "ioc/callSites.h"
#include "ioc/imageCalls.h"

#define CODE_MAX 4096u /* bytes of scanList, to see its branches */

/* The functions that are looked for: those that are called, and then those that call. */
enum { LOCK, UNLOCK, PROCESS, CALLED, SCAN_LIST = CALLED, READERS, NAMES = READERS + 4 };

_Static_assert((int)LOCK == (int)ebpfMonCalledLock && (int)UNLOCK == (int)ebpfMonCalledUnlock, "numbers of the functions");

static const char *const names[NAMES] = {
    "dbScanLock", "dbScanUnlock", "dbProcess", "scanList",
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
static uint64_t findScanList(const ebpfMonElfFile *file, const ebpfMonCallSites *sites)
{
    static const char *const mutex[] = { "epicsMutexUnlock" };
    ebpfMonElfSymbol own[1];
    ebpfMonCallSites *unlocks;
    uint64_t found = 0;

    memset(own, 0, sizeof(own));
    unlocks = ebpfMonCallSitesFind(file, mutex, own, 1);
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
    free(unlocks);
    return found;
}

static void pickEntry(const ebpfMonElfFile *file, uint64_t function, ebpfMonSite *site)
{
    uint8_t code[CODE_MAX];
    uint64_t offset;
    size_t len;

    if (ebpfMonElfOffset(file, function, PF_X, &offset))
        return;
    len = ebpfMonElfRead(file, function, code, sizeof(code));
    ebpfMonSitePickX86(code, len, EBPFMON_ARG1, 0, site);
    site->offset = offset + site->skip;
    site->vaddr = function + site->skip;
}

ebpfMonCalls *ebpfMonCallsRead(ebpfMonElfFile *file)
{
    ebpfMonElfSymbol symbol[NAMES];
    ebpfMonCallSites *sites;
    ebpfMonCalls *calls;
    uint64_t scanList;

    ebpfMonElfFind(file, names, NAMES, symbol);
    sites = ebpfMonCallSitesFind(file, names, symbol, CALLED);
    calls = sites ? calloc(1, sizeof(*calls) + sites->count * sizeof(calls->call[0])) : NULL;
    if (!calls) {
        free(sites);
        return NULL;
    }
    calls->complete = (sites->complete & (1u << LOCK)) && (sites->complete & (1u << UNLOCK));
    /* dbScan.c is a part of the file that has dbProcess */
    scanList = symbol[SCAN_LIST].vaddr ? symbol[SCAN_LIST].vaddr : symbol[PROCESS].vaddr ? findScanList(file, sites) : 0;
    if (scanList && isChainLoop(sites, scanList))
        pickEntry(file, scanList, &calls->scanList);
    for (unsigned i = 0; i < sites->count; i++) {
        const ebpfMonCallSite *site = &sites->site[i];
        ebpfMonCaller caller = ebpfMonCallerOther;

        if (site->called == PROCESS)
            continue;
        for (unsigned k = READERS; k < NAMES; k++)
            if (symbol[k].vaddr && symbol[k].vaddr == site->caller)
                caller = ebpfMonCallerReader;
        if (calls->scanList.cls != ebpfMonSiteNone && site->caller == scanList)
            caller = ebpfMonCallerScanList;
        calls->call[calls->count++] = (ebpfMonCall){ site->offset, (uint8_t)site->called, (uint8_t)caller };
    }
    free(sites);
    return calls;
}
