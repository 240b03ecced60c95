#include "interpose/session/memcheck.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "interpose/session/log.h"
#include "interpose/session/process.h"
#include "interpose/session/settings.h"
#include "rewriter/support/demangle.h"
#include "rewriter/support/json.h"

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
  if (report.other) json["other"] = Json(*report.other);
  return json;
}

/// An allocation the program itself made and has to free.
bool IsProgramsOwn(const exec::Allocation& allocation) {
  if (allocation.kind == exec::MemoryKind::kPool) return true;
  const Context* const context = allocation.OwnerAs<Context>();
  return context != nullptr && context->memory.Find(allocation.base).has_value();
}

}  // namespace

MemcheckLog& MemcheckLog::Get() {
  static MemcheckLog* const log = new MemcheckLog;
  return *log;
}

MemcheckLog::MemcheckLog() {
  const Settings& settings = TheSettings();
  leak_check_ = IsOn(settings.leak_check);
  on_ = IsOn(settings.memcheck) || leak_check_;
  if (!on_) return;
  limit_ = static_cast<std::uint32_t>(Number(settings.memcheck_limit, "GRIDLOOM_MEMCHECK_LIMIT", 100));
  exit_code_ = Number(settings.error_exitcode, "GRIDLOOM_ERROR_EXITCODE", 1);
  json_path_ = settings.memcheck_json.value_or("");
  owner_ = getpid();
}

void MemcheckLog::Add(const exec::MemcheckReport& report) { LogText("gridloom: error: " + exec::FormatMemcheck(report) + "\n"); }

void MemcheckLog::BadCall(const char* call, const std::string& what) {
  if (!on_) return;
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find_if(calls_, [&](const Call& c) { return c.call == call && c.what == what; });
    if (known != calls_.end()) {
      ++known->times;
      return;
    }
    if (calls_.size() < limit_) calls_.push_back({call, what});
  }
  LogText("gridloom: error: " + std::string(call) + ": " + what + "\n");
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
      const std::lock_guard lock(mutex_);
      if (std::ranges::find(leaks_, allocation.id, &exec::Allocation::id) == leaks_.end()) leaks_.push_back(allocation);
    }
  }
}

std::string MemcheckLog::Summary(std::uint64_t errors, std::uint64_t accesses, std::uint64_t not_kept) const {
  std::string text = "gridloom: memcheck: ";
  text += errors == 0 ? "no errors" : Plural(errors, "error");
  if (accesses > errors) text += " (" + exec::WithCommas(accesses) + " accesses)";
  if (not_kept != 0)
    text += "; " + Plural(not_kept, "further access") + (not_kept == 1 ? "" : "es") + " beyond the limit of " + Plural(limit_, "error");
  if (leak_check_) text += leaks_.empty() ? "; nothing leaked" : "; " + Plural(leaks_.size(), "allocation") + " leaked";
  return text + "\n";
}

void MemcheckLog::WriteJson(const std::vector<exec::MemcheckReport>& reports, std::uint64_t not_kept) const {
  nlohmann::json json{{"findings", nlohmann::json::array()}, {"calls", nlohmann::json::array()}, {"not_kept", not_kept}};
  for (const exec::MemcheckReport& report : reports) json["findings"].push_back(Json(report));
  for (const Call& call : calls_) json["calls"].push_back({{"call", call.call}, {"what", call.what}, {"times", call.times}});
  if (leak_check_) {
    json["leaks"] = nlohmann::json::array();
    for (const exec::Allocation& leak : leaks_)
      json["leaks"].push_back(
          {{"address", exec::HexAddress(leak.base)}, {"bytes", leak.bytes}, {"allocation", leak.id}, {"what", exec::NameAllocation(leak)}});
  }
  const std::string text = JsonText(json, 2) + "\n";
  if (json_path_ == "-") return LogText(text);
  std::ofstream file(json_path_);
  file << text;
  file.close();
  if (!file) LogFormat(LogLevel::kError, "cannot write memcheck's findings to %s", json_path_.c_str());
}

void MemcheckLog::Finish() {
  if (!on_ || owner_ != getpid() || Process::Get().init_status() != cuda::CUDA_SUCCESS) return;
  exec::Engine::Findings findings;
  for (std::size_t i = 0; i < Process::Get().device_count(); ++i) {
    Device& device = *Process::Get().FindDevice(static_cast<cuda::CUdevice>(i));
    if (device.has_backend()) findings = device.engine().MemcheckFindings();
  }
  NoteAllLeaks();
  for (const exec::Allocation& leak : leaks_) LogText("gridloom: error: leak: " + exec::NameAllocation(leak) + " was never freed\n");
  std::uint64_t accesses = 0;
  for (const exec::MemcheckReport& report : findings.reports) accesses += report.times;
  for (const Call& call : calls_) accesses += call.times;
  const std::uint64_t errors = findings.reports.size() + calls_.size();
  LogText(Summary(errors, accesses, findings.not_kept));
  if (!json_path_.empty()) WriteJson(findings.reports, findings.not_kept);
  if ((errors == 0 && leaks_.empty()) || exit_code_ == 0) return;
  std::fflush(nullptr);
  _exit(exit_code_);
}

}  // namespace gridloom::session
