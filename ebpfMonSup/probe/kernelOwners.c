/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include <bpf/bpf.h>

#include "probe/kernelLoaded.h"
#include "probe/kernelOwners.h"

/* Nonzero: found. */
static int findOwned(const struct ebpfMonPeer *peer, struct ebpfMonOwned *own)
{
    const struct ebpfMonBpf *skel = ebpfMonLoaded.skel;

    return bpf_map_lookup_elem(bpf_map__fd(skel->maps.owners), peer, own) == 0 ||
           bpf_map_lookup_elem(bpf_map__fd(skel->maps.endedOwners), peer, own) == 0;
}

/* findOwner (bpf/thread/client.bpf.h) does the same, and says what it proves. */
uint32_t ebpfMonKernelGetOwner(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first,
                               struct ebpfMonOwner *owner)
{
    struct ebpfMonPeer at = *peer;
    struct ebpfMonOwned own;
    uint32_t netns = peer->netns;

    if (!findOwned(peer, &own)) {
        at.netns = 0;
        if (!first || bpf_map_lookup_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.clientNetns), &at, &netns))
            return 0;
        at.netns = netns;
        if (!findOwned(&at, &own) || !ebpfMonFirstIsSame(&own.first, first))
            return 0;
    }
    *owner = own.owner;
    return netns;
}

int ebpfMonKernelIsServed(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first, const uint32_t *seq)
{
    struct ebpfMonServed served;

    return bpf_map_lookup_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.served), peer, &served) == 0 &&
           (!first || ebpfMonFirstIsSame(first, &served.first)) && (!seq || (int32_t)(*seq - served.upTo) < 0);
}

int ebpfMonKernelWasServed(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first, uint32_t *upTo)
{
    struct ebpfMonServed served;

    if (bpf_map_lookup_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.endedServed), peer, &served) ||
        (first && (first->seq[0] || first->seq[1]) && !ebpfMonFirstIsSame(first, &served.first)))
        return 0;
    *upTo = served.upTo;
    return 1;
}

int ebpfMonKernelSetOwner(const struct ebpfMonPeer *peer, const struct ebpfMonOwner *owner)
{
    int fd = bpf_map__fd(ebpfMonLoaded.skel->maps.clientNetns);
    struct ebpfMonOwned own = { .owner = *owner };
    struct ebpfMonPeer at = *peer;
    uint32_t netns = peer->netns, other, many = EBPFMON_NETNS_MANY;

    if (bpf_map_update_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.owners), peer, &own, BPF_NOEXIST))
        return errno == EEXIST ? 0 : -1; /* the kernel part has seen it */
    at.netns = 0;
    if (ebpfMonIsLoopback(peer->addr, peer->addr6) || bpf_map_update_elem(fd, &at, &netns, BPF_NOEXIST) == 0)
        return 0;
    if (bpf_map_lookup_elem(fd, &at, &other) == 0 && other != netns)
        bpf_map_update_elem(fd, &at, &many, BPF_ANY);
    return 0;
}
