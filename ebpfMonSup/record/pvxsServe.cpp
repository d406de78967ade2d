/* SPDX-License-Identifier: BSD-3-Clause */
/* pvaServe.h with the server of QSRV 2. */
#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include <alarm.h>
#include <errlog.h>
#include <pvxs/iochooks.h>
#include <pvxs/nt.h>
#include <pvxs/server.h>
#include <pvxs/sharedpv.h>

#include "record/pvaServe.h"

namespace {

enum { noStatus, recordStatus = 3 }; /* of alarms of PV Access */

struct Served
{
    std::string              name;
    std::vector<std::string> column;
    pvxs::Value              empty; /* without values */
    pvxs::server::SharedPV   pv;
};

pvxs::TypeCode typeOf(ebpfMonCellsType type)
{
    switch (type) {
    case ebpfMonCellsInt:    return pvxs::TypeCode::Int32;
    case ebpfMonCellsLong:   return pvxs::TypeCode::Int64;
    case ebpfMonCellsDouble: return pvxs::TypeCode::Float64;
    default:                 return pvxs::TypeCode::String;
    }
}

template<typename To, typename From> pvxs::shared_array<const void> copyCells(From *from, unsigned rows)
{
    pvxs::shared_array<To> cells(rows);

    std::copy(from, from + rows, cells.begin());
    return cells.freeze().template castTo<const void>();
}

pvxs::shared_array<const void> copyTexts(char *const *from, unsigned rows)
{
    pvxs::shared_array<std::string> cells(rows);

    for (unsigned i = 0; i < rows; i++)
        cells[i] = from[i] ? from[i] : "";
    return cells.freeze().castTo<const void>();
}

pvxs::shared_array<const void> copyColumn(const ebpfMonTableCells& column, unsigned rows)
{
    switch (column.type) {
    case ebpfMonCellsInt:    return copyCells<int32_t>(column.cell.integer, rows);
    case ebpfMonCellsLong:   return copyCells<int64_t>(column.cell.count, rows);
    case ebpfMonCellsDouble: return copyCells<double>(column.cell.real, rows);
    default:                 return copyTexts(column.cell.text, rows);
    }
}

}

void *ebpfMonPvaServeAdd(const char *table, const char *, const ebpfMonPvaColumn *name, const ebpfMonTableCells *cells,
                         unsigned columns)
{
    try {
        Served served{table, {}, {}, pvxs::server::SharedPV::buildReadonly()};
        pvxs::nt::NTTable type;

        for (unsigned c = 0; c < columns; c++) {
            type.add_column(typeOf(cells[c].type), name[c].name, name[c].label);
            served.column.push_back(std::string("value.") + name[c].name);
        }
        served.empty = type.create();
        served.pv.open(served.empty);
        pvxs::ioc::server().addPV(table, served.pv);
        return new Served(served);
    } catch (std::exception& e) {
        errlogSevPrintf(errlogMajor, "ebpfMon: table %s is not served over PV Access: %s\n", table, e.what());
        return NULL;
    }
}

void ebpfMonPvaServePost(void *served, const ebpfMonTableCells *cells, unsigned columns,
                         const ebpfMonTableMoment *moment)
{
    Served& table = *static_cast<Served *>(served);
    const bool isInvalid = moment->severity == INVALID_ALARM;

    try {
        pvxs::Value value(table.empty.cloneEmpty());

        for (unsigned c = 0; c < columns && !isInvalid; c++)
            value[table.column[c]] = copyColumn(cells[c], moment->rows);
        value["alarm.severity"] = (int32_t)moment->severity;
        value["alarm.status"] = (int32_t)(moment->severity ? recordStatus : noStatus);
        value["alarm.message"] = !moment->severity ? "" : isInvalid ? "READ" : "STATE";
        value["timeStamp.secondsPastEpoch"] = (int64_t)moment->time.secPastEpoch + POSIX_TIME_AT_EPICS_EPOCH;
        value["timeStamp.nanoseconds"] = (int32_t)moment->time.nsec;
        table.pv.post(value);
    } catch (std::exception& e) {
        errlogSevPrintf(errlogMajor, "ebpfMon: table %s: %s\n", table.name.c_str(), e.what());
    }
}

void ebpfMonPvaServeRemove(void *served)
{
    Served *table = static_cast<Served *>(served);

    try {
        table->pv.close();
        pvxs::ioc::server().removePV(table->name);
    } catch (std::exception&) {
        /* the server has ended */
    }
    delete table;
}

int ebpfMonPvaServeIsMissing(void)
{
    return 0; /* QSRV 2 serves at "lo", too */
}
