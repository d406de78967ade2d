/* SPDX-License-Identifier: BSD-3-Clause */
/* code/binary.h: calls of dbScanLock and similar functions, in small libraries made by the assembler. Only the
 * machine code shows how scanList ends, and from which place behind a call the thread has the lock. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "code/binary.h"

static char folder[] = "/tmp/ebpfMonXXXXXX";

/* Makes a library from this source. The caller frees the result. NULL if there is no assembler for it. */
static ebpfMonCalls *readCalls(const char *source)
{
    ebpfMonCalls *calls = NULL;
    char path[80], command[300];
    ebpfMonElfFile file;
    FILE *cc;
    int fd;

    snprintf(path, sizeof(path), "%s/lib.so", folder);
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
#define OWN FUNCTION("dbProcess", "xor %eax, %eax\nret\n")
/* A loop of chains as that of dbScan.c; %s is its end. */
#define SCAN_LIST(end) ".text\n" OWN FUNCTION("scanList", \
    "push %rbx\n.cfi_adjust_cfa_offset 8\nmov %rdi, %rbx\n" \
    "1: call epicsMutexLock@PLT\n" \
    "mov %rbx, %rdi\ncall dbScanLock@PLT\nmov %rbx, %rdi\ncall dbProcess@PLT\nmov %rbx, %rdi\ncall dbScanUnlock@PLT\n" \
    "test %rbx, %rbx\nje 2f\ncall epicsMutexUnlock@PLT\njmp 1b\n" \
    "2:\n" end) FUNCTION("behind", "nop\nret\n")
#define TAIL "pop %rbx\n.cfi_adjust_cfa_offset -8\njmp epicsMutexUnlock@PLT\n"
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
    testEnd("a jump to epicsMutexUnlock", SCAN_LIST(TAIL), 1, 0);
    testEnd("two of them", SCAN_LIST("test %eax, %eax\nje 3f\n" TAIL "3: .cfi_adjust_cfa_offset 8\n" TAIL), 2, 0);
    testEnd("a jump, and a return",
            SCAN_LIST("test %eax, %eax\nje 3f\n" TAIL "3: .cfi_adjust_cfa_offset 8\n" LEAVE "ret\n"), 1, 1);
    testEnd("a return that says repz",
            SCAN_LIST("test %eax, %eax\nje 3f\n" TAIL "3: .cfi_adjust_cfa_offset 8\n" LEAVE "repz ret\n"), 1, 1);
    testEnd("a call and a return", SCAN_LIST("call epicsMutexUnlock@PLT\n" LEAVE "ret\n"), 0, 1);
    testEnd("a jump elsewhere",
            SCAN_LIST("test %eax, %eax\nje 3f\n" TAIL "3: .cfi_adjust_cfa_offset 8\n" LEAVE "jmp errlogPrintf@PLT\n"),
            1, 1);
    testEnd("a jump by a pointer",
            SCAN_LIST("test %eax, %eax\nje 3f\n" TAIL "3: .cfi_adjust_cfa_offset 8\n" LEAVE "jmp *%rax\n"), 1, 1);
    testEnd("a branch out of it", SCAN_LIST("test %eax, %eax\njne elsewhere\n" TAIL) ".skip 300\n"
            FUNCTION("elsewhere", "nop\nret\n"), 1, 1);
    testEnd("a short branch out of it", SCAN_LIST("test %eax, %eax\njne behind\n" TAIL), 1, 1);
    testEnd("a short jump out of it",
            SCAN_LIST("test %eax, %eax\nje 3f\n" TAIL "3: .cfi_adjust_cfa_offset 8\n" LEAVE "jmp behind\n"), 1, 1);
    testEnd("a call that does not return",
            SCAN_LIST("test %eax, %eax\nje 3f\n" TAIL "3: .cfi_adjust_cfa_offset 8\ncall cantProceed@PLT\n"), 1, 0);
}

/* The instructions behind the call of dbScanLock in a function that processes, and the offset of the place that must
 * be found, in bytes; -1: none. */
static void testPlaceBehind(const char *what, const char *after, int bytes)
{
    char source[2000];
    ebpfMonCalls *calls;
    uint64_t lock = 0, behind = 0;

    snprintf(source, sizeof(source), "%s%s%s", ".text\n" OWN BEGIN("another") "push %rbx\n.cfi_adjust_cfa_offset 8\n"
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
    ebpfMonCalls *calls = readCalls(".text\n" OWN FUNCTION("another", "call dbProcess@PLT\njmp dbScanLock@PLT\n"));

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
        SCAN_LIST(TAIL) FUNCTION("dbGetField", "call dbScanLock@PLT\nnop\ncall dbScanUnlock@PLT\nret\n")
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
    ebpfMonCalls *calls = readCalls(".text\n" OWN FUNCTION("dbPutField",
        "call dbScanLock@PLT\nnop\ncall dbScanLock@PLT\nnop\ncall dbScanUnlock@PLT\nret\n"));

    if (!calls) {
        testSkip(1, "no assembler for x86-64");
        return;
    }
    testOk(!calls->putFieldLocks, "a dbPutField that takes locks at two places is not that of Base");
    free(calls);
}

MAIN(testImageCalls)
{
    testPlan(11 + 4 + 1 + 3 + 1);
    if (!mkdtemp(folder))
        testAbort("no folder in /tmp");
    testEnds();
    testBehind();
    testTailCall();
    testCallers();
    testTwoLocks();
    rmdir(folder);
    return testDone();
}
