/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An ELF64 file on disk: its build-id, load segments, sections and bytes. Its symbols: elfSymbols.h.
 *
 * Nothing in the file is trusted: every table is bounded, and a file that is truncated or rewritten while it is open
 * gives short reads. A sparse file of 12 KiB can have tables of gigabytes, so an open file has a budget. A
 * read may take any time (FUSE): call these functions only in a job (host/foreign.h).
 */
#ifndef EBPFMON_ELFFILE_H
#define EBPFMON_ELFFILE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

/* --- bytes, within the budget ---
 *
 * The bytes of an ELF file, within its budget. Beyond it every read is the end of the file. What is read in small
 * pieces (entries of tables, by binary search) comes from a few pages that are kept.
 *
 * The budget is work, not time: a file is refused for what it asks of us, and not because this host is slow, or an
 * emulated one. The unit is what one byte of a table takes, about 1 ns on an ordinary host; all may be 512 Mi units.
 * The libdbCore of Base takes 16 Mi, a static softIoc 40 Mi. 10 s of CPU time are a last safety.
 */

typedef struct ebpfMonElfBytes ebpfMonElfBytes;

/* "fd" stays the caller's, and open. NULL without memory. One thread at a time. */
ebpfMonElfBytes *ebpfMonElfBytesNew(int fd);
void ebpfMonElfBytesFree(ebpfMonElfBytes *bytes); /* NULL does no harm */

/* Reads until "len" or the end of the file, or of the budget; returns how many bytes. */
size_t ebpfMonElfBytesRead(ebpfMonElfBytes *bytes, void *buf, size_t len, uint64_t offset);

/* Work beside reading: loops over what was read. */
void ebpfMonElfBytesSpend(ebpfMonElfBytes *bytes, uint64_t work);

/* 0; EFBIG: the work is used up; ETIME: the CPU time is, which may have been this host's fault. */
int ebpfMonElfBytesIsOver(const ebpfMonElfBytes *bytes);

/* --- headers, segments and sections --- */

#define EBPFMON_ELF_SEGMENTS 16

typedef struct {
    uint64_t offset, vaddr, fileSize, memSize;
    uint32_t flags;       /* PF_X, PF_W, PF_R */
} ebpfMonElfSegment;

typedef struct ebpfMonElfFile {
    int      fd;          /* the caller's */
    struct ebpfMonElfBytes *bytes; /* with the budget */
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

/* As ebpfMonElfBytesSpend: whoever goes over what was read more than once calls it. */
void ebpfMonElfSpend(const ebpfMonElfFile *file, uint64_t work);

/* As ebpfMonElfBytesIsOver. Nonzero: what was found is not all. */
int ebpfMonElfIsOver(const ebpfMonElfFile *file);

/* The offset in the file of a vaddr that lies in a segment with all of "flags". 0, or -1. */
int ebpfMonElfOffset(const ebpfMonElfFile *file, uint64_t vaddr, uint32_t flags, uint64_t *offset);

/* Reads up to "len" bytes at a vaddr, not beyond its segment; returns their number. */
size_t ebpfMonElfRead(const ebpfMonElfFile *file, uint64_t vaddr, void *buf, size_t len);

/* The vaddr of the first place in the read-only segments with "text" (64 bytes at most) behind the vaddr "after" (0:
 * from the begin on); 0: there is none. */
uint64_t ebpfMonElfSearch(const ebpfMonElfFile *file, const char *text, uint64_t after);

#endif
