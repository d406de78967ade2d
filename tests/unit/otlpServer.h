/* SPDX-License-Identifier: BSD-3-Clause */
/* A collector for the tests of OTLP, in a thread of the test. setManner chooses its behaviour. */
#ifndef EBPFMON_OTLPSERVER_H
#define EBPFMON_OTLPSERVER_H

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <epicsEvent.h>
#include <epicsMutex.h>
#include <epicsThread.h>
#include <epicsUnitTest.h>

#include "common/clock.h"

typedef enum { accepts, refuses, tooMany, tooManyOnce, busy, garbage, hangs, redirects, closes, partly } manner;

static struct {
    int listening, port;
    epicsMutexId lock; /* protects all members below */
    manner manner;
    int end;
    unsigned requests, records, spans, zipkins, metrics;
    double first, second; /* s; times of the first two requests since the manner changed */
    unsigned char seen[200000];
    char header[2048];
} server;

static epicsEventId serverEnded;

static inline void setManner(manner m)
{
    epicsMutexMustLock(server.lock);
    server.manner = m;
    server.requests = server.records = server.spans = server.zipkins = server.metrics = 0;
    server.first = server.second = 0;
    memset(server.seen, 0, sizeof(server.seen));
    epicsMutexUnlock(server.lock);
}

static inline int serverIsEnding(void)
{
    int end;

    epicsMutexMustLock(server.lock);
    end = server.end;
    epicsMutexUnlock(server.lock);
    return end;
}

static inline int isReadable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    while (!serverIsEnding())
        if (poll(&p, 1, 20) > 0)
            return 1;
    return 0;
}

static inline void sendAnswer(int fd, const char *answer)
{
    if (send(fd, answer, strlen(answer), MSG_NOSIGNAL) < 0)
        testDiag("the client is gone");
}

#define HEAD(status) "HTTP/1.1 " status "\r\nConnection: close\r\n"
#define BODY(body, size) "Content-Length: " size "\r\n\r\n" body

#define PV "\"epics.pv\",\"value\":{\"stringValue\":\"P"

static inline void countRecords(const char *body)
{
    unsigned number;

    for (const char *at = body; (at = strstr(at, "\"timeUnixNano\"")); at++) {
        const char *pv = strstr(at, PV);

        server.records++;
        if (pv && sscanf(pv + sizeof(PV) - 1, "%u", &number) == 1 && number < sizeof(server.seen))
            server.seen[number]++;
    }
}

static inline void answerRequest(int fd, const char *header, const char *body)
{
    manner m;

    epicsMutexMustLock(server.lock);
    m = server.manner;
    server.requests++;
    if (!server.first)
        server.first = ebpfMonClockSeconds();
    else if (!server.second)
        server.second = ebpfMonClockSeconds();
    snprintf(server.header, sizeof(server.header), "%.2000s", header);
    if (m == tooManyOnce)
        server.manner = accepts;
    if (m == accepts || m == partly) {
        if (strstr(header, "/v1/logs"))
            countRecords(body);
        server.spans += strstr(header, "/v1/traces") && strstr(body, "\"spanId\"");
        server.zipkins += strstr(header, "POST /api/v2/spans") && strstr(body, "[{\"traceId\"");
        server.metrics += strstr(header, "/v1/metrics") && strstr(body, "\"ebpfmon.mem\"");
    }
    epicsMutexUnlock(server.lock);
    switch (m) {
    case accepts:     sendAnswer(fd, HEAD("200 OK") BODY("{}", "2")); break;
    case partly:
        sendAnswer(fd, HEAD("200 OK") BODY("{\"partialSuccess\":{\"rejectedLogRecords\":\"2\"}}", "45"));
        break;
    case refuses:     sendAnswer(fd, HEAD("400 Bad Request") BODY("no", "2")); break;
    case tooMany:     sendAnswer(fd, HEAD("429 Too Many") "Retry-After: 60\r\n" BODY("", "0")); break;
    case tooManyOnce: sendAnswer(fd, HEAD("429 Too Many") "Retry-After: 2\r\n" BODY("", "0")); break;
    case busy:        sendAnswer(fd, HEAD("503 Busy") BODY("", "0")); break;
    case redirects:   sendAnswer(fd, HEAD("302 Found") "Location: http://127.0.0.1:1/\r\n" BODY("", "0")); break;
    case garbage:     sendAnswer(fd, "\x15\x03\x01 220 smtp ready\r\n"); break;
    case hangs:       isReadable(fd); break; /* until the client is gone */
    case closes:      break;
    }
}

/* One request of a connection. */
static inline void serveRequest(int fd)
{
    static char request[1 << 20];
    size_t len = 0, want = 0;
    char *body = NULL, *length;

    while (!body || len < want) {
        size_t room = sizeof(request) - 1 - len;
        ssize_t n = room && isReadable(fd) ? recv(fd, request + len, room, 0) : 0;

        if (n <= 0)
            return;
        len += (size_t)n;
        request[len] = 0;
        if (!body && (body = strstr(request, "\r\n\r\n"))) {
            *body = 0;
            body += 4;
            length = strstr(request, "Content-Length: ");
            want = (size_t)(body - request) + (length ? strtoul(length + 16, NULL, 10) : 0);
        }
    }
    answerRequest(fd, request, body);
}

static inline void runServer(void *unused)
{
    while (isReadable(server.listening)) {
        int fd = accept(server.listening, NULL, NULL);

        if (fd < 0)
            continue;
        serveRequest(fd);
        shutdown(fd, SHUT_WR);
        close(fd);
    }
    epicsEventMustTrigger(serverEnded);
}

static inline void startServer(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(a);

    server.lock = epicsMutexMustCreate();
    serverEnded = epicsEventMustCreate(epicsEventEmpty);
    server.listening = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(server.listening, (struct sockaddr *)&a, size) || listen(server.listening, 10) ||
        getsockname(server.listening, (struct sockaddr *)&a, &size))
        testAbort("no server");
    server.port = ntohs(a.sin_port);
    epicsThreadMustCreate("server", epicsThreadPriorityMedium, epicsThreadGetStackSize(epicsThreadStackBig),
                          runServer, NULL);
}

/* One of the server's counts. */
static inline unsigned readCount(const unsigned *count)
{
    unsigned n;

    epicsMutexMustLock(server.lock);
    n = *count;
    epicsMutexUnlock(server.lock);
    return n;
}

static inline unsigned requests(void)
{
    return readCount(&server.requests);
}

static inline unsigned records(void)
{
    return readCount(&server.records);
}

static inline void stopServer(void)
{
    epicsMutexMustLock(server.lock);
    server.end = 1;
    epicsMutexUnlock(server.lock);
    epicsEventMustWait(serverEnded);
}

#endif
