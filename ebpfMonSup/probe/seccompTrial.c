/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/attach.h"
#include "probe/ownCode.h"
#include "probe/seccompTrial.h"

#define CALLS        100
#define WAIT_MS      5000
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

/* The child process. It has copies of locks that threads of the parent may hold, so it only makes system calls. It
 * writes a byte if it survived and the probe was there. */
static void runChild(int socket)
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
    char byte;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (read(socket, &byte, 1) != 1 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
        _exit(1);
    for (int i = 0; i < CALLS; i++)
        replaced += ebpfMonSeccompCall() != 0;
    _exit(replaced == CALLS && write(socket, &byte, 1) == 1 ? 0 : 1);
}

/* Sets the probe and lets the child continue. Nonzero: the child survived. */
static int probeChild(pid_t child, int socket)
{
    struct pollfd answer = { .fd = socket, .events = POLLIN };
    char path[512], byte = 1;
    ebpfMonProbe probe;
    uint64_t offset;
    int lived;

    if (ebpfMonOwnCodeFind((uint64_t)(uintptr_t)ebpfMonSeccompProbed, path, sizeof(path), &offset) ||
        ebpfMonProbeOn(&probe, ebpfMonProgPutReturn, path, &offset, 1, child, 1))
        return 0;
    lived = send(socket, &byte, 1, MSG_NOSIGNAL) == 1 && poll(&answer, 1, WAIT_MS) == 1 && read(socket, &byte, 1) == 1;
    ebpfMonProbeOff(&probe);
    return lived;
}

int ebpfMonSeccompTryReturn(void)
{
    int ends[2], lived = 0;
    pid_t child;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return 0;
    child = fork();
    if (child == 0) {
        close(ends[0]);
        runChild(ends[1]);
    }
    close(ends[1]);
    if (child > 0) {
        lived = probeChild(child, ends[0]);
        kill(child, SIGKILL);
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close(ends[0]);
    return lived;
}
