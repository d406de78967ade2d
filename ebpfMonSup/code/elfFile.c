/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See elfFile.h. Headers are read here, in pieces, and not by libelf, which believes how many there are and takes
 * memory for all of them.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include "code/elfBytes.h"
#include "code/elfFile.h"
#include "code/machine.h"

#define PIECE      (64u * 1024u)
#define KEEP       64u             /* carried over from piece to piece: longer than any text */
#define MAX_SEARCH (64ull << 20)   /* bytes of one segment searched for a text */
#define MAX_PHDRS  256u
#define MAX_NOTES  4096u

static size_t readAt(const ebpfMonElfFile *file, void *buf, size_t len, uint64_t offset)
{
    return ebpfMonElfBytesRead(file->bytes, buf, len, offset);
}

/* The build-id from a PT_NOTE segment of "size" bytes at "offset". */
static void readBuildId(ebpfMonElfFile *file, uint64_t offset, uint64_t size)
{
    unsigned char notes[MAX_NOTES];
    size_t len = readAt(file, notes, size < sizeof(notes) ? (size_t)size : sizeof(notes), offset);
    size_t at = 0;

    while (at + sizeof(Elf64_Nhdr) <= len) {
        Elf64_Nhdr h;

        memcpy(&h, notes + at, sizeof(h));
        at += sizeof(h);
        if (h.n_namesz > len || h.n_descsz > len)
            return;

        size_t desc = at + ((h.n_namesz + 3u) & ~3u), next = desc + ((h.n_descsz + 3u) & ~3u);

        if (desc + h.n_descsz > len)
            return;
        if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && !memcmp(notes + at, "GNU", 4)) {
            for (unsigned i = 0; i < h.n_descsz && i < (sizeof(file->buildId) - 1) / 2; i++) {
                file->buildId[2 * i] = "0123456789abcdef"[notes[desc + i] >> 4];
                file->buildId[2 * i + 1] = "0123456789abcdef"[notes[desc + i] & 15];
            }
            return;
        }
        at = next;
    }
}

static int readHeader(ebpfMonElfFile *file, Elf64_Ehdr *ehdr)
{
    if (readAt(file, ehdr, sizeof(*ehdr), 0) != sizeof(*ehdr) || memcmp(ehdr->e_ident, ELFMAG, SELFMAG)
        || ehdr->e_ident[EI_CLASS] != ELFCLASS64 || ehdr->e_ident[EI_DATA] != ELFDATA2LSB
        || (ehdr->e_type != ET_EXEC && ehdr->e_type != ET_DYN)
        || !ebpfMonMachineFind(ehdr->e_machine)
        || ehdr->e_phnum > MAX_PHDRS || ehdr->e_phentsize != sizeof(Elf64_Phdr))
        return -1;
    file->machine = ehdr->e_machine;
    file->isFixed = ehdr->e_type == ET_EXEC;
    if (ehdr->e_shoff && ehdr->e_shentsize == sizeof(Elf64_Shdr)) {
        file->sections = ehdr->e_shoff;
        file->nSections = ehdr->e_shnum; /* 0: 65280 or more, which no program has */
        file->sectionNames = ehdr->e_shstrndx;
    }
    return 0;
}

/* Headers that were overwritten with zeros are none. */
static void checkSections(ebpfMonElfFile *file)
{
    Elf64_Shdr section;

    for (uint32_t i = 1; ebpfMonElfSection(file, i, &section); i++)
        if (section.sh_type != SHT_NULL)
            return;
    file->nSections = 0;
}

/* The linker leaves the build-id in a section, too; in a file that has symbols alone no segment shows it. */
static void readBuildIdSection(ebpfMonElfFile *file)
{
    Elf64_Shdr section;

    for (uint32_t i = 1; !file->buildId[0] && i < MAX_PHDRS && ebpfMonElfSection(file, i, &section); i++)
        if (section.sh_type == SHT_NOTE)
            readBuildId(file, section.sh_offset, section.sh_size);
}

int ebpfMonElfOpen(ebpfMonElfFile *file, int fd)
{
    Elf64_Ehdr ehdr;

    memset(file, 0, sizeof(*file));
    file->fd = fd;
    file->bytes = ebpfMonElfBytesNew(fd);
    if (!file->bytes)
        return -1;
    if (readHeader(file, &ehdr)) {
        ebpfMonElfClose(file);
        return -1;
    }
    for (unsigned i = 0; i < ehdr.e_phnum; i++) {
        Elf64_Phdr p;

        if (readAt(file, &p, sizeof(p), ehdr.e_phoff + i * sizeof(p)) != sizeof(p))
            break;
        if (p.p_type == PT_LOAD && file->nSegments < EBPFMON_ELF_SEGMENTS)
            file->segment[file->nSegments++] = (ebpfMonElfSegment){
                .offset = p.p_offset, .vaddr = p.p_vaddr, .fileSize = p.p_filesz, .memSize = p.p_memsz,
                .flags = p.p_flags };
        else if (p.p_type == PT_INTERP)
            file->hasInterp = 1;
        else if (p.p_type == PT_GNU_EH_FRAME)
            file->ehFrameHdr = p.p_vaddr;
        else if (p.p_type == PT_NOTE && !file->buildId[0])
            readBuildId(file, p.p_offset, p.p_filesz);
        else if (p.p_type == PT_DYNAMIC) {
            file->dynamic = p.p_vaddr;
            file->dynamicSize = p.p_memsz;
        }
    }
    checkSections(file);
    readBuildIdSection(file);
    return 0;
}

void ebpfMonElfClose(ebpfMonElfFile *file)
{
    ebpfMonElfBytesFree(file->bytes);
    file->bytes = NULL;
}

void ebpfMonElfSpend(const ebpfMonElfFile *file, uint64_t work)
{
    ebpfMonElfBytesSpend(file->bytes, work);
}

int ebpfMonElfIsOver(const ebpfMonElfFile *file)
{
    return ebpfMonElfBytesIsOver(file->bytes);
}

int ebpfMonElfSection(const ebpfMonElfFile *file, uint32_t index, Elf64_Shdr *section)
{
    return index < file->nSections
        && readAt(file, section, sizeof(*section), file->sections + index * sizeof(*section)) == sizeof(*section);
}

size_t ebpfMonElfReadSection(const ebpfMonElfFile *file, const Elf64_Shdr *section, uint64_t at, void *buf, size_t len)
{
    uint64_t left = at < section->sh_size && section->sh_type != SHT_NOBITS ? section->sh_size - at : 0;

    return section->sh_offset > INT64_MAX - at ? 0
        : readAt(file, buf, len < left ? len : (size_t)left, section->sh_offset + at);
}

void ebpfMonElfSectionName(const ebpfMonElfFile *file, const Elf64_Shdr *section, char *name, size_t size)
{
    Elf64_Shdr names;
    size_t n = 0;

    if (file->sectionNames && ebpfMonElfSection(file, file->sectionNames, &names))
        n = ebpfMonElfReadSection(file, &names, section->sh_name, name, size - 1);
    name[n] = 0;
}

/* The segment whose part in the file holds "vaddr". */
static const ebpfMonElfSegment *findSegment(const ebpfMonElfFile *file, uint64_t vaddr, uint32_t flags)
{
    for (unsigned i = 0; i < file->nSegments; i++) {
        const ebpfMonElfSegment *s = &file->segment[i];

        if ((s->flags & flags) == flags && vaddr >= s->vaddr && vaddr - s->vaddr < s->fileSize
            && s->fileSize <= INT64_MAX && s->offset <= INT64_MAX - s->fileSize)
            return s;
    }
    return NULL;
}

int ebpfMonElfOffset(const ebpfMonElfFile *file, uint64_t vaddr, uint32_t flags, uint64_t *offset)
{
    const ebpfMonElfSegment *s = findSegment(file, vaddr, flags);

    if (!s)
        return -1;
    *offset = s->offset + (vaddr - s->vaddr);
    return 0;
}

size_t ebpfMonElfRead(const ebpfMonElfFile *file, uint64_t vaddr, void *buf, size_t len)
{
    const ebpfMonElfSegment *s = findSegment(file, vaddr, 0);

    if (!s)
        return 0;

    uint64_t left = s->fileSize - (vaddr - s->vaddr);

    return readAt(file, buf, len < left ? len : (size_t)left, s->offset + (vaddr - s->vaddr));
}

uint64_t ebpfMonElfSearch(const ebpfMonElfFile *file, const char *text, uint64_t after)
{
    size_t length = strlen(text);
    char *buf = length && length <= KEEP ? malloc(KEEP + PIECE) : NULL;
    uint64_t result = 0;

    for (unsigned i = 0; buf && !result && i < file->nSegments; i++) {
        const ebpfMonElfSegment *s = &file->segment[i];
        uint64_t size = s->fileSize < MAX_SEARCH ? s->fileSize : MAX_SEARCH;
        uint64_t begin = s->vaddr > after ? 0 : after + 1 - s->vaddr;
        size_t kept = 0, got = 1;

        for (uint64_t at = begin; !(s->flags & PF_W) && got && !result && at < size; at += got) {
            size_t want = size - at < PIECE ? (size_t)(size - at) : PIECE;

            got = readAt(file, buf + kept, want, s->offset + at);

            const char *hit = memmem(buf, kept + got, text, length);
            size_t all = kept + got;

            if (hit)
                result = s->vaddr + at + (uint64_t)(hit - buf) - kept;
            kept = all < length - 1 ? all : length - 1;
            memmove(buf, buf + all - kept, kept);
        }
    }
    free(buf);
    return result > after ? result : 0; /* a caller that goes on from here comes to an end, also with a file that is
                                         * none */
}
