/* SPDX-License-Identifier: BSD-3-Clause */
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>

#include "code/demangle.h"

/* A name may refer to its own parts (S_, S0_, T_), and these parts to others, so each reference can make the text three
 * times as long: 250 characters are enough for a text of gigabytes. With so many references it has 2 MB at most. */
#define REFERENCES_MAX 24

static int countReferences(const char *name)
{
    int count = 0;

    for (const char *c = name; *c; c++) {
        const char *end = c + 1;

        while (std::isdigit((unsigned char)*end) || std::isupper((unsigned char)*end))
            end++;
        if (((*c == 'S' || *c == 'T') && *end == '_') || std::strncmp(c, "Dp", 2) == 0)
            count++;
    }
    return count;
}

void ebpfMonDemangle(char *name, size_t size)
{
    int status = -1;
    char *text;

    if (std::strncmp(name, "_Z", 2) != 0 || countReferences(name) > REFERENCES_MAX)
        return;
    text = abi::__cxa_demangle(name, 0, 0, &status);
    if (text && status == 0 && std::strlen(text) < size)
        std::strcpy(name, text);
    std::free(text);
}
