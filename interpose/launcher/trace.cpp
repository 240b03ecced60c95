// gridloom trace: what is in a trace file, and whether all of it can be used.
#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <unordered_set>

#include "interpose/launcher/commands.h"
#include "interpose/launcher/trace_ranges.h"
#include "rewriter/support/demangle.h"
#include "rewriter/support/json.h"
#include "rewriter/support/terminal.h"
#include "sim/exec/memcheck.h"
#include "sim/trace/trace_file.h"

namespace gridloom::launcher {
namespace {

using Json = nlohmann::ordered_json;

using EventCounts = std::array<std::uint64_t, trace::kEventKindCount>;  ///< by trace::EventKind

/// What the launches of one kernel did together.
struct KernelSum {
  std::uint64_t launches = 0, incomplete = 0, ctas = 0, left_out = 0;
  std::uint64_t warp_instructions = 0, thread_instructions = 0;
  std::uint64_t accesses = 0;  ///< of warps
  EventCounts events{};
  std::uint64_t aggregated = 0;  ///< launches by the kernel whose thread blocks may join others

  KernelSum& operator+=(const KernelSum& other) {
    launches += other.launches;
    incomplete += other.incomplete;
    ctas += other.ctas;
    left_out += other.left_out;
    warp_instructions += other.warp_instructions;
    thread_instructions += other.thread_instructions;
    accesses += other.accesses;
    aggregated += other.aggregated;
    std::ranges::transform(events, other.events, events.begin(), std::plus());
    return *this;
  }
};

/// Adds what these visits and accesses do, made so many times.
void AddPath(const trace::KernelCode& code, std::span<const trace::BlockVisit> visits,
             std::span<const trace::MemoryAccess> accesses, std::uint64_t times, KernelSum& sum) {
  for (const trace::BlockVisit& visit : visits) {
    const std::uint64_t count = times * code.blocks[visit.block].count;
    sum.warp_instructions += count;
    sum.thread_instructions += count * static_cast<std::uint64_t>(std::popcount(visit.mask));
  }
  for (const trace::MemoryAccess& access : accesses) sum.accesses += access.mask != 0 ? times : 0;
}

void AddCta(const trace::KernelCode& code, const trace::CtaTrace& cta, KernelSum& sum) {
  AddPath(code, cta.visits, cta.accesses, 1, sum);
  for (const trace::Repeat& repeat : cta.repeats) {
    const trace::WarpTrace& warp = cta.warps[repeat.warp];
    AddPath(code, std::span(cta.visits).subspan(warp.first_visit + repeat.visit, repeat.visit_count),
            std::span(cta.accesses).subspan(warp.first_access + repeat.access, repeat.access_count), repeat.more, sum);
  }
  for (const trace::CtaEvent& event : cta.events) {
    ++sum.events[static_cast<std::size_t>(event.kind)];
    sum.aggregated += event.kind == trace::EventKind::kDeviceLaunch && (event.flags & trace::kAggregated) != 0;
  }
}

/// "12 device_launch (7 aggregated), 3 set_range"; empty when there are none.
std::string EventsText(const KernelSum& sum) {
  const EventCounts& counts = sum.events;
  std::string text;
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    if (counts[kind] == 0) continue;
    text +=
        (text.empty() ? "" : ", ") + exec::WithCommas(counts[kind]) + " " + std::string(trace::kEventKindNames[kind]);
    if (static_cast<trace::EventKind>(kind) == trace::EventKind::kDeviceLaunch && sum.aggregated != 0)
      text += " (" + exec::WithCommas(sum.aggregated) + " aggregated)";
  }
  return text;
}

Json EventsJson(const EventCounts& counts) {
  Json json = Json::object();
  for (std::size_t kind = 0; kind < counts.size(); ++kind)
    json[std::string(trace::kEventKindNames[kind])] = counts[kind];
  return json;
}

std::string Share(double part, double whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", whole == 0 ? 0.0 : 100 * part / whole);
  return text;
}

/// Launches by kernels, of which the host chunks tell.
std::uint64_t DeviceLaunches(const trace::TraceFile& file) {
  std::unordered_set<std::uint64_t> launches;
  std::uint64_t count = 0;
  for (const trace::HostAction& action : file.actions()) {
    if (action.kind != trace::HostAction::Kind::kLaunch) continue;
    count += launches.contains(action.group);
    launches.insert(action.work);
  }
  return count;
}

/// Copies to the device, and those of which it is known in which order the program filled what they copy.
struct CopyOrder {
  explicit CopyOrder(const trace::TraceFile& file) {
    for (const trace::HostAction& action : file.actions()) {
      copies += action.kind == trace::HostAction::Kind::kCopyToDevice;
      recorded += !action.ranks.empty();
    }
  }
  std::uint64_t copies = 0, recorded = 0;
};

class TraceCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.add_option("file", path_, "a trace, as `gridloom run --trace` writes it")->type_name("")->required();
    app.add_flag("--check", check_, "exit code 1 when the file is damaged or a launch in it is not complete");
    app.add_flag("--json", json_, "print JSON");
  }

  int Run() override {
    auto file = trace::TraceFile::Open(path_);
    if (!file) return Fail(file.error().message);
    std::string problem = (*file)->problem();
    Contents contents;
    for (std::size_t i = 0; i < (*file)->launches().size(); ++i) {
      const Status read = AddLaunch(*file, i, contents);
      if (!read && problem.empty()) problem = path_ + ": " + read.error().message;
    }
    bool incomplete = false;
    for (const auto& [kernel, sum] : contents.kernels) incomplete |= sum.incomplete != 0;
    if (json_) PrintJson(**file, contents, problem);
    else PrintText(**file, contents, problem);
    return check_ && (incomplete || !problem.empty()) ? kExitFound : kExitOk;
  }

 private:
  /// What the program launched, and which ranges were told for it.
  struct Contents {
    std::map<std::uint32_t, KernelSum> kernels;  ///< by their numbers in the file
    std::uint64_t launches = 0;
    TraceRanges ranges;
  };

  static Status AddLaunch(const std::shared_ptr<trace::TraceFile>& file, std::size_t number, Contents& contents) {
    const trace::LaunchInfo& info = file->launches()[number].info;
    KernelSum sum;
    const Status read = SumOf(file, number, sum);
    const auto events = [&](trace::EventKind kind) { return sum.events[static_cast<std::size_t>(kind)]; };
    contents.ranges.Add(info, file->kernels()[info.kernel].name,
                        {.complete = sum.incomplete == 0 && sum.left_out == 0,
                         .warp_instructions = sum.warp_instructions,
                         .set = events(trace::EventKind::kSetRange),
                         .released = events(trace::EventKind::kReleaseRange)});
    if (!info.of_program()) return read;
    ++contents.launches;
    contents.kernels[info.kernel] += sum;
    return read;
  }

  static Status SumOf(const std::shared_ptr<trace::TraceFile>& file, std::size_t number, KernelSum& sum) {
    const trace::TraceFile::Launch& launch = file->launches()[number];
    ++sum.launches;
    sum.incomplete += !launch.complete;
    sum.left_out += launch.left_out;
    const auto source = trace::TraceFile::Source(file, number);
    for (const std::uint64_t cta : launch.KeptCtas()) {
      GL_TRY(loaded, source->Load(cta));
      AddCta(source->code(), *loaded.trace, sum);
      ++sum.ctas;
    }
    return {};
  }

  void PrintText(const trace::TraceFile& file, const Contents& contents, const std::string& problem) const {
    Table table({">launches", ">CTAs", ">warp instr", ">lanes on", ">accesses", "kernel"});
    KernelSum all;
    for (const auto& [number, sum] : contents.kernels) {
      const double lanes = static_cast<double>(sum.warp_instructions) * trace::kWarpSize;
      table.Add({exec::WithCommas(sum.launches), exec::WithCommas(sum.ctas), exec::WithCommas(sum.warp_instructions),
                 Share(static_cast<double>(sum.thread_instructions), lanes), exec::WithCommas(sum.accesses),
                 DemangledName(file.kernels()[number].name)});
      all += sum;
    }
    char per[32];
    const auto instructions = static_cast<double>(all.warp_instructions);
    std::snprintf(per, sizeof per, "%.3f",
                  all.warp_instructions == 0 ? 0.0 : static_cast<double>(file.bytes()) / instructions);
    Print(path_ + ": trace, " + SizeText(file.bytes()) + ", " + exec::WithCommas(contents.launches) +
          (contents.launches == 1 ? " launch, " : " launches, ") + exec::WithCommas(file.actions().size()) +
          (file.actions().size() == 1 ? " call" : " calls") + " of the host\n\n" + table.Text(2) + "\n" + per +
          " bytes per warp instruction\n");
    if (const std::string text = EventsText(all); !text.empty()) Print("events: " + text + "\n");
    Print(contents.ranges.Text());
    if (const CopyOrder order(file); order.recorded != 0) {
      Print("order of initialisation: recorded of " + exec::WithCommas(order.recorded) + " of " +
            exec::WithCommas(order.copies) + " copies to the device\n");
    }
    if (all.left_out != 0) Print(exec::WithCommas(all.left_out) + " CTAs were not kept (--trace-ctas)\n");
    if (all.incomplete != 0)
      Print(Coloured(Colour::kYellow, exec::WithCommas(all.incomplete) + " launches are not complete") + "\n");
    if (!problem.empty()) Print(Coloured(Colour::kRed, problem) + "\n");
  }

  void PrintJson(const trace::TraceFile& file, const Contents& contents, const std::string& problem) const {
    Json json{{"file", path_},
              {"bytes", file.bytes()},
              {"made_by", file.info()},
              {"actions", file.actions().size()},
              {"device_launches", DeviceLaunches(file)}};
    json["problem"] = problem.empty() ? Json() : Json(problem);
    json["kernels"] = Json::array();
    for (const auto& [number, sum] : contents.kernels) {
      json["kernels"].push_back({{"name", DemangledName(file.kernels()[number].name)},
                                 {"symbol", file.kernels()[number].name},
                                 {"launches", sum.launches},
                                 {"incomplete_launches", sum.incomplete},
                                 {"ctas", sum.ctas},
                                 {"ctas_left_out", sum.left_out},
                                 {"warp_instructions", sum.warp_instructions},
                                 {"thread_instructions", sum.thread_instructions},
                                 {"accesses", sum.accesses},
                                 {"events", EventsJson(sum.events)},
                                 {"aggregated_launches", sum.aggregated}});
    }
    const CopyOrder order(file);
    json["order"] = {{"copies_to_device", order.copies}, {"recorded", order.recorded}};
    json["ranges"] = contents.ranges.FormsJson();
    json["no_ranges"] = contents.ranges.ReasonsJson();
    Print(JsonText(json, 2) + "\n");
  }

  std::string path_;
  bool check_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeTrace() { return std::make_unique<TraceCommand>(); }

}  // namespace gridloom::launcher
