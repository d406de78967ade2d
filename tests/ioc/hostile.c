/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that look like IOCs and are none, and that harm whoever reads them: "hostile MODE COUNT". The program forks
 * COUNT such processes, which run as an unprivileged user and print their process ids. Then it prints "ready", and ends
 * them when its stdin ends.
 *
 * fake:   it has the symbols of an IOC, pdbbase leads to garbage, and iocInit seems to be done
 * silent: as fake; whoever reads the page of pdbbase waits for ever
 * sparse: as fake; it has mapped a sparse file as code, whose symbol tables are a gigabyte each
 * fusePage, fuseCode, fuseProgram: as fake; pdbbase, or mapped code, or the program itself is in a file of a FUSE file
 *         system that has stopped answering. The environment variable FUSE is "DEVICE FOLDER": the FUSE device, and a
 *         folder. Each process mounts its file system on a folder there, with its number as name
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

/* The symbols by which the monitor recognises an IOC. */
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

/* Maps a file, or executes it, and then lets its file system stop answering. */
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
    if (strcmp(argv[1], "again") == 0) { /* fuseProgram: executed from the FUSE file system, which now stops
                                          * answering */
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
