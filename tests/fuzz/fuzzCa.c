/* SPDX-License-Identifier: BSD-3-Clause */
/* Channel Access, on its own port and therefore trusted early. */
#include "feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return ebpfMonFuzzFeed(data, size, 5064);
}
