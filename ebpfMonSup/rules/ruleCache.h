/* SPDX-License-Identifier: BSD-3-Clause */
/* Remembers which rule decides on a PV, because to find the rule means to compare with the patterns of all rules.
 * Part of a rule set, and private to this room. */
#ifndef EBPFMON_RULECACHE_H
#define EBPFMON_RULECACHE_H

#include <stdint.h>
#include "model/put.h"

#define EBPFMON_RULE_CACHE 16384u /* PVs; a power of two */

/* The key: "ioc\0pv\0channel", the channel without modifiers. Everything that chooses a rule is in the key and is
 * compared. So two PVs with the same hash never get the rule of each other. */
#define EBPFMON_RULE_KEY \
    (sizeof(((ebpfMonPut *)0)->ioc) + sizeof(((ebpfMonPut *)0)->pv) + sizeof(((ebpfMonPut *)0)->channel))

struct ebpfMonRuleCache {
    struct {
        uint32_t rule;   /* its index in the set */
        uint32_t length; /* bytes of the key; 0: the slot is free */
        char     key[EBPFMON_RULE_KEY];
    } slot[EBPFMON_RULE_CACHE];
};

#endif
