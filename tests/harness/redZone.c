/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is loaded into an IOC (LD_PRELOAD). A thread calls two leaf functions a thousand times a second. Each stores numbers
 * in its red zone (System V ABI for x86-64, 3.2.2), passes a nop where a probe can be, and looks whether the numbers
 * have changed. The nop of leafNop1 has one byte, that of leafNop5 five. The file RED_ZONE has two numbers of 64 bits:
 * how often the thread called both, and how many of these calls found other numbers.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LEAF(name, place, bytes)                 \
    ".globl " name "\n"                          \
    ".type " name ",@function\n"                 \
    ".balign 64\n"                               \
    name ":\n"                                   \
    "    movabs $0x1122334455667788,%rax\n"      \
    "    mov %rax,-8(%rsp)\n"                    \
    "    mov %rax,-128(%rsp)\n"                  \
    "    mov %rax,%rdx\n"                        \
    ".globl " place "\n"                         \
    place ": .byte " bytes "\n"                  \
    "    xor -8(%rsp),%rax\n"                    \
    "    xor -128(%rsp),%rdx\n"                  \
    "    or %rdx,%rax\n"                         \
    "    ret\n"                                  \
    ".size " name ", . - " name "\n"

/* A note of a USDT probe without arguments (see tests/ioc/usdt.h). */
#define NOTE(place, probe)                       \
    ".balign 4\n"                                \
    ".4byte 2f - 1f, 4f - 3f, 3\n"               \
    "1: .asciz \"stapsdt\"\n"                    \
    "2: .balign 4\n"                             \
    "3: .8byte " place ", _.stapsdt.base, 0\n"   \
    ".asciz \"redZone\"\n"                       \
    ".asciz \"" probe "\"\n"                     \
    ".asciz \"\"\n"                              \
    "4: .balign 4\n"

__asm__(".text\n"
        LEAF("leafNop1", "placeNop1", "0x90")
        LEAF("leafNop5", "placeNop5", "0x0f,0x1f,0x44,0x00,0x00")
        ".pushsection .stapsdt.base, \"aG\", @progbits, .stapsdt.base, comdat\n"
        ".weak _.stapsdt.base\n"
        ".hidden _.stapsdt.base\n"
        "_.stapsdt.base: .space 1\n"
        ".popsection\n"
        ".pushsection .note.stapsdt, \"\", @note\n"
        NOTE("placeNop1", "safe")
        NOTE("placeNop1", "mixed")
        NOTE("placeNop5", "mixed")
        ".popsection\n");
uint64_t leafNop1(void);
uint64_t leafNop5(void);

static void *callLeaves(void *arg)
{
    const struct timespec pause = { 0, 1000000 };
    volatile uint64_t *counts = arg;

    for (;;) {
        uint64_t changed = leafNop1() | leafNop5();

        counts[1] += changed != 0;
        counts[0]++;
        nanosleep(&pause, NULL);
    }
    return NULL;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("RED_ZONE");
    int fd = path ? open(path, O_RDWR) : -1;
    pthread_t thread;
    void *counts;

    if (fd < 0)
        return;
    counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (counts != MAP_FAILED)
        pthread_create(&thread, NULL, callLeaves, counts);
}
