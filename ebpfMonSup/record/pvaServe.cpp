/* SPDX-License-Identifier: BSD-3-Clause */
#include <errlog.h>

#ifdef EBPFMON_PVA

#include <exception>

#include <alarm.h>
#include <iocsh.h>
#include <pv/alarm.h>
#include <pv/channelProviderLocal.h>
#include <pv/pvDatabase.h>
#include <pv/reftrack.h>
#include <pv/standardField.h>

#include "record/pvaServe.h"

namespace pvd = epics::pvData;
namespace pvdb = epics::pvDatabase;

namespace {

struct Served
{
    pvdb::PVRecordPtr record;
};

pvd::ScalarType typeOf(ebpfMonCellsType type)
{
    switch (type) {
    case ebpfMonCellsInt:    return pvd::pvInt;
    case ebpfMonCellsLong:   return pvd::pvLong;
    case ebpfMonCellsDouble: return pvd::pvDouble;
    default:                 return pvd::pvString;
    }
}

/* Makes the normative type epics:nt/NTTable:1.0: labels, value with one field for each column, alarm, time stamp. */
pvd::PVStructurePtr makeTable(const ebpfMonPvaColumn *name, const ebpfMonTableCells *cells, unsigned columns)
{
    pvd::FieldBuilderPtr builder = pvd::getFieldCreate()->createFieldBuilder()
                                       ->setId("epics:nt/NTTable:1.0")
                                       ->addArray("labels", pvd::pvString)
                                       ->addNestedStructure("value");

    for (unsigned c = 0; c < columns; c++)
        builder = builder->addArray(name[c].name, typeOf(cells[c].type));
    return pvd::getPVDataCreate()->createPVStructure(builder->endNested()
                                                         ->add("alarm", pvd::getStandardField()->alarm())
                                                         ->add("timeStamp", pvd::getStandardField()->timeStamp())
                                                         ->createStructure());
}

template<typename PVA, typename T> void setNumbers(const pvd::PVFieldPtr& field, const T *from, unsigned rows)
{
    typename PVA::svector cells(rows);

    std::copy(from, from + rows, cells.begin());
    std::tr1::static_pointer_cast<PVA>(field)->replace(pvd::freeze(cells));
}

void setTexts(const pvd::PVFieldPtr& field, char *const *from, unsigned rows)
{
    pvd::PVStringArray::svector cells(rows);

    for (unsigned i = 0; i < rows; i++)
        cells[i] = from[i] ? from[i] : "";
    std::tr1::static_pointer_cast<pvd::PVStringArray>(field)->replace(pvd::freeze(cells));
}

void setColumn(const pvd::PVFieldPtr& field, const ebpfMonTableCells& column, unsigned rows)
{
    switch (column.type) {
    case ebpfMonCellsInt:
        setNumbers<pvd::PVIntArray>(field, column.cell.integer, rows);
        break;
    case ebpfMonCellsLong:
        setNumbers<pvd::PVLongArray>(field, column.cell.count, rows);
        break;
    case ebpfMonCellsDouble:
        setNumbers<pvd::PVDoubleArray>(field, column.cell.real, rows);
        break;
    case ebpfMonCellsText:
        setTexts(field, column.cell.text, rows);
        break;
    }
}

/* Sets alarm and time stamp. The alarm status is one of PV Access: recordStatus or noStatus (pvAlarm.h). */
void setMeta(const pvd::PVStructurePtr& table, const ebpfMonTableMoment& moment)
{
    const bool isInvalid = moment.severity == INVALID_ALARM;

    table->getSubFieldT<pvd::PVInt>("alarm.severity")->put(moment.severity);
    table->getSubFieldT<pvd::PVInt>("alarm.status")->put(moment.severity ? pvd::recordStatus : pvd::noStatus);
    table->getSubFieldT<pvd::PVString>("alarm.message")->put(!moment.severity ? "" : isInvalid ? "READ" : "STATE");
    table->getSubFieldT<pvd::PVLong>("timeStamp.secondsPastEpoch")
        ->put((pvd::int64)moment.time.secPastEpoch + POSIX_TIME_AT_EPICS_EPOCH);
    table->getSubFieldT<pvd::PVInt>("timeStamp.nanoseconds")->put((pvd::int32)moment.time.nsec);
}

void addTable(Served& served, const char *table, const char *group, const pvd::PVStructurePtr& content)
{
    pvdb::getChannelProviderLocal(); /* registers the provider, once */
    served.record = pvdb::PVRecord::create(table, content, 0, group);
    if (!pvdb::PVDatabase::getMaster()->addRecord(served.record))
        throw std::runtime_error("another PV has this name");
}

}

void *ebpfMonPvaServeAdd(const char *table, const char *group, const ebpfMonPvaColumn *name,
                         const ebpfMonTableCells *cells, unsigned columns)
{
    try {
        pvd::PVStructurePtr content = makeTable(name, cells, columns);
        pvd::PVStringArray::svector labels(columns);
        Served served;

        for (unsigned c = 0; c < columns; c++)
            labels[c] = name[c].label;
        content->getSubFieldT<pvd::PVStringArray>("labels")->replace(pvd::freeze(labels));
        addTable(served, table, group, content);
        return new Served(served);
    } catch (std::exception& e) {
        errlogSevPrintf(errlogMajor, "ebpfMon: table %s is not served over PV Access: %s\n", table, e.what());
        return NULL;
    }
}

void ebpfMonPvaServePost(void *served, const ebpfMonTableCells *cells, unsigned columns,
                         const ebpfMonTableMoment *moment)
{
    pvdb::PVRecord& record = *static_cast<Served *>(served)->record;

    record.lock();
    try {
        const pvd::PVStructurePtr table = record.getPVStructure();
        const pvd::PVFieldPtrArray& field = table->getSubFieldT<pvd::PVStructure>("value")->getPVFields();

        record.beginGroupPut(); /* so subscribers get all columns in one update */
        for (unsigned c = 0; c < columns && moment->severity != INVALID_ALARM; c++)
            setColumn(field[c], cells[c], moment->rows);
        setMeta(table, *moment);
        record.endGroupPut();
    } catch (std::exception& e) {
        errlogSevPrintf(errlogMajor, "ebpfMon: table %s: %s\n", record.getRecordName().c_str(), e.what());
    }
    record.unlock();
}

void ebpfMonPvaServeRemove(void *served)
{
    Served *table = static_cast<Served *>(served);

    try {
        table->record->remove();
    } catch (std::exception& e) {
        errlogSevPrintf(errlogMinor, "ebpfMon: table %s: %s\n", table->record->getRecordName().c_str(), e.what());
    }
    delete table;
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* what is new instead, older releases do not have */
int ebpfMonPvaServeIsMissing(void)
{
    return iocshFindCommand("pvasr") && !epics::readRefCounter("ServerContextImpl");
}

#else

#include "record/pvaServe.h"

void *ebpfMonPvaServeAdd(const char *, const char *, const ebpfMonPvaColumn *, const ebpfMonTableCells *, unsigned)
{
    return NULL; /* built without pvAccess: there is no PVA server */
}

void ebpfMonPvaServePost(void *, const ebpfMonTableCells *, unsigned, const ebpfMonTableMoment *)
{
}

void ebpfMonPvaServeRemove(void *)
{
}

int ebpfMonPvaServeIsMissing(void)
{
    return 0;
}

#endif
