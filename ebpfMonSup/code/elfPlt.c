/* SPDX-License-Identifier: BSD-3-Clause */
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include "code/elfPlt.h"
#include "code/elfSymbols.h"

/* Sections .plt and .plt.sec have stubs of 16 bytes, .plt.got of 8. */
#define STUB      16u
#define STUB_HALF 8u
#define RELOCATIONS_MAX (1u << 20)
#define PIECE     128u /* relocations that are read at once */

/* The slot that the stub at "vaddr" jumps to: [endbr64] [bnd] jmp *slot(%rip). 0: this is no such stub. */
static uint64_t findSlot(const ebpfMonElfFile *file, uint64_t vaddr)
{
    static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
    uint8_t code[STUB];
    size_t have = ebpfMonElfRead(file, vaddr, code, sizeof(code)), at = 0;
    int32_t distance;

    if (have >= sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0)
        at = sizeof(endbr64);
    if (at < have && code[at] == 0xf2) /* bnd */
        at++;
    if (have < at + 6 || code[at] != 0xff || code[at + 1] != 0x25)
        return 0;
    memcpy(&distance, code + at + 2, sizeof(distance));
    return vaddr + at + 6 + (uint64_t)(int64_t)distance;
}

/* The symbol table's number of the function whose address goes into "slot"; 0: none. */
static uint32_t findSymbol(const ebpfMonElfFile *file, const Elf64_Shdr *relocations, uint64_t slot)
{
    Elf64_Rela piece[PIECE];
    uint64_t count = relocations->sh_size / sizeof(*piece);

    if (count > RELOCATIONS_MAX)
        count = RELOCATIONS_MAX;
    for (uint64_t i = 0; i < count; i += PIECE) {
        size_t n = count - i < PIECE ? (size_t)(count - i) : PIECE;

        n = ebpfMonElfRead(file, relocations->sh_addr + i * sizeof(*piece), piece, n * sizeof(*piece)) / sizeof(*piece);
        for (size_t k = 0; k < n; k++) {
            uint32_t type = ELF64_R_TYPE(piece[k].r_info);

            if (piece[k].r_offset == slot && (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT))
                return (uint32_t)ELF64_R_SYM(piece[k].r_info);
        }
        if (!n)
            break;
    }
    return 0;
}

static int nameSymbol(const ebpfMonElfFile *file, const Elf64_Shdr *relocations, uint32_t symbol, char *name,
                      size_t size)
{
    Elf64_Shdr table, strings;
    Elf64_Sym sym;
    char text[128];
    size_t n;

    if (!ebpfMonElfSection(file, relocations->sh_link, &table)
        || !ebpfMonElfSection(file, table.sh_link, &strings)
        || ebpfMonElfRead(file, table.sh_addr + symbol * sizeof(sym), &sym, sizeof(sym)) != sizeof(sym))
        return -1;
    n = ebpfMonElfRead(file, strings.sh_addr + sym.st_name, text, sizeof(text) - 1);
    text[n] = 0;
    if (!text[0])
        return -1;
    snprintf(name, size, "%s@plt", text);
    return 0;
}

static int nameStub(const ebpfMonElfFile *file, uint64_t vaddr, char *name, size_t size, uint64_t *offset)
{
    static const unsigned align[] = { STUB_HALF, STUB };

    if (file->machine != EM_X86_64)
        return -1;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t stub = vaddr - vaddr % align[i], slot = findSlot(file, stub);

        Elf64_Shdr relocations;

        for (uint32_t k = 1; slot && ebpfMonElfSection(file, k, &relocations); k++) {
            uint32_t symbol;

            if (relocations.sh_type != SHT_RELA)
                continue;
            symbol = findSymbol(file, &relocations, slot);
            if (symbol && nameSymbol(file, &relocations, symbol, name, size) == 0) {
                *offset = vaddr - stub;
                return 0;
            }
        }
    }
    return -1;
}

int ebpfMonElfNameCode(const ebpfMonElfFile *file, uint64_t vaddr, char *name, size_t size, uint64_t *offset)
{
    if (ebpfMonElfNameAt(file, vaddr, name, size, offset) == 0)
        return 0;
    return nameStub(file, vaddr, name, size, offset);
}
