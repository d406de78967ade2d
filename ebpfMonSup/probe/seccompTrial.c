/* SPDX-License-Identifier: BSD-3-Clause */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "probe/attach.h"
#include "probe/childTrial.h"
#include "probe/seccompTrial.h"

#define CALLS        100
#define NR_URETPROBE 335 /* arch/x86/entry/syscalls/syscall_64.tbl */
#define NR_UPROBE    336 /* the same for probes at entries, since Linux 6.18 */

/* Call() calls Probed(), which compares its return address with the real one. The result is 0 if they are the same. A
 * return probe replaces the return address, so then it is not 0. */
__asm__(".text\n"
        ".hidden ebpfMonSeccompCall\n"
        ".globl ebpfMonSeccompCall\n"
        ".type ebpfMonSeccompCall,%function\n"
        ".hidden ebpfMonSeccompProbed\n"
        ".globl ebpfMonSeccompProbed\n"
        ".type ebpfMonSeccompProbed,%function\n"
#if defined(__x86_64__)
        "ebpfMonSeccompCall:\n"
        "    call ebpfMonSeccompProbed\n"
        "1:  ret\n"
        "ebpfMonSeccompProbed: nop\n"
        "    mov (%rsp),%rax\n"
        "    lea 1b(%rip),%rcx\n"
        "    sub %rcx,%rax\n"
        "    ret\n"
#else
        "ebpfMonSeccompCall:\n"
        "    stp x29,x30,[sp,-16]!\n"
        "    bl ebpfMonSeccompProbed\n"
        "1:  ldp x29,x30,[sp],16\n"
        "    ret\n"
        "ebpfMonSeccompProbed: nop\n"
        "    adr x1,1b\n"
        "    sub x0,x30,x1\n"
        "    ret\n"
#endif
        );
long ebpfMonSeccompCall(void);
long ebpfMonSeccompProbed(void);

/* Runs in the child. Nonzero: it survived, and the probe was there. */
static int callUnderFilter(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NR_URETPROBE, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NR_UPROBE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = { sizeof(filter) / sizeof(filter[0]), filter };
    int replaced = 0;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
        return 0;
    for (int i = 0; i < CALLS; i++)
        replaced += ebpfMonSeccompCall() != 0;
    return replaced == CALLS;
}

static int probeReturn(void *probe, pid_t child)
{
    char path[512];
    uint64_t offset;

    return ebpfMonOwnCodeFind((uint64_t)(uintptr_t)ebpfMonSeccompProbed, path, sizeof(path), &offset) ||
           ebpfMonProbeOn(probe, ebpfMonProgPutReturn, path, &offset, 1, child, 1);
}

static void removeReturn(void *probe)
{
    ebpfMonProbeOff(probe);
}

int ebpfMonSeccompTryReturn(void)
{
    ebpfMonProbe probe;
    const ebpfMonChildTrial trial = { probeReturn, removeReturn, callUnderFilter, &probe };

    return ebpfMonChildTry(&trial) == 1;
}
