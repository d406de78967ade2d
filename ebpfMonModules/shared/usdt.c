/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <epicsString.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "code/elfSymbols.h"
#include "shared/usdt.h"
#include "common/text.h"

/* --- the arguments of a probe --- */

#define ARG_TEXT 80 /* bytes of one argument's text */
#define NONE     EBPFMON_QUERY_REGS

/* The names of a register of 64, 32, 16 and 8 bits, and its word in struct pt_regs. */
static const struct {
    const char *name[4];
    uint8_t word;
} registers[] = {
    { { "rax", "eax", "ax", "al" }, 10 },     { { "rbx", "ebx", "bx", "bl" }, 5 },
    { { "rcx", "ecx", "cx", "cl" }, 11 },     { { "rdx", "edx", "dx", "dl" }, 12 },
    { { "rsi", "esi", "si", "sil" }, 13 },    { { "rdi", "edi", "di", "dil" }, 14 },
    { { "rbp", "ebp", "bp", "bpl" }, 4 },     { { "rsp", "esp", "sp", "spl" }, 19 },
    { { "r8", "r8d", "r8w", "r8b" }, 9 },     { { "r9", "r9d", "r9w", "r9b" }, 8 },
    { { "r10", "r10d", "r10w", "r10b" }, 7 }, { { "r11", "r11d", "r11w", "r11b" }, 6 },
    { { "r12", "r12d", "r12w", "r12b" }, 3 }, { { "r13", "r13d", "r13w", "r13b" }, 2 },
    { { "r14", "r14d", "r14w", "r14b" }, 1 }, { { "r15", "r15d", "r15w", "r15b" }, 0 },
};

/* What is left of the text of one argument, and why it is refused. */
typedef struct {
    const char *p, *why;
} Text;

/* Notes why. Returns -1. */
static int refuseArg(Text *t, const char *why)
{
    t->why = why;
    return -1;
}

/* "%rax". 0, or -1. */
static int readRegister(Text *t, uint8_t *word)
{
    size_t n;

    if (*t->p++ != '%')
        return refuseArg(t, "there should be a register");
    n = strcspn(t->p, ",):");
    for (unsigned i = 0; i < sizeof(registers) / sizeof(registers[0]); i++)
        for (unsigned k = 0; k < 4; k++)
            if (strlen(registers[i].name[k]) == n && strncmp(registers[i].name[k], t->p, n) == 0) {
                *word = registers[i].word;
                t->p += n;
                return 0;
            }
    return refuseArg(t, "eBPF cannot read that register");
}

/* A number, with its sign. 0, or -1. */
static int readNumber(Text *t, __s64 *number)
{
    char *end;

    errno = 0;
    *number = *t->p == '-' ? strtoll(t->p, &end, 0) : (__s64)strtoull(t->p, &end, 0);
    if (end == t->p || errno || isspace((unsigned char)*t->p))
        return refuseArg(t, "its number cannot be read");
    t->p = end;
    return 0;
}

/* "limit+8" before "(%rip)". 0, or -1. */
static int readSymbol(Text *t, ebpfMonUsdtArg *arg)
{
    size_t n = strcspn(t->p, "+-(");

    if (n >= sizeof(arg->symbol))
        return refuseArg(t, "the name of its variable is too long");
    memcpy(arg->symbol, t->p, n);
    arg->symbol[n] = 0;
    t->p += n;
    if (*t->p == '+' && isdigit((unsigned char)t->p[1]))
        t->p++;
    if (*t->p && *t->p != '(' && readNumber(t, &arg->operand.number))
        return -1;
    return strcmp(t->p, "(%rip)") == 0 ? 0 : refuseArg(t, "a variable is read by its address only: (%rip)");
}

/* ",%rbx,8" of an address. 0, or -1. */
static int readIndex(Text *t, struct ebpfMonQueryOperand *op)
{
    __s64 scale = 1;

    t->p++;
    if (readRegister(t, &op->index))
        return -1;
    if (*t->p == ',' && (t->p++, readNumber(t, &scale)))
        return -1;
    op->shift = scale == 8 ? 3 : scale == 4 ? 2 : scale == 2 ? 1 : 0;
    return scale == 1 || op->shift ? 0 : refuseArg(t, "a scale is 1, 2, 4 or 8");
}

/* "-16(%rbp)", "8(%rax,%rbx,4)", "limit(%rip)". 0, or -1. */
static int readMemory(Text *t, ebpfMonUsdtArg *arg)
{
    struct ebpfMonQueryOperand *op = &arg->operand;

    op->kind = EBPFMON_QUERY_MEMORY;
    if (isalpha((unsigned char)*t->p) || *t->p == '_' || *t->p == '.')
        return readSymbol(t, arg);
    if (*t->p != '(' && readNumber(t, &op->number))
        return -1;
    if (op->number < INT32_MIN || op->number > INT32_MAX || *t->p++ != '(')
        return refuseArg(t, "it is neither a register, a constant nor an address");
    if ((*t->p != ',' && readRegister(t, &op->base)) || (*t->p == ',' && readIndex(t, op)))
        return -1;
    return strcmp(t->p, ")") == 0 ? 0 : refuseArg(t, "its address has no end");
}

/* What stands behind the "@". 0, or -1. */
static int readOperand(Text *t, ebpfMonUsdtArg *arg)
{
    struct ebpfMonQueryOperand *op = &arg->operand;

    if (*t->p == '$') {
        op->kind = EBPFMON_QUERY_CONSTANT;
        t->p++;
        if (readNumber(t, &op->number))
            return -1;
        return *t->p ? refuseArg(t, "its number cannot be read") : 0;
    }
    if (*t->p != '%')
        return readMemory(t, arg);
    op->kind = EBPFMON_QUERY_REGISTER;
    if (readRegister(t, &op->base))
        return -1;
    return *t->p ? refuseArg(t, "the memory of a thread (%fs, %gs) cannot be read") : 0;
}

/* "-4@…". 0, or -1. */
static int readArg(Text *t, ebpfMonUsdtArg *arg)
{
    struct ebpfMonQueryOperand *op = &arg->operand;
    const char *at = strchr(t->p, '@');

    *op = (struct ebpfMonQueryOperand){ .base = NONE, .index = NONE, .isSigned = *t->p == '-' };
    arg->symbol[0] = 0;
    t->p += op->isSigned;
    if (!at || at == t->p)
        return refuseArg(t, "it does not say how large it is");
    op->size = (uint8_t)(*t->p++ - '0');
    if (op->size != 1 && op->size != 2 && op->size != 4 && op->size != 8)
        return refuseArg(t, "it has 1, 2, 4 or 8 bytes");
    if (*t->p == 'f')
        return refuseArg(t, "it is a floating-point number");
    if (t->p != at)
        return refuseArg(t, "it has 1, 2, 4 or 8 bytes");
    t->p++;
    return readOperand(t, arg);
}

int ebpfMonUsdtArgRead(const char *args, unsigned n, ebpfMonUsdtArg *arg, char *why, size_t size)
{
    char one[ARG_TEXT];
    Text text = { .p = one };
    unsigned count = 0;
    size_t length;

    for (;; args += length) {
        args += strspn(args, " ");
        length = strcspn(args, " ");
        if (!length) {
            snprintf(why, size, "it has %u argument%s", count, count == 1 ? "" : "s");
            return -1;
        }
        if (count++ == n)
            break;
    }
    if (length >= sizeof(one)) {
        snprintf(why, size, "argument %u has a text of %zu bytes, 79 are read", count, length);
        return -1;
    }
    memcpy(one, args, length);
    one[length] = 0;
    if (readArg(&text, arg) == 0)
        return 0;
    snprintf(why, size, "argument %u is \"%s\": %s", count, one, text.why);
    return -1;
}

/* --- the notes of a file --- */

#define NOTES_MAX    (1u << 20) /* bytes of the notes of a file that are looked at */
#define SECTIONS_MAX 4096u      /* sections that are looked at */
#define NOTE_TYPE    3          /* _SDT_NOTE_TYPE */
#define NOP          0x90

/* Nonzero: the section is there. */
static int findNotes(const ebpfMonElfFile *file, uint32_t type, const char *wanted, Elf64_Shdr *section)
{
    char name[24];

    for (uint32_t i = 1; i < SECTIONS_MAX && ebpfMonElfSection(file, i, section); i++) {
        if (section->sh_type != type)
            continue;
        ebpfMonElfSectionName(file, section, name, sizeof(name));
        if (strcmp(name, wanted) == 0)
            return 1;
    }
    return 0;
}

/* The text at *p, which is moved behind it; NULL: it has no end, or is no text for people. */
static const char *takeText(const char **p, const char *end)
{
    const char *text = *p, *nul = memchr(text, 0, (size_t)(end - text));

    *p = nul ? nul + 1 : end;
    return nul && ebpfMonTextIsClean(text) ? text : NULL;
}

/* One note. "base": where .stapsdt.base lies now; a prelinker that moved the file left the notes as they were. 0, or
 * -1. */
static int readNote(const char *p, const char *end, uint64_t base, ebpfMonUsdtProbe *probe)
{
    const char *provider, *name, *args;
    uint64_t address[3]; /* of the nop, of .stapsdt.base, of the semaphore */
    int length;

    if ((size_t)(end - p) < sizeof(address))
        return -1;
    memcpy(address, p, sizeof(address));
    p += sizeof(address);
    provider = takeText(&p, end);
    name = provider ? takeText(&p, end) : NULL;
    args = name ? takeText(&p, end) : NULL;
    if (!args || strlen(args) >= sizeof(probe->args))
        return -1;
    length = snprintf(probe->name, sizeof(probe->name), "%s:%s", provider, name);
    strcpy(probe->args, args);
    if (!base || !address[1])
        base = address[1] = 0;
    probe->vaddr = address[0] + base - address[1];
    probe->semaphore = address[2] ? address[2] + base - address[1] : 0;
    return length > 0 && (size_t)length < sizeof(probe->name) ? 0 : -1;
}

/* Goes over all notes. */
static void readNotes(const char *notes, size_t size, uint64_t base, const char *pattern,
                      int (*each)(void *arg, const ebpfMonUsdtProbe *probe), void *arg)
{
    ebpfMonUsdtProbe probe;
    Elf64_Nhdr h;

    for (size_t at = 0; at + sizeof(h) <= size;) {
        size_t desc, next;

        memcpy(&h, notes + at, sizeof(h));
        at += sizeof(h);
        if (h.n_namesz > size || h.n_descsz > size)
            return;
        desc = at + ((h.n_namesz + 3u) & ~3u);
        next = desc + ((h.n_descsz + 3u) & ~3u);
        if (desc + h.n_descsz > size)
            return;
        if (h.n_type == NOTE_TYPE && h.n_namesz == sizeof("stapsdt") &&
            memcmp(notes + at, "stapsdt", h.n_namesz) == 0 &&
            readNote(notes + desc, notes + desc + h.n_descsz, base, &probe) == 0 &&
            epicsStrGlobMatch(probe.name, pattern) && each(arg, &probe))
            return;
        at = next;
    }
}

void ebpfMonUsdtFind(const ebpfMonElfFile *file, const char *pattern,
                     int (*each)(void *arg, const ebpfMonUsdtProbe *probe), void *arg)
{
    Elf64_Shdr section, base;
    char *notes;
    size_t size;

    if (!findNotes(file, SHT_NOTE, ".note.stapsdt", &section))
        return;
    if (!findNotes(file, SHT_PROGBITS, ".stapsdt.base", &base))
        base.sh_addr = 0;
    size = section.sh_size < NOTES_MAX ? (size_t)section.sh_size : NOTES_MAX;
    notes = malloc(size ? size : 1);
    if (!notes)
        return;
    size = ebpfMonElfReadSection(file, &section, 0, notes, size);
    readNotes(notes, size, base.sh_addr, pattern, each, arg);
    free(notes);
}

/* The variable that an argument is behind. 0, or -1: why. */
static int addVariable(ebpfMonElfFile *file, ebpfMonUsdtArg *arg, uint64_t bias, char *why, size_t size)
{
    const char *name = arg->symbol;
    ebpfMonElfSymbol symbol;

    if (!name[0])
        return 0;
    if (!ebpfMonElfFind(file, &name, 1, &symbol) || !symbol.isGlobal) { /* of local ones there can be many of a name */
        snprintf(why, size, "an argument is behind the variable %s, which is not among the global symbols of its file",
                 name);
        return -1;
    }
    arg->operand.number += (int64_t)(bias + symbol.vaddr);
    return 0;
}

int ebpfMonUsdtPlace(ebpfMonElfFile *file, const ebpfMonUsdtProbe *probe, unsigned args, uint64_t bias,
                     ebpfMonSite *site, uint64_t *semaphore, struct ebpfMonQuerySite *operands, char *why, size_t size)
{
    uint8_t code = 0;

    memset(operands, 0, sizeof(*operands));
    memset(site, 0, sizeof(*site));
    *semaphore = 0;
    if (ebpfMonElfOffset(file, probe->vaddr, PF_X, &site->offset)) {
        snprintf(why, size, "its note names an address where the file has no code");
        return -1;
    }
    if (probe->semaphore && ebpfMonElfOffset(file, probe->semaphore, PF_W, semaphore)) {
        snprintf(why, size, "its semaphore is not where a variable can be");
        return -1;
    }
    if (args && file->machine != EM_X86_64) {
        snprintf(why, size, "arguments of USDT probes are read on x86-64 only");
        return -1;
    }
    ebpfMonElfRead(file, probe->vaddr, &code, sizeof(code));
    site->cls = code == NOP ? ebpfMonSiteFast : ebpfMonSiteStepped;
    site->vaddr = probe->vaddr;
    snprintf(site->insn, sizeof(site->insn), "nop");
    for (unsigned i = 0; i < EBPFMON_QUERY_ARGS; i++) {
        ebpfMonUsdtArg arg;

        if (!(args >> i & 1))
            continue;
        if (ebpfMonUsdtArgRead(probe->args, i, &arg, why, size) || addVariable(file, &arg, bias, why, size))
            return -1;
        operands->arg[i] = arg.operand;
    }
    return 0;
}
