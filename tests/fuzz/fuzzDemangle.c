/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is the name of a function in the symbols of a program. */
#include "code/demangle.h"
#include "fuzz.h"

void ebpfMonFuzzOne(const uint8_t *data, size_t size)
{
    char name[256];

    if (size >= sizeof(name))
        size = sizeof(name) - 1;
    memcpy(name, data, size);
    name[size] = '\0';
    ebpfMonDemangle(name, sizeof(name));
    FUZZ_CHECK(strlen(name) < sizeof(name));
}
