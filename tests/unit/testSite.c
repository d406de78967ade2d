/* SPDX-License-Identifier: BSD-3-Clause */
/* The place of a probe in a prologue (code/machine.h), with bytes as compilers and packagers make them. */
#include <stdlib.h>
#include <string.h>
#include <epicsUnitTest.h>
#include <testMain.h>
#include "code/machine.h"

#define ARGS4 (EBPFMON_ARG1 | EBPFMON_ARG2 | EBPFMON_ARG3 | EBPFMON_ARG4)
#define BYTES(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

static void pick(const char *what, const uint8_t *code, size_t len, unsigned args, int needReturn,
    ebpfMonSiteClass cls, unsigned skip, const char *insn, int canReturn)
{
    ebpfMonSite site;

    ebpfMonSitePickX86(code, len, args, needReturn, &site);
    testOk(site.cls == cls && site.skip == skip && !strcmp(site.insn, insn) && site.canReturn == canReturn,
        "%s: %s at +%u, return %d", what, site.insn, site.skip, site.canReturn);
}

static void testFast(void)
{
    pick("push first", BYTES(0x41, 0x57, 0x49, 0x89, 0xff), ARGS4, 1,
        ebpfMonSiteFast, 0, "push", 1);
    pick("endbr64, push", BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x57, 0x49, 0x89, 0xff), ARGS4, 1,
        ebpfMonSiteFast, 4, "push", 1);
    pick("mov %rdi,%rax; xor %r8d,%r8d; push", BYTES(0x48, 0x89, 0xf8, 0x45, 0x31, 0xc0, 0x53), ARGS4, 1,
        ebpfMonSiteFast, 6, "push", 1);
    pick("rsrvCheckPut", BYTES(0x48, 0x8b, 0x57, 0x48, 0x31, 0xc0, 0x66, 0x83, 0x7a, 0x2c, 0x01, 0x74, 0x12),
        EBPFMON_ARG1, 0, ebpfMonSiteFast, 11, "jcc", 1);
    pick("dbScanFwdLink", BYTES(0x48, 0x8b, 0x47, 0x10, 0x48, 0x85, 0xc0, 0x74, 0x17), EBPFMON_ARG1, 0,
        ebpfMonSiteFast, 7, "jcc", 1);
    pick("pxor, push", BYTES(0x66, 0x0f, 0xef, 0xc0, 0x55), EBPFMON_ARG1, 1, ebpfMonSiteFast, 4, "push", 1);
    pick("vpxor, push", BYTES(0xc5, 0xf9, 0xef, 0xc0, 0x55), EBPFMON_ARG1, 1, ebpfMonSiteFast, 4, "push", 1);
    pick("tail call", BYTES(0xbe, 1, 0, 0, 0, 0xe9, 0, 1, 0, 0), EBPFMON_ARG1, 1,
        ebpfMonSiteFast, 5, "jmp", 1);
    pick("call, arguments standing", BYTES(0x48, 0x83, 0xec, 0x08, 0xe8, 0, 1, 0, 0), EBPFMON_ARG1, 0,
        ebpfMonSiteFast, 4, "call", 0);
    pick("push before a long nop", BYTES(0x0f, 0x1f, 0x44, 0, 0, 0x55), EBPFMON_ARG1, 1,
        ebpfMonSiteFast, 5, "push", 1);
    pick("long nop alone", BYTES(0x0f, 0x1f, 0x40, 0, 0xc3), EBPFMON_ARG1, 1,
        ebpfMonSiteFast, 0, "nopl", 1);
    pick("return lost: entry only", BYTES(0x48, 0x83, 0xec, 0x18, 0x55), EBPFMON_ARG1, 1,
        ebpfMonSiteFast, 4, "push", 0);
    pick("return kept by a long nop", BYTES(0x0f, 0x1f, 0x00, 0x48, 0x83, 0xec, 0x18, 0x55), EBPFMON_ARG1, 1,
        ebpfMonSiteFast, 0, "nopl", 1);
}

static void testStepped(void)
{
    pick("nothing: mov, ret", BYTES(0x48, 0x8b, 0x47, 0x10, 0xc3), EBPFMON_ARG1, 0,
        ebpfMonSiteStepped, 0, "entry", 1);
    pick("nothing after endbr64", BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xc0, 0xc3), EBPFMON_ARG1, 0,
        ebpfMonSiteStepped, 4, "entry", 1);
    pick("argument 1 overwritten", BYTES(0x48, 0x8b, 0x3f, 0x55), EBPFMON_ARG1, 0,
        ebpfMonSiteStepped, 0, "entry", 1);
    pick("its low byte by setcc", BYTES(0x40, 0x0f, 0x94, 0xc7, 0x55), EBPFMON_ARG1, 0,
        ebpfMonSiteStepped, 0, "entry", 1);
    pick("argument 3 by cqo", BYTES(0x48, 0x99, 0x55), ARGS4, 0, ebpfMonSiteStepped, 0, "entry", 1);
    pick("argument 3 by div", BYTES(0x48, 0xf7, 0xf6, 0x55), ARGS4, 0, ebpfMonSiteStepped, 0, "entry", 1);
    pick("argument 4 is not needed", BYTES(0x31, 0xc9, 0x55), EBPFMON_ARG1, 0, ebpfMonSiteFast, 2, "push", 1);
    pick("unknown effect: rep stos", BYTES(0xf3, 0x48, 0xab, 0x55), EBPFMON_ARG1, 0,
        ebpfMonSiteStepped, 0, "entry", 1);
    pick("push of memory and immediate", BYTES(0xff, 0x77, 0x08, 0x6a, 0x01, 0xc3), EBPFMON_ARG1, 0,
        ebpfMonSiteStepped, 0, "entry", 1);
    pick("nop of 5 bytes: the next one", BYTES(0x0f, 0x1f, 0x44, 0, 0, 0xc3), EBPFMON_ARG1, 1,
        ebpfMonSiteStepped, 5, "entry", 1);
    pick("endbr64, nop of 5 bytes", BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0x66, 0x0f, 0x1f, 0x40, 0, 0x48, 0x8b, 0x47, 0x10,
                                          0xc3), EBPFMON_ARG1, 1, ebpfMonSiteStepped, 9, "entry", 1);
    pick("nop of 5 bytes behind a mov", BYTES(0x48, 0x8b, 0x47, 0x10, 0x66, 0x66, 0x66, 0x66, 0x90, 0xc3),
        EBPFMON_ARG1, 1, ebpfMonSiteStepped, 0, "entry", 1);
    pick("top of a loop", BYTES(0x31, 0xc0, 0x48, 0x85, 0xff, 0x74, 0x05, 0x48, 0x8b, 0x3f, 0xeb, 0xf6, 0xc3),
        EBPFMON_ARG1, 0, ebpfMonSiteStepped, 0, "entry", 1);
    pick("cut inside the je", BYTES(0x31, 0xc0, 0x48, 0x85, 0xff, 0x74), EBPFMON_ARG1, 0,
        ebpfMonSiteStepped, 0, "entry", 1);
    pick("cut inside the prefix", BYTES(0xf3, 0x0f, 0x1e), EBPFMON_ARG1, 0,
        ebpfMonSiteStepped, 0, "entry", 1);
    pick("no bytes", (const uint8_t *)"", 0, EBPFMON_ARG1, 0, ebpfMonSiteStepped, 0, "entry", 1);
}

/* Which of these Linux 6.18 rewrites to a call was tried: those with a mark. */
static void testNop5(void)
{
    static const uint8_t nop[][5] = {
        {0x0f, 0x1f, 0x44, 0x00, 0x00}, /* tried */
        {0x66, 0x0f, 0x1f, 0x40, 0x00}, /* tried */
        {0x66, 0x66, 0x0f, 0x1f, 0x00}, /* tried */
        {0xf2, 0x0f, 0x1f, 0x40, 0x00}, /* tried */
        {0x48, 0x0f, 0x1f, 0x40, 0x00}, /* tried */
        {0x66, 0x66, 0x66, 0x66, 0x90}, /* tried */
        {0x66, 0x66, 0x66, 0xf3, 0x90}, /* tried: pause */
        {0xe9, 0x00, 0x00, 0x00, 0x00}, {0x66, 0x66, 0x66, 0xeb, 0x00}, {0x66, 0x66, 0x48, 0x89, 0xc0},
        {0x48, 0x8d, 0x64, 0x24, 0x00}, {0x66, 0x48, 0x8d, 0x40, 0x00},
    }, other[][5] = {
        {0x0f, 0x1f, 0x4c, 0x00, 0x00}, {0x0f, 0x1f, 0x40, 0x00, 0x90}, {0xe9, 0x01, 0x00, 0x00, 0x00},
        {0xe8, 0x00, 0x00, 0x00, 0x00}, {0xf3, 0x0f, 0x1e, 0xfa, 0x90}, {0x48, 0x8d, 0x5c, 0x05, 0x00},
        {0x48, 0x8d, 0x64, 0x24, 0x08}, {0x66, 0x66, 0x48, 0x89, 0xc3}, {0x90, 0x90, 0x90, 0x90, 0x90},
    };
    unsigned found = 0, wrong = 0;

    for (unsigned i = 0; i < sizeof(nop) / sizeof(nop[0]); i++)
        found += ebpfMonInsnIsNop5X86(nop[i], 5) && !ebpfMonInsnIsNop5X86(nop[i], 4);
    for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++)
        wrong += ebpfMonInsnIsNop5X86(other[i], 5) != 0;
    testOk(found == sizeof(nop) / sizeof(nop[0]), "%u nops of 5 bytes", found);
    testOk(wrong == 0, "%u of other instructions taken for one", wrong);
}

static void testLength(void)
{
    static const struct {
        uint8_t code[15], length;
    } known[] = {
        { { 0x55 }, 1 }, { { 0xf3, 0x0f, 0x1e, 0xfa }, 4 }, { { 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8 }, 10 },
        { { 0x66, 0x2e, 0x0f, 0x1f, 0x84 }, 10 }, { { 0xf6, 0x07, 1 }, 3 }, { { 0xf7, 0xd8 }, 2 },
        { { 0x66, 0xc7, 0x04, 0x25, 0, 0, 0, 0, 1, 0 }, 10 }, { { 0xc8, 1, 0, 0 }, 4 },
        { { 0x48, 0x8b, 0x05, 0, 0, 0, 0 }, 7 }, { { 0xc4, 0xe3, 0x79, 0x14, 0xc0, 0 }, 6 },
        { { 0x62, 0xf1, 0x7c, 0x48, 0x10, 0x47, 1 }, 7 }, { { 0x66, 0x0f, 0x3a, 0x0f, 0xc1, 8 }, 6 },
        { { 0x06 }, 0 }, { { 0x66, 0x66, 0x48, 0xe8, 0, 0, 0, 0 }, 8 },
    };
    unsigned good = 0, torn = 0, n = sizeof(known) / sizeof(known[0]);

    for (unsigned i = 0; i < n; i++) {
        good += ebpfMonInsnLengthX86(known[i].code, sizeof(known[i].code)) == known[i].length;
        for (unsigned len = 0; len < known[i].length; len++)
            torn += ebpfMonInsnLengthX86(known[i].code, len) != 0;
    }
    testOk(good == n, "the lengths of instructions are right: %u of %u", good, n);
    testOk(torn == 0, "cut instructions have no length");
}

/* The same for aarch64: the code of these words. */
static void pickArm(const char *what, const uint32_t *code, size_t len, unsigned args, int needReturn,
                    ebpfMonSiteClass cls, unsigned skip, const char *insn, int canReturn)
{
    ebpfMonSite site;

    ebpfMonSitePickAarch64((const uint8_t *)code, len, args, needReturn, &site);
    testOk(site.cls == cls && site.skip == skip && !strcmp(site.insn, insn) && site.canReturn == canReturn,
           "aarch64, %s: %s at +%u, return %d", what, site.insn, site.skip, site.canReturn);
}

#define WORDS(...) (const uint32_t[]){ __VA_ARGS__ }, sizeof((const uint32_t[]){ __VA_ARGS__ })
#define NOP        0xd503201f
#define PACIASP    0xd503233f
#define BTI_C      0xd503245f
#define STP_PRE    0xa9be7bfd /* stp x29, x30, [sp, #-32]! */
#define MOV_X29_SP 0x910003fd
#define CBZ_X0     0xb4000100 /* to +32 */
#define ADRP_X1    0x90000001
#define BL         0x94000040
#define RET        0xd65f03c0

static void testAarch64(void)
{
    pickArm("cbz first", WORDS(CBZ_X0, RET), ARGS4, 1, ebpfMonSiteFast, 0, "cbz", 1);
    pickArm("bti, cbz", WORDS(BTI_C, CBZ_X0, RET), ARGS4, 1, ebpfMonSiteFast, 4, "cbz", 1);
    pickArm("behind the frame", WORDS(STP_PRE, MOV_X29_SP, ADRP_X1), EBPFMON_ARG1, 0, ebpfMonSiteFast, 8, "adrp", 0);
    pickArm("call, arguments standing", WORDS(STP_PRE, MOV_X29_SP, BL), ARGS4, 0, ebpfMonSiteFast, 8, "bl", 0);
    pickArm("a return is wanted", WORDS(STP_PRE, MOV_X29_SP, BL), ARGS4, 1, ebpfMonSiteStepped, 0, "entry", 1);
    pickArm("the return is signed", WORDS(PACIASP, CBZ_X0, RET), ARGS4, 1, ebpfMonSiteStepped, 0, "entry", 1);
    pickArm("the return is stored", WORDS(0xf90007fe, CBZ_X0, RET), ARGS4, 1, ebpfMonSiteStepped, 0, "entry", 1);
    pickArm("nop is stepped", WORDS(NOP, STP_PRE, MOV_X29_SP, RET), ARGS4, 0, ebpfMonSiteStepped, 0, "entry", 1);
    pickArm("argument 1 by ldr", WORDS(0xf9400000, CBZ_X0), EBPFMON_ARG1, 0, ebpfMonSiteStepped, 0, "entry", 1);
    pickArm("argument 2 by ldp", WORDS(0xa9400400 | 2 << 5, CBZ_X0), ARGS4, 0, ebpfMonSiteStepped, 0, "entry", 1);
    pickArm("argument 4 by mov", WORDS(0xaa0003e3, CBZ_X0), ARGS4, 0, ebpfMonSiteStepped, 0, "entry", 1);
    pickArm("argument 4 is not needed", WORDS(0xaa0003e3, CBZ_X0), EBPFMON_ARG1, 0, ebpfMonSiteFast, 4, "cbz", 1);
    pickArm("unknown effect: ldaxr", WORDS(0xc85ffc01, CBZ_X0), EBPFMON_ARG1, 0, ebpfMonSiteStepped, 0, "entry", 1);
    pickArm("a literal", WORDS(0x58000041, CBZ_X0), EBPFMON_ARG2, 0, ebpfMonSiteStepped, 0, "entry", 1);
    pickArm("top of a loop", WORDS(0xf9400401, 0xb4000041, 0x17ffffff, RET), EBPFMON_ARG1, 0, ebpfMonSiteStepped, 0,
            "entry", 1);
    pickArm("no whole instruction", (const uint32_t[]){ CBZ_X0 }, 3, ARGS4, 0, ebpfMonSiteStepped, 0, "entry", 1);
}

/* The targets of jumps and calls of both machines. */
static void testFlow(void)
{
    static const struct {
        uint32_t insn;
        ebpfMonFlow flow;
        uint64_t to;
    } known[] = {
        {BL, ebpfMonFlowCall, 0x1100},          {0x17ffffff, ebpfMonFlowJump, 0xffc},
        {CBZ_X0, ebpfMonFlowBranch, 0x1020},    {0x54000040, ebpfMonFlowBranch, 0x1008},
        {0x3607ffe0, ebpfMonFlowBranch, 0xffc}, {RET, ebpfMonFlowLeave, 0},
        {0xd61f0220, ebpfMonFlowLeave, 0},      {0xd65f0bff, ebpfMonFlowLeave, 0},
        {0xd63f0000, ebpfMonFlowNext, 0},       {NOP, ebpfMonFlowNext, 0},
        {ADRP_X1, ebpfMonFlowNext, 0},
    };
    unsigned good = 0, n = sizeof(known) / sizeof(known[0]);
    uint64_t to = 0;

    for (unsigned i = 0; i < n; i++, to = 0)
        good += ebpfMonInsnFlowAarch64((const uint8_t *)&known[i].insn, 4, 0x1000, &to) == known[i].flow &&
                to == known[i].to;
    testOk(good == n, "aarch64: targets of instructions are right: %u of %u", good, n);
    testOk(ebpfMonInsnFlowX86(BYTES(0xe9, 0xfb, 0xff, 0xff, 0xff), 0x1000, &to) == ebpfMonFlowJump && to == 0x1000,
           "the target of jmp is found");
    testOk(ebpfMonInsnFlowX86(BYTES(0x0f, 0x84, 0, 1, 0, 0), 0x1000, &to) == ebpfMonFlowBranch && to == 0x1106,
           "the target of je is found");
    testOk(ebpfMonInsnFlowX86(BYTES(0xff, 0xe0), 0x1000, &to) == ebpfMonFlowLeave, "jmp *%%rax has no known target");
}

/* Every sequence ends where its allocation ends, so valgrind sees a read beyond it. */
static void testRandom(void)
{
    unsigned bad = 0;

    srand(1);
    for (int i = 0; i < 100000; i++) {
        size_t len = (size_t)rand() % 80;
        uint8_t *code = malloc(len ? len : 1);
        unsigned args = (unsigned)rand() % 16;
        ebpfMonSite site;

        for (size_t k = 0; k < len; k++)
            code[k] = (uint8_t)(rand() >> 8);
        ebpfMonSitePickX86(code, len, args, i & 1, &site);
        bad += site.skip && site.skip >= len && site.cls == ebpfMonSiteFast;
        bad += ebpfMonInsnLengthX86(code, len) > len;
        ebpfMonSitePickAarch64(code, len, args, i & 1, &site);
        bad += site.skip && (site.skip + 4 > len || site.skip % 4);
        free(code);
    }
    testOk(bad == 0, "random bytes are read within bounds");
}

MAIN(testSite)
{
    testPlan(49 + 3 + 2);
    testFast();
    testStepped();
    testNop5();
    testLength();
    testAarch64();
    testFlow();
    testRandom();
    return testDone();
}
