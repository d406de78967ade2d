/* SPDX-License-Identifier: BSD-3-Clause */
/* See procTcp.h. */
#include <dirent.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "host/procTcp.h"
#include "host/tcpDiag.h"

#define MAX_FDS 65536u /* of one process */

/* An address in hex as the tables print it, each word in host byte order: so it reads as it is in memory.
 * 0 when it is an IPv6 one that no IPv4 peer can have to do with. */
static int parseAddress(const char *text, uint32_t *address)
{
    char mapped[25];
    uint32_t mark = htonl(0xffff);

    if (strlen(text) == 32 && strspn(text, "0") != 32) {
        snprintf(mapped, sizeof(mapped), "%016d%08X", 0, (unsigned)mark);
        if (strncmp(text, mapped, 24))
            return 0;
        text += 24;
    }
    *address = (uint32_t)strtoul(text, NULL, 16);
    return 1;
}

/* The same of IPv6. 0: it is IPv4, or mapped. */
static int parseAddress6(const char *text, uint32_t address[4])
{
    char word[9] = "";

    if (strlen(text) != 32)
        return 0;
    for (int i = 0; i < 4; i++) {
        memcpy(word, text + 8 * i, 8);
        address[i] = (uint32_t)strtoul(word, NULL, 16);
    }
    return !ebpfMonIsMapped(address);
}

static int readTable(const char *path, unsigned states, int (*each)(void *arg, const ebpfMonTcpRow *row), void *arg)
{
    FILE *table = fopen(path, "re");
    char line[512];
    int result = 0;

    while (table && !result && fgets(line, sizeof(line), table)) {
        char local[33], remote[33];
        unsigned localPort, remotePort, uid;
        ebpfMonTcpRow row = { .v4 = 0 };

        if (sscanf(line, " %*u: %32[0-9A-F]:%x %32[0-9A-F]:%x %x %*x:%*x %*x:%*x %*x %u %*u %lu", local,
                &localPort, remote, &remotePort, &row.state, &uid, &row.inode) != 7
            || localPort > 65535 || remotePort > 65535 || row.state > 31 || !(states & EBPFMON_TCP_STATE(row.state)))
            continue;
        row.v4 = parseAddress(local, &row.local) && parseAddress(remote, &row.remote);
        row.v6 = parseAddress6(local, row.local6) && parseAddress6(remote, row.remote6);
        row.localPort = htons((uint16_t)localPort);
        row.remotePort = htons((uint16_t)remotePort);
        row.uid = (uid_t)uid;
        result = each(arg, &row);
    }
    if (table)
        fclose(table);
    return result;
}

int ebpfMonTcpRows(pid_t pid, unsigned states, int (*each)(void *arg, const ebpfMonTcpRow *row), void *arg)
{
    char path[64] = "/proc/net/tcp";
    ebpfMonTcpRow *rows;
    int result = 0, count = ebpfMonTcpDiagRead(pid, states, &rows);

    for (int i = 0; i < count && !result; i++)
        result = each(arg, &rows[i]);
    free(rows);
    if (count >= 0)
        return result;

    if (pid)
        snprintf(path, sizeof(path), "/proc/%d/net/tcp", (int)pid);
    result = readTable(path, states, each, arg);
    strcat(path, "6");
    return result ? result : readTable(path, states, each, arg);
}

int ebpfMonUdpRows(pid_t pid, int (*each)(void *arg, const ebpfMonTcpRow *row), void *arg)
{
    char path[64] = "/proc/net/udp";
    int result;

    if (pid)
        snprintf(path, sizeof(path), "/proc/%d/net/udp", (int)pid);
    result = readTable(path, ~0u, each, arg);
    strcat(path, "6");
    return result ? result : readTable(path, ~0u, each, arg);
}

/* The inode of the socket that a link of /proc/PID/fd names; 0: it names another file, or is gone. */
static unsigned long readSocketLink(const char *path)
{
    static const char begin[] = "socket:[";
    char target[64];
    ssize_t length = readlink(path, target, sizeof(target) - 1);

    target[length > 0 ? length : 0] = 0;
    return strncmp(target, begin, sizeof(begin) - 1) == 0 ? strtoul(target + sizeof(begin) - 1, NULL, 10) : 0;
}

int ebpfMonTcpOwned(pid_t pid, void (*each)(void *arg, unsigned file, unsigned long inode), void *arg)
{
    char path[320];
    struct dirent *entry;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);

    DIR *dir = opendir(path);

    if (!dir)
        return -1;
    for (unsigned n = 0; n < MAX_FDS && (entry = readdir(dir)) != NULL; n++) {
        unsigned long inode;

        snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, entry->d_name);
        inode = readSocketLink(path);
        if (inode)
            each(arg, (unsigned)strtoul(entry->d_name, NULL, 10), inode);
    }
    closedir(dir);
    return 0;
}

int ebpfMonTcpHasSocket(pid_t pid, unsigned file, unsigned long inode)
{
    char path[48];

    snprintf(path, sizeof(path), "/proc/%d/fd/%u", (int)pid, file);
    return readSocketLink(path) == inode;
}
