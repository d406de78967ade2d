/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/pvaState.h"

void ebpfMonPvaEmit(pvaState *pva, const pvaMsg *msg, ebpfMonWireEvent *event)
{
    event->time = msg->message->time;
    event->seq = msg->seq;
    event->end = msg->end;
    event->fromServer = msg->message->fromServer;
    event->user = pva->user;
    event->host = pva->host;
    event->name = event->name ? event->name : "";
    event->options = event->options ? event->options : "";
    event->text = event->text ? event->text : "";
    event->message = event->message ? event->message : "";
    ebpfMonCircuitEmit(pva->circuit, event);
}

int ebpfMonPvaStatusGet(pvaBuf *buf, pvaStatus *status)
{
    uint8_t kind = pvaGet(buf, 1);
    size_t length;

    status->severity = 0;
    status->text[0] = 0;
    if (kind == 0xff || pvaFailed(buf)) {
        return !pvaFailed(buf);
    }
    const char *text = pvaString(buf, &length);
    if (text) {
        length = strnlen(text, length < sizeof(status->text) - 1 ? length : sizeof(status->text) - 1);
        memcpy(status->text, text, length);
        status->text[length] = 0;
    }
    pvaString(buf, &length); /* the call tree, which is not used */
    if (kind > 3) {
        buf->bad = 1;
    }
    status->severity = kind;
    return !pvaFailed(buf) && kind < 2;
}
