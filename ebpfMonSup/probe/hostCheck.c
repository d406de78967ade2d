/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/worker.h"
#include "ebpfMon.h"
#include "host/foreign.h"
#include "host/procInfo.h"
#include "host/procNetns.h"
#include "host/procStat.h"
#include "probe/calibrate.h"
#include "probe/kernelLoad.h"
#include "probe/packets.h"

/* --- what may be read of other processes --- */

/* Which parts of other processes this process may read: found out by trying. */

typedef struct {
    unsigned looked;   /* processes that were tried: those with a program that answered in time */
    unsigned memory;   /* of those, whose memory may be read */
    unsigned programs; /* … whose program file */
    unsigned names;    /* … whose environment, where the name of an IOC stands */
    unsigned elsewhere; /* … that live in another network namespace */
} ebpfMonProcAccess;

#define MAX_TRIED     1000
#define MAX_NS        2000000000ull
#define TRIAL_SECONDS 0.25
#define PF_KTHREAD    0x00200000ul /* include/linux/sched.h: a thread of the kernel, which has no program */

typedef struct {
    pid_t pid;
    int gone, memory, program, name;
} trial;

static int canOpen(const char *path)
{
    int fd = ebpfMonForeignOpenFile(path);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* By its path, as libraries must be opened (code/image.c): the link /proc/PID/exe leads past the rights of
 * folders. */
static int canOpenProgram(pid_t pid)
{
    char link[64], path[PATH_MAX], full[PATH_MAX + 64];

    if (ebpfMonProcReadLink(pid, "exe", path, sizeof(path)) <= 0)
        return 0;
    snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
    snprintf(full, sizeof(full), "/proc/%d/root%s", (int)pid, path);
    return canOpen(full) || (errno == ENOENT && canOpen(link)); /* it was replaced */
}

/* A job of foreign.h: the program may lie on a file system that does not answer. */
static void tryProcess(void *data)
{
    trial *t = data;
    char byte;
    struct iovec here = { &byte, 1 }, there = { NULL, 1 };
    char path[64];

    /* nothing is at address 0: EFAULT says that we might have read it */
    t->memory = process_vm_readv(t->pid, &here, 1, &there, 1, 0) >= 0 || errno == EFAULT;
    t->gone = !t->memory && errno == ESRCH;
    t->program = canOpenProgram(t->pid);
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)t->pid);
    t->name = t->memory && canOpen(path); /* newer kernels let it be opened, and then there is nothing in it */
}

static int isProgram(pid_t pid)
{
    char buf[1024];
    const char *p = ebpfMonProcReadText(pid, "stat", buf, sizeof(buf)) > 0 ? ebpfMonProcFindField(buf, 3) : NULL;
    unsigned long flags;
    char state;

    return p && sscanf(p, " %c %*s %*s %*s %*s %*s %lu", &state, &flags) == 2 && state != 'Z' &&
           !(flags & PF_KTHREAD);
}

/* Tries all processes, a thousand and two seconds at most. */
static void tryProcAccess(ebpfMonProcAccess *access)
{
    static const ebpfMonForeignJob job = { tryProcess, free };
    uint64_t until = ebpfMonClockMonotonic() + MAX_NS, own = ebpfMonProcNetns(getpid());
    pid_t *pids;
    int n = ebpfMonProcList(&pids);

    memset(access, 0, sizeof(*access));
    for (int i = 0; i < n && access->looked < MAX_TRIED && ebpfMonClockMonotonic() < until; i++) {
        trial *t = isProgram(pids[i]) && pids[i] != getpid() ? calloc(1, sizeof(*t)) : NULL;
        uint64_t netns;

        if (!t)
            continue;
        t->pid = pids[i];
        if (ebpfMonForeignRun(t->pid, TRIAL_SECONDS, &job, t))
            continue;
        if (t->gone) {
            free(t);
            continue;
        }
        access->looked++;
        access->memory += (unsigned)t->memory;
        access->programs += (unsigned)t->program;
        access->names += (unsigned)t->name;
        netns = ebpfMonProcNetns(t->pid);
        access->elsewhere += netns && netns != own;
        free(t);
    }
    free(pids);
}

/* --- the check --- */

/* "ebpfMon --check": tries what this kernel and this user allow, and tells what to do for more. */

#define BTF        "/sys/kernel/btf/vmlinux"
#define IOC_FILES  14   /* of the probes of one IOC, where each probe needs a file (watch/governor.c) */
#define NICE       -10  /* of the threads that read events (common/worker.c) */

typedef enum { isThere, isPartly, isAbsent } verdict;

static void printVerdict(FILE *out, verdict v, const char *subject, const char *text)
{
    static const char *const words[] = { "yes", "part", "NO" };

    fprintf(out, "%-5s%-11s%s\n", words[v], subject, text);
}

/* Reads the first line of a small file of the kernel; "?": there is none. */
static void readSetting(const char *path, char *text, size_t size)
{
    if (ebpfMonProcReadFile(path, text, size) <= 0)
        snprintf(text, size, "?");
    text[strcspn(text, "\n")] = 0;
}

/* Up to Linux 6.11 handler_chain (kernel/events/uprobes.c) waits for the lock under which a probe is set or removed. */
static void checkWaiting(FILE *out, const char *release)
{
    unsigned major, minor;

    if (sscanf(release, "%u.%u", &major, &minor) == 2 && (major < 6 || (major == 6 && minor < 12)))
        printVerdict(out, isPartly, "changes",
                     "a thread that runs into a probe just while it is set or removed stands still for 10 ms or more: "
                     "change levels seldom, or use Linux 6.12 or later");
}

static int checkKernel(FILE *out)
{
    char text[400], paranoid[16], unprivileged[16], lockdown[80];
    int isTyped = access(BTF, R_OK) == 0, isLocked;
    struct utsname kernel;

    uname(&kernel);
    readSetting("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof(paranoid));
    readSetting("/proc/sys/kernel/unprivileged_bpf_disabled", unprivileged, sizeof(unprivileged));
    readSetting("/sys/kernel/security/lockdown", lockdown, sizeof(lockdown)); /* "?": this kernel has no lockdown */
    isLocked = strstr(lockdown, "[confidentiality]") != NULL;
    snprintf(text, sizeof(text), "%.60s %.20s, %s, perf_event_paranoid %s, unprivileged_bpf_disabled %s%s",
             kernel.release, kernel.machine,
             isTyped ? "type information (BTF)" :
                       "no type information in " BTF
                       ": use a kernel with CONFIG_DEBUG_INFO_BTF, as distributions build them",
             paranoid, unprivileged,
             isLocked ? ", locked down: boot without lockdown=confidentiality, which forbids eBPF to read memory" : "");
    printVerdict(out, isTyped && !isLocked ? isThere : isAbsent, "kernel", text);
    checkWaiting(out, kernel.release);
    return isTyped && !isLocked;
}

static void checkUser(FILE *out)
{
    static const struct {
        int number;
        const char *name;
    } wanted[] = {
        {CAP_BPF, "CAP_BPF"},
        {CAP_PERFMON, "CAP_PERFMON"},
        {CAP_SYS_PTRACE, "CAP_SYS_PTRACE"},
        {CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"},
        {CAP_NET_RAW, "CAP_NET_RAW"},
        {CAP_NET_ADMIN, "CAP_NET_ADMIN"},
        {CAP_SYS_NICE, "CAP_SYS_NICE"},
        {CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
    };
    char text[300], user[64];
    uint64_t own = ebpfMonProcCapabilities();
    unsigned missing = 0;
    size_t used;

    ebpfMonProcUser(geteuid(), user, sizeof(user));
    snprintf(text, sizeof(text), "%s (uid %u)", user, (unsigned)geteuid());
    used = strlen(text);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        if (own & 1ull << wanted[i].number)
            continue;
        snprintf(text + used, sizeof(text) - used, "%s %s", missing++ ? "" : ", without", wanted[i].name);
        used = strlen(text);
    }
    snprintf(text + used, sizeof(text) - used, "%s", missing ? "" : ", with all capabilities that can be of use");
    printVerdict(out, missing ? isPartly : isThere, "user", text);
}

/* Loads the kernel part as the monitor does, with small tables. */
static int checkPrograms(FILE *out)
{
    const ebpfMonLoadSizes sizes = { .maxRecords = 1024, .maxRoots = 64, .ringBytes = 65536 };
    char why[256], text[400];

    if (ebpfMonKernelLoad(&sizes, why, sizeof(why))) {
        printVerdict(out, isAbsent, "programs", why);
        return 0;
    }
    snprintf(text, sizeof(text), "the kernel takes the eBPF programs: levels puts, counts, chains, trace%s",
             ebpfMonFeature.recvLength && ebpfMonFeature.connectState ? "" :
             "; the process at the other end of a PVA connection is not seen: use a newer kernel");
    printVerdict(out, ebpfMonFeature.recvLength ? isThere : isPartly, "programs", text);
    return 1;
}

static int checkProbes(FILE *out, int *needFiles)
{
    int inFolder = 0, err = ebpfMonProbeTry(&inFolder);
    char text[300];

    *needFiles = !inFolder;
    if (err && ebpfMonFeature.uprobeMulti)
        snprintf(text, sizeof(text), "none: %s", strerror(err));
    else if (err)
        snprintf(text, sizeof(text), "none: %s. This kernel has no uprobe_multi (6.12 and later have): give ebpfMon "
                 "CAP_SYS_ADMIN, or run it as root", strerror(err));
    else if (!ebpfMonFeature.uprobeMulti)
        snprintf(text, sizeof(text),
                 "one by one: to set or remove those of an IOC takes a second or two. Kernel 6.12 and later "
                 "have uprobe_multi");
    else if (!inFolder)
        snprintf(text, sizeof(text),
                 "all of an IOC at once; they take files, and some 40 ms to remove. For more: CAP_SYS_ADMIN, on "
                 "kernel 6.5 or later");
    else
        snprintf(text, sizeof(text), "all of an IOC at once; they take no files, and are removed at once");
    printVerdict(out, err ? isAbsent : inFolder ? isThere : isPartly, "probes", text);
    return !err;
}

static verdict judgePart(unsigned number, unsigned all)
{
    return number == all ? isThere : number ? isPartly : isAbsent;
}

static int hasCapability(int number)
{
    return (ebpfMonProcCapabilities() & 1ull << number) != 0;
}

/* Prints how many processes can be read, and what to do about the others. */
static void printProcesses(FILE *out, const char *subject, unsigned number, unsigned all, const char *advice)
{
    char text[300];

    snprintf(text, sizeof(text), "of %u of %u processes can be read%s", number, all, number == all ? "" : advice);
    printVerdict(out, judgePart(number, all), subject, text);
}

/* Nonzero: IOCs of other users can be watched. */
static int checkProcesses(FILE *out)
{
    static const char guarded[] = "; the others are guarded by something else than capabilities";
    static const char first[] = ". Give it CAP_SYS_PTRACE first";
    int hasPtrace = hasCapability(CAP_SYS_PTRACE), hasFiles = hasCapability(CAP_DAC_READ_SEARCH);
    ebpfMonProcAccess access;

    tryProcAccess(&access);
    printProcesses(out, "memory", access.memory, access.looked, hasPtrace ? guarded :
                 ": the IOCs of others are not seen. Give it CAP_SYS_PTRACE");
    printProcesses(out, "files", access.programs, access.looked, !hasPtrace ? first : hasFiles ? guarded :
                 ": IOCs among the others are not seen. Give it CAP_DAC_READ_SEARCH, or let its user read these files");
    printProcesses(out, "names", access.names, access.looked, !hasPtrace ? first : hasFiles ? guarded :
                 ": the variable IOC names an IOC; without it the folder or the command does. Give it "
                 "CAP_DAC_READ_SEARCH");
    return hasPtrace || access.memory == access.looked;
}

static void checkPackets(FILE *out)
{
    char why[256];
    ebpfMonPackets *packets = ebpfMonPacketsOpen(0, 65536, why, sizeof(why));

    printVerdict(out, packets ? isThere : isAbsent, "packets", packets ?
                 "puts to servers that are not EPICS Base, searches and beacons are seen" : why);
    if (packets)
        ebpfMonPacketsClose(packets);
}

static void checkContainers(FILE *out)
{
    int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), err;

    /* enters the namespace in which it is already: the kernel asks for the same right as for another one
     * (netns_install) */
    err = own < 0 || setns(own, CLONE_NEWNET) ? errno : 0;
    if (own >= 0)
        close(own);
    printVerdict(out, err ? isAbsent : isThere, "containers", err ?
                 "packets of other network namespaces are not seen. Give it CAP_SYS_ADMIN, if IOCs run in containers" :
                 "packets of other network namespaces are seen, too");
}

static void checkStacks(FILE *out)
{
    char text[64];
    int ok = ebpfMonProcReadFile("/proc/thread-self/stack", text, sizeof(text)) > 0;

    printVerdict(out, ok ? isThere : isAbsent, "stacks", ok ? "of threads that hang: with the functions of the kernel" :
                 "of threads that hang: without the functions of the kernel. Give it CAP_SYS_ADMIN, if you want them");
}

static void checkLimits(FILE *out, int needFiles)
{
    unsigned files, left = ebpfMonProcFilesLeft(&files), reserve = files / 4 < 1024 ? files / 4 : 1024, iocs;
    char text[300];

    iocs = left > reserve ? (left - reserve) / IOC_FILES : 0;
    if (needFiles)
        snprintf(text, sizeof(text), "%u files: the probes of %u IOCs%s", files, iocs, iocs < 100 ?
                 ". Raise the hard limit (ulimit -Hn, LimitNOFILE) for more" : "");
    else
        snprintf(text, sizeof(text), "%u files", files);
    printVerdict(out, needFiles && iocs < 100 ? isPartly : isThere, "limits", text);
}

static void checkPriority(FILE *out)
{
    int before = getpriority(PRIO_PROCESS, 0), ok = ebpfMonOwnPrioritySet(NICE) == 0;

    ebpfMonOwnPrioritySet(before);
    printVerdict(
        out, ok ? isThere : isAbsent, "priority",
        ok ? "the threads that read events and packets have a higher priority than others" :
             "the threads that read events and packets have normal priority: on a busy host more events may be lost. "
             "Give it CAP_SYS_NICE, or LimitNICE");
}

int ebpfMonHostCheck(FILE *out)
{
    int ok = checkKernel(out), needFiles = 0;

    checkUser(out);
    if (checkPrograms(out)) {
        ok &= checkProbes(out, &needFiles);
        ebpfMonKernelUnload();
    } else {
        ok = 0;
    }
    ok &= checkProcesses(out);
    checkPackets(out);
    checkContainers(out);
    checkStacks(out);
    checkLimits(out, needFiles);
    checkPriority(out);
    fprintf(out, "%s\n", ok ? "ebpfMon can watch the IOCs of this host." :
            "ebpfMon cannot watch all IOCs of this host: see the lines with NO or part.");
    return ok ? 0 : -1;
}
