/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "probe/blockTable.h"

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
