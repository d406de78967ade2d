/* SPDX-License-Identifier: BSD-3-Clause */
#include <elf.h>
#include "code/machine.h"

/* --- machines --- */

#if defined(__x86_64__)
#define HOST EM_X86_64
#elif defined(__aarch64__)
#define HOST EM_AARCH64
#else
#error "the instructions of this machine are not known: see machine.h"
#endif

static const ebpfMonMachine machines[] = {
    { EM_X86_64, "x86-64", 0, 1,
      { R_X86_64_COPY, R_X86_64_RELATIVE, R_X86_64_IRELATIVE, { R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT } },
      ebpfMonSitePickX86, ebpfMonInsnLengthX86, ebpfMonInsnFlowX86 },
    { EM_AARCH64, "aarch64", 1, 0,
      /* not R_AARCH64_GLOB_DAT: only code that takes the address has it, and how is not looked for */
      { R_AARCH64_COPY, R_AARCH64_RELATIVE, R_AARCH64_IRELATIVE, { R_AARCH64_JUMP_SLOT, R_AARCH64_JUMP_SLOT } },
      ebpfMonSitePickAarch64, ebpfMonInsnLengthAarch64, ebpfMonInsnFlowAarch64 },
};

const ebpfMonMachine *ebpfMonMachineFind(uint16_t machine)
{
    for (unsigned i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
        if (machines[i].machine == machine)
            return &machines[i];
    return NULL;
}

const ebpfMonMachine *ebpfMonMachineHost(void)
{
    return ebpfMonMachineFind(HOST);
}

int ebpfMonMachineIsHost(uint16_t machine)
{
    return machine == HOST;
}
