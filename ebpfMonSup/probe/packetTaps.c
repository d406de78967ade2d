/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include <bpf/bpf.h>

#include "host/netnsSocket.h"
#include "probe/packetTaps.h"

#define LOOPBACK_IFINDEX 1  /* of lo in every namespace: loopback_net_init() of the kernel checks it */
#define TCX_INGRESS      46 /* BPF_TCX_INGRESS: kernel headers before 6.6 do not have it */
#define ALL_DEVICES      0

typedef struct {
    int device; /* index of the device; or ALL_DEVICES */
    int fd;
} packetSocket;

struct ebpfMonPacketTaps {
    int          socketProgram;
    int          lo;         /* the tcx link of lo; -1: there is none, and one socket sees all devices */
    packetSocket socket[EBPFMON_TAP_DEVICES_MAX];
    unsigned     count;
    ebpfMonNetDevices *devices; /* NULL without a link at lo */
};

typedef struct {
    int program;
} wantedLink;

static int attachToLo(void *arg)
{
    const wantedLink *wanted = arg;

    return bpf_link_create(wanted->program, LOOPBACK_IFINDEX, (enum bpf_attach_type)TCX_INGRESS, NULL);
}

int ebpfMonPacketTapsHaveTcx(void)
{
    const struct bpf_insn next[] = {
        { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = -1 }, /* TCX_NEXT */
        { .code = BPF_JMP | BPF_EXIT },
    };
    wantedLink wanted = {
        .program = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "ebpfmon_tcx", "GPL", next, sizeof(next) / sizeof(next[0]),
                                 NULL),
    };
    int link;

    if (wanted.program < 0)
        return 0;
    link = attachToLo(&wanted);
    close(wanted.program);
    if (link >= 0)
        close(link);
    return link >= 0;
}

/* Attaches the filter before the socket receives: no packet may come that the filter has not seen. */
static int beginSocket(int fd, int device, int program)
{
    struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = device };

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_BPF, &program, sizeof(program)) ||
           bind(fd, (struct sockaddr *)&at, sizeof(at));
}

/* 0, or -1 with errno. */
static int addSocket(ebpfMonPacketTaps *t, pid_t pid, int device, uint32_t *netns)
{
    /* protocol 0: the socket receives nothing until it is bound */
    int err, fd = ebpfMonNetnsSocketOpen(pid, AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0, netns);

    if (fd < 0)
        return -1;
    if (beginSocket(fd, device, t->socketProgram)) {
        err = errno;
        close(fd);
        errno = err;
        return -1;
    }
    t->socket[t->count++] = (packetSocket){ device, fd };
    return 0;
}

static void closeSocket(ebpfMonPacketTaps *t, unsigned i)
{
    close(t->socket[i].fd);
    t->socket[i] = t->socket[--t->count];
}

/* Uses one socket for all devices. It opens before the others close, because a packet that comes twice does less harm
 * than a lost one. 0; or -1 with errno: then the others stay. */
static int useOneSocket(ebpfMonPacketTaps *t, pid_t pid, uint32_t *netns)
{
    if (t->count == EBPFMON_TAP_DEVICES_MAX)
        closeSocket(t, 0);
    if (addSocket(t, pid, ALL_DEVICES, netns))
        return -1;
    for (unsigned i = 0; i < t->count;)
        if (t->socket[i].device == ALL_DEVICES)
            i++;
        else
            closeSocket(t, i);
    return 0;
}

static int hasDevice(const int *index, int count, int device)
{
    for (int i = 0; i < count; i++)
        if (index[i] == device)
            return 1;
    return 0;
}

/* Gives each device that exists a socket. 0, or -1: one device has none. */
static int followDevices(ebpfMonPacketTaps *t, pid_t pid)
{
    int index[EBPFMON_TAP_DEVICES_MAX], status = 0;
    int count = ebpfMonNetDevicesList(t->devices, index, EBPFMON_TAP_DEVICES_MAX);

    if (count < 0 || count > EBPFMON_TAP_DEVICES_MAX)
        return -1;
    for (unsigned i = 0; i < t->count;)
        if (hasDevice(index, count, t->socket[i].device))
            i++;
        else
            closeSocket(t, i);
    for (int k = 0; k < count; k++) {
        unsigned i;

        for (i = 0; i < t->count && t->socket[i].device != index[k]; i++) {}
        /* a device that was removed meanwhile: the kernel reports it, and then the list is made again */
        if (i == t->count && addSocket(t, pid, index[k], NULL) && errno != ENODEV && errno != ENXIO)
            status = -1;
    }
    return status;
}

static void closeLo(ebpfMonPacketTaps *t)
{
    if (t->lo >= 0)
        close(t->lo);
    t->lo = -1;
    ebpfMonNetDevicesClose(t->devices);
    t->devices = NULL;
}

void ebpfMonPacketTapsFollow(ebpfMonPacketTaps *t, pid_t pid)
{
    if (t->lo < 0 || !ebpfMonNetDevicesHaveChanged(t->devices) || followDevices(t, pid) == 0)
        return;
    if (useOneSocket(t, pid, NULL) == 0) /* else nothing changes until the next call */
        closeLo(t);
}

/* Uses tcx at lo and a socket for each other device. 0, or -1: not possible. */
static int useTcx(ebpfMonPacketTaps *t, pid_t pid, int loProgram, uint32_t *netns)
{
    wantedLink wanted = { loProgram };

    t->devices = ebpfMonNetDevicesOpen(pid);
    if (!t->devices)
        return -1;
    t->lo = ebpfMonNetnsCall(pid, attachToLo, &wanted, netns);
    return t->lo >= 0 && followDevices(t, pid) == 0 ? 0 : -1;
}

ebpfMonPacketTaps *ebpfMonPacketTapsOpen(pid_t pid, int socketProgram, int loProgram, uint32_t *netns)
{
    ebpfMonPacketTaps *t = calloc(1, sizeof(*t));
    int err;

    if (!t)
        return NULL;
    t->socketProgram = socketProgram;
    t->lo = -1;
    if (loProgram >= 0 && useTcx(t, pid, loProgram, netns) == 0)
        return t;
    if (useOneSocket(t, pid, netns) == 0) {
        closeLo(t);
        return t;
    }
    err = errno;
    ebpfMonPacketTapsClose(t);
    errno = err;
    return NULL;
}

void ebpfMonPacketTapsClose(ebpfMonPacketTaps *t)
{
    if (!t)
        return;
    while (t->count)
        closeSocket(t, t->count - 1);
    closeLo(t);
    free(t);
}

int ebpfMonPacketTapsUseTcx(const ebpfMonPacketTaps *t)
{
    return t->lo >= 0;
}
