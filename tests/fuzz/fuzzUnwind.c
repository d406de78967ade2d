/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is call frame information (.eh_frame_hdr and .eh_frame) in an ELF file that is correct otherwise: 8 bytes
 * each of pc and sp, then the bytes of the section, whose address is FRAME. The whole input is also the stack. */
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "code/unwind.h"

#define FRAME 0x100
#define STEPS 40

static const uint8_t *input;
static size_t inputSize;

static int readStack(void *arg, uint64_t addr, uint64_t *value)
{
    if (inputSize < 8 || addr > inputSize - 8)
        return -1;
    memcpy(value, input + addr, 8);
    return 0;
}

static int makeFile(const uint8_t *frame, size_t size)
{
    struct {
        Elf64_Ehdr e;
        Elf64_Phdr p[2];
    } head = {
        .e = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT }, .e_type = ET_DYN,
               .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_phoff = sizeof(Elf64_Ehdr),
               .e_ehsize = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2,
               .e_shentsize = sizeof(Elf64_Shdr) },
        .p = { { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = FRAME + size, .p_memsz = FRAME + size },
               { .p_type = PT_GNU_EH_FRAME, .p_flags = PF_R, .p_offset = FRAME, .p_vaddr = FRAME, .p_filesz = size,
                 .p_memsz = size } },
    };
    int fd = memfd_create("fuzz", 0);

    if (fd < 0 || write(fd, &head, sizeof(head)) != sizeof(head) ||
        pwrite(fd, frame, size, FRAME) != (ssize_t)size)
        abort();
    return fd;
}

void ebpfMonFuzzOne(const uint8_t *data, size_t size)
{
    ebpfMonRegs regs = { .known = (1u << EBPFMON_REGS) - 1 };
    ebpfMonElfFile file;
    int fd, rc = 0;

    if (size < 16)
        return;
    input = data;
    inputSize = size;
    memcpy(&regs.reg[EBPFMON_REG_PC], data, 8);
    memcpy(&regs.reg[EBPFMON_REG_SP], data + 8, 8);
    regs.reg[6] = regs.reg[EBPFMON_REG_SP] + 16;
    fd = makeFile(data + 16, size - 16);
    FUZZ_CHECK(ebpfMonElfOpen(&file, fd) == 0);
    for (unsigned i = 0; i < STEPS && rc >= 0; i++) {
        uint64_t sp = regs.reg[EBPFMON_REG_SP];

        rc = ebpfMonUnwindStep(&file, 0, i && !rc, readStack, NULL, &regs);
        FUZZ_CHECK(rc < 0 || regs.reg[EBPFMON_REG_SP] > sp);
    }
    ebpfMonElfClose(&file);
    close(fd);
}
