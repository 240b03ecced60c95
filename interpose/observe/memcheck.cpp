#include "interpose/observe/memcheck.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "interpose/base/log.h"
#include "interpose/base/settings.h"
#include "interpose/objects/array.h"
#include "interpose/objects/graph.h"
#include "interpose/objects/process.h"
#include "interpose/objects/texture.h"
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

std::string Plural(std::uint64_t count, const char* thing) {
  return exec::WithCommas(count) + " " + thing + (count == 1 ? "" : "s");
}

nlohmann::json Json(const exec::Dim3& d) { return nlohmann::json::array({d.x, d.y, d.z}); }

nlohmann::json Json(const exec::MemcheckAccess& access) {
  constexpr const char* kKinds[] = {"read", "write", "atomic"};
  nlohmann::json json{{"access", kKinds[static_cast<std::size_t>(access.kind)]}, {"thread", Json(access.thread)}};
  if (access.several) json["several_threads"] = true;
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
  if (exec::IsAccess(report.kind)) {
    json["space"] = kSpaces[static_cast<std::size_t>(report.space)];
    json["address"] = exec::HexAddress(report.address);
  } else {
    json.erase("access");
  }
  json["kernel"] = DemangledName(report.kernel);
  json["symbol"] = report.kernel;
  if (!report.library.empty()) json["library"] = report.library;
  json["cta"] = Json(report.cta);
  json["place"] = report.place;
  json["times"] = report.times;
  json["suppression"] = exec::MemcheckFilter::LineFor(exec::NameOf(report.kind), report.kernel, report.library);
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

namespace {

/// Points into the LaunchScope: a value with a destructor would be registered with the loader, whose lock a host thread
/// may hold that waits for the kernel.
thread_local const HostStackPtr* t_launched_at = nullptr;

/// Tells a finding from the others.
std::string KeyOf(const exec::MemcheckReport& report) {
  return std::string(exec::NameOf(report.kind)) + " " + report.kernel + " " + std::to_string(report.access.ptx_line) +
         " " + std::to_string(report.other ? report.other->ptx_line : 0) + " " +
         std::to_string(static_cast<int>(report.space));
}

}  // namespace

MemcheckLog::LaunchScope::LaunchScope(HostStackPtr stack) : stack_(std::move(stack)) { t_launched_at = &stack_; }
MemcheckLog::LaunchScope::~LaunchScope() { t_launched_at = nullptr; }

void MemcheckLog::NoteAllocation(const exec::DeviceMemory& memory, std::uint64_t address) {
  if (!host_stacks_) return;
  const auto allocation = memory.Find(address);
  if (!allocation) return;
  const std::lock_guard lock(stacks_mutex_);
  stacks_[allocation->id].allocated = HostStack::Here();
}

void MemcheckLog::NoteFree(const exec::DeviceMemory& memory, std::uint64_t address) {
  if (!host_stacks_) return;
  const auto allocation = memory.Find(address);
  if (!allocation) return;
  const std::lock_guard lock(stacks_mutex_);
  stacks_[allocation->id].freed = HostStack::Here();
}

MemcheckLog::Stacks MemcheckLog::StacksOf(std::uint64_t allocation) const {
  if (!host_stacks_) return {};
  const std::lock_guard lock(stacks_mutex_);
  const auto found = stacks_.find(allocation);
  return allocation != 0 && found != stacks_.end() ? found->second : Stacks{};
}

MemcheckLog::Stacks MemcheckLog::StacksOf(const exec::MemcheckReport& report) const {
  if (!host_stacks_) return {};
  Stacks stacks = StacksOf(report.allocation);
  const std::lock_guard lock(stacks_mutex_);
  if (const auto found = launched_.find(KeyOf(report)); found != launched_.end()) stacks.launched = found->second;
  return stacks;
}

std::string MemcheckLog::Text(const Stacks& stacks) {
  return HostStack::Text("launched", stacks.launched) + HostStack::Text("allocated", stacks.allocated) +
         HostStack::Text("freed", stacks.freed);
}

void MemcheckLog::AddTo(nlohmann::json& json, const Stacks& stacks) {
  for (const auto& [key, stack] : {std::pair("launched", stacks.launched), std::pair("allocated", stacks.allocated),
                                   std::pair("freed", stacks.freed)})
    if (stack != nullptr) json["host"][key] = stack->Lines();
}

nlohmann::json MemcheckLog::Json(const exec::MemcheckReport& report) const {
  nlohmann::json json = session::Json(report);
  AddTo(json, StacksOf(report));
  return json;
}

nlohmann::json MemcheckLog::Json(const Leak& leak) const {
  nlohmann::json json{{"bytes", leak.bytes}, {"what", leak.what}};
  if (leak.allocation != 0) {
    json["address"] = exec::HexAddress(leak.address);
    json["allocation"] = leak.allocation;
    AddTo(json, StacksOf(leak.allocation));
  }
  return json;
}

nlohmann::json MemcheckLog::Json(const Call& call) {
  nlohmann::json json{{"call", call.call}, {"what", call.what}, {"times", call.times}};
  if (call.stack != nullptr) json["host"]["called"] = call.stack->Lines();
  return json;
}

nlohmann::json MemcheckLog::Json(const Fault& fault) {
  return {
      {"kernel", DemangledName(fault.kernel)}, {"symbol", fault.kernel}, {"kind", fault.kind}, {"what", fault.text}};
}

MemcheckLog::MemcheckLog(Process& process) : process_(process) {
  const Settings& settings = TheSettings();
  leak_check_ = IsOn(settings.leak_check);
  reports_calls_ = IsOn(settings.report_api_errors);
  on_ = IsOn(settings.memcheck) || leak_check_ || reports_calls_ || IsOn(settings.initcheck);
  if (!on_) return;
  host_stacks_ = IsOn(settings.memcheck_host_stacks);
  limit_ = static_cast<std::uint32_t>(Number(settings.memcheck_limit, "GRIDLOOM_MEMCHECK_LIMIT", 100));
  exit_code_ = Number(settings.error_exitcode, "GRIDLOOM_ERROR_EXITCODE", 1);
  json_path_ = settings.memcheck_json.value_or("");
  if (IsOn(settings.initcheck)) written_ = std::make_unique<exec::GlobalShadow>();
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
  if (!status.ok())
    LogFormat(LogLevel::kWarn, "GRIDLOOM_MEMCHECK_SUPPRESSIONS: %s: %s", path.c_str(), status.error().message.c_str());
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
  if (finished_.load() || !Wants(report)) return;
  if (!filter_.empty()) {
    const std::lock_guard lock(mutex_);
    if (told_ >= limit_) return;
    ++told_;
  }
  if (host_stacks_ && t_launched_at != nullptr && *t_launched_at != nullptr) {
    const std::lock_guard lock(stacks_mutex_);
    launched_.try_emplace(KeyOf(report), *t_launched_at);
  }
  LogText("gridloom: error: " + exec::FormatMemcheck(report) + Text(StacksOf(report)) + "\n");
  Journal("finding", Json(report));
}

void MemcheckLog::GridFailed(const exec::Engine& engine, const exec::LaunchFault& fault) {
  if (!on_ || finished_.load() || fault.kind == exec::FaultKind::kStopped) return;
  if (fault.kind == exec::FaultKind::kIllegalAddress || fault.kind == exec::FaultKind::kMisalignedAddress) {
    const exec::Engine::Findings findings = engine.MemcheckFindings();
    if (std::ranges::find(findings.reports, fault.kernel, &exec::MemcheckReport::kernel) != findings.reports.end())
      return;
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

void MemcheckLog::AddLeak(Leak leak) {
  if (!filter_.Wants("leak", leak.what)) return;
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(leaks_, leak.what, &Leak::what) == leaks_.end()) leaks_.push_back(std::move(leak));
}

/// Allocations of one context, with `context` null of all.
void MemcheckLog::NoteAllocations(Device& device, const Context* context) {
  for (const exec::Allocation& allocation : device.memory().List()) {
    const bool here = context == nullptr || allocation.owner == context || allocation.kind == exec::MemoryKind::kPool;
    if (here && IsProgramsOwn(allocation))
      AddLeak({.bytes = allocation.bytes,
               .what = exec::NameAllocation(allocation),
               .address = allocation.base,
               .allocation = allocation.id});
  }
}

namespace {

std::string Sizes(const exec::ImageLevel& level) {
  std::string text = std::to_string(level.width);
  if (level.height > 1 || level.depth > 1) text += " x " + std::to_string(level.height);
  if (level.depth > 1) text += " x " + std::to_string(level.depth);
  return text;
}

std::uint64_t BytesOf(const Array& array) { return array.level().slice_bytes * array.level().depth; }

template <typename Handle>
std::string HandleText(Handle handle) {
  return exec::HexAddress(reinterpret_cast<std::uintptr_t>(handle));
}

}  // namespace

/// Arrays and mipmapped arrays of one context, with `context` null of all.
void MemcheckLog::NoteArrays(const Context* context) {
  std::vector<const Array*> levels;  // those have no memory of their own
  process_.handles.mipmaps.ForEach([&](const std::shared_ptr<MipmappedArray>& mipmap) {
    std::uint64_t bytes = 0;
    for (const auto& level : mipmap->levels()) {
      levels.push_back(level.get());
      bytes += BytesOf(*level);
    }
    if (context != nullptr && &mipmap->context() != context) return;
    const Array& first = *mipmap->levels().front();
    AddLeak({.bytes = bytes,
             .what = "the mipmapped array " + HandleText(mipmap.get()) + " of " + Sizes(first.level()) + " texels, " +
                     std::to_string(mipmap->levels().size()) + " levels and " + Plural(bytes, "byte") +
                     " made by cudaMallocMipmappedArray"});
  });
  process_.handles.arrays.ForEach([&](const std::shared_ptr<Array>& array) {
    if ((context != nullptr && &array->context() != context) || std::ranges::find(levels, array.get()) != levels.end())
      return;
    AddLeak({.bytes = BytesOf(*array),
             .what = "the array " + HandleText(array.get()) + " of " + Sizes(array->level()) + " texels and " +
                     Plural(BytesOf(*array), "byte") + " made by cudaMallocArray"});
  });
}

void MemcheckLog::NoteObjects(const char* sort, std::uint64_t count) {
  if (count == 0 || !filter_.Wants("object-leak", sort)) return;
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(object_leaks_, sort, &ObjectLeak::sort);
  if (known != object_leaks_.end()) known->count += count;
  else object_leaks_.push_back({sort, count});
}

/// Notes the objects that go with their context.
void MemcheckLog::NoteObjectsOf(Context& context) {
  std::uint64_t events = 0;
  process_.handles.events.ForEach(
      [&](const std::shared_ptr<Event>& event) { events += &event->context() == &context ? 1 : 0; });
  NoteObjects("stream", context.created_streams());
  NoteObjects("event", events);
}

void MemcheckLog::NoteLeaks(Context& context) {
  if (!leak_check_) return;
  if (context.device().has_backend()) NoteAllocations(context.device(), &context);
  NoteArrays(&context);
  NoteObjectsOf(context);
}

void MemcheckLog::NoteAllLeaks() {
  if (!leak_check_) return;
  for (std::size_t i = 0; i < process_.device_count(); ++i) {
    Device& device = *process_.FindDevice(static_cast<cuda::CUdevice>(i));
    if (!device.has_backend()) continue;
    NoteAllocations(device, nullptr);
    std::uint64_t number = 0;
    for (const std::uint64_t bytes : device.memory().ListPhysical())
      AddLeak({.bytes = bytes,
               .what = "memory number " + std::to_string(++number) + " of " + Plural(bytes, "byte") +
                       " made by cuMemCreate"});
    const exec::Engine::Findings findings = device.engine().MemcheckFindings();
    if (findings.heap_blocks != 0)
      AddLeak({.bytes = findings.heap_bytes,
               .what = "memory of malloc() in kernels (" + Plural(findings.heap_blocks, "block") + ", " +
                       Plural(findings.heap_bytes, "byte") + ")"});
  }
  NoteArrays(nullptr);
  process_.ForEachContext([&](Context& context) { NoteObjectsOf(context); });
  std::uint64_t graphs = 0;
  process_.handles.graphs.ForEach(
      [&](const std::shared_ptr<Graph>& graph) { graphs += graph.use_count() == 1 ? 1 : 0; });  // not those of a node
  NoteObjects("graph", graphs);
  NoteObjects("executable graph", process_.handles.graph_execs.size());
  NoteObjects("texture object", LiveTextures());
  NoteObjects("surface object", LiveSurfaces());
}

void MemcheckLog::TellLeaks() const {
  for (const Leak& leak : leaks_)
    LogText("gridloom: error: leak: " + leak.what + " was never freed" + Text(StacksOf(leak.allocation)) + "\n");
  for (const ObjectLeak& leak : object_leaks_)
    LogText("gridloom: error: object-leak: " + Plural(leak.count, leak.sort.c_str()) +
            (leak.count == 1 ? " was" : " were") + " never destroyed\n");
}

/// "2 allocations and 3 objects".
std::string MemcheckLog::LeakCounts() const {
  std::uint64_t objects = 0;
  for (const ObjectLeak& leak : object_leaks_) objects += leak.count;
  std::string text = leaks_.empty() ? "" : Plural(leaks_.size(), "allocation");
  if (objects != 0) text += (text.empty() ? "" : " and ") + Plural(objects, "object");
  return text;
}

std::string MemcheckLog::Summary(std::uint64_t errors, std::uint64_t accesses, std::uint64_t not_kept) const {
  std::string text = "gridloom: memcheck: ";
  text += errors == 0 ? "no errors" : Plural(errors, "error");
  if (accesses > errors) text += " (" + exec::WithCommas(accesses) + " accesses)";
  if (not_kept != 0) {
    text += "; " + exec::WithCommas(not_kept) + (not_kept == 1 ? " further access" : " further accesses") +
            " beyond the limit of " + Plural(limit_, "error");
  }
  if (leak_check_)
    text += leaks_.empty() && object_leaks_.empty() ? "; nothing leaked" : "; " + LeakCounts() + " leaked";
  return text + "\n";
}

nlohmann::json MemcheckLog::AllAsJson(const std::vector<exec::MemcheckReport>& reports, std::uint64_t not_kept) const {
  nlohmann::json json{{"findings", nlohmann::json::array()},
                      {"calls", nlohmann::json::array()},
                      {"faults", nlohmann::json::array()},
                      {"not_kept", not_kept}};
  for (const exec::MemcheckReport& report : reports) json["findings"].push_back(Json(report));
  for (const Call& call : calls_) json["calls"].push_back(Json(call));
  for (const Fault& fault : faults_) json["faults"].push_back(Json(fault));
  if (leak_check_) {
    json["leaks"] = nlohmann::json::array();
    for (const Leak& leak : leaks_) json["leaks"].push_back(Json(leak));
    json["object_leaks"] = nlohmann::json::array();
    for (const ObjectLeak& leak : object_leaks_)
      json["object_leaks"].push_back({{"sort", leak.sort}, {"count", leak.count}});
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
  for (; findings.reports.size() > limit_; findings.reports.pop_back())
    findings.not_kept += findings.reports.back().times;
}

namespace {

/// Kernels that run get two seconds to end.
void WaitForWork(const Process& process) {
  constexpr auto kMost = std::chrono::seconds(2);
  const auto end = std::chrono::steady_clock::now() + kMost;
  const auto idle = [&] {
    bool all = true;
    process.ForEachContext([&](Context& context) { all = all && (context.destroyed() || context.AllIdle()); });
    return all;
  };
  while (!idle() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// All findings, after which nothing is found.
exec::Engine::Findings EndFindings(const Process& process) {
  exec::Engine::Findings findings;
  for (std::size_t i = 0; i < process.device_count(); ++i) {
    Device& device = *process.FindDevice(static_cast<cuda::CUdevice>(i));
    if (!device.has_backend()) continue;
    device.engine().EndMemcheck();
    findings = device.engine().MemcheckFindings();
  }
  return findings;
}

}  // namespace

void MemcheckLog::Finish() {
  if (!on_ || owner_ != getpid() || process_.init_status() != cuda::CUDA_SUCCESS) return;
  WaitForWork(process_);
  exec::Engine::Findings findings = EndFindings(process_);
  finished_.store(true);  // what is told from here on would come behind the counts
  KeepWanted(findings);
  NoteAllLeaks();
  TellLeaks();
  const std::lock_guard lock(mutex_);
  std::uint64_t accesses = 0;
  for (const exec::MemcheckReport& report : findings.reports) accesses += report.times;
  for (const Call& call : calls_) accesses += call.times;
  const std::uint64_t errors = findings.reports.size() + calls_.size() + faults_.size();
  LogText(Summary(errors, accesses + faults_.size(), findings.not_kept));
  const nlohmann::json json = AllAsJson(findings.reports, findings.not_kept);
  Journal("end", json);
  if (!json_path_.empty() && journal_ < 0) WriteJson(json);
  if ((errors == 0 && leaks_.empty() && object_leaks_.empty()) || exit_code_ == 0) return;
  std::fflush(nullptr);
  _exit(exit_code_);
}

}  // namespace gridloom::session
