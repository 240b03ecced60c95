// Trace events: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event Format),
// which Perfetto and chrome://tracing read.
#include <map>
#include <set>

#include "sim/study/replay/columns.h"
#include "sim/study/replay/report.h"

namespace gridloom::study {
namespace {

enum Process : int { kStreams = 1, kSms = 2, kCtas = 3, kCounters = 4 };

class Events {
 public:
  explicit Events(const sim::DeviceSpec& device) : mhz_(device.timing.clock.sm_mhz) {}

  void NameProcess(Process process, const std::string& name) {
    events_.push_back(
        {{"ph", "M"}, {"pid", process}, {"tid", 0}, {"name", "process_name"}, {"args", {{"name", name}}}});
    events_.push_back({{"ph", "M"},
                       {"pid", process},
                       {"tid", 0},
                       {"name", "process_sort_index"},
                       {"args", {{"sort_index", process}}}});
  }
  /// Once for each thread.
  void NameThread(Process process, std::uint64_t thread, const std::string& name) {
    if (!named_.insert({process, thread}).second) return;
    events_.push_back(
        {{"ph", "M"}, {"pid", process}, {"tid", thread}, {"name", "thread_name"}, {"args", {{"name", name}}}});
    events_.push_back({{"ph", "M"},
                       {"pid", process},
                       {"tid", thread},
                       {"name", "thread_sort_index"},
                       {"args", {{"sort_index", thread}}}});
  }
  void Span(Process process, std::uint64_t thread, const Json& name, std::uint64_t begin, std::uint64_t end,
            Json arguments) {
    events_.push_back({{"ph", "X"},
                       {"pid", process},
                       {"tid", thread},
                       {"name", name},
                       {"ts", Microseconds(begin)},
                       {"dur", Microseconds(end) - Microseconds(begin)},
                       {"args", std::move(arguments)}});
  }
  void Count(const std::string& name, std::uint64_t at, Json values) {
    events_.push_back({{"ph", "C"},
                       {"pid", kCounters},
                       {"tid", 0},
                       {"name", name},
                       {"ts", Microseconds(at)},
                       {"args", std::move(values)}});
  }
  Json list() && { return std::move(events_); }

 private:
  double Microseconds(std::uint64_t cycles) const { return static_cast<double>(cycles) / mhz_; }

  const double mhz_;
  std::set<std::pair<int, std::uint64_t>> named_;
  Json events_ = Json::array();
};

void AddStreams(const Json& timeline, Events& events) {
  events.NameProcess(kStreams, "streams");
  for (const Json& row : timeline["works"]["rows"]) {
    const auto stream = row[1].get<std::uint64_t>();
    events.NameThread(kStreams, stream, "stream " + std::to_string(stream));
    events.Span(kStreams, stream, timeline["kernels"][row[0].get<std::size_t>()], row[3], row[4],
                {{"submitted_cycle", row[2]}});
  }
}

/// Spans of a thread must not overlap: kernels that share an SM get a line each.
void AddSms(const Json& timeline, Events& events) {
  constexpr std::uint64_t kLines = 64;
  events.NameProcess(kSms, "kernels on SMs");
  std::map<std::uint64_t, std::vector<std::uint64_t>> ends;  // by SM: of each line
  for (const Json& row : timeline["residencies"]["rows"]) {
    const auto sm = row[0].get<std::uint64_t>(), begin = row[2].get<std::uint64_t>(), end = row[3].get<std::uint64_t>();
    std::vector<std::uint64_t>& lines = ends[sm];
    std::size_t line = 0;
    while (line < lines.size() && lines[line] > begin) ++line;
    if (line >= kLines) continue;
    if (line == lines.size()) lines.push_back(0);
    lines[line] = end;
    const std::string name = "SM " + std::to_string(sm) + (line == 0 ? "" : " (" + std::to_string(line + 1) + ")");
    events.NameThread(kSms, sm * kLines + line, name);
    events.Span(kSms, sm * kLines + line, timeline["kernels"][row[1].get<std::size_t>()], begin, end,
                {{"first_launch", row[5]}, {"last_launch", row[6]}, {"busy_cycles", row[4]}});
  }
}

void AddCtas(const Json& timeline, const sim::DeviceSpec& device, Events& events) {
  events.NameProcess(kCtas, "CTAs");
  for (const Json& row : timeline["ctas"]["rows"]) {
    const auto sm = row[0].get<std::uint64_t>(), slot = row[1].get<std::uint64_t>();
    const std::uint64_t thread = sm * device.sm.max_blocks + slot;
    events.NameThread(kCtas, thread, "SM " + std::to_string(sm) + " slot " + std::to_string(slot));
    events.Span(kCtas, thread, timeline["kernels"][row[2].get<std::size_t>()], row[5], row[6],
                {{"launch", row[3]}, {"cta", row[4]}});
  }
}

void AddCounters(const Json& cell, const sim::DeviceSpec& device, Events& events) {
  events.NameProcess(kCounters, "counters");
  for (const Json& record : IntervalRecords(cell, device)) {
    const std::uint64_t at = record["begin"];
    events.Count("ipc", at, {{"ipc", record["ipc"]}});
    events.Count("occupancy", at, {{"occupancy", record["occupancy"]}});
    events.Count("DRAM GB/s", at, {{"read", record["dram_read_gb_s"]}, {"written", record["dram_write_gb_s"]}});
    events.Count("hit shares", at, {{"l1", record["l1_hit_share"]}, {"l2", record["l2_hit_share"]}});
  }
}

}  // namespace

Json TraceEvents(const Json& cell, const sim::DeviceSpec& device) {
  Events events(device);
  AddStreams(cell["timeline"], events);
  AddSms(cell["timeline"], events);
  AddCtas(cell["timeline"], device, events);
  AddCounters(cell, device, events);
  return {{"displayTimeUnit", "ns"},
          {"otherData", {{"workload", cell["workload"]}, {"device", cell["device"]}, {"policy", cell["policy"]}}},
          {"traceEvents", std::move(events).list()}};
}

}  // namespace gridloom::study
