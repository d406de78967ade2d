/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocol is the same since systemd 205. A program may use it without the library of systemd (sd_notify(3),
 * "Notes"). */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/serviceManager.h"

/* Returns the length of the address; 0: there is none that we can use. */
static socklen_t findAddress(struct sockaddr_un *address)
{
    const char *path = getenv("NOTIFY_SOCKET");
    size_t length = path ? strlen(path) : 0;

    if (length < 2 || length >= sizeof(address->sun_path) || (path[0] != '/' && path[0] != '@'))
        return 0;
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, path, length);
    if (path[0] == '@') /* an abstract address: its name begins with a zero byte (unix(7)) */
        address->sun_path[0] = 0;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

int ebpfMonServiceTell(const char *format, ...)
{
    struct sockaddr_un address;
    socklen_t length = findAddress(&address);
    char text[512];
    va_list args;
    ssize_t sent;
    int fd;

    if (!length)
        return -1;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    sent = sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&address, length);
    close(fd);
    return sent < 0 ? -1 : 0;
}

uint64_t ebpfMonServiceWatchdog(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

    if (!usec || (pid && strtol(pid, NULL, 10) != (long)getpid())) /* it is meant for another process
                                                                    * (sd_watchdog_enabled(3)) */
        return 0;
    return strtoull(usec, NULL, 10) * 1000;
}
