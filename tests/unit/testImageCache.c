/* SPDX-License-Identifier: BSD-3-Clause */
/* code/image.h: there is room for new builds of a program, however often it is built again. The program is a small
 * file with a symbol of EPICS; it counts as a new build when its time changes. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "code/image.h"

#define MANY (5 * (int)EBPFMON_KNOWN_MAX)

static char path[] = "/tmp/testImageCacheXXXXXX";
static int  file;
static ebpfMonImageCache *cache;
static ebpfMonMapping map = { .end = 1, .path = path };

static void writeFile(void)
{
    struct {
        Elf64_Ehdr head;
        Elf64_Shdr section[3];
        Elf64_Sym  symbol[2];
        char       names[16];
    } elf = {
        .head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT }, .e_type = ET_DYN,
                  .e_machine = EM_X86_64, .e_version = 1, .e_ehsize = sizeof(elf.head),
                  .e_phentsize = sizeof(Elf64_Phdr), .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3 },
        .symbol[1] = { .st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), .st_shndx = 1,
                       .st_value = 4096, .st_size = 8 },
        .names = "\0pdbbase",
    };
    struct stat st;

    elf.head.e_shoff = (size_t)((char *)elf.section - (char *)&elf);
    elf.section[1] = (Elf64_Shdr){ .sh_type = SHT_DYNSYM, .sh_link = 2, .sh_size = sizeof(elf.symbol),
                                   .sh_offset = (size_t)((char *)elf.symbol - (char *)&elf),
                                   .sh_entsize = sizeof(elf.symbol[0]) };
    elf.section[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_size = sizeof(elf.names),
                                   .sh_offset = (size_t)((char *)elf.names - (char *)&elf) };
    file = mkstemp(path);
    if (file < 0 || write(file, &elf, sizeof(elf)) != (ssize_t)sizeof(elf) || fstat(file, &st))
        testAbort("%s: %s", path, strerror(errno));
    map.dev = st.st_dev;
    map.ino = st.st_ino;
}

/* The n-th build. NULL with errno. */
static const ebpfMonKnown *find(int n)
{
    struct timespec times[2] = { { .tv_sec = 1000000 + n }, { .tv_sec = 1000000 + n } };
    const ebpfMonKnown *known;

    futimens(file, times);
    if (ebpfMonImageCacheFind(cache, getpid(), &map, &known))
        return NULL;
    if (!known)
        testAbort("it is not known as a file of EPICS");
    return known;
}

static void testFull(void)
{
    const ebpfMonKnown *first = find(0), *again, *used[EBPFMON_KNOWN_MAX];
    int n;

    testDiag("nobody forgets what is not used");
    used[0] = first;
    for (n = 1; n < MANY && (again = find(n)) != NULL; n++)
        used[n] = again;
    testOk(n == (int)EBPFMON_KNOWN_MAX && errno == ENOSPC, "there is room for %d builds", n);
    testOk1(ebpfMonImageCacheIsCrowded(cache));
    for (int i = 0; i < n; i++)
        ebpfMonImageCacheKeep(&used[i]->binary);
    ebpfMonImageCacheForget(cache);
    testOk(ebpfMonImageCacheIsFull(cache) && !find(MANY) && errno == ENOSPC, "all are used: it is full");
    ebpfMonImageCacheKeep(&first->binary);
    ebpfMonImageCacheKeep(NULL);
    ebpfMonImageCacheForget(cache);
    testOk(!ebpfMonImageCacheIsFull(cache) && !ebpfMonImageCacheIsCrowded(cache) && find(MANY),
           "one is used: there is room again");
    testOk(strcmp(first->binary.path, path) == 0 && first->var[ebpfMonVarBase].vaddr == 4096, "this one was left");
    again = find(MANY);
    ebpfMonImageCacheKeep(&again->binary);
    ebpfMonImageCacheForget(cache);
    testOk(find(MANY) == again, "a file that is used and has not changed stays the same");
}

static void testBuilds(void)
{
    const ebpfMonKnown *used = find(0);
    unsigned failed = 0, forgotten = 0;

    testDiag("unused builds are forgotten");
    for (int n = 1; n < MANY; n++) {
        failed += find(n) == NULL;
        if (!ebpfMonImageCacheIsCrowded(cache))
            continue;
        ebpfMonImageCacheKeep(&used->binary);
        ebpfMonImageCacheForget(cache);
        forgotten++;
    }
    testOk(!failed && forgotten > 2 && forgotten < 20, "%d builds, %u not found, forgotten %u times", MANY, failed,
           forgotten);
    testOk1(used->binary.ino == map.ino && !ebpfMonImageCacheIsFull(cache));
}

MAIN(testImageCache)
{
    testPlan(8);
    writeFile();
    cache = ebpfMonImageCacheNew();
    testFull();
    ebpfMonImageCacheFree(cache);
    cache = ebpfMonImageCacheNew();
    testBuilds();
    ebpfMonImageCacheFree(cache);
    close(file);
    unlink(path);
    return testDone();
}
