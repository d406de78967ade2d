/* SPDX-License-Identifier: BSD-3-Clause */
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>

#include "code/demangle.h"

void ebpfMonDemangle(char *name, size_t size)
{
    int status = -1;
    char *text = std::strncmp(name, "_Z", 2) == 0 ? abi::__cxa_demangle(name, 0, 0, &status) : 0;

    if (text && status == 0 && std::strlen(text) < size)
        std::strcpy(name, text);
    std::free(text);
}
