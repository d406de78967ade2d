/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pvaStorm [-r PUTS/S] COUNT PV [PV...]: floods PVs with puts over PV Access.
 *
 * Each PV has one put under way at a time: its next put begins when the server has answered, and with -r, at most
 * a millisecond before it is due. The values are 1, 2, …, COUNT for each PV. The program connects, prints "ready", and
 * waits for a line on stdin or for its end. Then it puts. When all are answered, it prints "sent N last COUNT
 * seconds T".
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <epicsEvent.h>
#include <epicsGuard.h>
#include <epicsMutex.h>
#include <pv/clientFactory.h>
#include <pv/createRequest.h>
#include <pv/pvAccess.h>
#include <pv/pvData.h>

namespace pva = epics::pvAccess;
namespace pvd = epics::pvData;

static const double TIMEOUT = 60.0; /* s, for all connections, and between two answers */

static double now()
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* All puts of the program. */
struct Pace
{
    double rate;  /* puts per second; 0: as fast as possible */
    double begin; /* s */
    size_t sent;  /* puts. The main thread makes the first ones, the client's thread for answers the others */
    epicsMutex mutex; /* for "sent" */
    size_t left;  /* PVs that are not done. The thread for answers uses it */
    epicsEvent done;

    size_t takeNumber()
    {
        epicsGuard<epicsMutex> guard(mutex);

        return sent++;
    }

    /* Waits until the next put is due, but not for less than a millisecond. */
    void waitDue()
    {
        double due = rate > 0 ? begin + (double)takeNumber() / rate - now() : 0;

        if (due > 0.001) {
            struct timespec t = { (time_t)due, (long)((due - (double)(time_t)due) * 1e9) };
            nanosleep(&t, NULL);
        }
    }
};

static void fail(const std::string &what)
{
    fprintf(stderr, "pvaStorm: %s\n", what.c_str());
    exit(1);
}

/* The puts to one PV. Only the client's thread for answers uses it after it has connected. */
class Puts : public pva::ChannelRequester, public pva::ChannelPutRequester
{
public:
    POINTER_DEFINITIONS(Puts);

    Puts(const std::string &name, size_t limit, Pace &pace) : name(name), limit(limit), sent(0), pace(pace) {}

    std::string getRequesterName() { return name; }
    void channelCreated(const pvd::Status &status, const pva::Channel::shared_pointer &)
    {
        if (!status.isOK())
            fail(name + ": " + status.getMessage());
    }
    void channelStateChange(const pva::Channel::shared_pointer &, pva::Channel::ConnectionState state)
    {
        if (state == pva::Channel::CONNECTED)
            connected.signal();
    }

    void channelPutConnect(const pvd::Status &status, const pva::ChannelPut::shared_pointer &put,
                           const pvd::StructureConstPtr &structure)
    {
        if (!status.isOK())
            fail(name + ": " + status.getMessage());
        operation = put;
        data = pvd::getPVDataCreate()->createPVStructure(structure);
        value = data->getSubField<pvd::PVScalar>("value");
        if (!value)
            fail(name + ": has no number");
        changed = pvd::BitSetPtr(new pvd::BitSet(data->getNumberFields()));
        changed->set(value->getFieldOffset());
        connected.signal();
    }

    void putNext()
    {
        pace.waitDue();
        value->putFrom<double>((double)++sent);
        operation->put(data, changed);
    }

    void putDone(const pvd::Status &status, const pva::ChannelPut::shared_pointer &)
    {
        if (!status.isOK())
            fail(name + ": put refused: " + status.getMessage());
        if (sent < limit)
            putNext();
        else if (--pace.left == 0)
            pace.done.signal();
    }

    void getDone(const pvd::Status &, const pva::ChannelPut::shared_pointer &, const pvd::PVStructurePtr &,
                 const pvd::BitSetPtr &) {}

    const std::string name;
    const size_t limit;
    size_t sent;
    Pace &pace;
    epicsEvent connected;
    pva::Channel::shared_pointer channel;
    pva::ChannelPut::shared_pointer operation;
    pvd::PVStructurePtr data;
    pvd::PVScalarPtr value;
    pvd::BitSetPtr changed;
};

static void connect(const pva::ChannelProvider::shared_pointer &provider, const Puts::shared_pointer &p)
{
    p->channel = provider->createChannel(p->name, p);
    if (!p->connected.wait(TIMEOUT))
        fail(p->name + ": not connected");
    p->operation = p->channel->createChannelPut(p, pvd::createRequest("field(value)"));
    if (!p->connected.wait(TIMEOUT))
        fail(p->name + ": takes no put");
}

int main(int argc, char *argv[])
{
    std::vector<Puts::shared_pointer> all;
    size_t limit = 0;
    Pace pace;
    int option;

    pace.rate = 0;
    while ((option = getopt(argc, argv, "+r:")) == 'r')
        pace.rate = atof(optarg);
    if (option == -1 && argc - optind > 1)
        limit = strtoul(argv[optind], NULL, 10);
    if (!limit) {
        fprintf(stderr, "usage: pvaStorm [-r PUTS/S] COUNT PV [PV...]\n");
        return 2;
    }
    pace.sent = 0;
    pace.left = (size_t)(argc - optind - 1);
    pva::ClientFactory::start();
    pva::ChannelProvider::shared_pointer provider(pva::ChannelProviderRegistry::clients()->getProvider("pva"));
    for (int i = optind + 1; i < argc; i++) {
        all.push_back(Puts::shared_pointer(new Puts(argv[i], limit, pace)));
        connect(provider, all.back());
    }
    printf("ready\n");
    fflush(stdout);
    getchar();

    pace.begin = now();
    for (size_t i = 0; i < all.size(); i++)
        all[i]->putNext();
    if (!pace.done.wait(TIMEOUT + (double)limit * (double)all.size() / 1000))
        fail("no answer");
    printf("sent %lu last %lu seconds %.6f\n", (unsigned long)(limit * all.size()), (unsigned long)limit,
           now() - pace.begin);
    fflush(stdout);
    _Exit(0); /* Base's client library waits for its connections otherwise */
}
