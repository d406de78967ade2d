/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "export/log/logFile.h"
#include "common/files.h"

#define BATCH      16384u /* bytes that are written at a time */
#define DELAY      0.2    /* s; the longest time that a line waits */
#define CHECK_EVERY 1.0    /* s */
#define RETRY_MOST 30.0   /* s */
#define RENAME_RETRY 60.0 /* s */

static void setTrouble(ebpfMonLogFile *f, double now, const char *what, int error)
{
    if (error == ENOSPC || error == EDQUOT)
        ebpfMonDestinationSetTrouble(&f->out, now, RETRY_MOST, "disk full: make room, it goes on by itself");
    else
        ebpfMonDestinationSetTrouble(&f->out, now, RETRY_MOST, "cannot %s: %s; correct it, it goes on by itself", what,
                                     strerror(error));
}

/* Returns the age of the file in seconds, if the file system knows its birth; else 0. A monitor that starts again needs
 * it. */
static double getAge(int fd)
{
    struct statx x;
    double age;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &x) || !(x.stx_mask & STATX_BTIME))
        return 0;
    age = difftime(time(NULL), (time_t)x.stx_btime.tv_sec);
    return age > 0 ? age : 0;
}

static void closeFile(ebpfMonLogFile *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

/* Ends the last line, which a monitor may have left without its end if it was killed. */
static void endTornLine(ebpfMonLogFile *f)
{
    char path[64], last;
    int fd;

    if (!f->size)
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd); /* our descriptor can only write */
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (pread(fd, &last, 1, (off_t)f->size - 1) == 1 && last != '\n' && write(f->fd, "\n", 1) == 1)
        f->size++;
    close(fd);
}

static int openFile(ebpfMonLogFile *f, double now)
{
    struct stat st;
    char why[256];
    int fd = ebpfMonOwnFileOpen(f->out.name, &st, why, sizeof(why));

    if (fd < 0) {
        ebpfMonDestinationSetTrouble(&f->out, now, RETRY_MOST, "%s", why);
        return -1;
    }
    f->fd = fd;
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    f->size = (uint64_t)st.st_size;
    f->begun = f->size ? now - getAge(fd) : now;
    f->checkAt = now + CHECK_EVERY;
    endTornLine(f);
    return 0;
}

ebpfMonLogFile *ebpfMonLogFileOpen(const char *path, const ebpfMonLogFileLimits *limits, double now)
{
    ebpfMonLogFile *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    snprintf(f->out.name, sizeof(f->out.name), "%s", path);
    f->limits = *limits;
    f->fd = -1;
    openFile(f, now);
    return f;
}

static void dropWritten(ebpfMonLogFile *f, size_t n)
{
    f->out.lines += ebpfMonDestinationCountLines(f->buf, n);
    memmove(f->buf, f->buf + n, f->len - n);
    f->len -= n;
}

/* A write stopped at "done": removes the last line if only its begin was written. A full disk allows that. Returns the
 * number of bytes that stay written. */
static size_t removeTornLine(ebpfMonLogFile *f, size_t done)
{
    size_t whole = done;
    struct stat st;

    while (whole && f->buf[whole - 1] != '\n')
        whole--;
    if (whole == done || fstat(f->fd, &st) || (uint64_t)st.st_size != f->size + done)
        return done; /* there is no such line; or others write to the file, too: then the rest of the line follows */
    return ftruncate(f->fd, (off_t)(f->size + whole)) ? done : whole;
}

static void writeBuffer(ebpfMonLogFile *f, double now)
{
    size_t done = 0;
    int error = 0;

    if (f->out.trouble && now < f->out.retryAt)
        return;
    if (f->fd < 0 && openFile(f, now))
        return;
    while (done < f->len) {
        ssize_t n = write(f->fd, f->buf + done, f->len - done);

        if (n > 0) {
            done += (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            error = n ? errno : ENOSPC;
            break;
        }
    }
    if (error)
        done = removeTornLine(f, done);
    f->size += done;
    dropWritten(f, done);
    f->since = now;
    if (error)
        setTrouble(f, now, "write to it", error);
    else
        ebpfMonDestinationSetWorking(&f->out);
}

static int renameNumbered(ebpfMonLogFile *f, unsigned from, unsigned to)
{
    char a[300], b[300];

    snprintf(a, sizeof(a), from ? "%s.%u" : "%s", f->out.name, from);
    snprintf(b, sizeof(b), "%s.%u", f->out.name, to);
    return rename(a, b) && errno != ENOENT ? -1 : 0;
}

void ebpfMonLogFileRotate(ebpfMonLogFile *f, double now)
{
    int status = 0;

    writeBuffer(f, now);
    if (f->fd < 0 || !f->size || f->len)
        return;
    if (!f->limits.keep)
        status = unlink(f->out.name) && errno != ENOENT ? -1 : 0;
    for (unsigned i = f->limits.keep; i > 0 && !status; i--)
        status = renameNumbered(f, i - 1, i); /* the oldest one is replaced */
    if (status) {
        setTrouble(f, now, "rename it", errno);
        f->rotateAt = now + RENAME_RETRY;
        f->out.retryAt = now; /* we continue with the old file */
        return;
    }
    closeFile(f);
    openFile(f, now);
}

int ebpfMonLogFileAdd(ebpfMonLogFile *f, const char *line, size_t len, double now)
{
    if (f->limits.maxBytes && f->size + f->len && f->size + f->len + len + 1 > f->limits.maxBytes &&
        now >= f->rotateAt && !f->out.trouble)
        ebpfMonLogFileRotate(f, now);
    if (!f->out.lostNow && f->len + len + 1 > sizeof(f->buf))
        writeBuffer(f, now);
    if (f->out.lostNow || f->len + len + 1 > sizeof(f->buf)) {
        ebpfMonDestinationAddLost(&f->out, 1);
        return -1;
    }
    if (!f->len)
        f->since = now;
    memcpy(f->buf + f->len, line, len);
    f->buf[f->len + len] = '\n';
    f->len += len + 1;
    if (f->len >= BATCH)
        writeBuffer(f, now);
    return 0;
}

/* Opens a new file, if logrotate or somebody moved ours away: its name does not mean our file any more. */
static void checkName(ebpfMonLogFile *f, double now)
{
    struct stat st;

    f->checkAt = now + CHECK_EVERY;
    if (f->fd < 0)
        return;
    if (lstat(f->out.name, &st)) {
        if (errno != ENOENT)
            return;
    } else if (st.st_dev == f->dev && st.st_ino == f->ino) {
        f->size = (uint64_t)st.st_size; /* copytruncate of logrotate makes it smaller */
        return;
    }
    closeFile(f);
    openFile(f, now);
}

void ebpfMonLogFileTick(ebpfMonLogFile *f, double now)
{
    if (now >= f->checkAt)
        checkName(f, now);
    if (f->limits.maxAge > 0 && f->size && now - f->begun >= f->limits.maxAge && now >= f->rotateAt &&
        !f->out.trouble)
        ebpfMonLogFileRotate(f, now);
    if (f->out.trouble ? now >= f->out.retryAt : f->len && now - f->since >= DELAY)
        writeBuffer(f, now);
}

void ebpfMonLogFileClose(ebpfMonLogFile *f, double now)
{
    f->out.retryAt = now;
    writeBuffer(f, now);
    ebpfMonDestinationAddLost(&f->out, ebpfMonDestinationCountLines(f->buf, f->len));
    f->len = 0;
    closeFile(f);
}
