/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory and files that harm whoever reads them in another process; for hostile.c and tests/unit/testForeign.c. */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <elf.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HOSTILE_PAGE 4096u

/* Replaces the page at "at": whoever reads it waits for ever. This needs a right; FUSE does the same without one
 * (hostileFuse.h). Returns the userfaultfd, or -1. */
static inline int hostileTakePageAway(void *at)
{
    struct uffdio_api api = { .api = UFFD_API };
    struct uffdio_register reg = { .range = { (uint64_t)(uintptr_t)at, HOSTILE_PAGE },
                                   .mode = UFFDIO_REGISTER_MODE_MISSING };
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

    if (fd < 0 ||
        mmap(at, HOSTILE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at ||
        ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg))
        return -1;
    return fd;
}

/* Writes a sparse ELF file, whose string and symbol tables are a gigabyte each. Returns 0, or -1. */
static inline int hostileWriteSparseElf(int fd)
{
    static const char names[] = "dbProcess\0pdbbase"; /* the NUL of the last name is part of it */
    const Elf64_Ehdr head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT }, .e_type = ET_DYN,
                              .e_machine = EM_X86_64, .e_version = 1, .e_phoff = sizeof(head), .e_ehsize = sizeof(head),
                              .e_phentsize = sizeof(Elf64_Phdr), .e_shentsize = sizeof(Elf64_Shdr), .e_shoff = 2048,
                              .e_shnum = 5 };
    const Elf64_Shdr sections[5] = {
        [1] = { .sh_type = SHT_DYNSYM, .sh_link = 2, .sh_offset = 0x100000, .sh_size = 1u << 30, .sh_entsize = 24 },
        [2] = { .sh_type = SHT_STRTAB, .sh_offset = 0x100000, .sh_size = 1u << 30 },
        [3] = { .sh_type = SHT_SYMTAB, .sh_link = 4, .sh_offset = 0x100000, .sh_size = 1u << 30, .sh_entsize = 24 },
        [4] = { .sh_type = SHT_STRTAB, .sh_offset = 0x100000, .sh_size = 1u << 30 },
    };

    return write(fd, &head, sizeof(head)) == (ssize_t)sizeof(head) &&
                   pwrite(fd, sections, sizeof(sections), 2048) == (ssize_t)sizeof(sections) &&
                   pwrite(fd, names, sizeof(names), 0x100001) == (ssize_t)sizeof(names) &&
                   ftruncate(fd, 3ll << 30) == 0 ?
               0 :
               -1;
}

#endif
