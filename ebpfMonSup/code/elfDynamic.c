/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See elfDynamic.h. How many symbols there are stands nowhere: it follows from the hash table by which the loader looks
 * them up (System V ABI, "Hash Table"; for the GNU one glibc's dl-lookup.c, do_lookup_x).
 */
#include <string.h>

#include "code/elfDynamic.h"

#define ENTRIES_MAX 512u
#define PIECE       256u      /* words of a hash table that are read at once */
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
    uint32_t piece[PIECE], largest = 0;

    for (uint32_t i = 0; i < count; i += PIECE) {
        size_t want = count - i < PIECE ? count - i : PIECE;
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

int ebpfMonElfDynamicTable(const ebpfMonElfFile *file, Elf64_Shdr *table, Elf64_Shdr *strings)
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
