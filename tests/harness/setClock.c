/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into the monitor: its real time is that of the host, and so many seconds as the file that SET_CLOCK names
 * has (8 bytes). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead;

__attribute__((constructor)) static void openFile(void)
{
    const char *file = getenv("SET_CLOCK");
    int fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
    void *map = mmap(NULL, sizeof(*ahead), PROT_READ, MAP_SHARED, fd, 0);

    if (map != MAP_FAILED)
        ahead = map;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int status = (int)syscall(SYS_clock_gettime, clock, t);

    if (status == 0 && clock == CLOCK_REALTIME && ahead)
        t->tv_sec += *ahead;
    return status;
}
