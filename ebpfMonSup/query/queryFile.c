/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/wholeFile.h"
#include "query/queryFile.h"

#define FILE_MAX (1024u * 1024u)

ebpfMonQuerySet *ebpfMonQueryFileRead(const char *file, char *path, char *why, size_t size)
{
    ebpfMonQuerySet *set;
    size_t length;
    char *text;

    if (!file || !file[0]) {
        snprintf(why, size, "give the name of a file: ebpfMonQueryLoad \"FILE\"");
        return NULL;
    }
    text = ebpfMonWholeFileRead(file, FILE_MAX, &length, why, size);
    if (!text)
        return NULL;
    if (!realpath(file, path))
        snprintf(path, PATH_MAX, "%s", file);
    set = ebpfMonQueryParse(file, text, length, why, size);
    free(text);
    return set;
}
