/* SPDX-License-Identifier: BSD-3-Clause */
/* Stacks of a waiting thread, of a thread in a stub, of no thread, and with wrong call frame information. */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <epicsEvent.h>
#include <epicsThread.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "code/elfSymbols.h"
#include "code/stack.h"

#define LIES 3000

static pid_t tid;
static epicsEventId go, done;
static volatile int sink;

__attribute__((noinline)) void stackInner(int n)
{
    volatile char room[400];

    room[n] = 1;
    tid = (pid_t)syscall(SYS_gettid);
    epicsEventMustWait(go);
    sink += room[n];
}

__attribute__((noinline)) void stackOuter(int n)
{
    char *room = __builtin_alloca((size_t)n * 16 + 16); /* its frame is found by rbp */

    room[n] = 1;
    stackInner(n);
    sink += room[n];
}

static void thread(void *arg)
{
    stackOuter(3);
    epicsEventMustTrigger(done);
}

static int place(const ebpfMonFrame *frame, unsigned n, const char *name)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(frame[i].name, name) == 0)
            return (int)i;
    return -1;
}

static int waits(pid_t t)
{
    char path[64], text[16] = "";
    int fd;

    snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)t);
    fd = open(path, O_RDONLY);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
        text[0] = 0;
    if (fd >= 0)
        close(fd);
    return text[0] >= '0' && text[0] <= '9';
}

static void testWaiting(void)
{
    ebpfMonFrame frame[EBPFMON_STACK_MAX];
    ebpfMonStackStart start = { .returns = 0 };
    unsigned n;
    int inner, outer;

    go = epicsEventMustCreate(epicsEventEmpty);
    done = epicsEventMustCreate(epicsEventEmpty);
    epicsThreadMustCreate("stack", epicsThreadPriorityMedium, epicsThreadGetStackSize(epicsThreadStackSmall), thread,
                          NULL);
    for (int i = 0; i < 6000 && !(tid && waits(tid)); i++)
        epicsThreadSleep(0.01);
    n = ebpfMonStackGet(getpid(), tid, &start, frame);
    for (unsigned i = 0; i < n; i++)
        testDiag("#%u %s+0x%x (%s)", i, frame[i].name, frame[i].offset, frame[i].file);
    inner = place(frame, n, "stackInner");
    outer = place(frame, n, "stackOuter");
    testOk(inner > 0 && strncmp(frame[inner].file, "testStack", 9) == 0, "the function that waits is at %d", inner);
    testOk(outer == inner + 1, "its caller follows, with a stack of any size");
    testOk(place(frame, n, "thread") == outer + 1, "the caller of the caller follows");
    testOk(place(frame, n, "epicsEventMustWait") >= 0 && place(frame, n, "epicsEventMustWait") < inner,
           "libCom called the thread's function");
    epicsEventMustTrigger(go);
    epicsEventMustWait(done);

    start.regs = (ebpfMonRegs){ .known = 1u << EBPFMON_REG_SP | 1u << EBPFMON_REG_PC };
    testOk(ebpfMonStackGet(getpid(), tid, &start, frame) == 0, "nothing at address 0");
    start.regs = (ebpfMonRegs){ .known = 1u << EBPFMON_REG_SP | 1u << EBPFMON_REG_PC };
    start.regs.reg[EBPFMON_REG_PC] = (uint64_t)(uintptr_t)&stackInner + 40;
    testOk(ebpfMonStackGet(getpid(), tid, &start, frame) <= 1, "without a stack no caller is found");
    start.regs.known = 0;
    testOk(ebpfMonStackGet(getpid(), 0x7fffffff, &start, frame) == 0, "a thread that is gone has no stack");
}

/* A place in the stub that calls this function; 0 if there is none. */
static uint64_t findStub(const ebpfMonElfFile *file, const char *function)
{
    char name[80], wanted[80];
    uint64_t offset;

    snprintf(wanted, sizeof(wanted), "%s@plt", function);
    for (unsigned i = 0; i < file->nSegments; i++)
        for (uint64_t at = 0; file->segment[i].flags & PF_X && at < file->segment[i].fileSize; at += 8)
            if (ebpfMonElfNameCode(file, file->segment[i].vaddr + at, name, sizeof(name), &offset) == 0 &&
                strcmp(name, wanted) == 0)
                return file->segment[i].vaddr + at - offset;
    return 0;
}

/* A running thread may be in a stub, which has no symbol: before the push of the stub, or behind it. */
static void testStub(void)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    uint64_t inner = (uint64_t)(uintptr_t)&stackInner, vaddr, offset, stub, stack[3];
    ebpfMonFrame frame[EBPFMON_STACK_MAX];
    ebpfMonElfSymbol symbol;
    ebpfMonElfFile file;
    ebpfMonStackStart start = { .returns = 0 };
    char name[80];
    unsigned n;

    if (fd < 0 || ebpfMonElfOpen(&file, fd) || !ebpfMonElfFind(&file, (const char *const[]){"stackInner"}, 1, &symbol))
        testAbort("cannot read ourselves");
    vaddr = findStub(&file, "epicsEventMustWait");
    testOk(vaddr != 0, "the stub of epicsEventMustWait is at 0x%llx", (unsigned long long)vaddr);
    testOk(ebpfMonElfNameCode(&file, vaddr + 7, name, sizeof(name), &offset) == 0 && offset == 7 &&
           strcmp(name, "epicsEventMustWait@plt") == 0, "7 bytes further the stub has the same name");
    stub = inner - symbol.vaddr + vaddr;
    stack[0] = stack[1] = inner + 40;
    stack[2] = 0;
    start.regs = (ebpfMonRegs){ .known = 1u << EBPFMON_REG_SP | 1u << EBPFMON_REG_PC };
    start.regs.reg[EBPFMON_REG_PC] = stub;
    start.regs.reg[EBPFMON_REG_SP] = (uint64_t)(uintptr_t)stack;
    n = ebpfMonStackGet(getpid(), getpid(), &start, frame);
    testOk(n >= 2 && strcmp(frame[0].name, "epicsEventMustWait@plt") == 0 && strcmp(frame[1].name, "stackInner") == 0,
           "within a stub the caller is stackInner: %u frames", n);
    stack[0] = 4096; /* as a return probe replaces it, by a place that no file has */
    n = ebpfMonStackGet(getpid(), getpid(), &start, frame);
    testOk(n == 1, "a return address that was replaced leads nowhere: %u frames", n);
    start.ret[0] = (ebpfMonReturn){ .slot = (uint64_t)(uintptr_t)stack, .to = inner + 40 };
    start.returns = 1;
    n = ebpfMonStackGet(getpid(), getpid(), &start, frame);
    testOk(n >= 2 && strcmp(frame[1].name, "stackInner") == 0, "the original one leads to the caller: %u frames", n);
    start.returns = 0;
    stack[0] = 5; /* what the stub of a function that is not bound yet pushes */
    start.regs = (ebpfMonRegs){ .known = 1u << EBPFMON_REG_SP | 1u << EBPFMON_REG_PC };
    start.regs.reg[EBPFMON_REG_PC] = stub + 11;
    start.regs.reg[EBPFMON_REG_SP] = (uint64_t)(uintptr_t)stack;
    if (((uint8_t *)(uintptr_t)stub)[6] == 0x68) {
        n = ebpfMonStackGet(getpid(), getpid(), &start, frame);
        testOk(n >= 2 && strcmp(frame[1].name, "stackInner") == 0, "… and also behind its push: %u frames", n);
    } else {
        testSkip(1, "this stub has no push");
    }
    ebpfMonElfClose(&file);
    close(fd);
}

static int anything(void *arg, uint64_t addr, uint64_t *value)
{
    *value = *(uint64_t *)arg = *(uint64_t *)arg * 6364136223846793005u + 1442695040888963407u;
    return 0;
}

/* The file of this program, with changed bytes in its call frame information: unwinding must always end. */
static void testLies(void)
{
    int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd = memfd_create("lies", MFD_CLOEXEC);
    struct stat st;
    char *bytes = fstat(in, &st) == 0 ? malloc((size_t)st.st_size) : NULL;
    uint64_t seed = 1, at = 0, steps = 0, refused = 0;
    ebpfMonElfFile file;

    if (!bytes || read(in, bytes, (size_t)st.st_size) != st.st_size ||
        write(fd, bytes, (size_t)st.st_size) != st.st_size || ebpfMonElfOpen(&file, fd) ||
        ebpfMonElfOffset(&file, file.ehFrameHdr, 0, &at))
        testAbort("cannot read ourselves");
    for (int i = 0; i < LIES; i++) {
        uint64_t left = (uint64_t)st.st_size - at, where, dummy;
        ebpfMonRegs regs = { .known = 0x1ffff };
        const ebpfMonElfSegment *s = NULL;
        char lie;

        for (unsigned k = 0; k < file.nSegments; k++)
            if (file.segment[k].flags & PF_X)
                s = &file.segment[k];
        for (int k = 0; k < 4; k++) {
            anything(&seed, 0, &dummy);
            where = at + dummy % (left < 6000 ? left : 6000);
            lie = (char)(dummy >> 56);
            if (pwrite(fd, &lie, 1, (off_t)where) != 1)
                testAbort("cannot lie");
        }
        anything(&seed, 0, &dummy);
        regs.reg[EBPFMON_REG_PC] = s->vaddr + dummy % s->fileSize;
        regs.reg[EBPFMON_REG_SP] = regs.reg[6] = 0x1000;
        steps++;
        refused += ebpfMonUnwindStep(&file, 0, i & 1, anything, &seed, &regs) < 0;
        if (i % 50 == 0 && pwrite(fd, bytes, (size_t)st.st_size, 0) != st.st_size)
            testAbort("cannot mend");
    }
    testOk(refused > 0 && refused < steps, "damaged rules are refused: %llu of %llu steps", (unsigned long long)refused,
           (unsigned long long)steps);
    ebpfMonElfClose(&file);
    close(fd);
    close(in);
    free(bytes);
}

MAIN(testStack)
{
    testPlan(14);
    testWaiting();
    testStub();
    testLies();
    return testDone();
}
