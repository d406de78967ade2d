/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "code/callSites.h"
#include "code/machine.h"

/* --- where a probe goes --- */

/*
 * What machine.h has for x86-64: instruction lengths, and what the first instructions of a function do to the
 * registers that a probe wants to read.
 *
 * Lengths come from tables, one letter an opcode, after the opcode maps of the Intel SDM, volume 2,
 * appendix A. Effects are known for what compilers put into prologues; everything else ends the walk,
 * because a wrong argument is worse than a slow probe.
 */

#define MAX_INSN   15 /* the processor refuses longer ones */
#define MAX_WALK   16 /* instructions looked at for a site … */
#define MAX_BYTES  64 /* … within so many bytes: further in, a function has branched */

/* What follows an opcode:
 *  - not valid or not known   . nothing        b imm8          w imm16           e enter's imm16, imm8
 *  z imm16/32 by operand size v the same, 64 with REX.W        j rel32           a address-sized offset
 *  M ModRM   B ModRM, imm8    Z ModRM, z       G, H ModRM, and imm8 or z when ModRM.reg is 0 or 1 (test) */
static const char oneByte[] =
    "MMMMbz--MMMMbz--" "MMMMbz--MMMMbz--" "MMMMbz--MMMMbz--" "MMMMbz--MMMMbz--"
    "----------------" "................" "---M----zZbB...." "bbbbbbbbbbbbbbbb"
    "BZ-BMMMMMMMMMMMM" "..........-....." "aaaa....bz......" "bbbbbbbbvvvvvvvv"
    "BBw.--BZe.w..b-." "MMMM---.MMMMMMMM" "bbbbbbbbjj-b...." "-.--..GH......MM";

static const char twoByte[] =
    "MMMM-.....-.-M.B" "MMMMMMMMMMMMMMMM" "MMMM----MMMMMMMM" "......-.--------"
    "MMMMMMMMMMMMMMMM" "MMMMMMMMMMMMMMMM" "MMMMMMMMMMMMMMMM" "BBBBMMM.MMMMMMMM"
    "jjjjjjjjjjjjjjjj" "MMMMMMMMMMMMMMMM" "...MBM--...MBMMM" "MMMMMMMMMMBMMMMM"
    "MMBMBBBM........" "MMMMMMMMMMMMMMMM" "MMMMMMMMMMMMMMMM" "MMMMMMMMMMMMMMMM";

_Static_assert(sizeof(oneByte) == 257 && sizeof(twoByte) == 257, "one letter for each opcode");

typedef struct {
    unsigned length;
    unsigned map;      /* 0 one byte, 1 0F, 2 0F38, 3 0F3A, 5 and 6 EVEX only */
    uint8_t  op, modrm, rex;
    int      vex;      /* VEX or EVEX encoded: the tables do not say which general register it writes */
    int      size16;   /* 66 */
    int      addr32;   /* 67 */
    uint8_t  rep;      /* F2, F3 or 0 */
    int      lock;
} Insn;

/* Bytes of ModRM, SIB and displacement at "p", 0 when they do not fit into "left". */
static unsigned getModrmLength(const uint8_t *p, size_t left)
{
    if (left < 1)
        return 0;

    unsigned mod = p[0] >> 6, rm = p[0] & 7, n = 1;

    if (mod == 3)
        return 1;
    if (rm == 4) {
        if (left < 2)
            return 0;
        n = 2;
        if (mod == 0 && (p[1] & 7) == 5)
            n += 4;
    } else if (mod == 0 && rm == 5) {
        n += 4;
    }
    n += mod == 1 ? 1 : mod == 2 ? 4 : 0;
    return n <= left ? n : 0;
}

/* Consumes a VEX (C4, C5) or EVEX (62) prefix at code[*at]; 0 when it does not fit or is none. */
static int takeVexPrefix(const uint8_t *code, size_t len, unsigned *at, Insn *insn)
{
    unsigned n = code[*at] == 0xc5 ? 2 : code[*at] == 0xc4 ? 3 : 4;

    if (*at + n >= len)
        return 0;
    insn->vex = 1;
    insn->map = n == 2 ? 1 : code[*at + 1] & (n == 3 ? 0x1f : 7);
    *at += n;
    return (insn->map >= 1 && insn->map <= 3) || (n == 4 && (insn->map == 5 || insn->map == 6));
}

/* The letter for the opcode at code[*at], '-' when it is not known; *at is left on the opcode's last byte. */
static char getOpcodeKind(const uint8_t *code, size_t len, unsigned *at, Insn *insn)
{
    uint8_t b = code[*at];

    if (b == 0xc4 || b == 0xc5 || b == 0x62) {
        if (!takeVexPrefix(code, len, at, insn))
            return '-';
    } else if (b == 0x0f) {
        if (++*at >= len)
            return '-';
        insn->map = 1;
        if (code[*at] == 0x38 || code[*at] == 0x3a) {
            insn->map = code[*at] == 0x38 ? 2 : 3;
            if (++*at >= len)
                return '-';
        }
    }
    b = code[*at];
    insn->op = b;
    if (insn->map == 0)
        return oneByte[b];
    if (insn->map == 3)
        return 'B';
    if (insn->map != 1)
        return 'M';
    return insn->vex && twoByte[b] == 'j' ? '-' : twoByte[b];
}

/* Decodes one instruction; 0 when it is not known or does not fit. */
static int decodeInsn(const uint8_t *code, size_t len, Insn *insn)
{
    unsigned at = 0;

    memset(insn, 0, sizeof(*insn));
    if (len > MAX_INSN)
        len = MAX_INSN;
    for (; at < len; at++) {
        uint8_t b = code[at];

        if (b == 0x66)
            insn->size16 = 1;
        else if (b == 0x67)
            insn->addr32 = 1;
        else if (b == 0xf2 || b == 0xf3)
            insn->rep = b;
        else if (b == 0xf0)
            insn->lock = 1;
        else if ((b & 0xe7) != 0x26 && (b & 0xfe) != 0x64 && (b & 0xf0) != 0x40) /* segments, REX */
            break;
        insn->rex = (b & 0xf0) == 0x40 ? b : 0; /* counts only directly before the opcode */
    }
    if (at >= len)
        return 0;

    char kind = getOpcodeKind(code, len, &at, insn);
    unsigned imm = 0, z = insn->size16 && !(insn->rex & 8) ? 2 : 4;

    at++;
    if (strchr("MBZGH", kind)) {
        unsigned n = getModrmLength(code + at, len - at);

        if (!n)
            return 0;
        insn->modrm = code[at];
        at += n;
    }

    int test = (insn->modrm & 0x30) == 0;

    switch (kind) {
    case '.': case 'M': break;
    case 'b': case 'B': imm = 1; break;
    case 'w': imm = 2; break;
    case 'e': imm = 3; break;
    case 'z': case 'Z': imm = z; break;
    case 'j': imm = 4; break; /* 66 does not shorten it on Intel, and linkers pad calls with it */
    case 'v': imm = insn->rex & 8 ? 8 : z; break;
    case 'a': imm = insn->addr32 ? 4 : 8; break;
    case 'G': imm = test ? 1 : 0; break;
    case 'H': imm = test ? z : 0; break;
    default: return 0;
    }
    insn->length = at + imm;
    return insn->length <= len;
}

unsigned ebpfMonInsnLengthX86(const uint8_t *code, size_t len)
{
    Insn insn;

    return decodeInsn(code, len, &insn) ? insn.length : 0;
}

/* An instruction that changes nothing, as insn_is_nop() of the kernel tells them (arch/x86/lib/insn.c; Linux 6.18 knows
 * the nops only). The others are here because a later kernel takes them for nops, too. */
static int isNop(const Insn *insn, const uint8_t *code)
{
    unsigned reg = insn->modrm >> 3 & 7, rm = insn->modrm & 7, mod = insn->modrm >> 6, sib;

    if (insn->vex || insn->map > 1)
        return 0;
    if (insn->map == 1)
        return insn->op == 0x1f && !reg;
    switch (insn->op) {
    case 0x90:
        return 1;
    case 0x89: /* mov to itself */
        return mod == 3 && reg == rm;
    case 0x8d: /* lea 0(%reg),%reg */
        sib = code[insn->length - 2];
        return mod == 1 && !code[insn->length - 1] && (rm == 4 ? (sib & 0x38) == 0x20 && (sib & 7) == reg : reg == rm);
    case 0xe9:
        return !code[insn->length - 4] && !code[insn->length - 3] && !code[insn->length - 2] && !code[insn->length - 1];
    case 0xeb:
        return !code[insn->length - 1];
    }
    return 0;
}

int ebpfMonInsnIsNop5X86(const uint8_t *code, size_t len)
{
    Insn insn;

    return decodeInsn(code, len, &insn) && insn.length == 5 && isNop(&insn, code);
}

/* Registers by number as in ModRM, bit 0 rax … bit 15 r15. */
enum { RAX = 1, RCX = 2, RDX = 4, RSP = 16, RSI = 64, RDI = 128 };
#define STOP (~0u) /* the effect is not known */

static unsigned getRegBit(const Insn *insn, unsigned number, unsigned rexBit, int byte)
{
    if (byte && !insn->rex && number >= 4)
        number -= 4; /* ah, ch, dh, bh */
    return 1u << (number | (insn->rex & rexBit ? 8u : 0u));
}

static unsigned getDestReg(const Insn *insn, int byte)
{
    return getRegBit(insn, insn->modrm >> 3 & 7, 4, byte);
}

static unsigned getDestRm(const Insn *insn, int byte)
{
    return insn->modrm >> 6 == 3 ? getRegBit(insn, insn->modrm & 7, 1, byte) : 0;
}

/* Registers that a one-byte-opcode instruction writes. */
static unsigned writesOneByte(const Insn *insn)
{
    unsigned op = insn->op, reg = insn->modrm >> 3 & 7, byte = !(op & 1);

    if (op < 0x40) {                                /* add or adc sbb and sub xor; cmp writes nothing */
        if ((op & 0x38) == 0x38)
            return 0;
        return (op & 7) < 2 ? getDestRm(insn, byte) : (op & 7) < 4 ? getDestReg(insn, byte) : RAX;
    }
    if (op >= 0x50 && op <= 0x57)
        return RSP;
    if (op >= 0x58 && op <= 0x5f)                   /* pop */
        return RSP | getRegBit(insn, op & 7, 1, 0);
    if (op >= 0xb0 && op <= 0xbf)                   /* mov imm */
        return getRegBit(insn, op & 7, 1, op < 0xb8);
    switch (op) {
    case 0x63: case 0x69: case 0x6b: case 0x8b: case 0x8d: /* movsxd, imul, mov, lea */
        return getDestReg(insn, 0);
    case 0x8a:
        return getDestReg(insn, 1);
    case 0x68: case 0x6a:                           /* push imm */
        return RSP;
    case 0x80: case 0x81: case 0x83:
        return reg == 7 ? 0 : getDestRm(insn, op == 0x80);
    case 0x84: case 0x85: case 0xa8: case 0xa9:     /* test */
        return 0;
    case 0x88: case 0x89:
        return getDestRm(insn, byte);
    case 0x90:
        return insn->rex & 1 ? STOP : 0;            /* with REX.B it is xchg r8, rax */
    case 0x98:                                      /* cdqe */
        return RAX;
    case 0x99:                                      /* cqo */
        return RDX;
    case 0xc0: case 0xc1: case 0xd0: case 0xd1: case 0xd2: case 0xd3:
        return getDestRm(insn, byte);
    case 0xc6: case 0xc7:
        return reg == 0 ? getDestRm(insn, byte) : STOP;
    case 0xf6: case 0xf7:
        return reg < 2 ? 0 : reg < 4 ? getDestRm(insn, byte) : RAX | RDX; /* test; not neg; mul div */
    case 0xfe: case 0xff:
        return reg < 2 ? getDestRm(insn, byte) : op == 0xff && reg == 6 ? RSP : STOP;
    }
    return STOP;
}

/* 0F map: the SSE instructions whose destination is a vector register or memory, VEX encoded too. */
static int isVector(unsigned op)
{
    return (op >= 0x10 && op <= 0x17) || op == 0x28 || op == 0x29 || op == 0x2b || op == 0x2e || op == 0x2f
        || (op >= 0x51 && op <= 0x76) || op == 0x7c || op == 0x7d || op == 0x7f || op == 0xc2 || op == 0xc6
        || (op >= 0xd0 && op <= 0xfe && op != 0xd7 && op != 0xf7);
}

/* Registers that an instruction of the 0F map writes. */
static unsigned writesTwoByte(const Insn *insn)
{
    unsigned op = insn->op, reg = insn->modrm >> 3 & 7;

    if (isVector(op))
        return 0;
    if (insn->vex)
        return STOP;
    if (op >= 0x40 && op <= 0x4f)                   /* cmov */
        return getDestReg(insn, 0);
    if (op >= 0x90 && op <= 0x9f)                   /* set */
        return getDestRm(insn, 1);
    if (op >= 0xc8)
        return op <= 0xcf ? getRegBit(insn, op & 7, 1, 0) : STOP; /* bswap */
    switch (op) {
    case 0x0d: case 0x18: case 0x1f: case 0x2a:     /* prefetch, nop, cvtsi2ss */
    case 0xa3:                                      /* bt */
        return 0;
    case 0x1e:                                      /* endbr64; its neighbours read the shadow stack */
        return insn->rep == 0xf3 && insn->modrm == 0xfa ? 0 : STOP;
    case 0x2c: case 0x2d: case 0x50: case 0xaf:     /* cvtt, cvt, movmsk, imul */
    case 0xb6: case 0xb7: case 0xb8: case 0xbc: case 0xbd: case 0xbe: case 0xbf:
        return getDestReg(insn, 0);
    case 0x7e:                                      /* movd to a general register, with F3 to a vector */
        return insn->rep == 0xf3 ? 0 : getDestRm(insn, 0);
    case 0xa4: case 0xa5: case 0xac: case 0xad: case 0xab: case 0xb3: case 0xbb: /* shld, shrd, bts… */
        return getDestRm(insn, 0);
    case 0xba:
        return reg == 4 ? 0 : getDestRm(insn, 0);
    }
    return STOP;
}

typedef enum { KindOther, KindFast, KindNopLong, KindEnd } Kind;

/* How the kernel treats the instruction, from branch_setup_xol_ops and push_setup_xol_ops in
 * arch/x86/kernel/uprobes.c. Long nops are emulated by recent kernels only (since 6.18), older ones step
 * 0F 1F, and from 4.17 to 6.1 refuse 66 90: they are taken when there is nothing else. Those of 5 bytes never are
 * (ebpfMonInsnIsNop5X86). */
static Kind classifyInsn(const Insn *insn, const char **name)
{
    unsigned op = insn->op;

    *name = "other";
    if (insn->vex || insn->lock || insn->map > 1)
        return KindOther;
    if (insn->map == 1) {
        if (op >= 0x80 && op <= 0x8f) {
            *name = "jcc";
            return insn->size16 ? KindEnd : KindFast;
        }
        if (op == 0x1f && !(insn->modrm & 0x38)) {
            *name = "nopl";
            return insn->length == 5 ? KindOther : KindNopLong;
        }
        return KindOther;
    }
    if (op >= 0x50 && op <= 0x57 && (insn->length == 1 || (insn->length == 2 && insn->rex == 0x41))) {
        *name = "push";
        return KindFast;
    }
    if (op == 0x90 && !insn->rex && !insn->rep) {
        *name = "nop";
        return insn->length == 1 ? KindFast : insn->length == 5 ? KindOther : KindNopLong;
    }
    if (op != 0xe8 && op != 0xe9 && op != 0xeb && (op & 0xf0) != 0x70)
        return KindOther;
    *name = op == 0xe8 ? "call" : (op & 0xf0) == 0x70 ? "jcc" : "jmp";
    return insn->size16 ? KindEnd : KindFast;
}

/* True when a branch of the function goes to (from, to]: a probe there would fire more than once a call,
 * with other registers. A branch to "from" itself is the tail call of a recursion and counts as a call. */
static int isLoopTarget(const uint8_t *code, size_t len, size_t from, size_t to)
{
    Insn insn;

    for (size_t at = 0; at < len && decodeInsn(code + at, len - at, &insn); at += insn.length) {
        const uint8_t *end = code + at + insn.length;
        int64_t target = (int64_t)(at + insn.length);

        if (insn.vex)
            continue;
        if ((insn.map == 1 && (insn.op & 0xf0) == 0x80) || (insn.map == 0 && insn.op == 0xe9))
            target += (int32_t)(end[-4] | end[-3] << 8 | end[-2] << 16 | (uint32_t)end[-1] << 24);
        else if (insn.map == 0 && ((insn.op & 0xf0) == 0x70 || insn.op == 0xeb || (insn.op & 0xfc) == 0xe0))
            target += (int8_t)end[-1];
        else
            continue;
        if (target > (int64_t)from && target <= (int64_t)to)
            return 1;
    }
    return 0;
}

void ebpfMonSitePickX86(const uint8_t *code, size_t len, unsigned args, int needReturn, ebpfMonSite *site)
{
    unsigned needed = (args & EBPFMON_ARG1 ? RDI : 0u) | (args & EBPFMON_ARG2 ? RSI : 0u)
                    | (args & EBPFMON_ARG3 ? RDX : 0u) | (args & EBPFMON_ARG4 ? RCX : 0u);
    unsigned written = 0, best = 0;
    size_t at = 0, first = len >= 4 && !memcmp(code, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0;

    while (first < MAX_BYTES && first < len && ebpfMonInsnIsNop5X86(code + first, len - first))
        first += 5;
    memset(site, 0, sizeof(*site));
    site->cls = ebpfMonSiteStepped;
    site->skip = (unsigned)first;
    site->canReturn = 1;
    strcpy(site->insn, "entry");
    for (unsigned i = 0; i < MAX_WALK && at < len && at < MAX_BYTES; i++) {
        Insn insn;
        const char *name;

        if (!decodeInsn(code + at, len - at, &insn))
            return;

        Kind kind = classifyInsn(&insn, &name);
        int intact = !(written & RSP);
        /* a return address that is wanted and there counts most, then an emulation that all kernels have */
        unsigned rank = (kind == KindFast ? 2u : 1u) + (needReturn && intact ? 2u : 0u);

        if ((kind == KindFast || kind == KindNopLong) && rank > best && !isLoopTarget(code, len, first, at)) {
            best = rank;
            site->cls = ebpfMonSiteFast;
            site->skip = (unsigned)at;
            site->canReturn = intact;
            strcpy(site->insn, name);
        }
        if (kind == KindEnd || (kind == KindFast && *name != 'p' && *name != 'n'))
            return; /* it has branched */

        unsigned writes = insn.lock || insn.map > 1 ? STOP
                        : insn.map == 0 ? writesOneByte(&insn) : writesTwoByte(&insn);

        if (writes == STOP || (writes & needed))
            return;
        written |= writes;
        at += insn.length;
    }
}

ebpfMonFlow ebpfMonInsnFlowX86(const uint8_t *code, unsigned length, uint64_t vaddr, uint64_t *to)
{
    int isShort = length == 2 && (code[0] == 0xeb || (code[0] & 0xf0) == 0x70 || (code[0] & 0xfc) == 0xe0);
    int32_t distance;
    int isJcc = code[0] == 0x0f && length == 6 && (code[1] & 0xf0) == 0x80;

    if (code[0] == 0xc3 || code[0] == 0xc2 || (code[0] == 0xf3 && length > 1 && code[1] == 0xc3))
        return ebpfMonFlowLeave;
    if (code[0] == 0xff && length > 1 && (code[1] >> 3 & 7) == 4) /* by a pointer */
        return ebpfMonFlowLeave;
    if (isShort) { /* it may leave the function, too: into the one that the linker put beside it */
        *to = vaddr + length + (uint64_t)(int64_t)(int8_t)code[1];
        return code[0] == 0xeb ? ebpfMonFlowJump : ebpfMonFlowBranch;
    }
    if (!isJcc && !((code[0] == 0xe8 || code[0] == 0xe9) && length == 5))
        return ebpfMonFlowNext;
    memcpy(&distance, code + length - sizeof(distance), sizeof(distance));
    *to = vaddr + length + (uint64_t)(int64_t)distance;
    return isJcc ? ebpfMonFlowBranch : code[0] == 0xe8 ? ebpfMonFlowCall : ebpfMonFlowJump;
}

/* --- calls --- */

/* What callSites.h has for x86-64, where calls can stand at any byte. */

/* A stub is "[endbr64] [bnd] jmp *slot(%rip)"; a call goes to its first byte. "at": of the jmp in "code". */
static void addStub(ebpfMonCallSearch *s, const uint8_t *code, size_t at, uint64_t vaddr, unsigned called)
{
    static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };

    if (at >= 1 && code[at - 1] == 0xf2) {
        at--;
        vaddr--;
    }
    if (at >= sizeof(endbr64) && !memcmp(code + at - sizeof(endbr64), endbr64, sizeof(endbr64)))
        vaddr -= sizeof(endbr64);
    ebpfMonCallSearchAddSpot(s, vaddr, called, ebpfMonSpotStub);
}

/* The four bytes at code[at] are the distance to a spot: what does this instruction do? */
static void useReference(ebpfMonCallSearch *s, const uint8_t *code, size_t at, uint64_t vaddr, const ebpfMonSpot *spot)
{
    if (spot->kind != ebpfMonSpotSlot && (code[at - 1] == 0xe8 || code[at - 1] == 0xe9))
        ebpfMonCallSearchAddSite(s, vaddr - 1, spot->called);
    else
        ebpfMonCallSearchUseOtherwise(s, spot->called);
}

/* The spot whose distance the four bytes at code[at] are, NULL: none. 0 is the padding before a function, a nop with
 * this displacement. */
static const ebpfMonSpot *findSpotAt(const ebpfMonCallSearch *s, const uint8_t *code, size_t at, uint64_t vaddr,
                                     uint32_t *word)
{
    memcpy(word, code + at, sizeof(*word));
    return *word ? ebpfMonCallSearchFindSpot(s, vaddr + at + 4 + (uint64_t)(int64_t)(int32_t)*word) : NULL;
}

/* Each piece begins with the last bytes of the piece before, because a distance may lie across both. */
static size_t beginAt(size_t from)
{
    return from > 3 ? from - 3 : 1;
}

void ebpfMonCallStubsX86(ebpfMonCallSearch *s, const uint8_t *code, size_t from, size_t len, uint64_t vaddr)
{
    uint32_t word;

    for (size_t at = beginAt(from); at + 4 <= len; at++) {
        const ebpfMonSpot *spot = findSpotAt(s, code, at, vaddr, &word);

        if (spot && spot->kind == ebpfMonSpotSlot && at >= 2 && code[at - 2] == 0xff && code[at - 1] == 0x25)
            addStub(s, code, at - 2, vaddr + at - 2, spot->called);
    }
}

void ebpfMonCallCodeX86(ebpfMonCallSearch *s, const uint8_t *code, size_t from, size_t len, uint64_t vaddr)
{
    uint32_t word;

    for (size_t at = beginAt(from); at + 4 <= len; at++) {
        const ebpfMonSpot *spot = findSpotAt(s, code, at, vaddr, &word);

        if (s->holdsAddresses)
            ebpfMonCallSearchUseAddress(s, word);
        if (spot)
            useReference(s, code, at, vaddr + at, spot);
    }
}
