/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rule is a PV's, remembered: finding it compares with the patterns of all rules. Part of a rule set. */
#ifndef EBPFMON_RULECACHE_H
#define EBPFMON_RULECACHE_H

#include <stdint.h>
#include "model/put.h"

#define EBPFMON_RULE_CACHE 16384u /* PVs; a power of two */

/* "ioc\0pv\0channel", that without modifiers: the whole of what chooses a rule is compared, so that two PVs with the
 * same hash never get each other's rule. */
#define EBPFMON_RULE_KEY \
    (sizeof(((ebpfMonPut *)0)->ioc) + sizeof(((ebpfMonPut *)0)->pv) + sizeof(((ebpfMonPut *)0)->channel))

struct ebpfMonRuleCache {
    struct {
        uint32_t rule;
        uint32_t length; /* of key; 0: free */
        char     key[EBPFMON_RULE_KEY];
    } slot[EBPFMON_RULE_CACHE];
};

#endif
