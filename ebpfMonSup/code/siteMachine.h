/* SPDX-License-Identifier: BSD-3-Clause */
/* What each machine has for machine.h to pick a site; private to code/. They need no process, so they are tested on bytes. */
#ifndef EBPFMON_SITEMACHINE_H
#define EBPFMON_SITEMACHINE_H

#include "code/machine.h"

void ebpfMonSitePickX86(const uint8_t *code, size_t len, unsigned args, int needReturn, ebpfMonSite *site);
unsigned ebpfMonInsnLengthX86(const uint8_t *code, size_t len);
ebpfMonFlow ebpfMonInsnFlowX86(const uint8_t *code, unsigned length, uint64_t vaddr, uint64_t *to);

void ebpfMonSitePickAarch64(const uint8_t *code, size_t len, unsigned args, int needReturn, ebpfMonSite *site);
unsigned ebpfMonInsnLengthAarch64(const uint8_t *code, size_t len);
ebpfMonFlow ebpfMonInsnFlowAarch64(const uint8_t *code, unsigned length, uint64_t vaddr, uint64_t *to);

#endif
