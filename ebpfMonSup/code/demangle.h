/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of C++ functions as people read them. Any thread. */
#ifndef EBPFMON_DEMANGLE_H
#define EBPFMON_DEMANGLE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes "_ZN9casIntfOS4pollEv" to "casIntfOS::poll()", in place. A name that is not a C++ name, or that would not
 * fit, stays, and so does a name that refers to its own parts very often: a hostile one of 250 characters would take
 * gigabytes. */
void ebpfMonDemangle(char *name, size_t size);

#ifdef __cplusplus
}
#endif

#endif
