/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of others, and files that may never answer, read by a job; see foreign.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "host/foreign.h"

#define PIECE 16384

typedef struct {
    char   path[64];
    size_t max;
    char  *text;    /* malloc'ed, NULL: it cannot be read */
    size_t size, room;
    int    err;
} fileJob;

static void dropFileJob(void *data)
{
    fileJob *j = data;

    free(j->text);
    free(j);
}

/* The number of bytes read, 0: the end, -1 with errno. */
static ssize_t readPiece(fileJob *j, int fd)
{
    size_t want = j->max - j->size < PIECE ? j->max - j->size : PIECE;
    ssize_t n;

    if (ebpfMonArrayGrow(&j->text, &j->room, j->size + want + 1, PIECE, 1)) {
        errno = ENOMEM;
        return -1;
    }
    n = read(fd, j->text + j->size, want);
    j->size += n > 0 ? (size_t)n : 0;
    j->text[j->size] = 0;
    return n;
}

static void runFileJob(void *data)
{
    fileJob *j = data;
    int fd = open(j->path, O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;

    if (fd >= 0)
        while ((n = readPiece(j, fd)) > 0)
            ;
    j->err = n < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (n < 0 && j->size == 0) { /* else what was read before the error is good */
        free(j->text);
        j->text = NULL;
    }
}

/* The job done, the caller frees it. NULL with errno. */
static fileJob *readFile(pid_t pid, const char *path, double seconds, size_t max)
{
    static const ebpfMonForeignJob job = { runFileJob, dropFileJob };
    fileJob *j = strlen(path) < sizeof(j->path) ? calloc(1, sizeof(*j)) : NULL;

    if (!j) {
        errno = ENOMEM;
        return NULL;
    }
    j->max = max;
    snprintf(j->path, sizeof(j->path), "%s", path);
    return ebpfMonForeignRun(pid, seconds, &job, j) ? NULL : j;
}

ssize_t ebpfMonForeignReadFile(pid_t pid, const char *path, double seconds, char *buf, size_t size)
{
    fileJob *j = readFile(pid, path, seconds, size - 1);
    ssize_t got = -1;
    int err;

    if (!j)
        return -1;
    err = j->err;
    if (j->text) {
        got = (ssize_t)j->size;
        memcpy(buf, j->text, j->size + 1);
    }
    dropFileJob(j);
    errno = err;
    return got;
}

char *ebpfMonForeignReadAll(pid_t pid, const char *path, double seconds, size_t max)
{
    fileJob *j = readFile(pid, path, seconds, max);
    char *text;
    int err;

    if (!j)
        return NULL;
    text = j->text;
    err = j->err;
    free(j);
    errno = err;
    return text;
}

int ebpfMonForeignOpenFile(const char *path)
{
    int place = open(path, O_PATH | O_CLOEXEC), file = -1, err; /* it finds the file, and does not open it */
    char same[32];
    struct stat st;

    if (place < 0)
        return -1;
    if (fstat(place, &st) == 0) {
        snprintf(same, sizeof(same), "/proc/self/fd/%d", place);
        errno = ENXIO;
        file = S_ISREG(st.st_mode) ? open(same, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    }
    err = errno;
    close(place);
    errno = err;
    return file;
}
