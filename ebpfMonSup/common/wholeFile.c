/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/wholeFile.h"

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
