/* SPDX-License-Identifier: BSD-3-Clause */
/* Device support that asks a server of its own, as for a database or a web service: an ao reads one byte from the
 * server at the port VAL of this host, in the thread that processes it. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <aoRecord.h>
#include <devSup.h>
#include <epicsExport.h>

static long aoWrite(aoRecord *prec)
{
    struct sockaddr_in server = { .sin_family = AF_INET, .sin_port = htons((unsigned short)prec->val) };
    int s = socket(AF_INET, SOCK_STREAM, 0), failed;
    char answer;

    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    failed = connect(s, (struct sockaddr *)&server, sizeof(server)) || recv(s, &answer, 1, 0) != 1;
    close(s);
    return failed;
}

static aodset devRoadsAsk = {{6, NULL, NULL, NULL, NULL}, aoWrite, NULL};
epicsExportAddress(dset, devRoadsAsk);
