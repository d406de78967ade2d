/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dbAccess.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "armLibrary.h"
#include "code/callSites.h"
#include "code/binary.h"

/* --- CallSites --- */

/*
 * code/callSites.h: compares calls in libraries of Base with the output of objdump, and reads small libraries made
 * by the compiler. The same with files for aarch64, if there is a compiler for it (tools/cross.sh installs it).
 */

static const char *const names[] = { "dbScanLock", "dbScanUnlock", "dbProcess" };
#define NAMES 3

static char folder[] = "/tmp/ebpfMonXXXXXX";

typedef struct {
    const char *name, *cc, *objdump;
    const char *call[2]; /* as objdump writes it */
} Machine;

static const Machine machines[] = {
    { "", "cc", "objdump", { "call", "jmp" } },
    { "aarch64: ", "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-objdump", { "bl", "b" } },
};
#define HOST (&machines[0])
#define ARM  (&machines[1])

/* Nonzero if this command exists. */
static int has(const char *command)
{
    char line[100];

    snprintf(line, sizeof(line), "%s --version >/dev/null 2>&1", command);
    return system(line) == 0;
}

/* free() it. */
static ebpfMonCallSites *findIn(const char *path)
{
    ebpfMonElfSymbol own[NAMES];
    ebpfMonCallSites *sites = NULL;
    ebpfMonElfFile file;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || ebpfMonElfOpen(&file, fd))
        testAbort("%s cannot be read", path);
    ebpfMonElfFind(&file, names, NAMES, own);
    sites = ebpfMonCallSitesFind(&file, names, own, NAMES);
    ebpfMonElfClose(&file);
    close(fd);
    return sites;
}

/* The address of a call or jump to "name" or to its stub in a line of objdump; 0 if the line has none. Sets the
 * start of the function. */
static uint64_t parseLine(const Machine *m, const char *line, const char *name, uint64_t *function)
{
    char target[1000], word[32], *at;
    unsigned long long vaddr;
    int n = 0;

    if (sscanf(line, "%llx <%999[^>]>:%n", &vaddr, target, &n) == 2 && n) {
        *function = vaddr;
        return 0;
    }
    if (sscanf(line, " %llx: %n%31s", &vaddr, &n, word) != 2 || !n ||
        (strcmp(word, m->call[0]) && strcmp(word, m->call[1])))
        return 0;
    at = strchr(line, '<');
    if (!at || sscanf(at, "<%999[^>]>", target) != 1)
        return 0;
    at = strstr(target, "@plt");
    if (at)
        *at = 0;
    return strcmp(target, name) ? 0 : vaddr;
}

/* "isStripped": the file has no symbols, so objdump does not know all functions. */
static void compareWithObjdump(const Machine *m, const char *path, int isStripped)
{
    ebpfMonCallSites *sites = findIn(path);

    for (unsigned k = 0; k < NAMES; k++) {
        unsigned expected = 0, found = 0, same = 0, inFunction = 0;
        char command[600], line[1200];
        uint64_t function = 0;
        FILE *dump;

        snprintf(command, sizeof(command), "%s -d --no-show-raw-insn '%s' 2>/dev/null", m->objdump, path);
        dump = popen(command, "r");
        for (unsigned i = 0; sites && i < sites->count; i++)
            found += sites->site[i].called == k;
        while (dump && fgets(line, sizeof(line), dump)) {
            uint64_t vaddr = parseLine(m, line, names[k], &function);

            expected += vaddr != 0;
            for (unsigned i = 0; vaddr && sites && i < sites->count; i++)
                if (sites->site[i].vaddr == vaddr && sites->site[i].called == k) {
                    same++;
                    inFunction += sites->site[i].caller == function;
                }
        }
        if (dump)
            pclose(dump);
        testOk(expected && found == expected && same == expected && (isStripped || inFunction == same),
               "%s%s: %u calls of %s, of %u; %u in the function that has them", m->name, strrchr(path, '/') + 1, same,
               names[k], expected, inFunction);
        testOk(sites && (sites->complete >> k & 1), "all that there are");
    }
    free(sites);
}

/* The libraries of Base, in the folder of the library that this process has mapped. */
static void testBase(void)
{
    static const char *const libraries[] = { "libdbCore.so", "libdbRecStd.so", "libqsrv.so" };
    Dl_info info;
    char path[500], *end;

    for (unsigned i = 0; i < 3; i++) {
        if (!dladdr((void *)dbNameToAddr, &info) || snprintf(path, sizeof(path), "%s", info.dli_fname) >= 480 ||
            !(end = strrchr(path, '/')) || !strstr(end, "libdbCore")) {
            testSkip(6, "Base is linked statically");
            continue;
        }
        strcpy(end + 1, libraries[i]);
        if (access(path, R_OK) || !has(HOST->objdump))
            testSkip(6, "no such library, or no objdump to compare with");
        else
            compareWithObjdump(HOST, path, 0);
    }
}

/* Debian 13's library for arm64, stripped and with stubs as hardening makes them. */
static void testDebianArm(void)
{
    char path[500];

    if (armLibrary("libdbCore.so", path, sizeof(path)) || !has(ARM->objdump))
        testSkip(6, "no library of Debian for arm64 in the cache, or no objdump for it: tools/cross.sh brings both");
    else
        compareWithObjdump(ARM, path, 1);
}

/* Makes a library from this source. 0 if there is no compiler. */
static int compile(const Machine *m, const char *source, const char *options, char *path, size_t size)
{
    char command[400];
    FILE *cc;

    if (!has(m->cc)) /* a write to what has ended is a signal that ends the test */
        return 0;
    snprintf(path, size, "%s/lib.so", folder);
    snprintf(command, sizeof(command), "%s -x c -O2 %s -o %s - 2>/dev/null", m->cc, options, path);
    cc = popen(command, "w");
    if (!cc)
        return 0;
    fputs("void dbScanLock(void *); void dbScanUnlock(void *); long dbProcess(void *);\n", cc);
    fputs(source, cc);
    return pclose(cc) == 0;
}

static void testSource(const Machine *m, const char *what, const char *source, const char *options, unsigned calls,
                       unsigned complete)
{
    ebpfMonCallSites *sites;
    char path[80];

    if (!compile(m, source, options, path, sizeof(path))) {
        testSkip(2, "the compiler does not make it");
        return;
    }
    sites = findIn(path);
    testOk(sites && sites->count == calls, "%s%s: %u calls, of %u", m->name, what, sites ? sites->count : 0, calls);
    testOk(sites && sites->complete == complete, "%s%s: all calls known by bit 0x%x, should be 0x%x", m->name, what,
           sites ? sites->complete : 0, complete);
    free(sites);
    unlink(path);
}

#define CHAIN "long f(void *p) { dbScanLock(p); long s = dbProcess(p); dbScanUnlock(p); return s; }\n"
#define TAIL "void f(void *p) { dbScanLock(p); dbProcess(p); dbScanUnlock(p); }\n"
#define LIBRARY "-shared -fPIC "
#define OWN \
    "__attribute__((noinline,noclone)) void dbScanLock(void *p) { __asm__ volatile (\"\" :: \"r\"(p) : \"memory\"); " \
    "}\n" \
    "__attribute__((noinline,noclone)) void dbScanUnlock(void *p) { __asm__ volatile (\"nop\" :: \"r\"(p) : " \
    "\"memory\"); }\n" \
    "__attribute__((noinline,noclone)) long dbProcess(void *p) { __asm__ volatile (\"nop; nop\" :: \"r\"(p) : " \
    "\"memory\"); return 0; }\n" \
    "int main(int c, char **v) { (void)c; f(v[0]); return 0; }\n"

static void testSources(const Machine *m)
{
    testSource(m, "calls by stubs", CHAIN, LIBRARY, 3, 7);
    testSource(m, "with marks for indirect calls", CHAIN,
               m == ARM ? LIBRARY "-mbranch-protection=standard -Wl,-z,force-bti,-z,pac-plt" :
                          LIBRARY "-fcf-protection",
               3, 7);
    testSource(m, "bound at once", CHAIN, LIBRARY "-Wl,-z,now", 3, 7);
    testSource(m, "a tail call", TAIL, LIBRARY, 3, 7);
    testSource(m, "not optimised", TAIL, LIBRARY "-O0", 3, 7);
    testSource(m, "without stubs", CHAIN, LIBRARY "-fno-plt", 0, 0);
    testSource(m, "a pointer in a variable", CHAIN "void (*pointer)(void *) = dbScanUnlock;\n", LIBRARY, 3, 5);
    testSource(m, "a pointer in the code", CHAIN "void *get(void) { return dbScanLock; }\n", LIBRARY, 3, 6);
    testSource(m, "a program", CHAIN OWN, "", 3, 7);
    testSource(m, "a program at a fixed address", CHAIN OWN, "-no-pie", 3, 7);
    testSource(m, "a static program", CHAIN OWN, "-static", 3, 7);
    testSource(m, "a program with a pointer", CHAIN OWN "void (*volatile pointer)(void *) = dbScanUnlock;\n", "-no-pie",
               3, 5);
    testSource(m, "a program with a pointer, moved by the loader",
               CHAIN OWN "void (*volatile pointer)(void *) = dbScanUnlock;\n", "-pie -fPIE", 3, 5);
    testSource(m, "an address in the code", CHAIN OWN "void *volatile v; void set(void) { v = dbScanUnlock; }\n",
               "-no-pie", 3, 5);
    testSource(m, "stripped", CHAIN, LIBRARY "-s", 3, 7);
    testSource(m, "none of them", "int f(void) { return 1; }\n", LIBRARY, 0, 7);
}

static void runCallSites(void)
{
    signal(SIGPIPE, SIG_IGN); /* where there is no compiler, its shell ends before it has read the source */
    if (!mkdtemp(folder))
        testAbort("no folder in /tmp");
    testBase();
    testDebianArm();
    testSources(HOST);
    testSources(ARM);
    rmdir(folder);
}

/* --- ImageCalls --- */

/* code/binary.h: calls of dbScanLock and similar functions, in small libraries made by the assembler. Only the
 * machine code shows how scanList ends, and from which place behind a call the thread has the lock. */

static char callsFolder[] = "/tmp/ebpfMonXXXXXX";

/* Makes a library from this source. The caller frees the result. NULL if there is no assembler for it. */
static ebpfMonCalls *readCalls(const char *source)
{
    ebpfMonCalls *calls = NULL;
    char path[80], command[300];
    ebpfMonElfFile file;
    FILE *cc;
    int fd;

    snprintf(path, sizeof(path), "%s/lib.so", callsFolder);
    snprintf(command, sizeof(command), "cc -x assembler -shared -fPIC -o %s - 2>/dev/null", path);
    cc = popen(command, "w");
    if (!cc)
        return NULL;
    fputs(source, cc);
    if (pclose(cc))
        return NULL;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && ebpfMonElfOpen(&file, fd) == 0) {
        calls = ebpfMonCallsRead(&file);
        ebpfMonElfClose(&file);
    }
    if (fd >= 0)
        close(fd);
    unlink(path);
    return calls;
}

#define BEGIN(name) ".globl " name "\n.type " name ", @function\n" name ":\n.cfi_startproc\n"
#define END(name) ".cfi_endproc\n.size " name ", .-" name "\n.p2align 4\n"
#define FUNCTION(name, body) BEGIN(name) body END(name)
#define SELF FUNCTION("dbProcess", "xor %eax, %eax\nret\n")
/* A loop of chains as that of dbScan.c; %s is its end. */
#define SCAN_LIST(end) ".text\n" SELF FUNCTION("scanList", \
    "push %rbx\n.cfi_adjust_cfa_offset 8\nmov %rdi, %rbx\n" \
    "1: call epicsMutexLock@PLT\n" \
    "mov %rbx, %rdi\ncall dbScanLock@PLT\nmov %rbx, %rdi\ncall dbProcess@PLT\nmov %rbx, %rdi\ncall dbScanUnlock@PLT\n" \
    "test %rbx, %rbx\nje 2f\ncall epicsMutexUnlock@PLT\njmp 1b\n" \
    "2:\n" end) FUNCTION("behind", "nop\nret\n")
#define LAST "pop %rbx\n.cfi_adjust_cfa_offset -8\njmp epicsMutexUnlock@PLT\n"
#define LEAVE "pop %rbx\n.cfi_adjust_cfa_offset -8\n"

static unsigned countEnds(const ebpfMonCalls *calls)
{
    unsigned n = 0;

    for (unsigned i = 0; i < calls->count; i++)
        n += calls->call[i].called == ebpfMonCalledListEnd;
    return n;
}

static void testEnd(const char *what, const char *source, unsigned ends, int otherwise)
{
    ebpfMonCalls *calls = readCalls(source);

    if (!calls) {
        testSkip(1, "no assembler for x86-64");
        return;
    }
    testOk(calls->scanList.cls != ebpfMonSiteNone && countEnds(calls) == ends && calls->endsOtherwise == otherwise,
           "%s: %u ends, of %u; other ways out: %d, of %d%s", what, countEnds(calls), ends, calls->endsOtherwise,
           otherwise, calls->scanList.cls == ebpfMonSiteNone ? "; it was not found" : "");
    free(calls);
}

static void testEnds(void)
{
    testEnd("a jump to epicsMutexUnlock", SCAN_LIST(LAST), 1, 0);
    testEnd("two of them", SCAN_LIST("test %eax, %eax\nje 3f\n" LAST "3: .cfi_adjust_cfa_offset 8\n" LAST), 2, 0);
    testEnd("a jump, and a return",
            SCAN_LIST("test %eax, %eax\nje 3f\n" LAST "3: .cfi_adjust_cfa_offset 8\n" LEAVE "ret\n"), 1, 1);
    testEnd("a return that says repz",
            SCAN_LIST("test %eax, %eax\nje 3f\n" LAST "3: .cfi_adjust_cfa_offset 8\n" LEAVE "repz ret\n"), 1, 1);
    testEnd("a call and a return", SCAN_LIST("call epicsMutexUnlock@PLT\n" LEAVE "ret\n"), 0, 1);
    testEnd("a jump elsewhere",
            SCAN_LIST("test %eax, %eax\nje 3f\n" LAST "3: .cfi_adjust_cfa_offset 8\n" LEAVE "jmp errlogPrintf@PLT\n"),
            1, 1);
    testEnd("a jump by a pointer",
            SCAN_LIST("test %eax, %eax\nje 3f\n" LAST "3: .cfi_adjust_cfa_offset 8\n" LEAVE "jmp *%rax\n"), 1, 1);
    testEnd("a branch out of it", SCAN_LIST("test %eax, %eax\njne elsewhere\n" LAST) ".skip 300\n"
            FUNCTION("elsewhere", "nop\nret\n"), 1, 1);
    testEnd("a short branch out of it", SCAN_LIST("test %eax, %eax\njne behind\n" LAST), 1, 1);
    testEnd("a short jump out of it",
            SCAN_LIST("test %eax, %eax\nje 3f\n" LAST "3: .cfi_adjust_cfa_offset 8\n" LEAVE "jmp behind\n"), 1, 1);
    testEnd("a call that does not return",
            SCAN_LIST("test %eax, %eax\nje 3f\n" LAST "3: .cfi_adjust_cfa_offset 8\ncall cantProceed@PLT\n"), 1, 0);
}

/* The instructions behind the call of dbScanLock in a function that processes, and the offset of the place that must
 * be found, in bytes; -1: none. */
static void testPlaceBehind(const char *what, const char *after, int bytes)
{
    char source[2000];
    ebpfMonCalls *calls;
    uint64_t lock = 0, behind = 0;

    snprintf(source, sizeof(source), "%s%s%s", ".text\n" SELF BEGIN("another") "push %rbx\n.cfi_adjust_cfa_offset 8\n"
             "call dbScanLock@PLT\n", after, "call dbProcess@PLT\ncall dbScanUnlock@PLT\npop %rbx\n"
             ".cfi_adjust_cfa_offset -8\nret\n" END("another"));
    calls = readCalls(source);
    if (!calls) {
        testSkip(1, "no assembler for x86-64");
        return;
    }
    for (unsigned i = 0; i < calls->count; i++)
        if (calls->call[i].called == ebpfMonCalledLock) {
            lock = calls->call[i].offset;
            behind = calls->call[i].behind;
        }
    testOk(lock && (bytes < 0 ? !behind && !calls->knowsBehind :
                                behind == lock + 5 + (uint64_t)bytes && calls->knowsBehind),
           "%s: %lld bytes behind the call, of %d", what, behind ? (long long)(behind - lock - 5) : -1ll, bytes);
    free(calls);
}

static void testBehind(void)
{
    testPlaceBehind("the next instruction is cheap", "nop\n", 0);
    testPlaceBehind("the next but one is", "mov %rbx, %rdi\nnop\n", 3);
    testPlaceBehind("a call is the first that is", "mov %rbx, %rdi\n", 3);
    testPlaceBehind("a push", "xor %eax, %eax\npush %rbp\npop %rbp\n", 2);
}

static void testTailCall(void)
{
    ebpfMonCalls *calls = readCalls(".text\n" SELF FUNCTION("another", "call dbProcess@PLT\njmp dbScanLock@PLT\n"));

    if (!calls) {
        testSkip(1, "no assembler for x86-64");
        return;
    }
    testOk(!calls->knowsBehind, "a jump to dbScanLock does not come back: there is no place behind it");
    free(calls);
}

static void testCallers(void)
{
    ebpfMonCalls *calls = readCalls(
        SCAN_LIST(LAST) FUNCTION("dbGetField", "call dbScanLock@PLT\nnop\ncall dbScanUnlock@PLT\nret\n")
            FUNCTION("dbPutField", "call dbScanLock@PLT\nnop\ncall dbScanUnlock@PLT\nret\n")
            FUNCTION("another", "call dbScanLock@PLT\nnop\ncall dbScanUnlock@PLT\nret\n"));
    unsigned n[ebpfMonCallerScanList + 1] = { 0 };

    if (!calls) {
        testSkip(3, "no assembler for x86-64");
        return;
    }
    for (unsigned i = 0; i < calls->count; i++)
        if (calls->call[i].called == ebpfMonCalledLock)
            n[calls->call[i].caller]++;
    testOk(n[ebpfMonCallerScanList] == 1 && n[ebpfMonCallerReader] == 1 && n[ebpfMonCallerOther] == 1 &&
           n[ebpfMonCallerPutField] == 1, "who calls dbScanLock");
    testOk(calls->complete && calls->knowsBehind, "all calls are known");
    testOk(calls->putFieldLocks, "dbPutField takes its lock at one place");
    free(calls);
}

static void testTwoLocks(void)
{
    ebpfMonCalls *calls = readCalls(".text\n" SELF FUNCTION("dbPutField",
        "call dbScanLock@PLT\nnop\ncall dbScanLock@PLT\nnop\ncall dbScanUnlock@PLT\nret\n"));

    if (!calls) {
        testSkip(1, "no assembler for x86-64");
        return;
    }
    testOk(!calls->putFieldLocks, "a dbPutField that takes locks at two places is not that of Base");
    free(calls);
}

static void runImageCalls(void)
{
    if (!mkdtemp(callsFolder))
        testAbort("no callsFolder in /tmp");
    testEnds();
    testBehind();
    testTailCall();
    testCallers();
    testTwoLocks();
    rmdir(callsFolder);
}

MAIN(testCallSites)
{
    testPlan(18 + 6 + 2 * 16 * 2 + 11 + 4 + 1 + 3 + 1);
    runCallSites();
    runImageCalls();
    return testDone();
}
