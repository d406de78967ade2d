/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads files for aarch64 on any host: compares the places of all probes and calls in Debian 13's libraries of
 * epics-base for arm64 with the disassembler for this machine. tools/cross.sh puts these files into the cache.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <epicsUnitTest.h>
#include <testMain.h>
#include "armLibrary.h"
#include "code/binary.h"
#include "code/imageFile.h"
#include "code/machine.h"

#define OBJDUMP "aarch64-linux-gnu-objdump"
#define TESTS   ((int)ebpfMonFnCount + 6)

static ebpfMonKnown *readLibrary(const char *name, char *path, size_t size)
{
    ebpfMonSymbolPlaces places = { .pid = getpid() };
    ebpfMonKnown *known = NULL;
    int fd;

    if (armLibrary(name, path, size) || (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return NULL;
    if (ebpfMonImageFileRead(fd, &places, &known))
        testAbort("%s cannot be read", path);
    close(fd);
    return known;
}

/* The disassembler's name of the instruction at "vaddr". */
static void disassemble(const char *path, uint64_t vaddr, char *name, size_t size)
{
    char command[700], line[400], word[32];
    unsigned long long at;
    FILE *dump;

    name[0] = 0;
    snprintf(command, sizeof(command),
             OBJDUMP " -d --no-show-raw-insn --start-address=%#llx --stop-address=%#llx '%s' 2>/dev/null",
             (unsigned long long)vaddr, (unsigned long long)vaddr + 4, path);
    dump = popen(command, "r");
    while (dump && fgets(line, sizeof(line), dump))
        if (sscanf(line, " %llx: %31s", &at, word) == 2 && at == vaddr)
            snprintf(name, size, "%s", word);
    if (dump)
        pclose(dump);
}

/* "cbz" also means cbnz. At an entry any instruction may be, but the one that moves the return address comes later. */
static int isAs(const ebpfMonSite *site, const char *insn)
{
    if (site->cls == ebpfMonSiteStepped)
        return !site->skip && site->canReturn && insn[0];
    if (!strcmp(site->insn, "b.cond"))
        return !strncmp(insn, "b.", 2);
    return !strcmp(site->insn, insn) || (!strcmp(site->insn, "cbz") && !strcmp(insn, "cbnz")) ||
           (!strcmp(site->insn, "tbz") && !strcmp(insn, "tbnz"));
}

static void testSites(const ebpfMonKnown *core, const char *corePath, const ebpfMonKnown *com, const char *comPath)
{
    for (int fn = 0; fn < ebpfMonFnCount; fn++) {
        int isCom = fn == ebpfMonFnRingPop || fn == ebpfMonFnAddClient;
        const ebpfMonSite *site = &(isCom ? com : core)->binary.site[fn];
        char insn[32];

        if (fn == ebpfMonFnServe) /* in pvxs, which Debian does not have */
            continue;
        disassemble(isCom ? comPath : corePath, site->vaddr, insn, sizeof(insn));
        testOk(site->cls != ebpfMonSiteNone && isAs(site, insn), "%s: %s at +%u is \"%s\", file offset %#llx",
               ebpfMonFnNames[fn], site->insn, site->skip, insn, (unsigned long long)site->offset);
    }
}

static void testCalls(const ebpfMonCalls *calls)
{
    unsigned n[4] = { 0 }, behind = 0;

    if (!calls)
        testAbort("no calls are known");
    for (unsigned i = 0; i < calls->count; i++) {
        n[calls->call[i].called]++;
        behind += calls->call[i].behind > calls->call[i].offset;
    }
    testOk(calls->complete && n[ebpfMonCalledLock] && n[ebpfMonCalledUnlock] && n[ebpfMonCalledLockMany],
           "all calls: %u of dbScanLock, %u of dbScanUnlock, %u of dbScanLockMany", n[0], n[1], n[2]);
    testOk(calls->knowsBehind && behind, "%u places behind calls that take a lock", behind);
}

MAIN(testAarch64)
{
    char corePath[500], comPath[500];
    ebpfMonKnown *core = readLibrary("libdbCore.so", corePath, sizeof(corePath));
    ebpfMonKnown *com = readLibrary("libCom.so", comPath, sizeof(comPath));

    testPlan(TESTS);
    if (!core || !com || system(OBJDUMP " --version >/dev/null 2>&1")) {
        testSkip(TESTS, "no libraries of Debian for arm64 in the cache, or no " OBJDUMP ": tools/cross.sh brings both");
        return testDone();
    }
    testOk(core->binary.isIoc && core->binary.buildId[0], "%s, build-id %s", corePath, core->binary.buildId);
    testSites(core, corePath, com, comPath);
    testOk(core->binary.site[ebpfMonFnPut].canReturn, "dbPut can have a return probe");
    testCalls(core->binary.calls);
    if (ebpfMonMachineIsHost(EM_AARCH64))
        testSkip(2, "this host is of that machine");
    else {
        testOk(core->binary.foreign && !strcmp(core->binary.foreign, "aarch64"), "it is foreign here: %s",
               core->binary.foreign);
        testOk(core->binary.isNameless, "and so is not watched");
    }
    testOk(core->var[ebpfMonVarBase].vaddr && core->var[ebpfMonVarInterrupt].vaddr, "its variables are found");
    ebpfMonImageFileFree(core);
    ebpfMonImageFileFree(com);
    return testDone();
}
