/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "host/netnsSocket.h"
#include "host/sockDiag.h"

#define ANSWER_BYTES 32768 /* as much as the kernel puts into one message (netlink_dump) */
#define ANSWERS_MAX  10000

int ebpfMonSockDiagOpen(pid_t pid, double seconds)
{
    struct timeval patience = {.tv_sec = (time_t)seconds,
                               .tv_usec = (suseconds_t)(1e6 * (seconds - (double)(time_t)seconds))};
    int file = ebpfMonNetnsNetlinkOpen(pid, NETLINK_SOCK_DIAG);

    if (file >= 0 && setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience))) {
        close(file);
        return -1;
    }
    return file;
}

/* The older request is for both families at once (inet_diag_dump_compat). Two of the other would walk through all
 * sockets of the host twice. */
static int sendRequest(int file, const ebpfMonSockDiagRequest *request)
{
    int isForBoth = request->family == AF_UNSPEC;
    struct {
        struct nlmsghdr head;
        union {
            struct inet_diag_req    both;
            struct inet_diag_req_v2 one;
        } body;
    } question = { .head = { .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };

    if (isForBoth)
        question.body.both = (struct inet_diag_req){ .idiag_family = AF_INET, .idiag_states = request->states,
                                                     .idiag_ext = request->extensions };
    else
        question.body.one = (struct inet_diag_req_v2){ .sdiag_family = request->family, .sdiag_protocol = IPPROTO_TCP,
                                                       .idiag_states = request->states,
                                                       .idiag_ext = request->extensions };
    question.head.nlmsg_type = isForBoth ? TCPDIAG_GETSOCK : SOCK_DIAG_BY_FAMILY;
    question.head.nlmsg_len = NLMSG_LENGTH(isForBoth ? sizeof(question.body.both) : sizeof(question.body.one));
    return send(file, &question, question.head.nlmsg_len, 0) == (ssize_t)question.head.nlmsg_len ? 0 : -1;
}

static int isSocket(const struct nlmsghdr *head)
{
    return (head->nlmsg_type == SOCK_DIAG_BY_FAMILY || head->nlmsg_type == TCPDIAG_GETSOCK)
           && head->nlmsg_len >= NLMSG_LENGTH(sizeof(struct inet_diag_msg));
}

/* One part of the answer. 1: more is to come, 0: that was all, -1: an error. */
static int readPart(const struct nlmsghdr *head, size_t left, ebpfMonSockDiagEach each, void *arg)
{
    for (; NLMSG_OK(head, left); head = NLMSG_NEXT(head, left)) {
        if (head->nlmsg_type == NLMSG_DONE)
            return 0;
        if (!isSocket(head) || each(arg, NLMSG_DATA(head), head->nlmsg_len - NLMSG_LENGTH(0)))
            return -1;
    }
    return 1;
}

int ebpfMonSockDiagRead(int file, const ebpfMonSockDiagRequest *request, ebpfMonSockDiagEach each, void *arg)
{
    struct nlmsghdr *answer = malloc(ANSWER_BYTES);
    int more = answer && sendRequest(file, request) == 0 ? 1 : -1;

    for (int i = 0; more > 0 && i < ANSWERS_MAX; i++) {
        ssize_t n = recv(file, answer, ANSWER_BYTES, 0);

        more = n > 0 ? readPart(answer, (size_t)n, each, arg) : -1;
    }
    free(answer);
    return more ? -1 : 0;
}

/* An answer with its extensions. */
typedef union {
    struct nlmsghdr head;
    char room[1024];
} diagAnswer;

/* Nonzero: an answer came. */
static int askSocket(int file, uint8_t family, const struct inet_diag_sockid *id, uint8_t extensions,
                     diagAnswer *answer)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } question = {
        .head = { .nlmsg_len = sizeof(question), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
        .body = { .sdiag_family = family, .sdiag_protocol = IPPROTO_TCP, .idiag_ext = extensions, .idiag_states = ~0u,
                  .id = *id },
    };
    ssize_t n;

    question.body.id.idiag_cookie[0] = question.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    if (send(file, &question, sizeof(question), 0) != (ssize_t)sizeof(question))
        return 0;
    n = recv(file, answer, sizeof(*answer), 0);
    return n >= 0 && NLMSG_OK(&answer->head, (size_t)n);
}

int ebpfMonSockDiagFind(int file, uint8_t family, const struct inet_diag_sockid *id, struct inet_diag_msg *socket)
{
    diagAnswer answer;

    if (!askSocket(file, family, id, 0, &answer) || !isSocket(&answer.head))
        return -1;
    memcpy(socket, NLMSG_DATA(&answer.head), sizeof(*socket));
    return 0;
}

int ebpfMonSockDiagAsk(int file, uint8_t family, const struct inet_diag_sockid *id, uint8_t extensions,
                       ebpfMonSockDiagEach each, void *arg)
{
    const struct nlmsgerr *error;
    diagAnswer answer;

    if (!askSocket(file, family, id, extensions, &answer))
        return -1;
    if (isSocket(&answer.head)) {
        each(arg, NLMSG_DATA(&answer.head), answer.head.nlmsg_len - NLMSG_LENGTH(0));
        return 1;
    }
    error = NLMSG_DATA(&answer.head);
    return answer.head.nlmsg_type == NLMSG_ERROR && answer.head.nlmsg_len >= NLMSG_LENGTH(sizeof(*error)) &&
           error->error == -ENOENT ? 0 : -1;
}
