/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is the files in /proc of a process, one for each piece. The owner of a process can choose its names,
 * arguments, environment, mappings and cgroup. The whole input is also the memory of the process. */
#include "otherProcess.h"
#include "fuzz.h"
#include "code/image.h"
#include "code/stack.h"
#include "common/text.h"
#include "host/procInfo.h"
#include "host/procNetns.h"
#include "host/procStat.h"

#define PID 4711
#define TID 4712

double ebpfMonFuzzSeconds = 1;

static const char *const name[] = {
    "/stat", "/status", "/cmdline", "/environ", "/comm", "/maps", "/cgroup", "/tcp", "/tcp6", "/limits", "/syscall",
    "/wchan", "/stack", "/schedstat", "/cwd", "/exe", "/fd/", "/map_files/", "/root/", "/net",
};
#define NAMES (sizeof(name) / sizeof(name[0]))

static void checkText(const char *text, size_t size)
{
    FUZZ_CHECK(memchr(text, 0, size));
    FUZZ_CHECK(ebpfMonTextIsClean(text));
}

static void readProcess(void)
{
    char text[EBPFMON_IOCNAME_SIZE], small[6];
    uint8_t ports[EBPFMON_PORTS_BYTES];
    ebpfMonProcConn *conns = NULL;

    ebpfMonProcStart(PID);
    if (ebpfMonProcIocName(PID, text, sizeof(text)) == 0)
        checkText(text, sizeof(text));
    if (ebpfMonProcCommand(PID, text, sizeof(text)) == 0)
        checkText(text, sizeof(text));
    if (ebpfMonProcCommand(PID, small, sizeof(small)) == 0)
        checkText(small, sizeof(small));
    ebpfMonProcIsUnderValgrind(PID);
    ebpfMonProcSeccomp(PID);
    ebpfMonProcCapabilities();
    ebpfMonProcListening(PID, ports);
    for (int i = 0, n = ebpfMonProcReadConns(PID, &conns); i < n; i++)
        FUZZ_CHECK(memchr(conns[i].comm, 0, sizeof(conns[i].comm)));
    free(conns);
    if (ebpfMonProcContainer(PID, text, sizeof(text)))
        checkText(text, sizeof(text));
}

static void readThread(void)
{
    char comm[16], what[160], stack[200];
    ebpfMonProcStat stat;

    ebpfMonProcStatGet(PID, &stat);
    if (ebpfMonProcThread(PID, TID, comm, what, sizeof(what)) == 0)
        checkText(comm, sizeof(comm));
    ebpfMonProcThreadsRun(PID, "cb");
    ebpfMonProcHasThread(PID, "cb*-[0-9]*");
    ebpfMonProcKernelStack(PID, TID, stack, sizeof(stack));
    FUZZ_CHECK(memchr(stack, 0, sizeof(stack)));
}

static void readImage(void)
{
    static ebpfMonFrame frame[EBPFMON_STACK_MAX];
    ebpfMonImageCache *cache = ebpfMonImageCacheNew();
    ebpfMonStackStart start = { .returns = 0 };
    ebpfMonImage image;

    if (cache && ebpfMonImageRead(cache, PID, &image) == 0)
        FUZZ_CHECK(image.core && memchr(image.openPath, 0, sizeof(image.openPath)));
    ebpfMonImageCacheFree(cache);
    for (unsigned i = 0, n = ebpfMonStackGet(PID, TID, &start, frame); i < n; i++) {
        FUZZ_CHECK(memchr(frame[i].file, 0, sizeof(frame[i].file)));
        checkText(frame[i].name, sizeof(frame[i].name));
    }
}

void ebpfMonFuzzOne(const uint8_t *data, size_t size)
{
    const uint8_t *piece;
    unsigned kind;
    size_t length;

    fuzzProcessClear();
    fuzzProcessSetMemory(0x10000, data, size);
    while (fuzzNextPiece(&data, &size, &kind, &piece, &length))
        fuzzProcessSetFile(name[kind % NAMES], piece, length);
    readProcess();
    readThread();
    readImage();
}
