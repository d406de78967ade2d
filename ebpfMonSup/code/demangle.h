/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of C++ functions as people read them. Any thread. */
#ifndef EBPFMON_DEMANGLE_H
#define EBPFMON_DEMANGLE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes "_ZN9casIntfOS4pollEv" "casIntfOS::poll()", in place; a name that is none of C++, or that would not fit, stays. */
void ebpfMonDemangle(char *name, size_t size);

#ifdef __cplusplus
}
#endif

#endif
