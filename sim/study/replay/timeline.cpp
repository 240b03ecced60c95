// The part of a report that says what happened when in one replay.
#include <algorithm>
#include <cmath>
#include <map>

#include "sim/hardware/catalog.h"
#include "sim/study/replay/columns.h"
#include "sim/study/replay/report.h"
#include "sim/timing/derived.h"

namespace gridloom::study {
namespace {

using report::Block;

std::string Number(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// To the nanosecond: more digits would only make pages longer.
double Microseconds(std::uint64_t cycles, const sim::DeviceSpec& device) {
  return std::round(static_cast<double>(cycles) * 1000 / device.timing.clock.sm_mhz) / 1000;
}

double Rounded(double value) { return value == 0 ? 0 : std::stod(Number("%.5g", value)); }

/// "void ns::a::b<float>(int)" -> "a::b<…>": what fits a legend.
std::string ShortKernelName(const std::string& name) {
  std::string text;
  int depth = 0;
  for (const char c : name) {
    if (c == '<' && depth++ == 0) text += "<…>";
    if (c == '(' && depth == 0 && !text.empty() && !text.ends_with(' ') && !text.ends_with(':')) break;
    if (depth == 0) text += c;
    if (c == '>' && depth > 0) --depth;
  }
  if (text.starts_with("void ")) text.erase(0, 5);
  const std::size_t last = text.rfind("::");
  const std::size_t before = last == std::string::npos || last == 0 ? last : text.rfind("::", last - 1);
  return before == std::string::npos ? text : text.substr(before + 2);
}

/// Kernels as the page calls them: short names, made unique, the slowest kernels first, so that they have colours of
/// their own.
class KernelNames {
 public:
  explicit KernelNames(const Json& cell) {
    for (const Json& kernel : cell["kernels"]) Add(kernel["kernel"].get<std::string>());
    for (const Json& name : cell["timeline"]["kernels"]) Add(name.get<std::string>());
    for (const Json& name : cell["timeline"]["kernels"]) number_.push_back(numbers_.at(name.get<std::string>()));
  }
  const std::vector<std::string>& list() const { return list_; }
  const std::string& of(const Json& name) const { return list_[numbers_.at(name.get<std::string>())]; }
  /// Place in the list of a kernel that a row of the timeline refers to.
  std::size_t number(const Json& row_entry) const { return number_[row_entry.get<std::size_t>()]; }

 private:
  void Add(const std::string& name) {
    if (!numbers_.try_emplace(name, list_.size()).second) return;
    const std::string text = ShortKernelName(name);
    std::string unique = text;
    for (int n = 2; std::ranges::find(list_, unique) != list_.end(); ++n) unique = text + " #" + std::to_string(n);
    list_.push_back(unique);
  }
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::string> list_;
  std::vector<std::size_t> number_;
};

Block KernelTable(const Json& cell, const KernelNames& names) {
  auto columns = Select(KernelColumns(), {"kernel", "launches", "kernel_ctas", "kernel_cycles", "seconds", "kernel_ipc",
                                          "occupancy", "active_lanes", "issue_share", "l1_hit_share", "l2_hit_share",
                                          "dram_gb_s", "bound_by", "kernel"});
  columns.back().name = "full name";
  std::vector<Json> rows;
  for (const Json& kernel : cell["kernels"]) {
    rows.push_back(Row(columns, kernel));
    rows.back().front() = names.of(kernel["kernel"]);
    rows.back().back() = kernel["kernel"];
  }
  return report::Table("Kernels", columns, rows);
}

Block KernelStates(const Json& cell, const KernelNames& names, const std::vector<timing::SchedulerState>& states) {
  constexpr std::size_t kMost = 12;
  std::vector<std::string> parts;
  for (const timing::SchedulerState& state : states) parts.emplace_back(state.label);
  std::vector<report::Shares> rows;
  for (const Json& kernel : cell["kernels"]) {
    if (rows.size() == kMost) break;
    report::Shares shares{names.of(kernel["kernel"]), {}};
    for (const timing::SchedulerState& state : states)
      shares.values.push_back(kernel["counters"][std::string(state.counter)].get<double>());
    rows.push_back(std::move(shares));
  }
  return report::Divided("What the SMs' schedulers did while each kernel ran", parts, rows);
}

Block SmTimeline(const Json& cell, const KernelNames& names, const sim::DeviceSpec& device) {
  const Json& timeline = cell["timeline"];
  std::vector<std::string> rows;
  for (std::uint32_t sm = 0; sm < device.sm.count; ++sm) rows.push_back("SM " + std::to_string(sm));
  std::vector<report::Interval> intervals;
  for (const Json& row : timeline["residencies"]["rows"]) {
    const auto begin = row[2].get<std::uint64_t>(), end = row[3].get<std::uint64_t>();
    const double share = end == begin ? 1 : Rounded(row[4].get<double>() / static_cast<double>(end - begin));
    intervals.push_back({row[0].get<std::size_t>(), names.number(row[1]), Microseconds(begin, device),
                         Microseconds(end, device), share});
  }
  return report::Timeline("Which kernel is on which SM", "µs",
                          Microseconds(cell["cycles"].get<std::uint64_t>(), device), rows, names.list(), intervals);
}

/// Copies and launches by stream, as far as they are told.
Block StreamTimeline(const Json& cell, const KernelNames& names, const sim::DeviceSpec& device) {
  const Json& timeline = cell["timeline"];
  std::vector<std::string> rows;
  std::vector<report::Interval> intervals;
  std::map<std::uint64_t, std::size_t> streams;  // those with works that are told: rows
  for (const Json& row : timeline["works"]["rows"]) streams[row[1].get<std::uint64_t>()] = 0;
  for (auto& [stream, place] : streams) {
    place = rows.size();
    rows.push_back("stream " + std::to_string(stream));
  }
  for (const Json& row : timeline["works"]["rows"]) {
    intervals.push_back({streams[row[1].get<std::uint64_t>()], names.number(row[0]),
                         Microseconds(row[3].get<std::uint64_t>(), device),
                         Microseconds(row[4].get<std::uint64_t>(), device), 1});
  }
  return report::Timeline("Launches by stream", "µs", Microseconds(cell["cycles"].get<std::uint64_t>(), device), rows,
                          names.list(), intervals);
}

struct Curve {
  const char *shown, *figure;  ///< a name for people, that of the figure; null: none
};
struct Chart {
  const char* caption;
  report::LineStyle style;
  const char* unit;
  double scale, max;  ///< max 0: as the values need
  Curve curves[2];
};

constexpr Chart kCharts[] = {
    {"Warp instructions per cycle", report::LineStyle::kSteps, "instructions/cycle", 1, 0, {{"IPC", "ipc"}, {}}},
    {"Warps resident, SMs in use",
     report::LineStyle::kSteps,
     "%",
     100,
     100,
     {{"occupancy", "occupancy"}, {"SMs in use", "sm_share"}}},
    {"DRAM bandwidth",
     report::LineStyle::kStacked,
     "GB/s",
     1,
     0,
     {{"read", "dram_read_gb_s"}, {"written", "dram_write_gb_s"}}},
    {"Cache hits", report::LineStyle::kSteps, "%", 100, 100, {{"L1", "l1_hit_share"}, {"L2", "l2_hit_share"}}},
};

report::Axis AxisOf(const char* unit, double max) {
  report::Axis axis;
  axis.unit = unit;
  if (max != 0) axis.max = max;
  return axis;
}

std::vector<Block> ChartBlocks(const Json& cell, const sim::DeviceSpec& device) {
  const std::vector<Json> records = IntervalRecords(cell, device);
  std::vector<double> ends;
  for (const Json& record : records) ends.push_back(Microseconds(record["end"].get<std::uint64_t>(), device));
  const report::Axis x = AxisOf("µs", 0);
  std::vector<Block> blocks;
  for (const Chart& chart : kCharts) {
    std::vector<report::Series> series;
    for (const Curve& curve : chart.curves) {
      if (curve.figure == nullptr) continue;
      series.push_back({curve.shown, {}});
      for (const Json& record : records)
        series.back().values.push_back(Rounded(chart.scale * record[curve.figure].get<double>()));
    }
    blocks.push_back(report::Lines(chart.caption, chart.style, x, ends, AxisOf(chart.unit, chart.max), series));
  }
  // Shares of all schedulers of the device, so that what is missing to 100 % are SMs without a CTA.
  std::vector<report::Series> states;
  for (const timing::SchedulerState& state : hardware::StatesOf(device)) {
    states.push_back({std::string(state.label), {}});
    std::uint64_t begin = 0;
    for (const Json& record : records) {
      const auto end = record["end"].get<std::uint64_t>();
      const double all = static_cast<double>(end - begin) * device.sm.count * device.timing.sm.schedulers;
      states.back().values.push_back(
          all == 0 ? 0 : Rounded(100 * record["counters"][std::string(state.counter)].get<double>() / all));
      begin = end;
    }
  }
  blocks.push_back(report::Lines("What the SMs' schedulers do; up to 100 %: SMs without a CTA",
                                 report::LineStyle::kStacked, x, ends, AxisOf("%", 100), states));
  return blocks;
}

/// What the timeline had to leave out or make coarser, in a sentence; empty when nothing.
std::string LeftOut(const Json& timeline, const sim::DeviceSpec& device) {
  std::string text;
  const auto resolution = timeline["residencies"]["resolution"].get<std::uint64_t>();
  if (resolution > timing::SamplerOptions{}.resolution) {
    text += "Pauses of a kernel on an SM of up to " + std::to_string(resolution) + " cycles (" +
            std::to_string(static_cast<std::uint64_t>(Microseconds(resolution, device))) +
            " µs) are not shown as such, but in a fainter colour. ";
  }
  const auto say = [&](const char* part, const std::string& what) {
    const auto count = timeline[part]["left_out"].get<std::uint64_t>();
    if (count != 0) text += std::to_string(count) + " " + what + " are left out. ";
  };
  say("residencies", "stays of a kernel on an SM");
  say("works", "launches and copies after the first ones");
  return text;
}

}  // namespace

std::vector<Block> TimelineBlocks(const Json& cell, const sim::DeviceSpec& device) {
  const KernelNames names(cell);
  std::vector<Block> blocks{KernelTable(cell, names), KernelStates(cell, names, hardware::StatesOf(device))};
  const std::string left_out = LeftOut(cell["timeline"], device);
  if (!left_out.empty()) blocks.push_back(report::Paragraph(left_out));
  blocks.push_back(SmTimeline(cell, names, device));
  const Json& works = cell["timeline"]["works"]["rows"];
  const bool several = std::ranges::any_of(works, [](const Json& row) { return row[1] != 0; });
  if (several) blocks.push_back(StreamTimeline(cell, names, device));
  for (Block& block : ChartBlocks(cell, device)) blocks.push_back(std::move(block));
  return blocks;
}

}  // namespace gridloom::study
