#include "sim/exec/runtime/processor_choices.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <mutex>

#include "sim/exec/runtime/code_cache.h"
#include "sim/exec/simd.h"

namespace gridloom::exec {
namespace {

/// Raised when the measurements or what is kept of them change.
constexpr std::uint32_t kFormat = 2;

/// Below this a difference may be noise, and the other way is the one with less code.
constexpr double kClearly = 1.1;
/// A lane's own round has more to it than its loads: tests of its addresses, and its end. Zen 3 has 1.3 to 2.2, and
/// goes through a graph in 6.6 ms with all lanes one by one, in 9.8 with up to 16.
constexpr double kFar = 1.2;

/// The kind of processor, as it names itself, and the instructions that may be used: a name for a file.
std::string NameOfProcessor() {
  std::uint32_t words[32] = {kFormat, static_cast<std::uint32_t>(UsableSimd())};
#if defined(__x86_64__)
  std::size_t count = 2;
  for (const std::uint32_t leaf : {0u, 0x80000002u, 0x80000003u, 0x80000004u}) {  // maker and brand
    __get_cpuid(leaf, &words[count], &words[count + 1], &words[count + 2], &words[count + 3]);
    count += 4;
  }
  std::uint32_t ignored = 0;
  __get_cpuid(1, &words[count], &ignored, &ignored, &ignored);  // family, model, stepping
#endif
  char name[48];
  std::snprintf(name, sizeof name, "processor-%016llx.txt",
                static_cast<unsigned long long>(XXH3_64bits(words, sizeof words)));
  return name;
}

/// For processes with several engines, and without a cache.
ProcessorTimes MeasuredOnce() {
  static std::mutex mutex;
  static std::map<SimdLevel, ProcessorTimes> measured;
  const std::lock_guard lock(mutex);
  const SimdLevel level = UsableSimd();
  const auto found = measured.find(level);
  return found != measured.end() ? found->second : measured[level] = MeasureProcessor();
}

bool IsRatio(double ratio) { return ratio > 0.001 && ratio < 1000; }

}  // namespace

std::string ProcessorTimes::Text() const {
  // In thousandths: a program's locale may write numbers with a comma.
  const auto thousandths = [](double ratio) { return std::to_string(std::llround(ratio * 1000)); };
  return "ahead " + thousandths(ahead_gain) + " few " + thousandths(few_gain) + " all " + thousandths(all_gain) +
         " halves " + (halves ? "1" : "0") + "\n";
}

std::optional<ProcessorTimes> ProcessorTimes::Parse(std::string_view text) {
  ProcessorTimes times;
  int ahead = 0, few = 0, all = 0, end = 0, halves = 0;
  const std::string line(text);
  if (std::sscanf(line.c_str(), "ahead %d few %d all %d halves %d\n%n", &ahead, &few, &all, &halves, &end) != 4)
    return std::nullopt;
  times.ahead_gain = ahead / 1000.0;
  times.few_gain = few / 1000.0;
  times.all_gain = all / 1000.0;
  const bool good =
      IsRatio(times.ahead_gain) && IsRatio(times.few_gain) && IsRatio(times.all_gain) && (halves == 0 || halves == 1);
  if (static_cast<std::size_t>(end) != line.size() || !good) return std::nullopt;
  times.halves = halves == 1;
  return times;
}

ProcessorChoices ChoicesOf(const ProcessorTimes& times) {
  ProcessorChoices choices{.fetch_ahead = times.ahead_gain > kClearly};
  if (times.few_gain > kClearly) choices.few_lanes = 16;
  if (times.all_gain > kFar && !times.halves) choices.few_lanes = 32;
  return choices;
}

Status ApplyChoices(std::string_view text, ProcessorChoices& choices) {
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    if (item == "fetch-ahead=yes") choices.fetch_ahead = true;
    else if (item == "fetch-ahead=no") choices.fetch_ahead = false;
    else if (item == "few-lanes=8") choices.few_lanes = 8;
    else if (item == "few-lanes=16") choices.few_lanes = 16;
    else if (item == "few-lanes=32") choices.few_lanes = 32;
    else
      return Error{"GRIDLOOM_CODE: \"" + std::string(item.substr(0, 60)) +
                   "\" is none of fetch-ahead=yes, fetch-ahead=no, few-lanes=8, few-lanes=16, few-lanes=32"};
  }
  return {};
}

KnownProcessor KnowProcessor(CodeCache& cache) {
  const std::string name = NameOfProcessor();
  if (const auto text = cache.LoadText(name)) {
    if (const auto times = ProcessorTimes::Parse(*text)) return {.times = *times};
  }
  const ProcessorTimes times = MeasuredOnce();
  cache.StoreText(name, times.Text());
  return {.times = times, .measured_now = true};
}

}  // namespace gridloom::exec
