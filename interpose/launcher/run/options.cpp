#include "interpose/launcher/run/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <sstream>

#include "rewriter/passes/consolidate.h"
#include "rewriter/support/quantity.h"
#include "rewriter/support/suggest.h"
#include "rewriter/support/whole_file.h"
#include "scheduler/model/profile_file.h"
#include "scheduler/policy/builtin.h"
#include "sim/device/device_files.h"
#include "sim/exec/memcheck_filter.h"
#include "sim/exec/reorder/setting.h"
#include "sim/trace/range_forms.h"

namespace gridloom::launcher {
namespace {

namespace fs = std::filesystem;

Result<std::string> CheckDevice(const std::string& name) {
  if (name == "real") return name;
  GL_TRY(device, sim::LoadDevice(name));
  // The program may change its folder before the shim reads the file.
  const bool is_file = name.find('/') != std::string::npos || name.ends_with(".yaml");
  return is_file ? fs::absolute(name).string() : name;
}

Result<std::string> CheckTimedDevice(const std::string& name) {
  if (name == "real")
    return Error{"--timing-device is 'real'; expected a device that `gridloom devices` lists, or a YAML file"};
  return CheckDevice(name);
}

Result<std::string> CheckLevel(const std::string& level) {
  static constexpr std::array<std::string_view, 6> kLevels{"off", "error", "warn", "info", "debug", "trace"};
  if (std::ranges::find(kLevels, level) != kLevels.end()) return level;
  const std::string_view nearest = NearestName(level, kLevels);
  return Error{"--log is '" + level + "'; expected off, error, warn, info, debug or trace" +
               (nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?")};
}

Result<std::string> CheckThreadCount(const char* option, const std::string& text, unsigned most) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && value != 0 && value <= most) return text;
  return Error{std::string(option) + " is '" + text + "'; expected a number from 1 to " + std::to_string(most)};
}

Result<std::string> CheckThreads(const std::string& text) { return CheckThreadCount("--threads", text, 1024); }

Result<std::string> CheckTimingThreads(const std::string& text) {
  return CheckThreadCount("--timing-threads", text, 256);
}

Result<std::string> CheckPolicy(const std::string& name) {
  if (name == kTaskPolicy) return name;
  GL_TRY(policy, policy::FindPolicy(name));
  return std::string(policy->name);
}

Result<std::string> CheckTaskThreads(const std::string& text) {
  return CheckThreadCount("--task-threads", text, 1'000'000);
}

Result<std::string> CheckProfiles(const std::string& path) {
  GL_TRY(file, model::LoadProfiles(path));
  static_cast<void>(file);
  return fs::absolute(path).string();
}

Result<std::string> CheckNumber(const char* option, const std::string& text, unsigned most) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && value <= most) return text;
  return Error{std::string(option) + " is '" + text + "'; expected a number from 0 to " + std::to_string(most)};
}

Result<std::string> CheckSlice(const std::string& text) { return CheckNumber("--slice", text, 0x7FFFFFFF); }

Result<std::string> CheckConsolidate(const std::string& text) {
  const auto options = passes::ParseConsolidateOptions(text);
  if (options.ok()) return text;
  return Error{"--consolidate is " + options.error().message};
}

Result<std::string> CheckForm(const std::string& text) {
  if (text == "interval" || text == "strided") return text;
  return Error{"--check-ranges is '" + text + "'; expected interval or strided"};
}

Result<std::string> CheckRangeLaunches(const std::string& text) {
  return CheckNumber("--check-range-launches", text, 1'000'000'000);
}

Result<std::string> CheckReorder(const std::string& text) {
  if (exec::ParseReorder(text)) return text;
  return Error{"--reorder is '" + text + "'; expected a number, alone or with :interval or :strided behind it"};
}

Result<std::string> CheckCount(const std::string& text) { return CheckNumber("--memcheck-limit", text, 1'000'000); }

Result<std::string> CheckKinds(const std::string& text) {
  exec::MemcheckFilter filter;
  if (const Status status = filter.Choose(text); !status.ok())
    return Error{"--memcheck-checks: " + status.error().message};
  return text;
}

Result<std::string> CheckSuppressions(const std::string& path) {
  GL_TRY(text, ReadWholeFile(path));
  exec::MemcheckFilter filter;
  if (const Status status = filter.Suppress(text); !status.ok())
    return Error{"--memcheck-suppressions: " + path + ": " + status.error().message};
  return fs::absolute(path).string();
}

Result<std::string> CheckExitCode(const std::string& text) { return CheckNumber("--error-exitcode", text, 255); }

Result<std::string> CheckMemory(const std::string& text) {
  constexpr std::uint64_t kAny = 1'000'000;  // a share of something; of how much does not matter
  if (const auto bytes = ParseBytes(text, kAny); bytes && *bytes != 0) return text;
  return Error{"--memory is '" + text + "'; expected a size such as 512M or 8G, or a share such as 50%"};
}

Result<std::string> CheckVersion(const std::string& text) {
  if (ParseCudaVersion(text)) return text;
  return Error{"--driver-version is '" + text + "'; expected a version such as 13.4"};
}

Result<std::string> CheckTracedLaunches(const std::string& text) {
  if (ParseNumberRange(text)) return text;
  return Error{"--trace-launches is '" + text + "'; expected a number or a range: 7, 7- or 7-20"};
}

Result<std::string> CheckTracedCtas(const std::string& text) {
  if (const auto most = ParseNumberRange(text); most && most->first != 0 && most->first == most->last) return text;
  return Error{"--trace-ctas is '" + text + "'; expected a number above 0"};
}

Result<std::string> CheckRanges(const std::string& text) {
  const auto forms = trace::ParseRangeForms(text);
  if (forms.ok()) return text;
  return Error{"--ranges is " + forms.error().message};
}

Result<std::string> CheckStorage(const std::string& text) {
  if (const auto rate = ParseRate(text)) return std::to_string(*rate);
  return Error{"--storage is '" + text + "'; expected a rate from 1 MB/s to 1000 GB/s, such as 500MB/s"};
}

/// The file may be there or not, but its folder has to be.
Result<std::string> CheckOutput(const std::string& path) {
  const fs::path whole = fs::absolute(path);
  std::error_code error;
  if (!fs::is_directory(whole.parent_path(), error))
    return Error{"cannot write " + path + ": no folder " + whole.parent_path().string()};
  if (fs::is_directory(whole, error)) return Error{"cannot write " + path + ": it is a folder"};
  return whole.string();
}

Result<std::string> CheckJson(const std::string& path) { return path == "-" ? path : CheckOutput(path); }

Result<std::string> AbsolutePath(const std::string& path) { return fs::absolute(path).string(); }

Result<std::string> CheckCache(const std::string& path) { return path == "off" ? path : fs::absolute(path).string(); }

Result<std::string> CheckSocket(const std::string& path) { return path.empty() ? "1" : fs::absolute(path).string(); }

Result<std::string> CheckLoss(const std::string& text) {
  if (text == "embedded" || text == "fail") return text;
  return Error{"--on-broker-loss is '" + text + "'; expected embedded or fail"};
}

const std::vector<RunOption>& Options() {
  static const std::vector<RunOption> options{
      {"--device,-d",
       "NAME|FILE",
       "virtual GPU: a name that `gridloom devices` lists, a YAML file, or `real` for the GPU of this machine",
       {{"GRIDLOOM_DEVICE", "{}"}},
       CheckDevice},
      {"--memory",
       "SIZE",
       "device memory: 4G, 512M, or a share of this machine's such as 50%",
       {{"GRIDLOOM_MEMORY", "{}"}},
       CheckMemory},
      {"--threads",
       "N",
       "host threads that run kernels (default: one per core)",
       {{"GRIDLOOM_THREADS", "{}"}},
       CheckThreads},
      {"--driver-version",
       "VERSION",
       "driver version that the program sees (default: 13.0), for programs of newer toolkits that compare it",
       {{"GRIDLOOM_DRIVER_VERSION", "{}"}},
       CheckVersion},
      {"--slice",
       "N",
       "run every grid as slices of at most N thread blocks; what cannot be sliced runs whole, and --summary says why",
       {{"GRIDLOOM_SLICE", "{}"}},
       CheckSlice},
      {"--aggregate",
       "",
       "launches by kernels that nothing waits for become groups of thread blocks, which may join kernels that run "
       "(--hardware dtbl); "
       "--summary says which do not, and why",
       {{"GRIDLOOM_AGGREGATE", "1"}},
       nullptr},
      {"--consolidate",
       "FORM",
       "launches by kernels that nothing waits for become one for many; FORM is warp, block or grid, with :N behind it "
       "for launches of "
       "fewer "
       "than N threads to be the work of the launching thread; --summary says which do not, and why",
       {{"GRIDLOOM_CONSOLIDATE", "{}"}},
       CheckConsolidate},
      {"--check-ranges",
       "FORM",
       "profile every grid first, and compare the ranges it reports with the pages it touches; FORM is interval or "
       "strided",
       {{"GRIDLOOM_CHECK_RANGES", "{}"}},
       CheckForm},
      {"--check-range-launches",
       "N",
       "--check-ranges, in the first N launches of each kernel (default: in all); later ones run as they are",
       {{"GRIDLOOM_CHECK_RANGE_LAUNCHES", "{}"}},
       CheckRangeLaunches},
      {"--reorder",
       "SEED[:FORM]",
       "mix the thread blocks of launches that follow each other, in an order drawn with SEED that their ranges allow; "
       "FORM is strided "
       "(default) or interval",
       {{"GRIDLOOM_REORDER", "{}"}},
       CheckReorder},
      {"--memcheck",
       "",
       "check every access of every kernel and name each bad one; exit code 1 when there are any",
       {{"GRIDLOOM_MEMCHECK", "1"}},
       nullptr},
      {"--leak-check",
       "",
       "--memcheck, and at exit name the memory that was not freed and the objects that were not destroyed",
       {{"GRIDLOOM_MEMCHECK", "1"}, {"GRIDLOOM_LEAK_CHECK", "1"}},
       nullptr},
      {"--memcheck-limit",
       "N",
       "--memcheck, and report at most N different errors (default: 100)",
       {{"GRIDLOOM_MEMCHECK", "1"}, {"GRIDLOOM_MEMCHECK_LIMIT", "{}"}},
       CheckCount},
      {"--memcheck-checks",
       "KIND,…",
       "--memcheck, and report findings of these kinds only: out-of-bounds, use-after-free, misaligned, read-only, "
       "uninitialised, race, "
       "invalid-free, unfinished-copy, barrier-divergence, sync-mask, sync-missing, shuffle-source, stream-order, "
       "mbarrier, call, fault, "
       "leak, "
       "object-leak",
       {{"GRIDLOOM_MEMCHECK", "1"}, {"GRIDLOOM_MEMCHECK_CHECKS", "{}"}},
       CheckKinds},
      {"--memcheck-suppressions",
       "FILE",
       "--memcheck, and do not report the findings that FILE names",
       {{"GRIDLOOM_MEMCHECK", "1"}, {"GRIDLOOM_MEMCHECK_SUPPRESSIONS", "{}"}},
       CheckSuppressions},
      {"--memcheck-host-stacks",
       "",
       "--memcheck, and say where the program allocated and freed the memory and launched the kernel",
       {{"GRIDLOOM_MEMCHECK", "1"}, {"GRIDLOOM_MEMCHECK_HOST_STACKS", "1"}},
       nullptr},
      {"--memcheck-json",
       "FILE",
       "--memcheck, and write what it found as JSON at exit; `-` for stderr",
       {{"GRIDLOOM_MEMCHECK", "1"}, {"GRIDLOOM_MEMCHECK_JSON", "{}"}},
       CheckJson},
      {"--initcheck",
       "",
       "--memcheck, and tell of copies to the host, and atomic operations, of global memory that nobody has written",
       {{"GRIDLOOM_MEMCHECK", "1"}, {"GRIDLOOM_INITCHECK", "1"}},
       nullptr},
      {"--report-api-errors",
       "",
       "--memcheck, and count calls of CUDA that fail as errors, too",
       {{"GRIDLOOM_MEMCHECK", "1"}, {"GRIDLOOM_REPORT_API_ERRORS", "1"}},
       nullptr},
      {"--error-exitcode",
       "N",
       "exit code when memcheck found something (default: 1; 0: the program's own)",
       {{"GRIDLOOM_ERROR_EXITCODE", "{}"}},
       CheckExitCode},
      {"--trace",
       "FILE",
       "write a trace of the program's launches, for replay on the timing model",
       {{"GRIDLOOM_TRACE", "{}"}},
       CheckOutput},
      {"--trace-kernels",
       "TEXT,...",
       "trace only kernels with one of these texts in their names",
       {{"GRIDLOOM_TRACE_KERNELS", "{}"}},
       nullptr},
      {"--trace-launches",
       "RANGE",
       "trace only launches with these numbers from 0: 7, 7- or 7-20",
       {{"GRIDLOOM_TRACE_LAUNCHES", "{}"}},
       CheckTracedLaunches},
      {"--trace-ctas",
       "N",
       "trace at most about N CTAs of each launch, evenly spread",
       {{"GRIDLOOM_TRACE_CTAS", "{}"}},
       CheckTracedCtas},
      {"--ranges",
       "FORM,...",
       "with --trace, trace each launch's profiler and its kernel with release code, too; with --policy crcs-... or "
       "--hardware crcs, the "
       "ranges that time is simulated with; FORM is interval or strided",
       {{"GRIDLOOM_RANGES", "{}"}},
       CheckRanges},
      {"--record-order",
       "",
       "with --trace or --timing, note in which order the program fills the pinned memory that it copies to the device",
       {{"GRIDLOOM_RECORD_ORDER", "1"}},
       nullptr},
      {"--timing",
       "",
       "simulate time on the device, too: events then read simulated time, and a table shows what the kernels took",
       {{"GRIDLOOM_TIMING", "1"}},
       nullptr},
      {"--policy,-p",
       "NAME",
       "--timing, with launches scheduled by this policy (default: leftover); `pagoda`, which simulates nothing: "
       "launches of few threads "
       "run as "
       "tasks of a kernel that stays, and --summary says which do not, and why",
       {{"GRIDLOOM_TIMING", "1"}, {"GRIDLOOM_POLICY", "{}"}},
       CheckPolicy},
      {"--task-threads",
       "N",
       "--policy pagoda, with launches of fewer than N threads in all as tasks (default: 512)",
       {{"GRIDLOOM_POLICY", std::string(kTaskPolicy)}, {"GRIDLOOM_TASK_THREADS", "{}"}},
       CheckTaskThreads},
      {"--profiles",
       "FILE",
       "--timing, with profiles of kernels from a file, for a policy that needs them (default: kernels are profiled as "
       "they come)",
       {{"GRIDLOOM_TIMING", "1"}, {"GRIDLOOM_PROFILES", "{}"}},
       CheckProfiles},
      {"--timing-device",
       "NAME|FILE",
       "--timing, simulated on another device than the one that the program sees: a program of today on a GPU of old",
       {{"GRIDLOOM_TIMING", "1"}, {"GRIDLOOM_TIMING_DEVICE", "{}"}},
       CheckTimedDevice},
      {"--hardware",
       "NAME,...",
       "--timing, with these proposed parts in place of the device's own (`gridloom hardware` lists them), or `none`",
       {{"GRIDLOOM_TIMING", "1"}, {"GRIDLOOM_HARDWARE", "{}"}},
       nullptr},
      {"--device-launches",
       "FORM",
       "--timing, with kernels that launch kernels as on today's GPUs (cdp; the default) or as thread blocks that join "
       "others (dtbl), or "
       "either "
       "in no time (cdp-ideal, dtbl-ideal)",
       {{"GRIDLOOM_TIMING", "1"}, {"GRIDLOOM_DEVICE_LAUNCHES", "{}"}},
       nullptr},
      {"--set",
       "KEY=VALUE,...",
       "--timing, with these values for keys of the device file, or hardware.PART.KEY",
       {{"GRIDLOOM_TIMING", "1"}, {std::string(kTimingSet), "{}"}},
       nullptr},
      {"--storage",
       "RATE",
       "--timing, with inputs read from storage at this rate before they are copied, and results written: 500MB/s, "
       "7GB/s",
       {{"GRIDLOOM_TIMING", "1"}, {std::string(kTimingSet), "timing.host.storage_mb_s={}"}},
       CheckStorage},
      {"--timing-json",
       "FILE",
       "--timing, and write its table as JSON at exit; `-` for stderr",
       {{"GRIDLOOM_TIMING", "1"}, {"GRIDLOOM_TIMING_JSON", "{}"}},
       CheckJson},
      {"--timing-threads",
       "N",
       "host threads that simulate time (default: 1); simulated times are the same",
       {{"GRIDLOOM_TIMING_THREADS", "{}"}},
       CheckTimingThreads},
      {"--connect",
       "SOCKET",
       "join the broker (`gridloom daemon`) on the usual socket, or on the one given as --connect=SOCKET",
       {{"GRIDLOOM_CONNECT", "{}"}},
       CheckSocket,
       true},
      {"--tenant", "NAME", "broker: the tenant to be (default: the user's own)", {{"GRIDLOOM_TENANT", "{}"}}, nullptr},
      {"--token-file",
       "FILE",
       "broker: file with the secret of that tenant",
       {{"GRIDLOOM_TOKEN_FILE", "{}"}},
       AbsolutePath},
      {"--on-broker-loss",
       "CHOICE",
       "when the broker goes: embedded (go on without it; the default) or fail (end with an error)",
       {{"GRIDLOOM_ON_BROKER_LOSS", "{}"}},
       CheckLoss},
      {"--summary,-s",
       "",
       "at the end, show which kernels ran, how often and how long",
       {{"GRIDLOOM_SUMMARY", "1"}},
       nullptr},
      {"--quiet,-q",
       "",
       "no messages of Gridloom's but errors",
       {{"GRIDLOOM_SUMMARY", "0"}, {"GRIDLOOM_LOG", "error"}},
       nullptr},
      {"--log", "LEVEL", "off, error, warn (default), info, debug or trace", {{"GRIDLOOM_LOG", "{}"}}, CheckLevel},
      {"--log-file", "FILE", "append the log to a file instead of stderr", {{"GRIDLOOM_LOG_FILE", "{}"}}, CheckOutput},
      {"--cache",
       "FOLDER|off",
       "where compiled kernels are kept (default: ~/.cache/gridloom)",
       {{"GRIDLOOM_CACHE_DIR", "{}"}},
       CheckCache},
  };
  return options;
}

/// True when `argument` is an option whose value is the next argument.
bool TakesNext(const std::string& argument) {
  for (const RunOption& option : Options()) {
    if (option.placeholder.empty() || option.value_optional) continue;
    std::istringstream flags{std::string(option.flags)};
    for (std::string flag; std::getline(flags, flag, ',');) {
      if (flag == argument) return true;
    }
  }
  return false;
}

}  // namespace

std::span<const RunOption> RunOptions() { return Options(); }

Result<std::vector<Assignment>> Assignments(const RunOption& option, const std::string& value) {
  std::string checked = value;
  if (option.check != nullptr) {
    GL_TRY(result, option.check(value));
    checked = std::move(result);
  }
  std::vector<Assignment> assignments = option.set;
  if (checked == kTaskPolicy)
    std::erase_if(assignments, [](const Assignment& assignment) { return assignment.first == "GRIDLOOM_TIMING"; });
  for (Assignment& assignment : assignments) {
    if (const std::size_t at = assignment.second.find("{}"); at != std::string::npos)
      assignment.second.replace(at, 2, checked);
  }
  return assignments;
}

RunArguments SplitRunArguments(const std::vector<std::string>& arguments) {
  RunArguments split;
  for (auto argument = arguments.begin(); argument != arguments.end(); ++argument) {
    if (*argument == "--") {
      split.program.assign(argument + 1, arguments.end());
      break;
    }
    if (!argument->starts_with('-')) {
      split.program.assign(argument, arguments.end());
      break;
    }
    split.own.push_back(*argument);
    if (TakesNext(*argument) && argument + 1 != arguments.end()) split.own.push_back(*++argument);
  }
  return split;
}

}  // namespace gridloom::launcher
