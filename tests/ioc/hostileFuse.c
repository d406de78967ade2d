/* SPDX-License-Identifier: BSD-3-Clause */
/* See hostileFuse.h. The protocol is described in linux/fuse.h and fuse(4). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hostileFuse.h"

#define FILE_NODE 2
#define READ_MAX  (128 << 10)
#define ROOM      (READ_MAX + 4096)

static void answer(int fuse, uint64_t unique, int error, const void *data, size_t size)
{
    struct fuse_out_header head = {.len = (uint32_t)(sizeof(head) + size), .error = error, .unique = unique};
    struct iovec part[] = {{&head, sizeof(head)}, {(void *)data, size}};

    if (writev(fuse, part, size ? 2 : 1) < 0)
        _exit(0);
}

static struct fuse_attr getAttr(uint64_t node, int content)
{
    struct stat st;

    fstat(content, &st);
    return (struct fuse_attr){
        .ino = node, .nlink = 1, .mode = node == FILE_NODE ? S_IFREG | 0755 : S_IFDIR | 0755, .blksize = 4096,
        .size = node == FILE_NODE ? (uint64_t)st.st_size : 0,
    };
}

static void serveRead(int fuse, const struct fuse_in_header *in, const struct fuse_read_in *want, int content)
{
    static char data[READ_MAX];
    ssize_t n = pread(content, data, want->size < READ_MAX ? want->size : READ_MAX, (off_t)want->offset);

    answer(fuse, in->unique, n < 0 ? -EIO : 0, data, n > 0 ? (size_t)n : 0);
}

static void serveOne(int fuse, const char *request, int content)
{
    const struct fuse_in_header *in = (const void *)request;
    const void *body = request + sizeof(*in);

    switch (in->opcode) {
    case FUSE_INIT: {
        struct fuse_init_out out = {
            .major = FUSE_KERNEL_VERSION, .minor = 31, .max_readahead = READ_MAX, .max_write = READ_MAX,
        };
        answer(fuse, in->unique, 0, &out, sizeof(out));
        break;
    }
    case FUSE_LOOKUP: {
        struct fuse_entry_out out = {
            .nodeid = FILE_NODE, .generation = 1, .attr = getAttr(FILE_NODE, content),
        };
        answer(fuse, in->unique, strcmp(body, "file") ? -ENOENT : 0, &out, strcmp(body, "file") ? 0 : sizeof(out));
        break;
    }
    case FUSE_GETATTR: {
        struct fuse_attr_out out = {.attr = getAttr(in->nodeid, content)};
        answer(fuse, in->unique, 0, &out, sizeof(out));
        break;
    }
    case FUSE_OPEN: {
        struct fuse_open_out out = {.fh = 1};
        answer(fuse, in->unique, 0, &out, sizeof(out));
        break;
    }
    case FUSE_READ:
        serveRead(fuse, in, body, content);
        break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
        break; /* these requests have no answer */
    default:
        answer(fuse, in->unique, -ENOSYS, NULL, 0);
    }
}

/* Answers requests until the pipe "quiet" is closed, and then waits until the parent of the hostile process ("test", a
 * pidfd) ends. PR_SET_PDEATHSIG of the hostile process would not do: a process that waits for this file system cannot
 * end before this server ends. */
static void serve(int fuse, int quiet, int test, int content)
{
    static char request[ROOM];
    struct pollfd fd[] = {
        {.fd = test, .events = POLLIN}, {.fd = quiet, .events = POLLIN}, {.fd = fuse, .events = POLLIN}};

    while (poll(fd, 3, -1) > 0 && !fd[0].revents && !fd[1].revents)
        if (fd[2].revents && read(fuse, request, sizeof(request)) > 0)
            serveOne(fuse, request, content);
    while (!fd[0].revents)
        poll(fd, 1, -1);
    _exit(0);
}

static int writeText(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    int failed = fd < 0 || write(fd, text, strlen(text)) < 0;

    if (fd >= 0)
        close(fd);
    return failed ? -1 : 0;
}

/* Makes a user namespace and a mount namespace in which this user is root. */
static int becomeRootOfNamespace(void)
{
    char users[32], groups[32];

    snprintf(users, sizeof(users), "0 %u 1", (unsigned)getuid());
    snprintf(groups, sizeof(groups), "0 %u 1", (unsigned)getgid());
    prctl(PR_SET_DUMPABLE, 1); /* else, after setuid(), root owns the files of /proc/self */
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) || writeText("/proc/self/uid_map", users) ||
        writeText("/proc/self/setgroups", "deny") || writeText("/proc/self/gid_map", groups))
        return -1;
    return prctl(PR_SET_PDEATHSIG, SIGKILL); /* new credentials have cleared it (commit_creds, kernel/cred.c) */
}

int hostileMountFuse(const char *device, const char *folder, int *quiet)
{
    char options[128];
    int fuse, content, end[2], test = (int)syscall(SYS_pidfd_open, getppid(), 0);
    pid_t pid;

    if (test < 0 || becomeRootOfNamespace() || pipe(end) ||
        (content = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)) < 0 || (fuse = open(device, O_RDWR | O_CLOEXEC)) < 0)
        return -1;
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse);
    if (mount("hostile", folder, "fuse", MS_NOSUID | MS_NODEV, options))
        return -1;
    pid = fork();
    if (pid == 0) {
        close(end[1]);
        serve(fuse, end[0], test, content);
    }
    close(fuse);
    close(test);
    close(end[0]);
    *quiet = end[1];
    return pid < 0 ? -1 : 0;
}
