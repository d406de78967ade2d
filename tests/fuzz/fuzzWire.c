/* SPDX-License-Identifier: BSD-3-Clause */
/* Any protocol, on a port that says nothing: who speaks what has to be found out. */
#include "feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return ebpfMonFuzzFeed(data, size, 30000);
}
