/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/files.h"

/* --- a file of ours --- */

/* O_NONBLOCK, because a named pipe without a reader must not block us */
#define FLAGS (O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW)

/* Writes the reason of a refusal. Returns -1. */
static int refuseFile(char *why, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int refuseFile(char *why, size_t size, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, size, format, args);
    va_end(args);
    return -1;
}

static int isTrusted(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}

/* Checks a folder, or a symbolic link that leads to one. 0 or -1. */
static int checkFolder(const char *folder, char *why, size_t size)
{
    struct stat st;

    if (lstat(folder, &st))
        return refuseFile(why, size, "cannot look at %s: %s; correct it, it goes on by itself", folder,
                          strerror(errno));
    if (!isTrusted(st.st_uid))
        return refuseFile(why, size, "not opened: %s belongs to uid %u, who could lead it elsewhere; use a folder of "
                      "root", folder, (unsigned)st.st_uid);
    if (S_ISDIR(st.st_mode) && (st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX))
        return refuseFile(why, size, "not opened: everybody may write in %s; chmod o-w", folder);
    return 0;
}

/* Checks all folders on the way, from the root on. "path" is changed, and restored. 0 or -1. */
static int checkFolders(char *path, char *why, size_t size)
{
    for (char *slash = path; (slash = strchr(slash, '/')) != NULL; slash++) {
        char *end = slash == path ? slash + 1 : slash, kept = *end;
        int status;

        *end = 0;
        status = checkFolder(path, why, size);
        *end = kept;
        if (status)
            return -1;
    }
    return 0;
}

/* Finds the folder of "path" without links, with a slash after it, and checks all folders on the way to it. 0 or -1. */
static int resolveFolder(const char *path, char folder[PATH_MAX + 1], char *why, size_t size)
{
    char given[PATH_MAX];
    const char *name = strrchr(path, '/');
    size_t length = name ? (size_t)(name - path) + 1 : 2;

    if (length >= sizeof(given))
        return refuseFile(why, size, "not opened: the name is too long");
    memcpy(given, name ? path : "./", length);
    given[length] = 0;
    if (!realpath(given, folder))
        return refuseFile(why, size, "cannot open its folder: %s; correct it, it goes on by itself", strerror(errno));
    strcat(folder, folder[1] ? "/" : ""); /* it fits, because PATH_MAX includes the NUL */
    return checkFolders(given, why, size) || checkFolders(folder, why, size) ? -1 : 0;
}

static int checkFile(const struct stat *st, char *why, size_t size)
{
    if (!S_ISREG(st->st_mode))
        return refuseFile(why, size, "not opened: it is no regular file; remove it or use another name");
    if (st->st_uid != geteuid())
        return refuseFile(why, size, "not opened: it belongs to uid %u; remove it, or chown it to uid %u",
                      (unsigned)st->st_uid, (unsigned)geteuid());
    if (st->st_nlink != 1)
        return refuseFile(why, size,
                          "not opened: the file has a second name (hard link); remove it or use another name");
    return 0;
}

int ebpfMonOwnFileOpen(const char *path, struct stat *st, char *why, size_t size)
{
    char full[PATH_MAX + NAME_MAX + 2];
    const char *name = strrchr(path, '/');
    int fd;

    if (resolveFolder(path, full, why, size))
        return -1;
    name = name ? name + 1 : path;
    if (strlen(name) > NAME_MAX)
        return refuseFile(why, size, "not opened: the name is too long");
    strcat(full, name);
    fd = open(full, FLAGS | O_CREAT, 0640);
    /* With fs.protected_regular and fs.protected_fifos, O_CREAT is refused if somebody else has made the file
     * (may_create_in_sticky, fs/namei.c). The checks below tell who that is. */
    if (fd < 0 && errno == EACCES)
        fd = open(full, FLAGS);
    if (fd < 0 && errno == ELOOP)
        return refuseFile(why, size, "not opened: it is a symbolic link; remove it or name the file it leads to");
    if (fd < 0 && errno == ENXIO)
        return refuseFile(why, size, "not opened: it is no regular file; remove it or use another name");
    if (fd < 0 && (errno == ENOSPC || errno == EDQUOT))
        return refuseFile(why, size, "disk full: make room, it goes on by itself");
    if (fd < 0)
        return refuseFile(why, size, "cannot open it: %s; correct it, it goes on by itself", strerror(errno));
    if (fstat(fd, st) == 0 && checkFile(st, why, size) == 0)
        return fd;
    close(fd);
    return -1;
}

FILE *ebpfMonNewFileMake(const char *path)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(path, flags, 0640);
    FILE *file;

    if (fd < 0 && errno == EEXIST && unlink(path) == 0)
        fd = open(path, flags, 0640);
    file = fd < 0 ? NULL : fdopen(fd, "w");
    if (fd >= 0 && !file)
        close(fd);
    return file;
}

/* --- a file that an operator named --- */

char *ebpfMonWholeFileRead(const char *file, size_t most, size_t *length, char *why, size_t size)
{
    struct stat info;
    char *text = NULL;
    ssize_t n = 1;
    int fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* O_NONBLOCK: do not wait for the other end of a pipe */

    if (fd < 0 || fstat(fd, &info)) {
        snprintf(why, size, "%s: %s. Correct the name or the permissions", file, strerror(errno));
    } else if (!S_ISREG(info.st_mode)) {
        snprintf(why, size, "%s: not a regular file. Give the name of one", file);
    } else if (info.st_size > (off_t)most) {
        snprintf(why, size, "%s: has more than %zu bytes. Take something out", file, most);
    } else if (!(text = malloc(most + 1))) {
        snprintf(why, size, "%s: out of memory", file);
    } else {
        for (*length = 0; *length <= most && n > 0; *length += n > 0 ? (size_t)n : 0)
            n = read(fd, text + *length, most + 1 - *length);
        if (n < 0 || *length > most) {
            snprintf(why, size, "%s: %s. Try again", file, n < 0 ? strerror(errno) : "grew while it was read");
            free(text);
            text = NULL;
        }
    }
    if (fd >= 0)
        close(fd);
    return text;
}
