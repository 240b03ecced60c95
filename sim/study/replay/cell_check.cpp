#include "sim/study/replay/cell_check.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>

#include "sim/hardware/catalog.h"
#include "sim/timing/derived.h"

namespace gridloom::study {
namespace {

/// More than a model's clock ever shows: so that sums and conversions of cycles fit their types.
constexpr std::uint64_t kMostCycles = std::uint64_t{1} << 53;
constexpr std::uint64_t kMostStreams = std::uint64_t{1} << 32, kMostSlots = 1u << 16;

bool IsCount(const Json& value, std::uint64_t below = kMostCycles) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() < below;
}

/// Looks at one part after the other; after the first that is wrong at none.
class Checker {
 public:
  explicit Checker(const sim::DeviceSpec& device) : device_(device), counters_(hardware::CountersOf(device)) {}
  const std::string& problem() const { return problem_; }

  void CheckCell(const Json& cell) {
    if (!Require(cell.is_object(), "", "an object")) return;
    for (const char* name : {"workload", "device", "policy", "bound_by"}) Text(cell, "", name);
    Count(cell, "", "cycles");
    Number(cell, "", "host_seconds");
    CheckFigures(cell, "");
    const Json damaged = cell.value("damaged_traces", Json::array());
    Require(damaged.is_array() && std::ranges::all_of(damaged, [](const Json& text) { return text.is_string(); }),
            "damaged_traces", "a list of texts");
    for (std::size_t i = 0; Has(cell, "", "kernels", &Json::is_array, "a list") && i < cell["kernels"].size(); ++i)
      CheckKernel(cell["kernels"][i], "kernels[" + std::to_string(i) + "].");
    for (std::size_t i = 0; Has(cell, "", "programs", &Json::is_array, "a list") && i < cell["programs"].size(); ++i)
      CheckProgram(cell["programs"][i], "programs[" + std::to_string(i) + "].");
    if (Has(cell, "", "timeline", &Json::is_object, "an object")) CheckTimeline(cell["timeline"]);
  }

 private:
  bool Require(bool good, const std::string& what, const char* expected) {
    if (!good && problem_.empty()) problem_ = "'" + what + "' must be " + expected;
    return problem_.empty();
  }
  bool Has(const Json& of, const std::string& where, const char* name, bool (Json::*is)() const noexcept,
           const char* expected) {
    if (!problem_.empty()) return false;
    const auto found = of.find(name);
    return Require(found != of.end() && ((*found).*is)(), where + name, expected);
  }
  void Text(const Json& of, const std::string& where, const char* name) {
    Has(of, where, name, &Json::is_string, "a text");
  }
  void Number(const Json& of, const std::string& where, const char* name) {
    Has(of, where, name, &Json::is_number, "a number");
  }
  void Count(const Json& of, const std::string& where, const char* name) {
    if (Has(of, where, name, &Json::is_number_unsigned, "a count"))
      Require(IsCount(of[name]), where + name, "below 2^53");
  }

  /// What replays and kernels have in common: derived figures and counters.
  void CheckFigures(const Json& of, const std::string& where) {
    for (const timing::DerivedInfo& info : timing::DerivedTable()) Number(of, where, std::string(info.name).c_str());
    if (!Has(of, where, "counters", &Json::is_object, "an object")) return;
    for (const timing::CounterInfo& info : counters_)
      Count(of["counters"], where + "counters.", std::string(info.name).c_str());
    for (const auto& [name, value] : of["counters"].items())
      Require(IsCount(value), where + "counters." + name, "a count below 2^53");
  }

  void CheckKernel(const Json& kernel, const std::string& where) {
    if (!Require(kernel.is_object(), where.substr(0, where.size() - 1), "an object")) return;
    for (const char* name : {"kernel", "symbol", "bound_by"}) Text(kernel, where, name);
    for (const char* name :
         {"launches", "kernel_ctas", "kernel_cycles", "kernel_warp_instructions", "kernel_thread_instructions"})
      Count(kernel, where, name);
    Number(kernel, where, "kernel_ipc");
    CheckFigures(kernel, where);
  }

  void CheckProgram(const Json& program, const std::string& where) {
    if (!Require(program.is_object(), where.substr(0, where.size() - 1), "an object")) return;
    Text(program, where, "program");
    Count(program, where, "program_cycles");
    Number(program, where, "program_seconds");
  }

  void CheckTimeline(const Json& timeline) {
    if (!Has(timeline, "timeline.", "kernels", &Json::is_array, "a list")) return;
    const Json& names = timeline["kernels"];
    Require(std::ranges::all_of(names, [](const Json& name) { return name.is_string(); }), "timeline.kernels",
            "a list of texts");
    const std::uint64_t kernels = names.size(), sms = device_.sm.count, any = kMostCycles;
    // Columns as cell.cpp writes them, and what each is below.
    CheckRows(timeline, "works", std::array{kernels, kMostStreams, any, any, any}, 3);
    CheckRows(timeline, "residencies", std::array{sms, kernels, any, any, any, any, any}, 2);
    CheckRows(timeline, "ctas", std::array{sms, kMostSlots, kernels, any, any, any, any}, 5);
    if (problem_.empty()) Count(timeline["residencies"], "timeline.residencies.", "resolution");
    if (Has(timeline, "timeline.", "samples", &Json::is_object, "an object")) CheckSamples(timeline["samples"]);
  }

  /// The columns `begin` and the one behind it are cycles from which and until which something took place.
  void CheckRows(const Json& timeline, const char* name, std::span<const std::uint64_t> below, std::size_t begin) {
    if (!Has(timeline, "timeline.", name, &Json::is_object, "an object")) return;
    const std::string where = std::string("timeline.") + name + ".";
    Count(timeline[name], where, "left_out");
    if (!Has(timeline[name], where, "rows", &Json::is_array, "a list")) return;
    const Json& rows = timeline[name]["rows"];
    for (std::size_t r = 0; problem_.empty() && r < rows.size(); ++r) {
      bool good = rows[r].is_array() && rows[r].size() == below.size();
      for (std::size_t i = 0; good && i < below.size(); ++i) good = IsCount(rows[r][i], below[i]);
      good = good && rows[r][begin].get<std::uint64_t>() <= rows[r][begin + 1].get<std::uint64_t>();
      Require(good, where + "rows[" + std::to_string(r) + "]", "numbers that fit the device and the kernels");
    }
  }

  void CheckSamples(const Json& samples) {
    const std::string where = "timeline.samples.";
    Count(samples, where, "interval");
    if (!Has(samples, where, "end", &Json::is_array, "a list") ||
        !Has(samples, where, "counters", &Json::is_object, "an object"))
      return;
    const Json& ends = samples["end"];
    bool good = true;
    for (std::size_t i = 0; good && i < ends.size(); ++i)
      good = IsCount(ends[i]) && (i == 0 || ends[i - 1].get<std::uint64_t>() <= ends[i].get<std::uint64_t>());
    Require(good, where + "end", "a list of cycles in ascending order");
    for (const auto& [name, values] : samples["counters"].items()) {
      good = values.is_array() && values.size() == ends.size() &&
             std::ranges::all_of(values, [](const Json& value) { return IsCount(value); });
      Require(good, where + "counters." + name, "a count for each interval");
    }
  }

  const sim::DeviceSpec& device_;
  const std::vector<timing::CounterInfo> counters_;
  std::string problem_;
};

}  // namespace

std::string CellProblem(const Json& cell, const sim::DeviceSpec& device) {
  Checker checker(device);
  checker.CheckCell(cell);
  return checker.problem();
}

}  // namespace gridloom::study
