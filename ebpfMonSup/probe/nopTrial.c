/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/nopTrial.h"

#if defined(__x86_64__)

#include <stdint.h>
#include <unistd.h>

#include "probe/childTrial.h"
#include "probe/ownCode.h"
#include "probe/uprobeMulti.h"

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
    *(int *)link = ebpfMonUprobeMultiAttach(prog, path, &offset, NULL, 1, child, 0);
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
