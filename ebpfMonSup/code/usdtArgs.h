/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a USDT probe has its arguments: the text of its note, such as "-4@%edi 8@-16(%rbp) 4@limit(%rip)". The
 * compiler wrote it in the language of its assembler (sys/sdt.h of SystemTap, "N@OP"). Of x86-64.
 */
#ifndef EBPFMON_USDTARGS_H
#define EBPFMON_USDTARGS_H

#include <stddef.h>

#include "ebpfMonQuery.h"

typedef struct {
    struct ebpfMonQueryOperand operand;
    char symbol[64]; /* the operand's number is behind this variable; empty: behind none */
} ebpfMonUsdtArg;

/* Reads argument number "n" (0: the first). 0, or -1: "why" says what it is, and why it cannot be read. */
int ebpfMonUsdtArgRead(const char *args, unsigned n, ebpfMonUsdtArg *arg, char *why, size_t size);

#endif
