/* SPDX-License-Identifier: BSD-3-Clause */
/* OTLP against a collector that accepts, refuses, hangs, is busy: nothing is lost silently. */
#include "otlpClient.h"

static void testAccepting(void)
{
    enum { N = 5000 };
    unsigned missing = 0, twice = 0;

    testDiag("a collector that works");
    put(0, 10); /* nothing is configured: nowhere */
    begin(accepts, "logs");
    testOk1(ebpfMonOtlpConfigure(otlp, &conf) == 0);
    put(0, N);
    WAIT(records() == N);
    WAIT(readShown().sent - before.sent == N);
    testOk(readShown().state == ebpfMonLogOk, "%s", readShown().msg);
    epicsMutexMustLock(server.lock);
    for (unsigned i = 0; i < N; i++) {
        missing += !server.seen[i];
        twice += server.seen[i] > 1;
    }
    testOk(!missing && !twice, "%u missing, %u twice", missing, twice);
    testOk1(server.requests >= N / 512 && server.requests < 100);
    testOk1(strstr(server.header, "POST /v1/logs HTTP/1.1") && strstr(server.header, "X-Lab: B2") &&
            strstr(server.header, "Content-Type: application/json"));
    epicsMutexUnlock(server.lock);
    put(N, N + 3); /* what waits is sent at the end */
    finish(5, N + 3);
    testOk1(records() == N + 3 && readShown().lost == before.lost);
}

static void testRefusing(void)
{
    testDiag("answer 400: the items are lost, and a message says so");
    begin(refuses, "logs");
    ebpfMonOtlpConfigure(otlp, &conf);
    put(0, 100);
    WAIT(readShown().lost - before.lost == 100);
    testOk(readShown().state == ebpfMonLogTrouble && strstr(readShown().msg, "400"), "%s", readShown().msg);
    setManner(accepts);
    put(100, 200);
    WAIT(records() == 100);
    WAIT(readShown().state == ebpfMonLogOk);
    finish(3, 200);

    testDiag("a redirect is not followed");
    begin(redirects, "logs");
    ebpfMonOtlpConfigure(otlp, &conf);
    put(0, 10);
    WAIT(readShown().lost - before.lost == 10);
    testOk(strstr(readShown().msg, "redirects") != NULL, "%s", readShown().msg);
    finish(3, 10);

    testDiag("a collector that rejects a part of a batch");
    begin(partly, "logs");
    ebpfMonOtlpConfigure(otlp, &conf);
    put(0, 10);
    WAIT(readShown().lost - before.lost == 2);
    testOk(readShown().state == ebpfMonLogTrouble && strstr(readShown().msg, "refused some"), "%s", readShown().msg);
    finish(3, 10);
}

static void testAgain(void)
{
    testDiag("Retry-After");
    begin(tooManyOnce, "logs");
    ebpfMonOtlpConfigure(otlp, &conf);
    put(0, 50);
    WAIT(records() == 50);
    testOk(server.second - server.first >= 1.9, "sent again after %.2f s", server.second - server.first);
    finish(3, 50);
    testOk1(readShown().lost == before.lost);

    testDiag("answer 503, garbage, a closed connection: all items arrive later");
    begin(busy, "logs");
    ebpfMonOtlpConfigure(otlp, &conf);
    put(0, 2000);
    WAIT(requests() >= 2);
    WAIT(readShown().state == ebpfMonLogTrouble);
    setManner(garbage);
    WAIT(requests() >= 1);
    setManner(closes);
    WAIT(requests() >= 1);
    setManner(accepts);
    WAIT(records() == 2000);
    WAIT(readShown().state == ebpfMonLogOk);
    finish(3, 2000);
    testOk1(readShown().lost == before.lost);

    testDiag("a collector that never accepts: items are given up in the end");
    begin(busy, "logs");
    conf.giveUp = 1;
    ebpfMonOtlpConfigure(otlp, &conf);
    put(0, 600);
    WAIT(readShown().lost - before.lost >= 512);
    put(600, 610);
    finish(3, 610);
    testOk1(readShown().sent == before.sent);

    testDiag("the collector asks to wait for a minute: the monitor ends in spite of that");
    begin(tooMany, "logs");
    ebpfMonOtlpConfigure(otlp, &conf);
    put(0, 600);
    WAIT(requests() >= 1);
    finish(2, 600);
}

static void testHanging(void)
{
    double start;

    testDiag("a collector that hangs");
    begin(hangs, "logs");
    conf.target[ebpfMonOtlpLogs].timeout = 0.3;
    ebpfMonOtlpConfigure(otlp, &conf);
    start = ebpfMonClockSeconds();
    put(0, 100000);
    testOk(ebpfMonClockSeconds() - start < 5, "no thread waits for it: 100000 puts in %.2f s",
           ebpfMonClockSeconds() - start);
    WAIT(readShown().state == ebpfMonLogTrouble);
    WAIT(readShown().lost - before.lost > 1000); /* the IOC's share of the queue is full */
    testOk1(readShown().queue > 70 && readShown().queue < 90);
    conf.target[ebpfMonOtlpLogs].timeout = 10;
    ebpfMonOtlpConfigure(otlp, &conf);
    finish(1, 100000);

    testDiag("there is no collector");
    begin(accepts, "logs");
    snprintf(conf.target[ebpfMonOtlpLogs].url, sizeof(conf.target[0].url), "http://127.0.0.1:1/v1/logs");
    ebpfMonOtlpConfigure(otlp, &conf);
    put(0, 10);
    WAIT(readShown().state == ebpfMonLogTrouble);
    testOk(strstr(readShown().msg, "start the collector") != NULL, "%s", readShown().msg);
    finish(5, 10);
}

MAIN(testOtlpCollector)
{
    testPlan(0);
    beginOtlpTest();
    testAccepting();
    testRefusing();
    testAgain();
    testHanging();
    endOtlpTest();
    return testDone();
}
