/* SPDX-License-Identifier: BSD-3-Clause */
/* The instruction decoder, and where it puts a probe. The first byte says which arguments a program reads. */
#include "fuzz.h"
#include "ioc/site.h"

void ebpfMonFuzzOne(const uint8_t *data, size_t size)
{
    ebpfMonSite site;
    size_t at = 0;
    unsigned n;
    uint8_t *code;

    if (!size || !(code = malloc(size)))
        return;
    size--;
    memcpy(code, data + 1, size); /* of its exact size */
    ebpfMonSitePickX86(code, size, data[0] & 15, data[0] >> 4 & 1, &site);
    FUZZ_CHECK(site.cls == ebpfMonSiteFast || site.cls == ebpfMonSiteStepped);
    FUZZ_CHECK(memchr(site.insn, 0, sizeof(site.insn)) && site.skip < 64);
    /* a breakpoint in the middle of an instruction would break the process */
    while (at < site.skip) {
        n = ebpfMonInsnLength(code + at, size - at);
        FUZZ_CHECK(n > 0 && n <= 15);
        at += n;
    }
    FUZZ_CHECK(at == site.skip && (site.cls == ebpfMonSiteStepped || site.skip < size));
    FUZZ_CHECK(site.cls == ebpfMonSiteStepped || ebpfMonInsnLength(code + at, size - at) > 0);
    for (at = 0; at < size && (n = ebpfMonInsnLength(code + at, size - at)) > 0; at += n)
        FUZZ_CHECK(n <= 15 && n <= size - at);
    free(code);
}
