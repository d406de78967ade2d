/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that look like IOCs and are none, or do harm to whoever looks: "hostile MODE COUNT". It forks COUNT of them as
 * an unprivileged user, prints their process ids, and waits.
 *
 * fake:   nothing but the symbols, pdbbase leads to garbage, and iocInit seems to be done
 * silent: the page of pdbbase never arrives (userfaultfd; FUSE does the same, and needs no right)
 * sparse: a sparse file whose symbol tables are a gigabyte each is mapped as code
 */
#include <elf.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <signal.h>
#include <unistd.h>

#define PAGE   4096
#define NOBODY 60002

/* What makes a process an IOC. */
struct { void *at; char pad[PAGE - sizeof(void *)]; } pdbbase __attribute__((aligned(PAGE)));
int interruptAccept __attribute__((aligned(PAGE)));

__attribute__((noinline, used)) long dbProcess(void *precord)
{
    return precord ? 1 : 0;
}

static void makeSilent(void)
{
    struct uffdio_api api = { .api = UFFD_API };
    struct uffdio_register reg = { .range = { (uint64_t)(uintptr_t)&pdbbase, PAGE }, .mode = UFFDIO_REGISTER_MODE_MISSING };
    int fd = (int)syscall(SYS_userfaultfd, 0);

    if (fd < 0 || mmap(&pdbbase, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != &pdbbase ||
        ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg)) {
        perror("userfaultfd");
        exit(1);
    }
}

static void mapSparse(int number)
{
    char path[64];
    Elf64_Ehdr e = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT }, .e_type = ET_DYN,
                     .e_machine = EM_X86_64, .e_version = 1, .e_phoff = sizeof(e), .e_ehsize = sizeof(e),
                     .e_phentsize = sizeof(Elf64_Phdr), .e_shentsize = sizeof(Elf64_Shdr), .e_shoff = 2048, .e_shnum = 5 };
    Elf64_Shdr s[5] = {
        [1] = { .sh_type = SHT_DYNSYM, .sh_link = 2, .sh_offset = 0x100000, .sh_size = 1u << 30, .sh_entsize = 24 },
        [2] = { .sh_type = SHT_STRTAB, .sh_offset = 0x100000, .sh_size = 1u << 30 },
        [3] = { .sh_type = SHT_SYMTAB, .sh_link = 4, .sh_offset = 0x100000, .sh_size = 1u << 30, .sh_entsize = 24 },
        [4] = { .sh_type = SHT_STRTAB, .sh_offset = 0x100000, .sh_size = 1u << 30 },
    };
    int fd;

    snprintf(path, sizeof(path), "/tmp/hostile%d.%d", (int)getpid(), number);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0700);
    unlink(path);
    if (fd < 0 || write(fd, &e, sizeof(e)) != sizeof(e) || pwrite(fd, s, sizeof(s), 2048) != sizeof(s) ||
        pwrite(fd, "dbProcess\0pdbbase\0", 18, 0x100001) != 18 || ftruncate(fd, 3ll << 30) ||
        mmap(NULL, 3 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED) {
        perror("sparse");
        exit(1);
    }
}

static void run(const char *mode, int number)
{
    static char garbage[PAGE];

    interruptAccept = 1;
    memset(garbage, 0xff, sizeof(garbage));
    pdbbase.at = garbage;
    if (strcmp(mode, "silent") == 0)
        makeSilent();
    if (setgid(NOBODY) || setuid(NOBODY))
        exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (strcmp(mode, "sparse") == 0)
        mapSparse(number);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? atoi(argv[2]) : 1;

    if (argc < 2)
        return 2;
    for (int i = 0; i < count; i++)
        if (fork() == 0)
            run(argv[1], i);
    printf("ready\n");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}
