/* SPDX-License-Identifier: BSD-3-Clause */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "host/procRead.h"
#include "probe/preemption.h"
#include "ebpfMonTable.h"

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
    ebpfMonProcReadFile(CMDLINE, cmdline, sizeof(cmdline));
    ebpfMonProcReadFile(MODE, mode, sizeof(mode)); /* only root, and where debugfs is mounted */
    return ebpfMonPreemptionFind(kernel.release, kernel.version, cmdline, mode);
}

/* --- stacks of programs --- */

#define CODE_MOST (1u << 20) /* bytes of machine code of a program with all functions; ours have up to 100 KB */

/* Nonzero: this code takes its stack from memory of its CPU. x86-64: "add %gs:this_cpu_off,%r9", which the JIT emits
 * for nothing else (emit_priv_frame_ptr(), arch/x86/net/bpf_jit_comp.c). Of other machines we only know what
 * ebpfMonThreadStackTry finds. */
static int usesPrivateStack(const uint8_t *code, size_t size)
{
#if defined(__x86_64__)
    static const uint8_t add[] = { 0x65, 0x4c, 0x03, 0x0c, 0x25 };

    return memmem(code, size, add, sizeof(add)) != NULL;
#else
    return 0;
#endif
}

/* Nonzero: the machine code of this program can be read, and it uses a private stack. */
static int hasPrivateStack(int fd, uint8_t *code)
{
    struct bpf_prog_info info = { .jited_prog_insns = (uintptr_t)code, .jited_prog_len = CODE_MOST };
    uint32_t size = sizeof(info);

    if (bpf_obj_get_info_by_fd(fd, &info, &size) || !info.jited_prog_insns)
        return 0;
    return usesPrivateStack(code, info.jited_prog_len < CODE_MOST ? info.jited_prog_len : CODE_MOST);
}

int ebpfMonThreadStackCheck(const struct bpf_object *object)
{
    uint8_t *code;
    struct bpf_program *prog;
    int found = 0;

    if (!ebpfMonKernelMayPreempt())
        return 0;
    code = malloc(CODE_MOST);
    if (!code)
        return -ENOMEM;
    bpf_object__for_each_program(prog, object)
        if (bpf_program__type(prog) == BPF_PROG_TYPE_KPROBE && bpf_program__fd(prog) >= 0)
            found |= hasPrivateStack(bpf_program__fd(prog), code);
    free(code);
    return found ? -EBPFMON_STACK_REFUSED : 0;
}

/* Nonzero: this kernel is too old for private stacks (6.13). */
static int isBeforePrivateStacks(void)
{
    unsigned major = 0, minor = 0;
    struct utsname kernel;

    return uname(&kernel) == 0 && sscanf(kernel.release, "%u.%u", &major, &minor) == 2 &&
           (major < 6 || (major == 6 && minor < 13));
}

int ebpfMonThreadStackTry(int trial)
{
    LIBBPF_OPTS(bpf_test_run_opts, run);

    if (!ebpfMonKernelMayPreempt())
        return 0;
    if (bpf_prog_test_run_opts(trial, &run)) /* before 5.10 a kernel cannot run it */
        return isBeforePrivateStacks() ? 0 : -EBPFMON_STACK_REFUSED;
    return run.retval == EBPFMON_STACK_THREAD ? 0 : -EBPFMON_STACK_REFUSED;
}
