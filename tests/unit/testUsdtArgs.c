/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of USDT probes: the meanings of their texts, and the reasons for which texts are refused. */
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "shared/usdt.h"

#define NO EBPFMON_QUERY_REGS

static const struct {
    const char *text;
    struct ebpfMonQueryOperand is;
    const char *symbol;
} good[] = {
    { "-4@%edi", { EBPFMON_QUERY_REGISTER, 4, 1, 14, NO, 0 }, "" },
    { "8@%r15", { EBPFMON_QUERY_REGISTER, 8, 0, 0, NO, 0 }, "" },
    { "1@%sil", { EBPFMON_QUERY_REGISTER, 1, 0, 13, NO, 0 }, "" },
    { "2@%r8w", { EBPFMON_QUERY_REGISTER, 2, 0, 9, NO, 0 }, "" },
    { "8@%rsp", { EBPFMON_QUERY_REGISTER, 8, 0, 19, NO, 0 }, "" },
    { "-4@$-5", { EBPFMON_QUERY_CONSTANT, 4, 1, NO, NO, 0, { 0 }, -5 }, "" },
    { "8@$0xffffffffffffffff", { EBPFMON_QUERY_CONSTANT, 8, 0, NO, NO, 0, { 0 }, -1 }, "" },
    { "4@(%rax)", { EBPFMON_QUERY_MEMORY, 4, 0, 10, NO, 0 }, "" },
    { "8@-16(%rbp)", { EBPFMON_QUERY_MEMORY, 8, 0, 4, NO, 0, { 0 }, -16 }, "" },
    { "8@0x20(%rbx)", { EBPFMON_QUERY_MEMORY, 8, 0, 5, NO, 0, { 0 }, 32 }, "" },
    { "4@(%rax,%rcx)", { EBPFMON_QUERY_MEMORY, 4, 0, 10, 11, 0 }, "" },
    { "-2@8(%rdx,%r9,4)", { EBPFMON_QUERY_MEMORY, 2, 1, 12, 8, 2, { 0 }, 8 }, "" },
    { "8@64(,%r10,8)", { EBPFMON_QUERY_MEMORY, 8, 0, NO, 7, 3, { 0 }, 64 }, "" },
    { "4@limit(%rip)", { EBPFMON_QUERY_MEMORY, 4, 0, NO, NO, 0 }, "limit" },
    { "8@_my.var1+72(%rip)", { EBPFMON_QUERY_MEMORY, 8, 0, NO, NO, 0, { 0 }, 72 }, "_my.var1" },
    { "8@x-8(%rip)", { EBPFMON_QUERY_MEMORY, 8, 0, NO, NO, 0, { 0 }, -8 }, "x" },
};

static const struct { const char *text, *why; } bad[] = {
    { "", "it has 0 arguments" },
    { "   ", "it has 0 arguments" },
    { "%rax", "argument 1 is \"%rax\": it does not say how large it is" },
    { "@%rax", "does not say how large" },
    { "-@%rax", "does not say how large" },
    { "3@%rax", "1, 2, 4 or 8 bytes" },
    { "16@%rax", "1, 2, 4 or 8 bytes" },
    { "x@%rax", "1, 2, 4 or 8 bytes" },
    { "8f@%xmm0", "floating-point number" },
    { "-8f@8(%rsp)", "floating-point number" },
    { "8@%xmm0", "eBPF cannot read that register" },
    { "1@%ah", "eBPF cannot read that register" },
    { "8@%rxx", "eBPF cannot read that register" },
    { "8@%", "eBPF cannot read that register" },
    { "8@%rip", "eBPF cannot read that register" },
    { "8@%fs:16", "eBPF cannot read that register" },
    { "8@%rax:16", "the memory of a thread (%fs, %gs)" },
    { "8@", "its number cannot be read" },
    { "4@$", "its number cannot be read" },
    { "4@$limit", "its number cannot be read" },
    { "4@$5x", "its number cannot be read" },
    { "4@$99999999999999999999", "its number cannot be read" },
    { "4@5", "neither a register, a constant nor an address" },
    { "4@99999999999(%rax)", "neither a register, a constant nor an address" },
    { "4@(rax)", "there should be a register" },
    { "4@(%eflags)", "eBPF cannot read that register" },
    { "4@(%rax", "its address has no end" },
    { "4@(%rax))", "its address has no end" },
    { "4@(%rax,", "there should be a register" },
    { "4@(%rax,%rbx,3)", "a scale is 1, 2, 4 or 8" },
    { "4@(%rax,%rbx,)", "its number cannot be read" },
    { "4@8(%rip)", "eBPF cannot read that register" },
    { "4@limit", "by its address only: (%rip)" },
    { "4@limit(%rax)", "by its address only: (%rip)" },
    { "4@limit+(%rip)", "its number cannot be read" },
    { "4@limit(%rip,%rax)", "by its address only: (%rip)" },
    { "4@l234567890123456789012345678901234567890123456789012345678901234(%rip)", "its variable is too long" },
    { "4@12345678901234567890123456789012345678901234567890123456789012345678901234567890(%rax)", "79 are read" },
};

MAIN(testUsdtArgs)
{
    const unsigned goods = sizeof(good) / sizeof(good[0]), bads = sizeof(bad) / sizeof(bad[0]);
    ebpfMonUsdtArg arg;
    char why[160];

    testPlan((int)(goods + bads) + 3);
    for (unsigned i = 0; i < goods; i++)
        testOk(ebpfMonUsdtArgRead(good[i].text, 0, &arg, why, sizeof(why)) == 0 &&
               memcmp(&arg.operand, &good[i].is, sizeof(arg.operand)) == 0 && strcmp(arg.symbol, good[i].symbol) == 0,
               "%s", good[i].text);
    for (unsigned i = 0; i < bads; i++)
        testOk(ebpfMonUsdtArgRead(bad[i].text, 0, &arg, why, sizeof(why)) == -1 && strstr(why, bad[i].why), "%s", why);
    testOk(ebpfMonUsdtArgRead(" 4@%eax  8@%xmm0 -2@$7 ", 2, &arg, why, sizeof(why)) == 0 && arg.operand.number == 7,
           "the third argument is read behind one that cannot be");
    testOk(ebpfMonUsdtArgRead("4@%eax 8@$1", 2, &arg, why, sizeof(why)) == -1 && strcmp(why, "it has 2 arguments") == 0,
           "%s", why);
    testOk(ebpfMonUsdtArgRead("4@%eax", 1, &arg, why, sizeof(why)) == -1 && strcmp(why, "it has 1 argument") == 0, "%s",
           why);
    return testDone();
}
