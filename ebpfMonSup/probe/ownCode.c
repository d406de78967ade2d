/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/ownCode.h"

/* map_files shows the file even if it was replaced, but only root may use it. For others the name does, if it still
 * means the same file. */
int ebpfMonOwnCodeFind(uint64_t addr, char *path, size_t size, uint64_t *offset)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    int found = -1;

    while (f && found < 0 && fgets(line, sizeof(line), f)) {
        uint64_t start, end, off, inode;
        struct stat st;
        int name = 0;

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %" SCNu64 " %n", &start, &end, &off, &inode,
                   &name) != 4 || !name)
            continue;
        if (addr < start || addr >= end)
            continue;
        snprintf(path, size, "/proc/self/map_files/%" PRIx64 "-%" PRIx64, start, end);
        if (access(path, R_OK)) {
            line[strcspn(line, "\n")] = 0;
            if (stat(line + name, &st) || st.st_ino != inode)
                break;
            snprintf(path, size, "%s", line + name);
        }
        *offset = addr - start + off;
        found = 0;
    }
    if (f)
        fclose(f);
    return found;
}
