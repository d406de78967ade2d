/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notes the client of each put to QSRV 2. pvxs serves all clients in one thread. There a handler of QSRV 2 makes the
 * put, and access security gets no port. So before the server starts, each source of QSRV 2 is replaced by a source of
 * ours, which passes everything on, and wraps the handler of puts.
 */
#define PVXS_ENABLE_EXPERT_API /* has ChannelControl::updateInfo */

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <epicsExport.h>
#include <errlog.h>
#include <initHooks.h>
#include <pvxs/iochooks.h>
#include <pvxs/log.h>
#include <pvxs/server.h>
#include <pvxs/source.h>

#include "access/client.h"

namespace srv = pvxs::server;

namespace {

/* While it lives, the thread serves this client. */
struct Serving
{
    explicit Serving(ebpfMonAccessClient *client) { ebpfMonAccessClientServe(client); }
    ~Serving() { ebpfMonAccessClientServe(NULL); }
    Serving(const Serving&) = delete;
    Serving& operator=(const Serving&) = delete;
};

/* An operation by which a client makes puts. */
struct PutOp : public srv::ConnectOp
{
    const std::unique_ptr<srv::ConnectOp> op;

    explicit PutOp(std::unique_ptr<srv::ConnectOp>&& from)
        : ConnectOp(from->name(), from->credentials(), from->op(), from->pvRequest()), op(std::move(from))
    {
    }

    void onPut(std::function<void(std::unique_ptr<srv::ExecOp>&&, pvxs::Value&&)>&& put) override
    {
        std::shared_ptr<ebpfMonAccessClient> client(new ebpfMonAccessClient);

        ebpfMonAccessClientFindPva(peerName().c_str(), client.get());
        op->onPut([client, put](std::unique_ptr<srv::ExecOp>&& exec, pvxs::Value&& value) {
            Serving now(client.get());

            put(std::move(exec), std::move(value));
        });
    }

    void connect(const pvxs::Value& prototype) override { op->connect(prototype); }
    void error(const std::string& message) override { op->error(message); }
    void logRemote(pvxs::Level level, const std::string& message) override { op->logRemote(level, message); }
    void onGet(std::function<void(std::unique_ptr<srv::ExecOp>&&)>&& get) override { op->onGet(std::move(get)); }
    void onClose(std::function<void(const std::string&)>&& close) override { op->onClose(std::move(close)); }
};

struct Channel : public srv::ChannelControl
{
    std::unique_ptr<srv::ChannelControl> channel;

    explicit Channel(std::unique_ptr<srv::ChannelControl>&& from)
        : ChannelControl(from->name(), from->credentials(), from->op()), channel(std::move(from))
    {
    }

    void onOp(std::function<void(std::unique_ptr<srv::ConnectOp>&&)>&& begin) override
    {
        channel->onOp([begin](std::unique_ptr<srv::ConnectOp>&& op) {
            begin(op->op() == Put ? std::unique_ptr<srv::ConnectOp>(new PutOp(std::move(op))) : std::move(op));
        });
    }

    void onRPC(std::function<void(std::unique_ptr<srv::ExecOp>&&, pvxs::Value&&)>&& call) override
    {
        channel->onRPC(std::move(call));
    }

    void onSubscribe(std::function<void(std::unique_ptr<srv::MonitorSetupOp>&&)>&& subscribe) override
    {
        channel->onSubscribe(std::move(subscribe));
    }

    void onClose(std::function<void(const std::string&)>&& closed) override { channel->onClose(std::move(closed)); }
    void close() override { channel->close(); }

private:
    void _updateInfo(const std::shared_ptr<const pvxs::impl::ReportInfo>& info) override { channel->updateInfo(info); }
};

struct Source : public srv::Source
{
    const std::shared_ptr<srv::Source> source;

    explicit Source(const std::shared_ptr<srv::Source>& from) : source(from) {}

    void onCreate(std::unique_ptr<srv::ChannelControl>&& channel) override
    {
        std::unique_ptr<srv::ChannelControl> noted(new Channel(std::move(channel)));

        source->onCreate(std::move(noted));
        if (noted) /* it has another name than those of this source; or its handlers are set */
            channel = std::move(static_cast<Channel&>(*noted).channel);
    }

    void onSearch(Search& search) override { source->onSearch(search); }
    List onList() override { return source->onList(); }
    void show(std::ostream& stream) override { source->show(stream); }
};

/* Also if iocRun follows an iocPause. */
void replaceSources()
{
    srv::Server server(pvxs::ioc::server());

    for (const auto& named : server.listSource()) {
        std::shared_ptr<srv::Source> source;

        if (named.first.compare(0, 4, "qsrv") != 0)
            continue;
        source = server.removeSource(named.first, named.second);
        if (!dynamic_cast<Source *>(source.get()))
            source.reset(new Source(source));
        server.addSource(named.first, source, named.second);
    }
}

void initHook(initHookState state)
{
    if (state != initHookAtIocRun) /* QSRV 2 has added its sources, and starts its server after this */
        return;
    try {
        replaceSources();
    } catch (std::exception& e) {
        errlogSevPrintf(errlogMajor, "ebpfMon: no PVA client may write to the monitor's PVs, because QSRV 2 does not "
                        "run (%s). Clients of CA can write\n", e.what());
    }
}

}

static void ebpfMonPvaRegistrar(void)
{
    static bool isRegistered; /* Base may call a registrar more than once */

    if (!isRegistered)
        initHookRegister(initHook);
    isRegistered = true;
}

extern "C" {
epicsExportRegistrar(ebpfMonPvaRegistrar);
}
