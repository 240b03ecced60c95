#include "interpose/session/memcheck.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "interpose/session/log.h"
#include "interpose/session/process.h"
#include "interpose/session/settings.h"
#include "rewriter/support/demangle.h"
#include "rewriter/support/json.h"
#include "rewriter/support/whole_file.h"

namespace gridloom::session {
namespace {

int Number(const std::optional<std::string>& text, const char* variable, int otherwise) {
  if (!text) return otherwise;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc() && end == text->data() + text->size() && value >= 0) return value;
  LogFormat(LogLevel::kWarn, "%s=%s is not a number; using %d", variable, text->c_str(), otherwise);
  return otherwise;
}

std::string Plural(std::uint64_t count, const char* thing) { return exec::WithCommas(count) + " " + thing + (count == 1 ? "" : "s"); }

nlohmann::json Json(const exec::Dim3& d) { return nlohmann::json::array({d.x, d.y, d.z}); }

nlohmann::json Json(const exec::MemcheckAccess& access) {
  constexpr const char* kKinds[] = {"read", "write", "atomic"};
  nlohmann::json json{{"access", kKinds[static_cast<std::size_t>(access.kind)]}, {"thread", Json(access.thread)}};
  if (access.bytes != 0) json["bytes"] = access.bytes;
  if (access.ptx_line != 0) json["ptx_line"] = access.ptx_line;
  if (!access.file.empty()) {
    json["file"] = access.file;
    json["line"] = access.source_line;
  }
  return json;
}

nlohmann::json Json(const exec::MemcheckReport& report) {
  constexpr const char* kSpaces[] = {"global", "shared", "local", "generic"};
  nlohmann::json json = Json(report.access);
  json["kind"] = exec::NameOf(report.kind);
  json["space"] = kSpaces[static_cast<std::size_t>(report.space)];
  json["kernel"] = DemangledName(report.kernel);
  json["symbol"] = report.kernel;
  json["cta"] = Json(report.cta);
  json["address"] = exec::HexAddress(report.address);
  json["place"] = report.place;
  json["times"] = report.times;
  json["suppression"] = exec::MemcheckFilter::LineFor(exec::NameOf(report.kind), report.kernel);
  if (report.other) json[report.use == exec::InvalidUse::kNone ? "other" : "read"] = Json(*report.other);
  constexpr const char* kUses[] = {"", "branch", "address", "atomic", "store"};
  if (report.use != exec::InvalidUse::kNone) json["use"] = kUses[static_cast<std::size_t>(report.use)];
  return json;
}

const char* NameOf(exec::FaultKind kind) {
  switch (kind) {
    case exec::FaultKind::kIllegalAddress: return "illegal-address";
    case exec::FaultKind::kMisalignedAddress: return "misaligned-address";
    case exec::FaultKind::kIllegalInstruction: return "illegal-instruction";
    case exec::FaultKind::kTrap: return "trap";
    case exec::FaultKind::kAssert: return "assert";
    case exec::FaultKind::kStackOverflow: return "stack-overflow";
    case exec::FaultKind::kInvalidPc: return "invalid-pc";
    case exec::FaultKind::kDeadlock: return "deadlock";
    case exec::FaultKind::kCompile: return "not-compiled";
    case exec::FaultKind::kOutOfMemory: return "out-of-memory";
    case exec::FaultKind::kNone:
    case exec::FaultKind::kStopped: break;
  }
  return "stopped";
}

/// An allocation the program itself made and has to free.
bool IsProgramsOwn(const exec::Allocation& allocation) {
  if (allocation.kind == exec::MemoryKind::kPool) return true;
  const Context* const context = allocation.OwnerAs<Context>();
  return context != nullptr && context->memory.Find(allocation.base).has_value();
}

}  // namespace

nlohmann::json MemcheckLog::Json(const Call& call) { return {{"call", call.call}, {"what", call.what}, {"times", call.times}}; }

nlohmann::json MemcheckLog::Json(const Fault& fault) {
  return {{"kernel", DemangledName(fault.kernel)}, {"symbol", fault.kernel}, {"kind", fault.kind}, {"what", fault.text}};
}

MemcheckLog& MemcheckLog::Get() {
  static MemcheckLog* const log = new MemcheckLog;
  return *log;
}

MemcheckLog::MemcheckLog() {
  const Settings& settings = TheSettings();
  leak_check_ = IsOn(settings.leak_check);
  reports_calls_ = IsOn(settings.report_api_errors);
  on_ = IsOn(settings.memcheck) || leak_check_ || reports_calls_;
  if (!on_) return;
  limit_ = static_cast<std::uint32_t>(Number(settings.memcheck_limit, "GRIDLOOM_MEMCHECK_LIMIT", 100));
  exit_code_ = Number(settings.error_exitcode, "GRIDLOOM_ERROR_EXITCODE", 1);
  json_path_ = settings.memcheck_json.value_or("");
  ReadFilter(settings);
  owner_ = getpid();
  if (settings.memcheck_journal)
    journal_ = open(settings.memcheck_journal->c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

void MemcheckLog::ReadFilter(const Settings& settings) {
  if (settings.memcheck_checks) {
    if (const Status status = filter_.Choose(*settings.memcheck_checks); !status.ok())
      LogFormat(LogLevel::kWarn, "GRIDLOOM_MEMCHECK_CHECKS: %s; all are told", status.error().message.c_str());
  }
  if (!settings.memcheck_suppressions) return;
  const std::string& path = *settings.memcheck_suppressions;
  const auto text = ReadWholeFile(path);
  const Status status = text.ok() ? filter_.Suppress(*text) : Status(text.error());
  if (!status.ok()) LogFormat(LogLevel::kWarn, "GRIDLOOM_MEMCHECK_SUPPRESSIONS: %s: %s", path.c_str(), status.error().message.c_str());
}

void MemcheckLog::Journal(const char* key, const nlohmann::json& value) const {
  if (journal_ < 0 || owner_ != getpid()) return;
  const auto line = [&](const char* what, const nlohmann::json& is) {
    return JsonText(nlohmann::json{{"pid", owner_}, {what, is}}) + "\n";
  };
  const std::lock_guard lock(journal_mutex_);
  std::string text;
  if (!std::exchange(introduced_, true)) text = line("program", program_invocation_short_name);
  text += line(key, value);
  static_cast<void>(WriteWhole(journal_, text));  // one write: O_APPEND keeps those of several processes apart
}

void MemcheckLog::Add(const exec::MemcheckReport& report) {
  if (!Wants(report)) return;
  if (!filter_.empty()) {
    const std::lock_guard lock(mutex_);
    if (told_ >= limit_) return;
    ++told_;
  }
  LogText("gridloom: error: " + exec::FormatMemcheck(report) + "\n");
  Journal("finding", session::Json(report));
}

void MemcheckLog::GridFailed(const exec::Engine& engine, const exec::LaunchFault& fault) {
  if (!on_ || fault.kind == exec::FaultKind::kStopped) return;
  if (fault.kind == exec::FaultKind::kIllegalAddress || fault.kind == exec::FaultKind::kMisalignedAddress) {
    const exec::Engine::Findings findings = engine.MemcheckFindings();
    if (std::ranges::find(findings.reports, fault.kernel, &exec::MemcheckReport::kernel) != findings.reports.end()) return;
  }
  const Fault found{fault.kernel, NameOf(fault.kind), fault.text};
  if (!filter_.Wants("fault", fault.kernel)) return;
  {
    const std::lock_guard lock(mutex_);
    if (faults_.size() >= limit_) return;
    faults_.push_back(found);
  }
  Journal("fault", Json(found));
}

void MemcheckLog::CallFailed(const char* call, const char* status) { BadCall(call, std::string("answered ") + status); }

void MemcheckLog::BadCall(const char* call, const std::string& what) {
  if (!on_ || !filter_.Wants("call", call)) return;
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find_if(calls_, [&](const Call& c) { return c.call == call && c.what == what; });
    if (known != calls_.end()) {
      ++known->times;
      return;
    }
    if (calls_.size() >= limit_) return;
    calls_.push_back({call, what});
  }
  LogText("gridloom: error: " + std::string(call) + ": " + what + "\n");
  Journal("call", Json(Call{call, what}));
}

void MemcheckLog::BadFree(const char* call, Context& context, std::uint64_t pointer) {
  if (!on_) return;
  const exec::DeviceMemory& memory = context.device().memory();
  const std::string address = exec::HexAddress(pointer);
  if (const auto freed = memory.FindFreed(pointer); freed && freed->base == pointer)
    return BadCall(call, "double free of " + exec::NameAllocation(*freed));
  BadCall(call, "free of " + address + ", which is no pointer that an allocation gave: " + exec::DescribePlace(memory, pointer, 1));
}

void MemcheckLog::BadRange(const char* call, Context& context, std::uint64_t pointer, std::uint64_t bytes, bool write) {
  if (!on_) return;
  const std::string what =
      std::string(write ? "write" : "read") + " of " + Plural(bytes, "byte") + " at " + exec::HexAddress(pointer) + ": ";
  BadCall(call, what + exec::DescribePlace(context.device().memory(), pointer, bytes));
}

void MemcheckLog::NoteLeaks(Context& context) {
  if (!leak_check_ || !context.device().has_backend()) return;
  for (const exec::Allocation& allocation : context.device().memory().List()) {
    const bool here = allocation.owner == &context || allocation.kind == exec::MemoryKind::kPool;
    if (!here || !IsProgramsOwn(allocation)) continue;
    if (!filter_.Wants("leak", exec::NameAllocation(allocation))) continue;
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(leaks_, allocation.id, &exec::Allocation::id) == leaks_.end()) leaks_.push_back(allocation);
  }
}

void MemcheckLog::NoteAllLeaks() {
  if (!leak_check_) return;
  Process& process = Process::Get();
  for (std::size_t i = 0; i < process.device_count(); ++i) {
    Device& device = *process.FindDevice(static_cast<cuda::CUdevice>(i));
    if (!device.has_backend()) continue;
    for (const exec::Allocation& allocation : device.memory().List()) {
      if (!IsProgramsOwn(allocation)) continue;
      if (!filter_.Wants("leak", exec::NameAllocation(allocation))) continue;
      const std::lock_guard lock(mutex_);
      if (std::ranges::find(leaks_, allocation.id, &exec::Allocation::id) == leaks_.end()) leaks_.push_back(allocation);
    }
  }
}

std::string MemcheckLog::Summary(std::uint64_t errors, std::uint64_t accesses, std::uint64_t not_kept) const {
  std::string text = "gridloom: memcheck: ";
  text += errors == 0 ? "no errors" : Plural(errors, "error");
  if (accesses > errors) text += " (" + exec::WithCommas(accesses) + " accesses)";
  if (not_kept != 0) {
    text += "; " + exec::WithCommas(not_kept) + (not_kept == 1 ? " further access" : " further accesses") + " beyond the limit of " +
            Plural(limit_, "error");
  }
  if (leak_check_) text += leaks_.empty() ? "; nothing leaked" : "; " + Plural(leaks_.size(), "allocation") + " leaked";
  return text + "\n";
}

nlohmann::json MemcheckLog::AllAsJson(const std::vector<exec::MemcheckReport>& reports, std::uint64_t not_kept) const {
  nlohmann::json json{{"findings", nlohmann::json::array()},
                      {"calls", nlohmann::json::array()},
                      {"faults", nlohmann::json::array()},
                      {"not_kept", not_kept}};
  for (const exec::MemcheckReport& report : reports) json["findings"].push_back(session::Json(report));
  for (const Call& call : calls_) json["calls"].push_back(Json(call));
  for (const Fault& fault : faults_) json["faults"].push_back(Json(fault));
  if (leak_check_) {
    json["leaks"] = nlohmann::json::array();
    for (const exec::Allocation& leak : leaks_)
      json["leaks"].push_back(
          {{"address", exec::HexAddress(leak.base)}, {"bytes", leak.bytes}, {"allocation", leak.id}, {"what", exec::NameAllocation(leak)}});
  }
  return json;
}

void MemcheckLog::WriteJson(const nlohmann::json& json) const {
  const std::string text = JsonText(json, 2) + "\n";
  if (json_path_ == "-") return LogText(text);
  std::ofstream file(json_path_);
  file << text;
  file.close();
  if (!file) LogFormat(LogLevel::kError, "cannot write memcheck's findings to %s", json_path_.c_str());
}

/// As Add has told them.
void MemcheckLog::KeepWanted(exec::Engine::Findings& findings) const {
  if (filter_.empty()) return;
  std::erase_if(findings.reports, [&](const exec::MemcheckReport& report) { return !Wants(report); });
  for (; findings.reports.size() > limit_; findings.reports.pop_back()) findings.not_kept += findings.reports.back().times;
}

void MemcheckLog::Finish() {
  if (!on_ || owner_ != getpid() || Process::Get().init_status() != cuda::CUDA_SUCCESS) return;
  exec::Engine::Findings findings;
  for (std::size_t i = 0; i < Process::Get().device_count(); ++i) {
    Device& device = *Process::Get().FindDevice(static_cast<cuda::CUdevice>(i));
    if (device.has_backend()) findings = device.engine().MemcheckFindings();
  }
  KeepWanted(findings);
  NoteAllLeaks();
  for (const exec::Allocation& leak : leaks_) LogText("gridloom: error: leak: " + exec::NameAllocation(leak) + " was never freed\n");
  std::uint64_t accesses = 0;
  for (const exec::MemcheckReport& report : findings.reports) accesses += report.times;
  for (const Call& call : calls_) accesses += call.times;
  const std::uint64_t errors = findings.reports.size() + calls_.size() + faults_.size();
  LogText(Summary(errors, accesses + faults_.size(), findings.not_kept));
  const nlohmann::json json = AllAsJson(findings.reports, findings.not_kept);
  Journal("end", json);
  if (!json_path_.empty() && journal_ < 0) WriteJson(json);
  if ((errors == 0 && leaks_.empty()) || exit_code_ == 0) return;
  std::fflush(nullptr);
  _exit(exit_code_);
}

}  // namespace gridloom::session
