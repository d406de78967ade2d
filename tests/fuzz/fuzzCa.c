/* SPDX-License-Identifier: BSD-3-Clause */
/* Channel Access on the port of CA, where wire/ recognises it early. */
#include "feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return ebpfMonFuzzFeed(data, size, 5064);
}
