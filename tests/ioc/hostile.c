/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that look like IOCs and are none, or do harm to whoever looks: "hostile MODE COUNT". It forks COUNT of them as
 * an unprivileged user, prints their process ids, and waits.
 *
 * fake:   nothing but the symbols, pdbbase leads to garbage, and iocInit seems to be done
 * silent: the page of pdbbase never arrives
 * sparse: a sparse file whose symbol tables are a gigabyte each is mapped as code
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "hostile.h"

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
