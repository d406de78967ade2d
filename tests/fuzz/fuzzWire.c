/* SPDX-License-Identifier: BSD-3-Clause */
/* Any protocol on a port that no protocol is known for, so wire/ must recognise the protocol by its messages. */
#include "feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return ebpfMonFuzzFeed(data, size, 30000);
}
