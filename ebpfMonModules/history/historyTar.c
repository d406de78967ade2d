/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files.h"
#include "history/historyTar.h"

#define BLOCK 512
#define COPY  (256u << 10) /* bytes between two signs of the thread; a multiple of a block */

/* IEEE Std 1003.1, pax: "ustar Interchange Format". Numbers are octal texts. */
typedef struct {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[8], uname[32],
        gname[32], major[8], minor[8], prefix[155], pad[12];
} tarHeader;

static int writeHeader(FILE *out, const char *name, const struct stat *st)
{
    tarHeader h = { .type = '0', .magic = { 'u', 's', 't', 'a', 'r', 0, '0', '0' } };
    unsigned sum = 0;

    snprintf(h.name, sizeof(h.name), "%s", name);
    snprintf(h.mode, sizeof(h.mode), "%07o", 0644u);
    snprintf(h.uid, sizeof(h.uid), "%07o", 0u);
    snprintf(h.gid, sizeof(h.gid), "%07o", 0u);
    snprintf(h.size, sizeof(h.size), "%011llo", (unsigned long long)st->st_size & 077777777777);
    snprintf(h.mtime, sizeof(h.mtime), "%011llo", (unsigned long long)st->st_mtime & 077777777777);
    memset(h.checksum, ' ', sizeof(h.checksum));
    for (size_t i = 0; i < sizeof(h); i++)
        sum += ((const unsigned char *)&h)[i];
    snprintf(h.checksum, sizeof(h.checksum), "%06o", sum & 0777777);
    return fwrite(&h, sizeof(h), 1, out) == 1 ? 0 : -1;
}

/* Copies so many bytes. 0, or -1: they are not there, or there is no room. */
static int copyBytes(FILE *in, FILE *out, unsigned long long bytes, ebpfMonWorker *worker)
{
    char *buf = malloc(COPY);
    int failed = !buf;

    while (bytes && !failed) {
        size_t n = bytes < COPY ? (size_t)bytes : COPY;

        failed = fread(buf, 1, n, in) != n || fwrite(buf, 1, n, out) != n;
        bytes -= n;
        ebpfMonWorkerGiveSign(worker);
    }
    free(buf);
    return failed ? -1 : 0;
}

static int addFile(FILE *out, const char *path, const char *name, ebpfMonWorker *worker)
{
    static const char zero[BLOCK];
    FILE *in = fopen(path, "re");
    struct stat st;
    int failed;

    if (!in)
        return errno == ENOENT ? 0 : -1;
    failed = fstat(fileno(in), &st) || writeHeader(out, name, &st) ||
             copyBytes(in, out, (unsigned long long)st.st_size, worker) ||
             fwrite(zero, 1, (size_t)(-st.st_size & (BLOCK - 1)), out) != (size_t)(-st.st_size & (BLOCK - 1));
    fclose(in);
    return failed ? -1 : 0;
}

int ebpfMonHistoryTarWrite(const char *file, const char *title, const char *folder, const char *const *names,
                           ebpfMonWorker *worker, char *why, size_t size)
{
    static const char end[2 * BLOCK];
    FILE *out = ebpfMonNewFileMake(file);
    int failed = !out;

    for (; *names && !failed; names++) {
        char path[600], name[90];

        snprintf(path, sizeof(path), "%s/%s", folder, *names);
        snprintf(name, sizeof(name), "%s/%s", title, *names);
        failed = addFile(out, path, name, worker) != 0;
    }
    failed = failed || fwrite(end, sizeof(end), 1, out) != 1;
    if (out && fclose(out))
        failed = 1;
    if (failed)
        snprintf(why, size, "%s: %s", file, strerror(errno));
    return failed ? -1 : 0;
}

int ebpfMonHistoryTarCopy(const char *file, char *copy, size_t copySize, char *why, size_t size)
{
    FILE *in = fopen(file, "re"), *out;
    tarHeader h;
    const char *name, *tmp = getenv("TMPDIR");
    int fd, failed;

    if (!in || fread(&h, sizeof(h), 1, in) != 1 || memcmp(h.magic, "ustar", 5) != 0 ||
        !memchr(h.name, 0, sizeof(h.name)) || !(name = strrchr(h.name, '/')) ||
        strcmp(name + 1, EBPFMON_HISTORY_IN_TAR) != 0) {
        if (in)
            fclose(in);
        return 1;
    }
    h.size[sizeof(h.size) - 1] = 0;
    snprintf(copy, copySize, "%s/ebpfMonHistory-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    fd = mkstemp(copy);
    out = fd < 0 ? NULL : fdopen(fd, "w");
    failed = !out || copyBytes(in, out, strtoull(h.size, NULL, 8), NULL);
    if (out)
        failed |= fclose(out) != 0;
    fclose(in);
    if (!failed)
        return 0;
    snprintf(why, size, "its history cannot be copied to %s: no room, or the file is not whole. TMPDIR names another "
             "folder", copy);
    if (fd >= 0)
        unlink(copy);
    return -1;
}
