/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See unwind.h. The sections are read from the file and not trusted: every read is bounded by "end", every loop by the
 * bytes it goes over. Of expressions only that for the procedure linkage table is known: there a thread that runs may
 * be at any time. Compilers make others for signal frames, in which no thread waits for long.
 */
#include <string.h>
#include "code/unwind.h"

#define ENTRY_MAX  4096u      /* bytes of a CIE or FDE */
#define TABLE_MAX  (1u << 24) /* functions of a file */
#define REMEMBER   8          /* states that DW_CFA_remember_state can nest */

/* DW_EH_PE_…: how a pointer is written */
#define PE_ABSPTR 0x00
#define PE_UDATA4 0x03
#define PE_SDATA4 0x0b
#define PE_SDATA8 0x0c
#define PE_PCREL   0x10
#define PE_DATAREL 0x30
#define PE_OMIT    0xff

typedef struct {
    const uint8_t *at, *end;
    uint64_t vaddr; /* of "at" */
    int bad;
} Cursor;

typedef enum { SAME, UNDEFINED, AT_CFA, IS_CFA, ELSEWHERE } How;

typedef struct {
    uint64_t cfaReg;
    int64_t  cfaOffset;
    int      cfaKnown;
    uint8_t  how[EBPFMON_REGS];
    int64_t  offset[EBPFMON_REGS];
} Row;

typedef struct {
    uint64_t codeAlign;
    int64_t  dataAlign;
    uint64_t returnReg;
    uint8_t  encoding; /* of addresses in its FDEs */
    int      hasData, isSignal;
    Cursor   rules;
    uint8_t  bytes[ENTRY_MAX];
} Cie;

static uint64_t readFixed(Cursor *c, unsigned size)
{
    uint64_t v = 0;

    if ((size_t)(c->end - c->at) < size) {
        c->bad = 1;
        c->at = c->end;
        return 0;
    }
    memcpy(&v, c->at, size); /* little-endian, as the files are */
    c->at += size;
    c->vaddr += size;
    return v;
}

static uint64_t readLeb(Cursor *c, int isSigned)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        byte = (uint8_t)readFixed(c, 1);
        if (shift < 64)
            v |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while ((byte & 0x80) && !c->bad);
    if (isSigned && (byte & 0x40) && shift < 64)
        v |= ~(uint64_t)0 << shift;
    return v;
}

static void skipBytes(Cursor *c, uint64_t n)
{
    if (n > (uint64_t)(c->end - c->at)) {
        c->bad = 1;
        n = (uint64_t)(c->end - c->at);
    }
    c->at += n;
    c->vaddr += n;
}

static uint64_t readPointer(Cursor *c, uint8_t encoding, uint64_t dataBase)
{
    uint64_t base = 0, v;

    if ((encoding & 0x70) == PE_PCREL)
        base = c->vaddr;
    else if ((encoding & 0x70) == PE_DATAREL)
        base = dataBase;
    else if (encoding & 0x70)
        c->bad = 1;
    switch (encoding & 0x0f) {
    case PE_ABSPTR: case PE_SDATA8: case 0x04:
        v = readFixed(c, 8);
        break;
    case PE_UDATA4:
        v = readFixed(c, 4);
        break;
    case PE_SDATA4:
        v = (uint64_t)(int64_t)(int32_t)(uint32_t)readFixed(c, 4);
        break;
    default:
        c->bad = 1;
        v = 0;
    }
    return base + v;
}

/* Reads the entry (CIE or FDE) at "vaddr", behind its length. 0, or -1. */
static int readEntry(const ebpfMonElfFile *file, uint64_t vaddr, uint8_t bytes[ENTRY_MAX], Cursor *c)
{
    uint32_t length;

    if (ebpfMonElfRead(file, vaddr, &length, sizeof(length)) != sizeof(length) || length < 4 || length > ENTRY_MAX ||
        ebpfMonElfRead(file, vaddr + 4, bytes, length) != length)
        return -1;
    *c = (Cursor){ bytes, bytes + length, vaddr + 4, 0 };
    return 0;
}

static int readCie(const ebpfMonElfFile *file, uint64_t vaddr, Cie *cie)
{
    const char *augmentation;
    Cursor c;
    uint8_t version;

    if (readEntry(file, vaddr, cie->bytes, &c) || readFixed(&c, 4) != 0)
        return -1;
    version = (uint8_t)readFixed(&c, 1);
    augmentation = (const char *)c.at;
    if ((version != 1 && version != 3) || !memchr(c.at, 0, (size_t)(c.end - c.at)))
        return -1;
    skipBytes(&c, strlen(augmentation) + 1);
    cie->codeAlign = readLeb(&c, 0);
    cie->dataAlign = (int64_t)readLeb(&c, 1);
    cie->returnReg = version == 1 ? readFixed(&c, 1) : readLeb(&c, 0);
    cie->encoding = PE_ABSPTR;
    cie->hasData = cie->isSignal = 0;
    if (*augmentation == 'z') {
        uint64_t size = readLeb(&c, 0);
        Cursor data = c;

        cie->hasData = 1;
        skipBytes(&c, size);
        for (augmentation++; *augmentation; augmentation++) {
            if (*augmentation == 'R') {
                cie->encoding = (uint8_t)readFixed(&data, 1);
            } else if (*augmentation == 'L') {
                skipBytes(&data, 1);
            } else if (*augmentation == 'P') {
                uint8_t encoding = (uint8_t)readFixed(&data, 1);

                readPointer(&data, encoding & 0x7f, 0);
            } else if (*augmentation == 'S') {
                cie->isSignal = 1;
            } else {
                return -1;
            }
        }
        c.bad |= data.bad;
    } else if (*augmentation) {
        return -1;
    }
    cie->rules = c;
    return c.bad || cie->returnReg != EBPFMON_REG_PC ? -1 : 0;
}

/* The entry of the sorted table of .eh_frame_hdr that may have "pc": where the function begins, and its FDE, both
 * from the begin of the table on. 0, or -1. */
static int findEntry(const ebpfMonElfFile *file, uint64_t pc, int32_t entry[2])
{
    uint8_t head[12];
    uint32_t count, low = 0, high;

    if (!file->ehFrameHdr || ebpfMonElfRead(file, file->ehFrameHdr, head, sizeof(head)) != sizeof(head) ||
        head[0] != 1 || (head[1] & 0x0f) != PE_SDATA4 || head[2] != PE_UDATA4 || head[3] != (PE_DATAREL | PE_SDATA4))
        return -1;
    memcpy(&count, head + 8, sizeof(count));
    high = count < TABLE_MAX ? count : TABLE_MAX;
    while (low < high) { /* the first one behind pc */
        uint32_t middle = low + (high - low) / 2;

        if (ebpfMonElfRead(file, file->ehFrameHdr + 12 + 8 * (uint64_t)middle, entry, 8) != 8)
            return -1;
        if (file->ehFrameHdr + (uint64_t)(int64_t)entry[0] <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low && ebpfMonElfRead(file, file->ehFrameHdr + 12 + 8 * (uint64_t)(low - 1), entry, 8) == 8 ? 0 : -1;
}

static uint64_t findFde(const ebpfMonElfFile *file, uint64_t pc)
{
    int32_t entry[2];

    return findEntry(file, pc, entry) ? 0 : file->ehFrameHdr + (uint64_t)(int64_t)entry[1];
}

uint64_t ebpfMonUnwindFindBegin(const ebpfMonElfFile *file, uint64_t pc)
{
    int32_t entry[2];

    return findEntry(file, pc, entry) ? 0 : file->ehFrameHdr + (uint64_t)(int64_t)entry[0];
}

static void setRule(Row *row, uint64_t reg, How how, int64_t offset)
{
    if (reg < EBPFMON_REGS) {
        row->how[reg] = (uint8_t)how;
        row->offset[reg] = offset;
    }
}

/* The file's word may overflow. */
static int64_t readFactored(Cursor *c, int isSigned, const Cie *cie)
{
    return (int64_t)(readLeb(c, isSigned) * (uint64_t)cie->dataAlign);
}

/* The expression that linkers write for .plt (elf_x86_64_eh_frame_lazy_plt in elf64-x86-64.c of binutils). A stub
 * pushes one word, so the return address is 8 bytes above sp, behind the push 16: sp + 8 + ((pc & 15) >= N) << 3. N
 * depends on the kind of stub. */
static int isPltRule(const uint8_t *expression, uint64_t size, unsigned *n)
{
    static const uint8_t begin[] = { 0x77, 8, 0x80, 0, 0x3f, 0x1a }; /* breg7 8, breg16 0, lit15, and */
    static const uint8_t end[] = { 0x2a, 0x33, 0x24, 0x22 };         /* ge, lit3, shl, plus */

    if (size != sizeof(begin) + 1 + sizeof(end) || memcmp(expression, begin, sizeof(begin)) != 0
        || memcmp(expression + sizeof(begin) + 1, end, sizeof(end)) != 0)
        return 0;
    *n = expression[sizeof(begin)] - 0x30u; /* lit0 */
    return *n < 16;
}

static void readCfaExpression(Cursor *c, uint64_t pc, Row *row)
{
    uint64_t size = readLeb(c, 0);
    const uint8_t *expression = c->at;
    unsigned n;

    skipBytes(c, size);
    row->cfaKnown = !c->bad && isPltRule(expression, size, &n);
    if (row->cfaKnown) {
        row->cfaReg = EBPFMON_REG_SP;
        row->cfaOffset = (pc & 15) >= n ? 16 : 8;
    }
}

/* Runs the rules up to "pc"; "loc" is where the function begins. 0, or -1. Longer than others: one case for each
 * instruction of DWARF 4, section 6.4.2. To cut it would only hide which ones are missing. */
static int runRules(Cursor c, const Cie *cie, uint64_t loc, uint64_t pc, const Row *first, Row *row)
{
    Row kept[REMEMBER];
    unsigned depth = 0;

    while (c.at < c.end && !c.bad) {
        uint8_t op = (uint8_t)readFixed(&c, 1), low = op & 0x3f;
        uint64_t reg, step = 0;

        switch (op >> 6 ? op & 0xc0 : op) {
        case 0x40: /* DW_CFA_advance_loc */
            step = low;
            break;
        case 0x80: /* DW_CFA_offset */
            setRule(row, low, AT_CFA, readFactored(&c, 0, cie));
            break;
        case 0xc0: /* DW_CFA_restore */
        case 0x06: /* DW_CFA_restore_extended */
            reg = op == 0x06 ? readLeb(&c, 0) : low;
            if (!first)
                return -1;
            if (reg < EBPFMON_REGS)
                setRule(row, reg, first->how[reg], first->offset[reg]);
            break;
        case 0x00: /* DW_CFA_nop */
            break;
        case 0x01: /* DW_CFA_set_loc */
            loc = readPointer(&c, cie->encoding & 0x7f, 0);
            if (loc > pc)
                return c.bad ? -1 : 0;
            break;
        case 0x02: case 0x03: case 0x04: /* DW_CFA_advance_loc1, 2, 4 */
            step = readFixed(&c, 1u << (op - 2));
            break;
        case 0x05: case 0x11: /* DW_CFA_offset_extended, DW_CFA_offset_extended_sf */
        case 0x14: case 0x15: /* DW_CFA_val_offset, DW_CFA_val_offset_sf */
            reg = readLeb(&c, 0);
            setRule(row, reg, op < 0x14 ? AT_CFA : IS_CFA, readFactored(&c, op == 0x11 || op == 0x15, cie));
            break;
        case 0x07: /* DW_CFA_undefined */
            setRule(row, readLeb(&c, 0), UNDEFINED, 0);
            break;
        case 0x08: /* DW_CFA_same_value */
            setRule(row, readLeb(&c, 0), SAME, 0);
            break;
        case 0x09: /* DW_CFA_register */
            setRule(row, readLeb(&c, 0), ELSEWHERE, 0);
            readLeb(&c, 0);
            break;
        case 0x0a: /* DW_CFA_remember_state */
            if (depth == REMEMBER)
                return -1;
            kept[depth++] = *row;
            break;
        case 0x0b: /* DW_CFA_restore_state */
            if (!depth)
                return -1;
            *row = kept[--depth];
            break;
        case 0x0c: /* DW_CFA_def_cfa */
        case 0x12: /* DW_CFA_def_cfa_sf */
            row->cfaReg = readLeb(&c, 0);
            row->cfaOffset = op == 0x0c ? (int64_t)readLeb(&c, 0) : readFactored(&c, 1, cie);
            row->cfaKnown = 1;
            break;
        case 0x0d: /* DW_CFA_def_cfa_register */
            row->cfaReg = readLeb(&c, 0);
            break;
        case 0x0e: /* DW_CFA_def_cfa_offset */
            row->cfaOffset = (int64_t)readLeb(&c, 0);
            break;
        case 0x13: /* DW_CFA_def_cfa_offset_sf */
            row->cfaOffset = readFactored(&c, 1, cie);
            break;
        case 0x0f: /* DW_CFA_def_cfa_expression */
            readCfaExpression(&c, pc, row);
            break;
        case 0x10: /* DW_CFA_expression */
        case 0x16: /* DW_CFA_val_expression */
            setRule(row, readLeb(&c, 0), ELSEWHERE, 0);
            skipBytes(&c, readLeb(&c, 0));
            break;
        case 0x2e: /* DW_CFA_GNU_args_size */
            readLeb(&c, 0);
            break;
        default:
            return -1;
        }
        loc += step * cie->codeAlign;
        if (loc > pc)
            break;
    }
    return c.bad ? -1 : 0;
}

/* What was in the registers when the function was called. */
static int restoreRegs(const Row *row, ebpfMonStackRead read, void *arg, ebpfMonRegs *regs)
{
    ebpfMonRegs up = { .known = 0 };
    uint64_t cfa;

    if (!row->cfaKnown || row->cfaReg >= EBPFMON_REGS || !(regs->known >> row->cfaReg & 1))
        return -1;
    cfa = regs->reg[row->cfaReg] + (uint64_t)row->cfaOffset;
    if (cfa <= regs->reg[EBPFMON_REG_SP]) /* the stack only grows */
        return -1;
    for (unsigned r = 0; r < EBPFMON_REGS; r++) {
        uint64_t value = 0;
        int known = 0;

        if (row->how[r] == SAME && r != EBPFMON_REG_PC) {
            value = regs->reg[r];
            known = regs->known >> r & 1;
        } else if (row->how[r] == AT_CFA) {
            known = read(arg, cfa + (uint64_t)row->offset[r], &value) == 0;
        } else if (row->how[r] == IS_CFA) {
            value = cfa + (uint64_t)row->offset[r];
            known = 1;
        }
        up.reg[r] = value;
        up.known |= (uint32_t)known << r;
    }
    up.reg[EBPFMON_REG_SP] = cfa;
    up.known |= 1u << EBPFMON_REG_SP;
    if (!(up.known >> EBPFMON_REG_PC & 1) || !up.reg[EBPFMON_REG_PC])
        return -1;
    *regs = up;
    return 0;
}

/* The entry of the function with "pc". */
typedef struct {
    uint8_t  bytes[ENTRY_MAX];
    uint64_t begin;  /* of the function */
    Cie      cie;
    Cursor   rules;  /* in "bytes" */
} Fde;

/* 0, or -1: there is none, or it is of a kind that is not known. */
static int readFde(const ebpfMonElfFile *file, uint64_t pc, Fde *f)
{
    uint64_t fde = findFde(file, pc), size, cieAt;
    Cursor *c = &f->rules;

    if (!fde || readEntry(file, fde, f->bytes, c))
        return -1;
    cieAt = c->vaddr;
    cieAt -= readFixed(c, 4);
    if (cieAt == fde + 4 || readCie(file, cieAt, &f->cie))
        return -1;
    f->begin = readPointer(c, f->cie.encoding & 0x7f, 0);
    size = readPointer(c, f->cie.encoding & 0x0f, 0);
    if (f->cie.hasData)
        skipBytes(c, readLeb(c, 0));
    return c->bad || f->cie.encoding == PE_OMIT || pc < f->begin || pc - f->begin >= size ? -1 : 0;
}

int ebpfMonUnwindIsInside(const ebpfMonElfFile *file, uint64_t vaddr)
{
    Fde f;

    return readFde(file, vaddr, &f) == 0 && f.begin != vaddr;
}

int ebpfMonUnwindStep(const ebpfMonElfFile *file, uint64_t bias, int isCall, ebpfMonStackRead read, void *arg,
                      ebpfMonRegs *regs)
{
    uint64_t pc = regs->reg[EBPFMON_REG_PC] - bias - (isCall ? 1 : 0);
    Row row, first;
    Fde f;

    if (readFde(file, pc, &f))
        return -1;
    memset(&row, 0, sizeof(row));
    if (runRules(f.cie.rules, &f.cie, 0, UINT64_MAX, NULL, &row))
        return -1;
    first = row;
    if (runRules(f.rules, &f.cie, f.begin, pc, &first, &row) || restoreRegs(&row, read, arg, regs))
        return -1;
    return f.cie.isSignal;
}

/* The stack pointer is behind the place of the return address now. */
void ebpfMonUnwindRestoreReturn(const ebpfMonReturn *ret, size_t count, ebpfMonRegs *regs)
{
    for (size_t i = 0; i < count; i++)
        if (ret[i].slot + 8 == regs->reg[EBPFMON_REG_SP])
            regs->reg[EBPFMON_REG_PC] = ret[i].to;
}
