/* SPDX-License-Identifier: BSD-3-Clause */
/* USDT probes. Each is a nop in the code, and an ELF note that says where the nop is and where its arguments are.
 * Programs usually take <sys/sdt.h> of SystemTap for this. We do not, because not every host has it, and because with
 * our own macros a test chooses the text that describes the arguments. */
#ifndef USDT_H
#define USDT_H

#define USDT_NO_SEMAPHORE "0"

#ifdef __x86_64__

/* The kernel increments it for each tool that attaches to the probe, and decrements it when the tool detaches. */
#define USDT_SEMAPHORE(name)              \
    extern volatile unsigned short name; \
    __attribute__((section(".probes"), used)) volatile unsigned short name
#define USDT_IS_WATCHED(name) __builtin_expect(name, 0)

#define USDT_PROBE(provider, name, args, semaphore, ...)                                          \
    __asm__ volatile("990: nop\n"                                                                 \
                     ".pushsection .note.stapsdt, \"\", @note\n"                                  \
                     ".balign 4\n"                                                                \
                     ".4byte 992f - 991f, 994f - 993f, 3\n"                                       \
                     "991: .asciz \"stapsdt\"\n"                                                  \
                     "992: .balign 4\n"                                                           \
                     "993: .8byte 990b, _.stapsdt.base, " semaphore "\n"                          \
                     ".asciz \"" provider "\"\n"                                                  \
                     ".asciz \"" name "\"\n"                                                      \
                     ".asciz \"" args "\"\n"                                                      \
                     "994: .balign 4\n"                                                           \
                     ".popsection\n"                                                              \
                     ".ifndef _.stapsdt.base\n"                                                   \
                     ".pushsection .stapsdt.base, \"aG\", @progbits, .stapsdt.base, comdat\n"     \
                     ".weak _.stapsdt.base\n"                                                     \
                     ".hidden _.stapsdt.base\n"                                                   \
                     "_.stapsdt.base: .space 1\n"                                                 \
                     ".popsection\n"                                                              \
                     ".endif\n"                                                                   \
                     : : __VA_ARGS__)

#else
#define USDT_SEMAPHORE(name)  static const unsigned short name
#define USDT_IS_WATCHED(name) (name)
#define USDT_PROBE(...)       ((void)0)
#endif

#endif
