/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An ELF64 file on disk: its build-id, load segments, named symbols and bytes.
 *
 * Nothing in the file is trusted: every table is bounded, and a file that is truncated or rewritten while it is open gives
 * short reads. A sparse file of 12 KiB can have tables of gigabytes, so an open file has a budget (elfBytes.h). A read may
 * take any time (FUSE): call these functions only in a job (host/foreign.h).
 *
 * Section headers are not needed to run a file. Without them .dynsym is found as the loader finds it (elfDynamic.h).
 */
#ifndef EBPFMON_ELFFILE_H
#define EBPFMON_ELFFILE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#define EBPFMON_ELF_SEGMENTS 16

typedef struct {
    uint64_t offset, vaddr, fileSize, memSize;
    uint32_t flags;       /* PF_X, PF_W, PF_R */
} ebpfMonElfSegment;

typedef struct {
    uint64_t vaddr;       /* 0: not found */
    uint64_t size;        /* as the symbol says, 0: it does not */
    int      isGlobal;
    int      isImported;  /* another file defines it, and this one uses it */
} ebpfMonElfSymbol;

typedef struct ebpfMonElfFile {
    int      fd;          /* the caller's */
    struct ebpfMonElfBytes *bytes; /* with the budget (elfBytes.h) */
    uint64_t sections;    /* where the section headers begin in the file */
    unsigned nSections;
    unsigned sectionNames; /* number of the section that has their names, 0: none */
    uint16_t machine;     /* EM_…: one that machine.h knows */
    int      hasInterp;   /* a program, not a library */
    int      isFixed;     /* ET_EXEC: a program that is not position-independent */
    char     buildId[41]; /* hex, empty: none */
    unsigned nSegments;   /* PT_LOAD only, the first EBPFMON_ELF_SEGMENTS */
    ebpfMonElfSegment segment[EBPFMON_ELF_SEGMENTS];
    uint64_t ehFrameHdr;  /* vaddr of .eh_frame_hdr, 0: none */
    uint64_t dynamic, dynamicSize; /* the vaddr of its dynamic section, 0: none */
    struct ebpfMonElfFile *symbols; /* another file with symbols of this one, and so on; NULL: none (symbolFile.h) */
} ebpfMonElfFile;

/* Begins to use the file open as "fd", which must stay open till ebpfMonElfClose. The caller closes it afterwards.
 * 0, or -1: it is not a little-endian ELF64 program or library for a machine that machine.h knows. */
int ebpfMonElfOpen(ebpfMonElfFile *file, int fd);
void ebpfMonElfClose(ebpfMonElfFile *file);

/* Reads the header of a section by its number (0 is none). Nonzero: there is such a section. */
int ebpfMonElfSection(const ebpfMonElfFile *file, uint32_t index, Elf64_Shdr *section);

/* The name of a section, cut to "size". */
void ebpfMonElfSectionName(const ebpfMonElfFile *file, const Elf64_Shdr *section, char *name, size_t size);

/* Reads up to "len" bytes of a section from "at" on; returns their number. */
size_t ebpfMonElfReadSection(const ebpfMonElfFile *file, const Elf64_Shdr *section, uint64_t at, void *buf, size_t len);

/* Finds the first symbol table of a type (SHT_DYNSYM, SHT_SYMTAB), and its strings. Nonzero: there is one. */
int ebpfMonElfTable(const ebpfMonElfFile *file, uint32_t type, Elf64_Shdr *table, Elf64_Shdr *strings);

/* As ebpfMonElfBytesIsOver. Nonzero: what was found is not all. */
int ebpfMonElfIsOver(const ebpfMonElfFile *file);

/* Looks up names[0..count) in .dynsym; names that are not there in .symtab; then in .symtab of the files with its symbols. Only
 * defined functions, objects and untyped symbols count; a global symbol goes before a local one. Returns how many were found.
 * For names that were not found, "isImported" says whether .dynsym imports them. */
unsigned ebpfMonElfFind(ebpfMonElfFile *file, const char *const *names, unsigned count,
    ebpfMonElfSymbol *symbols);

/* The function in which a vaddr lies, by .symtab, else .dynsym, else a file with its symbols; *offset: distance from the begin of the
 * function. 0, or -1. For stubs, which have no symbol, see elfPlt.h. */
int ebpfMonElfNameAt(const ebpfMonElfFile *file, uint64_t vaddr, char *name, size_t size, uint64_t *offset);

/* The offset in the file of a vaddr that lies in a segment with all of "flags". 0, or -1. */
int ebpfMonElfOffset(const ebpfMonElfFile *file, uint64_t vaddr, uint32_t flags, uint64_t *offset);

/* Reads up to "len" bytes at a vaddr, not beyond its segment; returns their number. */
size_t ebpfMonElfRead(const ebpfMonElfFile *file, uint64_t vaddr, void *buf, size_t len);

/* The vaddr of the first place in the read-only segments with "text" (64 bytes at most); 0: there is none. */
uint64_t ebpfMonElfSearch(const ebpfMonElfFile *file, const char *text);

#endif
