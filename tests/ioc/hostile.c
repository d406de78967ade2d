/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that look like IOCs and are none, or do harm to whoever looks: "hostile MODE COUNT". It forks COUNT of them as
 * an unprivileged user, prints their process ids, and waits.
 *
 * fake:   nothing but the symbols, pdbbase leads to garbage, and iocInit seems to be done
 * silent: the page of pdbbase never arrives
 * sparse: a sparse file whose symbol tables are a gigabyte each is mapped as code
 * fusePage, fuseCode, fuseProgram: pdbbase, mapped code, or the program itself lie in a file of a FUSE file system that has
 *         stopped answering. The variable FUSE names the device, and a folder for each: "DEVICE FOLDER"
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "hostile.h"
#include "hostileFuse.h"

#define NOBODY 60002

/* What makes a process an IOC. */
struct { void *at; char pad[HOSTILE_PAGE - sizeof(void *)]; } pdbbase __attribute__((aligned(HOSTILE_PAGE)));
int interruptAccept __attribute__((aligned(HOSTILE_PAGE)));

__attribute__((noinline, used)) long dbProcess(void *precord)
{
    return precord ? 1 : 0;
}

static void makeSilent(void)
{
    if (hostileTakePageAway(&pdbbase) < 0) {
        perror("userfaultfd");
        exit(1);
    }
}

static void mapSparse(int number)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/tmp/hostile%d.%d", (int)getpid(), number);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0700);
    unlink(path);
    if (fd < 0 || hostileWriteSparseElf(fd) ||
        mmap(NULL, 3 * HOSTILE_PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED) {
        perror("sparse");
        exit(1);
    }
}

/* Has a file in a file system that does not answer any more. */
static void useFuse(const char *mode, int number)
{
    char device[256], folder[256], path[320], fd[16];
    int quiet, file, isPage = strcmp(mode, "fusePage") == 0;

    if (!getenv("FUSE") || sscanf(getenv("FUSE"), "%255s %250s", device, folder) != 2)
        exit(2);
    sprintf(folder + strlen(folder), "/%d", number);
    if (hostileMountFuse(device, folder, &quiet)) {
        perror("FUSE");
        exit(1);
    }
    snprintf(path, sizeof(path), "%s/file", folder);
    if (strcmp(mode, "fuseProgram") == 0) {
        snprintf(fd, sizeof(fd), "%d", quiet);
        setenv("QUIET", fd, 1);
        execl(path, path, "again", NULL);
    }
    file = open(path, O_RDONLY);
    if (file < 0 || mmap(isPage ? &pdbbase : NULL, HOSTILE_PAGE, PROT_READ | (isPage ? PROT_WRITE : PROT_EXEC),
                         MAP_PRIVATE | (isPage ? MAP_FIXED : 0), file, 0) == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    close(quiet);
}

static void run(const char *mode, int number)
{
    static char garbage[HOSTILE_PAGE];

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
    if (strncmp(mode, "fuse", 4) == 0)
        useFuse(mode, number);
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
    if (strcmp(argv[1], "again") == 0) { /* from the file system that stops answering now */
        interruptAccept = 1;
        printf("%d\n", (int)getpid());
        fflush(stdout);
        close(atoi(getenv("QUIET")));
        for (;;)
            pause();
    }
    for (int i = 0; i < count; i++)
        if (fork() == 0)
            run(argv[1], i);
    printf("ready\n");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}
