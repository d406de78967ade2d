/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <lzma.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "code/elfXz.h"
#include "common/clock.h"

#define PIECE       (64u << 10)
#define PACKED_MAX  (16u << 20)
#define UNPACKED_MAX (64u << 20)
#define MEMORY_MAX  (128u << 20)   /* xz -9 takes 65 MiB */
#define MAX_CPU     500000000ull   /* ns */

static int writeAll(int fd, const uint8_t *bytes, size_t size)
{
    while (size) {
        ssize_t n = write(fd, bytes, size);

        if (n <= 0)
            return -1;
        bytes += n;
        size -= (size_t)n;
    }
    return 0;
}

/* 0, or -1: it is no xz stream, too large, or not whole. */
static int unpackSection(const ebpfMonElfFile *file, const Elf64_Shdr *section, lzma_stream *xz, uint8_t *in,
                         uint8_t *out, int fd)
{
    uint64_t begin = ebpfMonClockThreadCpu(), at = 0;
    lzma_ret rc = LZMA_OK;

    while (rc == LZMA_OK && xz->total_out <= UNPACKED_MAX && ebpfMonClockThreadCpu() - begin < MAX_CPU) {
        if (!xz->avail_in && at < section->sh_size && at < PACKED_MAX) {
            xz->next_in = in;
            xz->avail_in = ebpfMonElfReadSection(file, section, at, in, PIECE);
            at += xz->avail_in;
        }
        xz->next_out = out;
        xz->avail_out = PIECE;
        rc = lzma_code(xz, xz->avail_in ? LZMA_RUN : LZMA_FINISH);
        if (writeAll(fd, out, PIECE - xz->avail_out))
            return -1;
    }
    return rc == LZMA_STREAM_END ? 0 : -1;
}

int ebpfMonElfUnpack(const ebpfMonElfFile *file, const Elf64_Shdr *section)
{
    lzma_stream xz = LZMA_STREAM_INIT;
    uint8_t *buf = malloc(2 * PIECE);
    int fd = -1;

    if (buf && lzma_stream_decoder(&xz, MEMORY_MAX, 0) == LZMA_OK)
        fd = memfd_create("symbols", MFD_CLOEXEC);
    if (fd >= 0 && unpackSection(file, section, &xz, buf, buf + PIECE, fd)) {
        close(fd);
        fd = -1;
    }
    lzma_end(&xz);
    free(buf);
    return fd;
}
