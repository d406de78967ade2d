/* SPDX-License-Identifier: BSD-3-Clause */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
#include "code/elfFile.h"
#include "code/machine.h"
#include "common/clock.h"

/* --- bytes, within the budget --- */

/* pread, so a file that is truncated while it is open gives short reads and not a signal. */

#define WORK_MAX   (512ull << 20)
#define READ_WORK  512u         /* of one read, and of what the caller does with the bytes */
#define FILE_WORK  1024u        /* … of a read that goes to the kernel */
#define CPU_MAX    (10 * EBPFMON_SECOND_NS)
#define PAGE       4096u
#define PAGES      16u
#define SMALL      512u         /* bytes of a read that uses them */
#define LOOK_EVERY 64u          /* small reads: to ask for the time costs more than one of them */

struct ebpfMonElfBytes {
    int      fd;
    int      over;              /* as …IsOver */
    uint64_t work;
    uint64_t cpu;               /* CPU time of the thread (ns) at the begin */
    unsigned small;             /* reads since the time was asked for */
    struct {
        uint64_t number;        /* in the file; UINT64_MAX: none */
        size_t   have;          /* bytes of it, less at the end of the file */
    } page[PAGES];
    char     data[PAGES][PAGE];
};

ebpfMonElfBytes *ebpfMonElfBytesNew(int fd)
{
    ebpfMonElfBytes *b = malloc(sizeof(*b)); /* to clear all pages would cost more than most files need */

    if (!b)
        return NULL;
    b->fd = fd;
    b->over = 0;
    b->work = 0;
    b->cpu = ebpfMonClockThreadCpu();
    b->small = 0;
    for (unsigned i = 0; i < PAGES; i++)
        b->page[i].number = UINT64_MAX;
    return b;
}

void ebpfMonElfBytesFree(ebpfMonElfBytes *bytes)
{
    free(bytes);
}

int ebpfMonElfBytesIsOver(const ebpfMonElfBytes *bytes)
{
    return bytes->over;
}

static void checkTime(ebpfMonElfBytes *b)
{
    b->small = 0;
    if (!b->over && ebpfMonClockThreadCpu() - b->cpu > CPU_MAX)
        b->over = ETIME;
}

void ebpfMonElfBytesSpend(ebpfMonElfBytes *b, uint64_t work)
{
    b->work = work < UINT64_MAX - b->work ? b->work + work : UINT64_MAX;
    if (!b->over && b->work > WORK_MAX)
        b->over = EFBIG;
}

static size_t readFile(ebpfMonElfBytes *b, char *buf, size_t len, uint64_t offset)
{
    size_t done = 0;

    ebpfMonElfBytesSpend(b, FILE_WORK);
    checkTime(b);
    while (!b->over && done < len && offset + done <= INT64_MAX) {
        ssize_t n = pread(b->fd, buf + done, len - done, (off_t)(offset + done));

        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

/* What is kept of a page, from "skip" on; bytes. */
static size_t readPage(ebpfMonElfBytes *b, char *buf, size_t len, uint64_t number, size_t skip)
{
    unsigned i = (unsigned)(number % PAGES);
    size_t left;

    if (b->page[i].number != number) {
        b->page[i].number = UINT64_MAX;
        b->page[i].have = readFile(b, b->data[i], PAGE, number * PAGE);
        b->page[i].number = number;
    }
    left = b->page[i].have > skip ? b->page[i].have - skip : 0;
    len = len < left ? len : left;
    memcpy(buf, b->data[i] + skip, len);
    return len;
}

size_t ebpfMonElfBytesRead(ebpfMonElfBytes *bytes, void *buf, size_t len, uint64_t offset)
{
    size_t done = 0;

    ebpfMonElfBytesSpend(bytes, (uint64_t)len + READ_WORK);
    if (len > SMALL || offset > INT64_MAX - SMALL)
        return readFile(bytes, buf, len, offset);
    if (++bytes->small >= LOOK_EVERY)
        checkTime(bytes);
    while (!bytes->over && done < len) {
        size_t skip = (size_t)((offset + done) % PAGE), want = len - done < PAGE - skip ? len - done : PAGE - skip;
        size_t n = readPage(bytes, (char *)buf + done, want, (offset + done) / PAGE, skip);

        done += n;
        if (n < want)
            break;
    }
    return done;
}

/* --- headers, segments and sections --- */

/*
 * Headers are read here, in pieces, and not by libelf, which believes how many there are and takes
 * memory for all of them.
 */

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
