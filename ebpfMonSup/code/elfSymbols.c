/* SPDX-License-Identifier: BSD-3-Clause */
#include <elf.h>
#include <epicsString.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "code/elfFile.h"
#include "code/elfSymbols.h"

/* --- the dynamic section --- */

/*
 * How many symbols there are stands nowhere: it follows from the hash table by which the loader looks
 * them up (System V ABI, "Hash Table"; for the GNU one glibc's dl-lookup.c, do_lookup_x).
 */

#define ENTRIES_MAX 512u
#define HASH_PIECE  256u      /* words of a hash table that are read at once */
#define WORDS_MAX   (1u << 22)

typedef struct {
    uint64_t symbols, strings, stringsSize, hash, gnuHash, flags1;
} Dynamic;

static void readDynamic(const ebpfMonElfFile *file, Dynamic *d)
{
    memset(d, 0, sizeof(*d));
    for (uint64_t i = 0; i < ENTRIES_MAX && (i + 1) * sizeof(Elf64_Dyn) <= file->dynamicSize; i++) {
        Elf64_Dyn entry;

        if (ebpfMonElfRead(file, file->dynamic + i * sizeof(entry), &entry, sizeof(entry)) != sizeof(entry))
            return;
        switch (entry.d_tag) {
        case DT_NULL: return;
        case DT_SYMTAB: d->symbols = entry.d_un.d_ptr; break;
        case DT_STRTAB: d->strings = entry.d_un.d_ptr; break;
        case DT_STRSZ: d->stringsSize = entry.d_un.d_val; break;
        case DT_HASH: d->hash = entry.d_un.d_ptr; break;
        case DT_GNU_HASH: d->gnuHash = entry.d_un.d_ptr; break;
        case DT_FLAGS_1: d->flags1 = entry.d_un.d_val; break;
        default: break;
        }
    }
}

static uint32_t readDynamicWord(const ebpfMonElfFile *file, uint64_t vaddr)
{
    uint32_t word = 0;

    return ebpfMonElfRead(file, vaddr, &word, sizeof(word)) == sizeof(word) ? word : 0;
}

/* The largest of "count" words. */
static uint32_t findLargest(const ebpfMonElfFile *file, uint64_t vaddr, uint32_t count)
{
    uint32_t piece[HASH_PIECE], largest = 0;

    for (uint32_t i = 0; i < count; i += HASH_PIECE) {
        size_t want = count - i < HASH_PIECE ? count - i : HASH_PIECE;
        size_t got = ebpfMonElfRead(file, vaddr + i * sizeof(*piece), piece, want * sizeof(*piece)) / sizeof(*piece);

        for (size_t k = 0; k < got; k++)
            largest = piece[k] > largest ? piece[k] : largest;
        if (!got)
            break;
    }
    return largest;
}

/* The last chain begins at the symbol with the largest number that a bucket names, and ends with an odd word. */
static uint32_t countByGnuHash(const ebpfMonElfFile *file, uint64_t at)
{
    uint32_t buckets = readDynamicWord(file, at), first = readDynamicWord(file, at + 4),
             bloom = readDynamicWord(file, at + 8), last;
    uint64_t table = at + 16 + 8ull * bloom, chain;

    if (buckets > WORDS_MAX || bloom > WORDS_MAX)
        return 0;
    last = findLargest(file, table, buckets);
    if (last < first)
        return first; /* it exports nothing */
    chain = table + 4ull * buckets;
    for (uint32_t i = 0; i < WORDS_MAX; i++) {
        uint32_t word = 0;

        if (ebpfMonElfRead(file, chain + 4ull * (last - first), &word, sizeof(word)) != sizeof(word))
            return 0;
        if (word & 1)
            return last + 1;
        last++;
    }
    return 0;
}

/* The symbol table that the loader uses, and its strings, as sections. Nonzero: there is one. */
static int elfDynamicTable(const ebpfMonElfFile *file, Elf64_Shdr *table, Elf64_Shdr *strings)
{
    Dynamic d;
    uint32_t count;

    if (!file->dynamic)
        return 0;
    readDynamic(file, &d);
    count = d.gnuHash ? countByGnuHash(file, d.gnuHash) : d.hash ? readDynamicWord(file, d.hash + 4) : 0;
    memset(table, 0, sizeof(*table));
    memset(strings, 0, sizeof(*strings));
    if (!count || ebpfMonElfOffset(file, d.symbols, 0, &table->sh_offset)
        || ebpfMonElfOffset(file, d.strings, 0, &strings->sh_offset))
        return 0;
    table->sh_type = SHT_DYNSYM;
    table->sh_addr = d.symbols;
    table->sh_size = (uint64_t)count * sizeof(Elf64_Sym);
    strings->sh_type = SHT_STRTAB;
    strings->sh_addr = d.strings;
    strings->sh_size = d.stringsSize;
    return 1;
}

int ebpfMonElfIsProgram(const ebpfMonElfFile *file)
{
    Dynamic d;

    if (file->hasInterp || file->isFixed)
        return 1;
    readDynamic(file, &d);
    return !!(d.flags1 & DF_1_PIE);
}

/* --- symbols by name and by address --- */

/*
 * Tables are read in pieces, and not by libelf, which takes memory for all of a table.
 *
 * A lookup goes over the string table first and notes where the names stand, then over the symbols that
 * point there. Most files of a host hold none of the names, and their symbols are never read. That serves
 * .symtab too, which has no hash table, and so there is no need for one in .dynsym.
 */

#define PIECE      (64u * 1024u)
#define KEEP       64u             /* carried over from piece to piece: longer than any name */
#define MAX_TABLE  (1ull << 30)    /* bytes of one table: 44 million symbols */
#define MAX_SPOTS  16u             /* places of one name in a string table; linkers share tails of strings */
#define MAX_NAMES  32u             /* bits of Spots.ends */
#define SEARCH_WORK 32u            /* to look for one symbol among the spots */

typedef struct {
    uint32_t offset;               /* in the string table */
    unsigned name;
} Spot;

typedef struct {
    Spot     spot[MAX_NAMES * MAX_SPOTS];
    unsigned count;
    unsigned each[MAX_NAMES];
    uint32_t ends[256];            /* by last character: which names end with it, a bit for each */
} Spots;

static size_t readSymbolAt(const ebpfMonElfFile *file, void *buf, size_t len, uint64_t offset)
{
    return ebpfMonElfBytesRead(file->bytes, buf, len, offset);
}

static int bySpot(const void *a, const void *b)
{
    uint32_t x = ((const Spot *)a)->offset, y = ((const Spot *)b)->offset;

    return x < y ? -1 : x > y;
}

/* Notes which of the names end at the NUL "end"; "offset" is the NUL's in the string table. */
static void noteNames(Spots *spots, const char *const *names, const unsigned *lengths, const char *begin,
                      const char *end, uint64_t offset)
{
    for (uint32_t left = spots->ends[(unsigned char)end[-1]]; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left), n = lengths[i];

        if ((size_t)(end - begin) < n || memcmp(end - n, names[i], n) || spots->each[i] >= MAX_SPOTS)
            continue;
        spots->each[i]++;
        spots->spot[spots->count++] = (Spot){ .offset = (uint32_t)(offset - n), .name = i };
    }
}

/* Finds the names in a string table, at the end of any string of it. Those already found have length 0. */
static void findNames(const ebpfMonElfFile *file, const Elf64_Shdr *strings, const char *const *names,
                      const unsigned *lengths, unsigned count, char *buf, Spots *spots)
{
    size_t kept = 0;

    spots->count = 0;
    memset(spots->each, 0, sizeof(spots->each));
    memset(spots->ends, 0, sizeof(spots->ends));
    for (unsigned i = 0; i < count; i++)
        if (lengths[i])
            spots->ends[(unsigned char)names[i][lengths[i] - 1]] |= 1u << i;
    for (uint64_t at = 0; at < strings->sh_size; ) {
        uint64_t left = strings->sh_size - at;
        size_t got = readSymbolAt(file, buf + kept, left < PIECE ? (size_t)left : PIECE, strings->sh_offset + at);
        const char *p = buf + kept, *stop = p + got, *nul;
        unsigned texts = 0;

        if (!got)
            break;
        while (p < stop && (nul = memchr(p, 0, (size_t)(stop - p))) != NULL) {
            if (nul > buf && nul[-1]) { /* of a text that is not empty */
                noteNames(spots, names, lengths, buf, nul, at + (uint64_t)(nul - (buf + kept)));
                texts++;
            }
            p = nul + 1;
        }
        at += got;
        ebpfMonElfSpend(file, (uint64_t)texts * count + 4 * got);

        size_t all = kept + got;

        kept = all < KEEP ? all : KEEP;
        memmove(buf, buf + all - kept, kept);
    }
    qsort(spots->spot, spots->count, sizeof(spots->spot[0]), bySpot);
}

/* Reads the next symbols of a table into "buf", a piece at most. "at": how far the table was read, 0 at first. Returns
 * their number; 0: that was all. */
static size_t readSymbols(const ebpfMonElfFile *file, const Elf64_Shdr *table, uint64_t *at, char *buf)
{
    uint64_t left = *at < table->sh_size ? table->sh_size - *at : 0;
    size_t bytes = left < PIECE ? (size_t)left : PIECE, n;

    bytes -= bytes % sizeof(Elf64_Sym);
    n = bytes ? readSymbolAt(file, buf, bytes, table->sh_offset + *at) / sizeof(Elf64_Sym) : 0;
    *at += n * sizeof(Elf64_Sym);
    return n;
}

/* The name that a symbol bears, -1: none that is looked for. */
static int findSymbolName(const Spots *spots, const Elf64_Sym *sym)
{
    Spot key = { .offset = sym->st_name };
    unsigned type = ELF64_ST_TYPE(sym->st_info);
    const Spot *spot = bsearch(&key, spots->spot, spots->count, sizeof(key), bySpot);

    if (!spot || sym->st_shndx == SHN_ABS || (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE))
        return -1;
    return (int)spot->name;
}

/* Goes over one symbol table. A symbol found in an earlier table stays; within one, a global one wins. */
static void findSymbols(const ebpfMonElfFile *file, const Elf64_Shdr *table, const Spots *spots, char *buf,
    unsigned *lengths, ebpfMonElfSymbol *symbols)
{
    uint64_t at = 0;
    size_t n;

    while ((n = readSymbols(file, table, &at, buf))) {
        ebpfMonElfSpend(file, n * SEARCH_WORK);
        for (size_t i = 0; i < n; i++) {
            Elf64_Sym sym;

            memcpy(&sym, buf + i * sizeof(sym), sizeof(sym));

            int name = findSymbolName(spots, &sym);

            if (name < 0 || symbols[name].isGlobal)
                continue;
            if (sym.st_shndx == SHN_UNDEF || !sym.st_value) {
                symbols[name].isImported |= sym.st_shndx == SHN_UNDEF && table->sh_type == SHT_DYNSYM;
                continue;
            }

            int global = ELF64_ST_BIND(sym.st_info) != STB_LOCAL;

            if (symbols[name].vaddr && !global)
                continue;
            symbols[name] = (ebpfMonElfSymbol){ .vaddr = sym.st_value, .size = sym.st_size, .isGlobal = global };
            lengths[name] = 0;
        }
    }
}

int ebpfMonElfTable(const ebpfMonElfFile *file, uint32_t type, Elf64_Shdr *table, Elf64_Shdr *strings)
{
    int found = 0;

    for (uint32_t i = 1; !found && ebpfMonElfSection(file, i, table); i++)
        if (table->sh_type == type)
            found = ebpfMonElfSection(file, table->sh_link, strings) && strings->sh_type == SHT_STRTAB ? 1 : -1;
    if (!found && type == SHT_DYNSYM)
        found = elfDynamicTable(file, table, strings);
    return found > 0 && table->sh_size <= MAX_TABLE && strings->sh_size <= MAX_TABLE;
}

unsigned ebpfMonElfFind(ebpfMonElfFile *file, const char *const *names, unsigned count,
    ebpfMonElfSymbol *symbols)
{
    static const uint32_t types[] = { SHT_DYNSYM, SHT_SYMTAB };
    unsigned lengths[MAX_NAMES], found = 0;
    Spots *spots = malloc(sizeof(*spots));
    char *buf = malloc(KEEP + PIECE);

    memset(symbols, 0, count * sizeof(*symbols));
    for (unsigned i = 0; i < count && i < MAX_NAMES; i++)
        lengths[i] = strlen(names[i]) <= KEEP ? (unsigned)strlen(names[i]) : 0;
    if (count > MAX_NAMES)
        count = MAX_NAMES;
    for (const ebpfMonElfFile *in = file; spots && buf && in; in = in->symbols)
        for (unsigned t = in == file ? 0 : 1; t < 2; t++) {
            Elf64_Shdr table, strings;

            if (!ebpfMonElfTable(in, types[t], &table, &strings))
                continue;
            findNames(in, &strings, names, lengths, count, buf, spots);
            if (spots->count)
                findSymbols(in, &table, spots, buf, lengths, symbols);
        }
    for (unsigned i = 0; i < count; i++)
        found += symbols[i].vaddr != 0;
    free(buf);
    free(spots);
    return found;
}

/* Whether a function whose size is not known can reach to "vaddr": not beyond its section. _init has no size, and
 * .plt comes behind its section. */
static int canReach(const ebpfMonElfFile *file, const Elf64_Sym *sym, uint64_t vaddr)
{
    Elf64_Shdr section;

    return ebpfMonElfSection(file, sym->st_shndx, &section) && vaddr - section.sh_addr < section.sh_size;
}

/* The function of one symbol table that "vaddr" lies in; st_value 0: none. One whose size is not known reaches to the
 * next, or to the end of its section; a global name goes before its local twin. */
static Elf64_Sym findFunctionAt(const ebpfMonElfFile *file, const Elf64_Shdr *table, uint64_t vaddr, char *buf)
{
    Elf64_Sym best = { .st_value = 0 };
    uint64_t at = 0;
    size_t n;

    while ((n = readSymbols(file, table, &at, buf))) {
        for (size_t i = 0; i < n; i++) {
            Elf64_Sym sym;

            memcpy(&sym, buf + i * sizeof(sym), sizeof(sym));

            unsigned type = ELF64_ST_TYPE(sym.st_info);

            if (sym.st_shndx == SHN_UNDEF || sym.st_shndx == SHN_ABS || (type != STT_FUNC && type != STT_GNU_IFUNC)
                || !sym.st_value || sym.st_value > vaddr || (sym.st_size && vaddr - sym.st_value >= sym.st_size)
                || sym.st_value < best.st_value
                || (sym.st_value == best.st_value && ELF64_ST_BIND(sym.st_info) == STB_LOCAL)
                || (!sym.st_size && !canReach(file, &sym, vaddr)))
                continue;
            best = sym;
        }
    }
    return best;
}

/* The same in one table of one file. 0, or -1. */
static int nameIn(const ebpfMonElfFile *file, uint32_t type, uint64_t vaddr, char *buf, char *name, size_t size,
                  uint64_t *offset)
{
    Elf64_Shdr table, strings;
    Elf64_Sym sym;

    if (!ebpfMonElfTable(file, type, &table, &strings))
        return -1;
    sym = findFunctionAt(file, &table, vaddr, buf);
    if (!sym.st_value || sym.st_name >= strings.sh_size)
        return -1;

    uint64_t left = strings.sh_size - sym.st_name;
    size_t n = readSymbolAt(file, name, left < size - 1 ? (size_t)left : size - 1, strings.sh_offset + sym.st_name);

    name[n] = 0;
    *offset = vaddr - sym.st_value;
    return name[0] ? 0 : -1;
}

int ebpfMonElfNameAt(const ebpfMonElfFile *file, uint64_t vaddr, char *name, size_t size, uint64_t *offset)
{
    char *buf = malloc(PIECE);
    int rc = -1;

    name[0] = 0;
    for (const ebpfMonElfFile *in = file; buf && rc && in; in = in->symbols)
        if ((rc = nameIn(in, SHT_SYMTAB, vaddr, buf, name, size, offset)) != 0 && in == file)
            rc = nameIn(in, SHT_DYNSYM, vaddr, buf, name, size, offset);
    free(buf);
    for (char *c = name; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return rc;
}

/* --- functions by a pattern --- */

#define NAMES_MAX (16u << 20) /* bytes of the names of a file that are looked at */
#define SYMBOL_PIECE 1024    /* symbols that are read at once */

static int isKnown(const ebpfMonElfFunction *found, unsigned count, uint64_t vaddr)
{
    for (unsigned i = 0; i < count; i++)
        if (found[i].vaddr == vaddr)
            return 1;
    return 0;
}

static int isFunction(const Elf64_Sym *sym, size_t names)
{
    return ELF64_ST_TYPE(sym->st_info) == STT_FUNC && sym->st_shndx != SHN_UNDEF && sym->st_shndx != SHN_ABS &&
           sym->st_value && sym->st_name < names;
}

static unsigned findInTable(const ebpfMonElfFile *file, const Elf64_Shdr *table, const char *names, size_t size,
                            const char *pattern, ebpfMonElfFunction *found, unsigned most)
{
    Elf64_Sym *sym = malloc(SYMBOL_PIECE * sizeof(*sym));
    unsigned count = 0;
    size_t n;

    for (uint64_t at = 0;
         sym && count <= most &&
         (n = ebpfMonElfReadSection(file, table, at, sym, SYMBOL_PIECE * sizeof(*sym)) / sizeof(*sym));
         at += n * sizeof(*sym))
        for (size_t i = 0; i < n; i++) {
            const char *name = names + (sym[i].st_name < size ? sym[i].st_name : 0);

            if (!isFunction(&sym[i], size) || strlen(name) >= sizeof(found->name) ||
                !epicsStrGlobMatch(name, pattern) || isKnown(found, count < most ? count : most, sym[i].st_value))
                continue;
            if (count < most) {
                found[count] = (ebpfMonElfFunction){ .vaddr = sym[i].st_value, .size = sym[i].st_size };
                strcpy(found[count].name, name);
            }
            count++;
        }
    free(sym);
    return count;
}

unsigned ebpfMonElfFunctionsFind(const ebpfMonElfFile *file, const char *pattern, ebpfMonElfFunction *found,
                                 unsigned most)
{
    Elf64_Shdr table, strings;
    unsigned count = 0;
    size_t size;
    char *names;

    if (!ebpfMonElfTable(file, SHT_SYMTAB, &table, &strings) && !ebpfMonElfTable(file, SHT_DYNSYM, &table, &strings))
        return 0;
    size = strings.sh_size < NAMES_MAX ? (size_t)strings.sh_size : NAMES_MAX;
    names = malloc(size + 1);
    if (!names)
        return 0;
    size = ebpfMonElfReadSection(file, &strings, 0, names, size);
    names[size] = 0;
    count = findInTable(file, &table, names, size, pattern, found, most);
    free(names);
    return count;
}

/* --- stubs of the procedure linkage table --- */

/* Sections .plt and .plt.sec have stubs of 16 bytes, .plt.got of 8. */
#define STUB      16u
#define STUB_HALF 8u
#define RELOCATIONS_MAX (1u << 20)
#define RELOCATION_PIECE     128u /* relocations that are read at once */

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
    Elf64_Rela piece[RELOCATION_PIECE];
    uint64_t count = relocations->sh_size / sizeof(*piece);

    if (count > RELOCATIONS_MAX)
        count = RELOCATIONS_MAX;
    for (uint64_t i = 0; i < count; i += RELOCATION_PIECE) {
        size_t n = count - i < RELOCATION_PIECE ? (size_t)(count - i) : RELOCATION_PIECE;

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
