/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "probe/preemption.h"

#define MODE    "/sys/kernel/debug/sched/preempt"
#define CMDLINE "/proc/cmdline"
#define LENGTH  4096 /* no COMMAND_LINE_SIZE is larger (x86: 2048, s390: 4096) */

/* Nonzero: "word" stands in the text between blanks, or at its ends. */
static int hasWord(const char *text, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
        if ((p == text || p[-1] == ' ') && (!p[n] || p[n] == ' '))
            return 1;
    return 0;
}

/* Nonzero: the last mode that "preempt=" names is one that does not preempt. The kernel takes each in turn, and not
 * those that it does not know (setup_preempt_mode). What follows " -- " is for init. */
static int isBootedWithout(const char *cmdline)
{
    const char *end = strstr(cmdline, " -- ");
    int isWithout = 0;

    for (const char *p = cmdline; (p = strstr(p, "preempt=")) != NULL && (!end || p < end);) {
        int begins = p == cmdline || p[-1] == ' ';
        size_t n;

        p += strlen("preempt=");
        n = strcspn(p, " \n");
        if (begins && ((n == 4 && !strncmp(p, "none", n)) || (n == 9 && !strncmp(p, "voluntary", n))))
            isWithout = 1;
        else if (begins && n == 4 && (!strncmp(p, "full", n) || !strncmp(p, "lazy", n)))
            isWithout = 0;
    }
    return isWithout;
}

/* From 7.0 on there are only the modes full and lazy, and a tracepoint does not switch preemption off. */
#define PREEMPTS_SINCE 7

/* Up to 6.19 these programs run with preemption off: __DO_TRACE() of include/linux/tracepoint.h and, for system calls,
 * 4aadde89d81f ("tracing/bpf: disable preemption in syscall probe"). Later kernels only keep the thread on its CPU. Of
 * real-time kernels it is not known, so it is taken as "may". */
int ebpfMonPreemptionAtTracepoints(const char *release, const char *version)
{
    return strtoul(release, NULL, 10) >= PREEMPTS_SINCE || hasWord(version, "PREEMPT_RT");
}

/* init/Makefile of the kernel writes PREEMPT, PREEMPT_DYNAMIC or PREEMPT_RT into the version, of kernels with patches
 * also others (PREEMPT_AUTO). A kernel without preemption, or that preempts only where it says so, writes nothing. From
 * 7.0 on there are only the modes full and lazy, whatever was configured. */
int ebpfMonPreemptionFind(const char *release, const char *version, const char *cmdline, const char *mode)
{
    if (strtoul(release, NULL, 10) >= PREEMPTS_SINCE)
        return 1;
    if (!strstr(version, "PREEMPT"))
        return 0;
    if (!hasWord(version, "PREEMPT_DYNAMIC"))
        return 1;
    if (strchr(mode, '('))
        return !strstr(mode, "(none)") && !strstr(mode, "(voluntary)");
    return !isBootedWithout(cmdline);
}

/* Reads the begin of a file; "" if that is not possible. */
static void readText(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, size - 1, f) : 0;

    text[n] = 0;
    if (f)
        fclose(f);
}

int ebpfMonKernelIsRealTime(void)
{
    struct utsname kernel;

    return uname(&kernel) == 0 && hasWord(kernel.version, "PREEMPT_RT");
}

int ebpfMonKernelMayPreemptTracepoints(void)
{
    struct utsname kernel;

    return uname(&kernel) || ebpfMonPreemptionAtTracepoints(kernel.release, kernel.version);
}

int ebpfMonKernelMayPreempt(void)
{
    char cmdline[LENGTH], mode[80];
    struct utsname kernel;

    if (uname(&kernel))
        return 1;
    readText(CMDLINE, cmdline, sizeof(cmdline));
    readText(MODE, mode, sizeof(mode)); /* only root, and where debugfs is mounted */
    return ebpfMonPreemptionFind(kernel.release, kernel.version, cmdline, mode);
}
