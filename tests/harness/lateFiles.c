/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into the monitor: the files of an IOC answer late, or not, when a query looks at them. The file that
 * LATE_FILES names says it: "late": the next look at mappings takes 4 s, and the file is removed when it begins;
 * "silent": no function is found; "looking": the look for IOCs does not end.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int isNow(const char *what)
{
    FILE *file = fopen(getenv("LATE_FILES"), "r");
    char word[16] = "";

    if (!file)
        return 0;
    if (fscanf(file, "%15s", word) != 1)
        word[0] = 0;
    fclose(file);
    return strcmp(word, what) == 0;
}

uint64_t ebpfMonFunctionMappings(pid_t pid, const void *wanted)
{
    static uint64_t (*next)(pid_t, const void *);

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "ebpfMonFunctionMappings");
    if (isNow("late")) {
        unlink(getenv("LATE_FILES"));
        sleep(4);
    }
    return next(pid, wanted);
}

void *ebpfMonFunctionFind(pid_t pid, const void *wanted, char *why, size_t size)
{
    static void *(*next)(pid_t, const void *, char *, size_t);

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "ebpfMonFunctionFind");
    if (!isNow("silent"))
        return next(pid, wanted, why, size);
    snprintf(why, size, "its files do not answer");
    return NULL;
}

double ebpfMonIocFinderFindNext(void *finder, uint64_t now, pid_t *pid, void *image)
{
    static double (*next)(void *, uint64_t, pid_t *, void *);

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "ebpfMonIocFinderFindNext");
    if (!isNow("looking"))
        return next(finder, now, pid, image);
    usleep(10000);
    *pid = 0;
    return 0;
}
