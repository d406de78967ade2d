/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "code/mapping.h"
#include "probe/childTrial.h"
#include "probe/uprobeMulti.h"

/* --- the place of a function of ours --- */

int ebpfMonOwnCodeFind(uint64_t addr, char *path, size_t size, uint64_t *offset)
{
    ebpfMonMappings maps;
    ebpfMonMapping map;
    struct stat st;
    int isFound = 0;

    if (ebpfMonMappingsOpen(&maps, getpid()))
        return -1;
    while (!isFound && ebpfMonMappingsReadNext(&maps, &map))
        isFound = addr >= map.start && addr < map.end;
    *offset = isFound ? addr - map.start + map.offset : 0;
    isFound = isFound && ebpfMonMappingFindPath(getpid(), &map, path, size, &st) == 0;
    ebpfMonMappingsClose(&maps);
    return isFound ? 0 : -1;
}

/* --- a child that may come to harm --- */

#define WAIT_MS 5000

static void runChild(const ebpfMonChildTrial *trial, int socket)
{
    char byte;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (read(socket, &byte, 1) != 1)
        _exit(1);
    byte = (char)trial->run();
    _exit(write(socket, &byte, 1) == 1 ? 0 : 1);
}

/* Sets the probe and lets the child continue. Returns its answer, or -1. */
static int probeChild(const ebpfMonChildTrial *trial, pid_t child, int socket)
{
    struct pollfd answer = { .fd = socket, .events = POLLIN };
    char byte = 0;
    int isGiven;

    if (trial->set(trial->arg, child))
        return -1;
    isGiven = send(socket, &byte, 1, MSG_NOSIGNAL) == 1 && poll(&answer, 1, WAIT_MS) == 1 &&
              read(socket, &byte, 1) == 1;
    trial->unset(trial->arg);
    return isGiven ? byte : -1;
}

int ebpfMonChildTry(const ebpfMonChildTrial *trial)
{
    int ends[2], answer = -1;
    pid_t child;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return -1;
    child = fork();
    if (child == 0) {
        close(ends[0]);
        runChild(trial, ends[1]);
    }
    close(ends[1]);
    if (child > 0) {
        answer = probeChild(trial, child, ends[0]);
        kill(child, SIGKILL);
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close(ends[0]);
    return answer;
}

/* --- nops of 5 bytes --- */

#if defined(__x86_64__)

#define CALLS 100 /* the kernel writes the call when the probe is hit for the first time */
#define NOP   0x0f

enum { isKept, isChanged, isUnprobed };

/* Leaf() stores a number in all of its red zone, passes the nop, and compares. The result is 0 if nothing changed. */
__asm__(".text\n"
        ".hidden ebpfMonNopLeaf\n"
        ".globl ebpfMonNopLeaf\n"
        ".type ebpfMonNopLeaf,%function\n"
        ".hidden ebpfMonNopPlace\n"
        ".globl ebpfMonNopPlace\n"
        ".balign 16\n" /* the kernel does it only where the 5 bytes are in one page */
        "ebpfMonNopLeaf:\n"
        "    movabs $0x5a5a5a5a5a5a5a5a,%rdx\n"
        "    mov $-16,%rcx\n"
        "1:  mov %rdx,(%rsp,%rcx,8)\n"
        "    inc %rcx\n"
        "    jnz 1b\n"
        ".balign 16\n"
        "ebpfMonNopPlace: .byte 0x0f,0x1f,0x44,0x00,0x00\n"
        "    xor %eax,%eax\n"
        "    mov $-16,%rcx\n"
        "2:  mov (%rsp,%rcx,8),%rsi\n"
        "    xor %rdx,%rsi\n"
        "    or %rsi,%rax\n"
        "    inc %rcx\n"
        "    jnz 2b\n"
        "    ret\n");
uint64_t ebpfMonNopLeaf(void);
extern const volatile uint8_t ebpfMonNopPlace[];

static int passNops(void)
{
    for (int i = 0; i < CALLS; i++)
        if (ebpfMonNopLeaf())
            return isChanged;
    return ebpfMonNopPlace[0] == NOP ? isUnprobed : isKept;
}

static int probeNop(void *link, pid_t child)
{
    char path[512];
    uint64_t offset;
    int prog;

    if (ebpfMonOwnCodeFind((uint64_t)(uintptr_t)ebpfMonNopPlace, path, sizeof(path), &offset))
        return -1;
    prog = ebpfMonUprobeMultiLoadEmpty();
    if (prog < 0)
        return -1;
    *(int *)link = ebpfMonUprobeMultiAttach(prog, &(ebpfMonUprobePlaces){ .path = path, .offset = &offset, .count = 1,
                                                                          .pid = child }, 0);
    close(prog);
    return *(int *)link < 0;
}

static void closeNop(void *link)
{
    close(*(int *)link);
}

int ebpfMonNopTryHarm(void)
{
    int link = -1;
    const ebpfMonChildTrial trial = { probeNop, closeNop, passNops, &link };

    return ebpfMonChildTry(&trial) != isKept;
}

#else

int ebpfMonNopTryHarm(void)
{
    return 0;
}

#endif
