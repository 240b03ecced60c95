#include "interpose/observe/range_checking.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>

#include "interpose/base/at_end.h"
#include "interpose/base/log.h"
#include "interpose/base/rewrites.h"
#include "interpose/base/settings.h"

namespace gridloom::session {
namespace {

std::optional<passes::RangeForm> WantedForm() {
  const auto& text = TheSettings().check_ranges;
  if (text == "interval") return passes::RangeForm::kInterval;
  if (text == "strided") return passes::RangeForm::kStrided;
  return std::nullopt;
}

/// Empty when the setting is no number.
std::optional<std::uint64_t> WantedLaunches() {
  const auto& text = TheSettings().check_range_launches;
  if (!text || text->empty()) return std::numeric_limits<std::uint64_t>::max();
  std::uint64_t launches = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), launches);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return launches;
}

}  // namespace

std::unique_ptr<RangeChecks> RangeChecks::Make() {
  const auto form = WantedForm();
  if (!form) return nullptr;
  std::unique_ptr<RangeChecks> checks(
      new RangeChecks(*form, WantedLaunches().value_or(std::numeric_limits<std::uint64_t>::max())));
  AtEnd([checks = checks.get()] { LogText(checks->Text()); });
  return checks;
}

Status RangeChecks::CheckSetting() {
  const auto& text = TheSettings().check_ranges;
  if (!WantedLaunches())
    return Error{"GRIDLOOM_CHECK_RANGE_LAUNCHES=" + *TheSettings().check_range_launches +
                 " is not the number of launches to check"};
  if (!text || text->empty() || WantedForm()) return {};
  return Error{"GRIDLOOM_CHECK_RANGES=" + *text + " is neither interval nor strided"};
}

bool RangeChecks::IsWanted(const std::string& kernel) {
  const std::lock_guard lock(mutex_);
  return rows_[kernel].begun++ < most_launches_;
}

exec::RangedKernel RangeChecks::Find(exec::DeviceMemory& memory, const std::shared_ptr<exec::Program>& program,
                                     const std::string& kernel) {
  {
    const std::lock_guard lock(mutex_);
    auto& entry = programs_[program];
    if (entry == nullptr) entry = std::make_shared<exec::RangedProgram>(program, memory, TheRewrites(), form_);
  }
  return Find(program, kernel);
}

exec::RangedKernel RangeChecks::Find(const std::shared_ptr<exec::Program>& program, const std::string& kernel) {
  std::shared_ptr<exec::RangedProgram> ranged;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = programs_.find(program); found != programs_.end()) ranged = found->second;
  }
  if (ranged == nullptr) return {.program = nullptr, .why_not = "its program was not looked at"};
  return ranged->Find(kernel);
}

exec::LaunchFault RangeChecks::Run(exec::Engine& engine, exec::DeviceMemory& memory, const exec::LaunchParams& launch,
                                   exec::LaunchStats& stats) {
  const std::string name(launch.kernel->name);
  const exec::RangedKernel kernel = Find(memory, launch.program, name);
  exec::RangeFindings findings;
  const bool checked = kernel.program != nullptr && IsWanted(name);
  exec::LaunchParams unchecked = launch;
  if (kernel.program != nullptr && launch.records != nullptr) {
    unchecked.program = kernel.program;
    unchecked.kernel = kernel.info;
  }
  exec::LaunchFault fault = checked
                                ? exec::RunWithRanges(engine, memory, launch, kernel, 4096, kMostCtas, findings, &stats)
                                : engine.Run(unchecked, &stats);
  const std::lock_guard lock(mutex_);
  Row& row = rows_[name];
  ++row.launches;
  row.unchecked += !checked || fault.kind != exec::FaultKind::kNone;
  row.sampled += findings.sampled;
  row.touched += findings.touched;
  row.reported += findings.reported;
  row.outside += findings.outside;
  row.why_not = kernel.why_not;
  if (row.missed.empty()) row.missed = findings.missed;
  if (row.unbalanced.empty()) row.unbalanced = findings.unbalanced;
  return fault;
}

std::string RangeChecks::Text() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [name, row] : rows_) {
    text += Format("ranges: %s: %llu launches, ", name.c_str(), static_cast<unsigned long long>(row.launches));
    if (!row.why_not.empty()) {
      text += row.why_not + "\n";
      continue;
    }
    text += Format("%llu unchecked, ", static_cast<unsigned long long>(row.unchecked));
    if (row.sampled != 0) text += Format("%llu by a sample of CTAs, ", static_cast<unsigned long long>(row.sampled));
    text += Format("%llu pages touched, %llu reported", static_cast<unsigned long long>(row.touched),
                   static_cast<unsigned long long>(row.reported));
    if (row.outside != 0)
      text += Format(", %llu touched outside of all allocations", static_cast<unsigned long long>(row.outside));
    if (!row.missed.empty()) text += ", MISSED " + row.missed;
    if (!row.unbalanced.empty()) text += ", UNBALANCED " + row.unbalanced;
    text += "\n";
  }
  return text;
}

}  // namespace gridloom::session
