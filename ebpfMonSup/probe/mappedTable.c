/* SPDX-License-Identifier: BSD-3-Clause */
#include <bpf/bpf.h>
#include <epicsAtomic.h>
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#include "probe/mappedTable.h"

/* --- blocks --- */

#define STEP (256u << 10) /* bytes that are mapped at a time: a compromise between many mappings and unused memory */

static size_t roundUp(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

int ebpfMonMappedTableOpen(ebpfMonMappedTable *table, size_t block, size_t size, ebpfMonBlockMake make, void *arg)
{
    void *base;

    if (!block || block % (size_t)sysconf(_SC_PAGESIZE)) {
        errno = EINVAL; /* the next block could not be mapped behind it */
        return -1;
    }
    size = roundUp(size, block);
    base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return -1;
    *table = (ebpfMonMappedTable){ .base = base, .size = size, .block = block, .fd = -1, .make = make, .arg = arg };
    return 0;
}

static int makeBlock(ebpfMonMappedTable *table)
{
    int fd = table->make(table->arg, (unsigned)(table->made / table->block));

    if (fd < 0)
        return -1;
    if (table->fd >= 0)
        close(table->fd);
    table->fd = fd;
    epicsAtomicAddSizeT(&table->made, table->block);
    return 0;
}

int ebpfMonMappedTableUse(ebpfMonMappedTable *table, size_t bytes)
{
    size_t to = roundUp(bytes, STEP), block = roundUp(bytes, table->block);

    if (bytes > table->size) {
        errno = EINVAL;
        return -1;
    }
    if (to > block) /* the next block is not needed */
        to = block;
    while (table->mapped < to) {
        size_t end;

        if (table->mapped == table->made && makeBlock(table))
            return -1;
        end = to < table->made ? to : table->made;
        if (mmap(table->base + table->mapped, end - table->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                 table->fd, (off_t)(table->mapped + table->block - table->made)) == MAP_FAILED)
            return -1;
        table->mapped = end;
    }
    return 0;
}

size_t ebpfMonMappedTableGetMade(const ebpfMonMappedTable *table)
{
    return epicsAtomicGetSizeT(&table->made);
}

void ebpfMonMappedTableClose(ebpfMonMappedTable *table)
{
    if (table->base) {
        munmap(table->base, table->size);
        if (table->fd >= 0)
            close(table->fd);
    }
    *table = (ebpfMonMappedTable){ .base = NULL };
}

/* --- elements --- */

/* Makes a block of a table, and gives it to the programs. Returns its file, or -1 with errno. */
static int makeTableBlock(void *arg, unsigned block)
{
    LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
    const ebpfMonBlockTable *table = arg;
    int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, bpf_map__name(table->map), sizeof(uint32_t), table->element,
                            table->elements, &opts);
    int err;

    if (fd < 0)
        return -1;
    if (bpf_map_update_elem(bpf_map__fd(table->map), &block, &fd, BPF_ANY) == 0)
        return fd;
    err = errno;
    close(fd);
    errno = err;
    return -1;
}

void ebpfMonBlockTableSetMost(struct bpf_map *map, unsigned most, unsigned elements)
{
    bpf_map__set_max_entries(map, (most + elements - 1) / elements);
}

void *ebpfMonBlockTableOpen(ebpfMonBlockTable *table, struct bpf_map *map, unsigned element, unsigned elements,
                            unsigned most)
{
    table->map = map;
    table->element = element;
    table->elements = elements;
    return ebpfMonMappedTableOpen(&table->mapped, (size_t)element * elements, (size_t)element * most, makeTableBlock,
                                  table) ?
               NULL :
               table->mapped.base;
}

int ebpfMonBlockTableUse(ebpfMonBlockTable *table, size_t count)
{
    return ebpfMonMappedTableUse(&table->mapped, count * table->element);
}
