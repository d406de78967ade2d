/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "consoleClient.h"

static int connectTo(const char *path)
{
    struct sockaddr_un address = {};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sun_family = AF_UNIX;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    fprintf(stderr, "ebpfMon: no console at %s: %s%s\n", path, strerror(errno),
            errno == EACCES ? ". Try as root" : errno == ENOENT ? ". Does the service run?" : "");
    return -1;
}

/* 0: the other end was reached, or an error; nothing more will come. */
static int copy(int from, int to)
{
    char buf[4096];
    ssize_t n = read(from, buf, sizeof(buf));

    for (ssize_t done = 0; n > 0 && done < n; ) {
        ssize_t written = write(to, buf + done, (size_t)(n - done));

        if (written <= 0)
            return 0;
        done += written;
    }
    return n > 0;
}

int runConsoleClient(const char *path)
{
    int fd = connectTo(path);
    struct pollfd ends[] = {{fd, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};

    if (fd < 0)
        return 1;
    for (;;) {
        if (poll(ends, 2, -1) < 0 && errno != EINTR)
            return 1;
        if (ends[1].revents && !copy(STDIN_FILENO, fd)) {
            shutdown(fd, SHUT_WR); /* what was typed last is still answered */
            ends[1].fd = -1;
        }
        if (ends[0].revents && !copy(fd, STDOUT_FILENO))
            return 0;
    }
}
