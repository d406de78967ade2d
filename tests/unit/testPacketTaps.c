/* SPDX-License-Identifier: BSD-3-Clause */
/* probe/packets.h and host/netnsSocket.h, in a network namespace of this program, with devices that are made and
 * removed. The devices are pairs of veth(4). A datagram that is sent into one end is seen there on its way out, and
 * at the other end. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <net/if.h>
#include <sys/ioctl.h>

#include <testMain.h>

#include "common/clock.h"
#include "host/netnsSocket.h"
#include "packetNet.h"
#include "probe/packets.h"

#define PORT 5076 /* that a source expects */

/* Runs ip(8). Nonzero if it succeeded. */
static int ip(const char *what)
{
    char command[160];

    snprintf(command, sizeof(command), "ip %s >/dev/null 2>&1", what);
    return system(command) == 0;
}

/* Makes a pair of devices. One has the address, and an entry for a neighbour that does not exist. */
static int addPair(int n)
{
    char what[120];

    snprintf(what, sizeof(what), "link add t%d type veth peer name u%d", n, n);
    if (!ip(what))
        return 0;
    snprintf(what, sizeof(what), "addr add 10.9.%d.1/24 dev t%d", n, n);
    ip(what);
    snprintf(what, sizeof(what), "link set t%d up", n);
    ip(what);
    snprintf(what, sizeof(what), "link set u%d up", n);
    ip(what);
    snprintf(what, sizeof(what), "neigh add 10.9.%d.2 lladdr 02:00:00:00:00:02 dev t%d", n, n);
    return ip(what);
}

/* Waits until the kernel has done what belongs to "up": a work queue does it, on a busy host late, and until then what
 * is sent is lost. */
static void awaitPair(int fd, int n)
{
    uint64_t end = ebpfMonClockMonotonic() + 20 * EBPFMON_SECOND_NS;

    for (const char *name = "tu"; *name; name++) {
        struct ifreq device = { 0 };

        snprintf(device.ifr_name, sizeof(device.ifr_name), "%c%d", *name, n);
        while ((ioctl(fd, SIOCGIFFLAGS, &device) || !(device.ifr_flags & IFF_RUNNING)) && ebpfMonClockMonotonic() < end)
            usleep(1000);
    }
}

/* Sends a datagram to this neighbour. Returns how often it is seen: on the way out of one device, and into the
 * other. */
static unsigned sendThrough(int n)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char address[24];

    snprintf(address, sizeof(address), "10.9.%d.2", n);
    inet_pton(AF_INET, address, &to.sin_addr);
    awaitPair(fd, n);
    watch(PORT);
    if (sendto(fd, caVersion, sizeof(caVersion), 0, (struct sockaddr *)&to, sizeof(to)) != (ssize_t)sizeof(caVersion))
        testAbort("sendto: %s", strerror(errno));
    close(fd);
    catchUp();
    return seen.packets;
}

static void testLo(const char *when)
{
    watch(PORT);
    datagram(PORT, caVersion, sizeof(caVersion));
    catchUp();
    testOk(seen.packets == 1, "%s a datagram over lo is seen once: %u", when, seen.packets);
}

static void testDevices(void)
{
    ebpfMonNetDevices *devices = ebpfMonNetDevicesOpen(0);
    int index[4], before;

    testDiag("the list of devices");
    if (!devices)
        testAbort("%s", strerror(errno));
    before = ebpfMonNetDevicesList(devices, index, 4);
    testOk(before >= 0 && !ebpfMonNetDevicesHaveChanged(devices), "%d devices besides lo, and no change", before);
    addPair(1);
    testOk(ebpfMonNetDevicesHaveChanged(devices), "a new pair of devices is a change");
    testOk(ebpfMonNetDevicesList(devices, index, 4) == before + 2, "two more devices");
    testOk(ebpfMonNetDevicesList(devices, index, 1) == before + 2,
           "more devices than there is room for: their number is right");
    ip("link del t1");
    testOk(ebpfMonNetDevicesHaveChanged(devices) && ebpfMonNetDevicesList(devices, index, 4) == before,
           "the devices are gone again");
    ebpfMonNetDevicesClose(devices);
}

static void testFollow(void)
{
    testDiag("packets of devices");
    testOk(ebpfMonPacketsUseTcx(source) == ebpfMonPacketTapsHaveTcx(), "lo has a tcx program if the kernel has tcx: %d",
           ebpfMonPacketsUseTcx(source));
    testLo("with no other device");
    addPair(2);
    ebpfMonPacketsFollow(source, 0);
    testOk(sendThrough(2) == 2, "a datagram through a new device is seen on its way out and in");
    ip("link del t2");
    ebpfMonPacketsFollow(source, 0);
    testLo("after a device went");
}

static void testMany(void)
{
    int isTcx = ebpfMonPacketsUseTcx(source);

    testDiag("more devices than there are sockets for");
    for (int n = 10; n < 10 + EBPFMON_TAP_DEVICES_MAX / 2 + 1; n++)
        addPair(n);
    ebpfMonPacketsFollow(source, 0);
    testOk(!ebpfMonPacketsUseTcx(source), "one socket for all (tcx before: %d)", isTcx);
    testLo("with so many");
    testOk(sendThrough(10) == 2 && sendThrough(10 + EBPFMON_TAP_DEVICES_MAX / 2) == 2,
           "... and through the first and the last device");
}

MAIN(testPacketTaps)
{
    testPlan(12);
    if (skipWithoutNetwork(12))
        return testDone();
    if (!addPair(0) || !ip("link del t0")) {
        testSkip(12, "ip(8) cannot make a pair of veth devices");
        return testDone();
    }
    if (skipWithoutSource(12))
        return testDone();
    testDevices();
    testFollow();
    testMany();
    ebpfMonPacketsClose(source);
    return testDone();
}
