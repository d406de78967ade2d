/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <bpf/bpf.h>

#include "probe/preemption.h"
#include "probe/threadStack.h"
#include "ebpfMonTable.h"

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
