#include "interpose/session/range_checking.h"

#include <cstdlib>
#include <optional>

#include "interpose/session/log.h"
#include "interpose/session/settings.h"
#include "interpose/session/slicing.h"

namespace gridloom::session {
namespace {

std::optional<passes::RangeForm> WantedForm() {
  const auto& text = TheSettings().check_ranges;
  if (text == "interval") return passes::RangeForm::kInterval;
  if (text == "strided") return passes::RangeForm::kStrided;
  return std::nullopt;
}

}  // namespace

RangeChecks* RangeChecks::Get() {
  static RangeChecks* const checks = []() -> RangeChecks* {
    const auto form = WantedForm();
    if (!form) return nullptr;
    std::atexit([] { LogText(Get()->Text()); });
    return new RangeChecks(*form);
  }();
  return checks;
}

Status RangeChecks::CheckSetting() {
  const auto& text = TheSettings().check_ranges;
  if (!text || text->empty() || WantedForm()) return {};
  return Error{"GRIDLOOM_CHECK_RANGES=" + *text + " is neither interval nor strided"};
}

exec::LaunchFault RangeChecks::Run(exec::Engine& engine, exec::DeviceMemory& memory, const exec::LaunchParams& launch,
                                   exec::LaunchStats& stats) {
  std::shared_ptr<exec::RangedProgram> program;
  {
    const std::lock_guard lock(mutex_);
    auto& entry = programs_[launch.program];
    if (entry == nullptr) entry = std::make_shared<exec::RangedProgram>(launch.program, memory, TheRewrites(), form_);
    program = entry;
  }
  const std::string name(launch.kernel->name);
  const exec::RangedKernel kernel = program->Find(name);
  exec::RangeFindings findings;
  const bool checked = kernel.program != nullptr && launch.grid.count() <= kMostCtas;
  exec::LaunchFault fault =
      checked ? exec::RunWithRanges(engine, memory, launch, kernel, 4096, findings, &stats) : engine.Run(launch, &stats);
  const std::lock_guard lock(mutex_);
  Row& row = rows_[name];
  ++row.launches;
  row.unchecked += !checked || fault.kind != exec::FaultKind::kNone;
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
    text += Format("%llu unchecked, %llu pages touched, %llu reported", static_cast<unsigned long long>(row.unchecked),
                   static_cast<unsigned long long>(row.touched), static_cast<unsigned long long>(row.reported));
    if (row.outside != 0) text += Format(", %llu touched outside of all allocations", static_cast<unsigned long long>(row.outside));
    if (!row.missed.empty()) text += ", MISSED " + row.missed;
    if (!row.unbalanced.empty()) text += ", UNBALANCED " + row.unbalanced;
    text += "\n";
  }
  return text;
}

}  // namespace gridloom::session
