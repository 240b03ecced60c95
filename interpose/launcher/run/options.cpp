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

Result<std::string> CheckLowering(const std::string& text) {
  if (std::ranges::find(sim::kLoweringNames, text) != sim::kLoweringNames.end()) return text;
  return Error{"--lowering is '" + text + "'; expected none or full"};
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

constexpr Result<std::string> (*AnyText)(const std::string&) = nullptr;

/// "VARIABLE=VALUE,...", and last of all the option's own.
std::vector<Assignment> AssignmentsOf(std::string_view list, std::string_view variable, std::string_view value) {
  std::vector<Assignment> assignments;
  std::istringstream items{std::string(list)};
  for (std::string item; std::getline(items, item, ',');) {
    const std::size_t at = item.find('=');
    assignments.emplace_back(item.substr(0, at), item.substr(at + 1));
  }
  if (!variable.empty()) assignments.emplace_back(variable, value);
  return assignments;
}

/// A meaning of the table without its links: ` ([page](where))` goes, of `[words](where)` the words stay.
std::string WithoutLinks(std::string text) {
  for (std::size_t open = text.find('['); open != std::string::npos; open = text.find('[', open + 1)) {
    const std::size_t middle = text.find("](", open), close = text.find(')', open);
    if (middle == std::string::npos || close == std::string::npos || close < middle) continue;
    if (open >= 2 && text.compare(open - 2, 2, " (") == 0 && text.compare(close, 2, "))") == 0)
      text.erase(open - 2, close + 2 - (open - 2));
    else text = text.substr(0, open) + text.substr(open + 1, middle - open - 1) + text.substr(close + 1);
  }
  return text;
}

RunOption MakeOption(std::string_view flags, std::string_view placeholder, std::vector<Assignment> set,
                     Result<std::string> (*check)(const std::string&), std::string_view meaning) {
  RunOption option{flags, placeholder, WithoutLinks(std::string(meaning)), std::move(set), check};
  option.value_optional = placeholder.starts_with('[');
  if (option.value_optional) option.placeholder = placeholder.substr(1, placeholder.size() - 2);
  return option;
}

const std::vector<RunOption>& Options() {
  static const std::vector<RunOption> options{
#define GL_OPTION(field, variable, value, flags, placeholder, also, check, meaning) \
  MakeOption(flags, placeholder, AssignmentsOf(also, variable, value), check, meaning),
#define GL_SHORT(flags, placeholder, sets, check, meaning) \
  MakeOption(flags, placeholder, AssignmentsOf(sets, "", ""), check, meaning),
#include "interpose/settings/settings.def"
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
