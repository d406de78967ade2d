/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is the code of a function. The instruction decoders choose the place of a probe in it. The first byte says
 * which arguments the program of the probe reads, and which machine the code is for. */
#include <elf.h>
#include "fuzz.h"
#include "code/machine.h"

static void tryMachine(const ebpfMonMachine *machine, const uint8_t *code, size_t size, unsigned args, int needReturn)
{
    ebpfMonSite site;
    size_t at = 0;
    unsigned n;

    machine->pickSite(code, size, args, needReturn, &site);
    FUZZ_CHECK(site.cls == ebpfMonSiteFast || site.cls == ebpfMonSiteStepped);
    FUZZ_CHECK(memchr(site.insn, 0, sizeof(site.insn)) && site.skip < 64);
    /* The place must be the beginning of an instruction. A breakpoint within an instruction would break the process. */
    while (at < site.skip) {
        n = machine->getLength(code + at, size - at);
        FUZZ_CHECK(n > 0 && n <= 15);
        at += n;
    }
    FUZZ_CHECK(at == site.skip && (site.cls == ebpfMonSiteStepped || site.skip < size));
    FUZZ_CHECK(site.cls == ebpfMonSiteStepped || machine->getLength(code + at, size - at) > 0);
    for (at = 0; at < size && (n = machine->getLength(code + at, size - at)) > 0; at += n) {
        uint64_t to = 0;

        FUZZ_CHECK(n <= 15 && n <= size - at);
        FUZZ_CHECK(machine->getFlow(code + at, n, at, &to) <= ebpfMonFlowLeave);
    }
}

void ebpfMonFuzzOne(const uint8_t *data, size_t size)
{
    uint8_t *code;

    if (!size || !(code = malloc(size)))
        return;
    size--;
    memcpy(code, data + 1, size); /* in memory of its exact size, so that the sanitizer sees each read behind its end */
    tryMachine(ebpfMonMachineFind(data[0] & 32 ? EM_AARCH64 : EM_X86_64), code, size, data[0] & 15, data[0] >> 4 & 1);
    free(code);
}
