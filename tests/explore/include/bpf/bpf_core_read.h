/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for libbpf's header of this name: structs of the kernel have nothing but zeros, and no member. */
#ifndef EXPLORE_BPF_CORE_READ_H
#define EXPLORE_BPF_CORE_READ_H

#define BPF_CORE_READ(from, ...)      0
#define bpf_core_field_exists(member) 0
#define bpf_core_type_size(type)      sizeof(type)
#define bpf_core_read(to, size, from) ((void)(to), (void)(size), (void)(from), -1)

#endif
