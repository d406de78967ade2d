/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* The registers, which differ from machine to machine. machineX86.bpf.h and machineAarch64.bpf.h define the same names.
 * core.bpf.h includes this header. */
#ifndef EBPFMON_MACHINE_BPF_H
#define EBPFMON_MACHINE_BPF_H

#if defined(__TARGET_ARCH_x86)
#include "common/machineX86.bpf.h"
#elif defined(__TARGET_ARCH_arm64)
#include "common/machineAarch64.bpf.h"
#else
#error "the registers of this machine are not known"
#endif

#endif
