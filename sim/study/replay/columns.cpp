#include "sim/study/replay/columns.h"

#include <algorithm>

#include "rewriter/support/check.h"
#include "sim/hardware/catalog.h"
#include "sim/study/replay/sharing.h"
#include "sim/timing/derived.h"

namespace gridloom::study {
namespace {

using report::Column;
using report::Kind;

const std::vector<Column> kIdentity{
    {"workload", "", "trace or traces that were replayed", Kind::kText},
    {"device", "", "device, with what was changed of it", Kind::kText},
    {"policy", "", "scheduling policy", Kind::kText},
};
const std::vector<Column> kRun{
    {"cycles", "cycles", "SM cycles until everything had ended", Kind::kCount},
    {"speed_up", "times", "simulated time of the baseline over that of this replay", Kind::kReal},
    {"stp", "programs",
     "system throughput of a mix: sum of what each program takes alone over what it takes in the mix", Kind::kReal},
    {"antt", "times",
     "average normalised turnaround time of a mix: mean of what each program takes in it over what it takes alone",
     Kind::kReal},
    {"fairness", "share", "of a mix: least over greatest of what a program takes alone over what it takes in the mix",
     Kind::kShare},
    {"bound_by", "", "what most of the time went to", Kind::kText},
};
const std::vector<Column> kKernel{
    {"kernel", "", "name of the kernel", Kind::kText},
    {"symbol", "", "name of the kernel in the binary", Kind::kText},
    {"launches", "launches", "launches of the kernel", Kind::kCount},
    {"kernel_ctas", "CTAs", "CTAs of its launches", Kind::kCount},
    {"kernel_cycles", "cycles", "SM cycles from a launch's first CTA to its last one's end, summed over launches",
     Kind::kCount},
    {"kernel_warp_instructions", "instructions", "warp instructions of the kernel itself", Kind::kCount},
    {"kernel_thread_instructions", "instructions", "thread instructions of the kernel itself", Kind::kCount},
    {"kernel_ipc", "instructions/cycle", "kernel_warp_instructions over kernel_cycles", Kind::kReal},
    {"bound_by", "", "what most of the time went to, on the whole device while a launch ran", Kind::kText},
};
const std::vector<Column> kInterval{
    {"begin", "cycles", "first SM cycle of the interval", Kind::kCount},
    {"end", "cycles", "SM cycle at which the next interval begins", Kind::kCount},
};

/// Derived figures and counters follow in every file.
std::vector<Column> Columns(std::initializer_list<const std::vector<Column>*> first, CounterList counters) {
  std::vector<Column> columns;
  for (const auto* list : first) columns.insert(columns.end(), list->begin(), list->end());
  for (const timing::DerivedInfo& info : timing::DerivedTable()) {
    const Kind kind = info.unit == "share" ? Kind::kShare : info.unit == "s" ? Kind::kTime : Kind::kReal;
    columns.push_back({std::string(info.name), std::string(info.unit), std::string(info.meaning), kind});
  }
  for (const timing::CounterInfo& info : counters)
    columns.push_back({std::string(info.name), std::string(info.unit), std::string(info.meaning), Kind::kCount});
  return columns;
}

/// A counter in one interval. Those that a timeline leaves out stayed 0.
std::uint64_t ValueOf(const Json& samples, std::string_view name, std::size_t interval) {
  const auto found = samples["counters"].find(std::string(name));
  return found == samples["counters"].end() ? 0 : (*found)[interval].get<std::uint64_t>();
}

/// What derived figures are made of.
timing::Counters ModelCounters(const Json& samples, std::size_t interval) {
  timing::Counters counters;
#define SM_COUNTER(name, unit, meaning) counters.sm.name = ValueOf(samples, #name, interval);
#include "sim/timing/counters.def"
#define MEMORY_COUNTER(name, unit, meaning) counters.memory.name = ValueOf(samples, #name, interval);
#include "sim/timing/counters.def"
  return counters;
}

}  // namespace

std::vector<Column> RunColumns(CounterList counters) { return Columns({&kIdentity, &kRun}, counters); }
std::vector<Column> KernelColumns(CounterList counters) { return Columns({&kIdentity, &kKernel}, counters); }
std::vector<Column> IntervalColumns(CounterList counters) { return Columns({&kInterval}, counters); }

std::vector<Column> Select(const std::vector<Column>& columns, const std::vector<std::string>& names) {
  std::vector<Column> selected;
  for (const std::string& name : names) {
    const auto column = std::ranges::find(columns, name, &Column::name);
    GL_CHECK(column != columns.end(), "no column of that name");
    selected.push_back(*column);
  }
  return selected;
}

Json Row(const std::vector<Column>& columns, const Json& record) {
  Json row = Json::array();
  for (const Column& column : columns) {
    const auto value = record.find(column.name);
    if (value != record.end()) row.push_back(*value);
    else if (record.contains("counters")) row.push_back(record["counters"].value(column.name, Json()));
    else row.push_back(nullptr);
  }
  return row;
}

Json RunRecord(const ReplayRun& run, std::size_t cell) {
  Json record = run.cells[cell].result;
  const double speed_up = SpeedUp(run, cell);
  record["speed_up"] = speed_up == 0 ? Json() : Json(speed_up);
  AddSharing(run, cell, record);
  record.erase("host_seconds");  // reports of the same replays are the same
  return record;
}

Json KernelRecord(const Json& run_record, const Json& kernel) {
  Json record = kernel;
  for (const Column& column : kIdentity) record[column.name] = run_record[column.name];
  return record;
}

std::vector<Json> IntervalRecords(const Json& cell, const sim::DeviceSpec& device) {
  const Json& samples = cell["timeline"]["samples"];
  const std::vector<timing::CounterInfo> list = hardware::CountersOf(device);
  std::vector<Json> records;
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < samples["end"].size(); ++i) {
    const std::uint64_t end = samples["end"][i].get<std::uint64_t>();
    const timing::Counters counters = ModelCounters(samples, i);
    const timing::Activity activity{device, end - begin, counters};
    Json record{{"begin", begin}, {"end", end}};
    for (const timing::DerivedInfo& info : timing::DerivedTable())
      record[std::string(info.name)] = info.value(activity);
    for (const timing::CounterInfo& info : list)
      record["counters"][std::string(info.name)] = ValueOf(samples, info.name, i);
    records.push_back(std::move(record));
    begin = end;
  }
  return records;
}

}  // namespace gridloom::study
