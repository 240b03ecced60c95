// The columns of a report's tables and CSV files. docs/reports.md lists them; a test compares.
#pragma once

#include <span>
#include <vector>

#include "sim/study/replay/run.h"
#include "sim/study/report/page.h"

namespace gridloom::study {

/// Counters of the devices that a table is about: hardware::CountersOf, or those of the model alone.
using CounterList = std::span<const timing::CounterInfo>;

/// Columns of runs.csv: one row per replay.
std::vector<report::Column> RunColumns(CounterList counters = timing::CounterTable());
/// Columns of kernels.csv: one row per replay and kernel.
std::vector<report::Column> KernelColumns(CounterList counters = timing::CounterTable());
/// Columns of intervals/*.csv: one row per interval of a replay.
std::vector<report::Column> IntervalColumns(CounterList counters = timing::CounterTable());

/// The columns of these names, in this order; a name that is not there is a mistake of ours.
std::vector<report::Column> Select(const std::vector<report::Column>& columns, const std::vector<std::string>& names);

/// A cell of a table for each column: the record's value of that name, or that among its counters, or null.
Json Row(const std::vector<report::Column>& columns, const Json& record);

/// The record of a replay for RunColumns(): its result with the speed-up, and of a mix with what its programs are
/// slowed down by. A kernel of it becomes a record for KernelColumns() with what it belongs to.
Json RunRecord(const ReplayRun& run, std::size_t cell);
Json KernelRecord(const Json& run_record, const Json& kernel);
/// Records for IntervalColumns(), from a result with its timeline.
std::vector<Json> IntervalRecords(const Json& cell, const sim::DeviceSpec& device);

}  // namespace gridloom::study
