#include "interpose/base/summary.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "interpose/base/at_end.h"
#include "interpose/base/log.h"
#include "interpose/base/settings.h"
#include "interpose/base/slice_size.h"
#include "rewriter/support/demangle.h"

namespace gridloom::session {
namespace {

/// Without the tags that Numba puts behind its functions' names, which tell its compilations apart and are longer than
/// all else.
std::string WithoutTags(std::string name) {
  constexpr std::string_view kTag = "[abi:";
  for (std::size_t at = name.find(kTag); at != std::string::npos; at = name.find(kTag, at)) {
    const std::size_t end = name.find(']', at);
    if (end == std::string::npos) break;
    name.erase(at, end + 1 - at);
  }
  return name;
}

}  // namespace

std::string ShortKernelName(const std::string& name, std::size_t width) {
  // Kernels that `consolidate` and `profile` have added.
  constexpr std::pair<std::string_view, std::string_view> kAdded[] = {{"_gl_merged", " (merged)"},
                                                                      {"__profile", " (profile)"}};
  for (const auto& [suffix, said] : kAdded) {
    if (name.ends_with(suffix))
      return ShortKernelName(name.substr(0, name.size() - suffix.size()), width - said.size()).append(said);
  }
  const std::string whole = WithoutTags(DemangledName(name));
  std::string shown;
  int depth = 0;
  for (const char c : whole) {
    if (c == '<' && depth++ == 0) shown += "<>";
    if (depth == 0 && c == '(' && !shown.ends_with("::")) break;  // not "(anonymous namespace)"
    if (depth == 0 && c == ' ' && shown.find('(') == std::string::npos) shown.clear();
    else if (depth == 0) shown += c;
    if (c == '>' && depth != 0) --depth;
  }
  if (shown.size() > width) shown = "..." + shown.substr(shown.size() - (width - 3));
  return shown;
}

Summary::Summary() : wanted_(IsOn(TheSettings().summary)) {
  if (wanted_) AtEnd([this] { LogText(Text()); });
}

void Summary::Add(const std::string& kernel, const exec::LaunchStats& stats, std::uint64_t slices) {
  if (!wanted_ && !LogEnabled(LogLevel::kDebug)) return;
  GL_LOG(kDebug, "kernel %s: %llu CTAs, %.3f ms, compiled in %.3f ms%s", kernel.c_str(),
         static_cast<unsigned long long>(stats.ctas), stats.seconds * 1e3, stats.compile_seconds * 1e3,
         stats.cache_hit ? " (from cache)" : "");
  const std::lock_guard lock(mutex_);
  Line& line = lines_[kernel];
  ++line.launches;
  line.ctas += stats.ctas;
  line.slices += slices;
  line.interpreted_ctas += stats.interpreted_ctas;
  line.begun_again_ctas += stats.begun_again_ctas;
  line.seconds += stats.seconds;
  line.compile_seconds += stats.compile_seconds;
}

void Summary::NoteWhole(const std::string& kernel, const std::string& why) {
  const std::lock_guard lock(mutex_);
  whole_.emplace(kernel, why);
}

void Summary::NoteLaunch(const std::string& function, std::uint32_t line, const std::string& what) {
  const std::lock_guard lock(mutex_);
  launches_[{function, line}].insert(what);
}

void Summary::NoteTask(const std::string& kernel, const std::string& why_not) {
  if (!wanted_) return;
  const std::lock_guard lock(mutex_);
  ++tasks_[{kernel, why_not}];
}

std::string Summary::Text() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, Line>> rows(lines_.begin(), lines_.end());
  std::ranges::sort(rows, [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  const bool sliced = SliceSize() != 0;
  std::string text = "\ngridloom: no kernel ran\n";
  if (!rows.empty()) {
    text = Format("\ngridloom: %zu kernel%s ran\n%-40s %9s %12s %12s %12s", rows.size(), rows.size() == 1 ? "" : "s",
                  "kernel", "launches", "CTAs", "time ms", "compile ms");
    text += sliced ? Format(" %10s\n", "slices") : "\n";
  }
  for (const auto& [name, line] : rows) {
    text += Format("%-40s %9llu %12llu %12.3f %12.3f", ShortKernelName(name, 40).c_str(),
                   static_cast<unsigned long long>(line.launches), static_cast<unsigned long long>(line.ctas),
                   line.seconds * 1e3, line.compile_seconds * 1e3);
    text += sliced ? Format(" %10llu\n", static_cast<unsigned long long>(line.slices)) : "\n";
  }
  const auto add = [&](const char* what, const std::string& name, std::uint64_t ctas, const Line& line,
                       const char* when) {
    if (ctas == 0) return;
    text += what + ShortKernelName(name, 60);
    text += Format(": %llu of %llu CTAs, %s\n", static_cast<unsigned long long>(ctas),
                   static_cast<unsigned long long>(line.ctas), when);
  };
  for (const auto& [name, line] : rows) {
    add("interpreted: ", name, line.interpreted_ctas, line, "before its machine code was there");
    add("begun again: ", name, line.begun_again_ctas, line, "which were being interpreted when its machine code came");
  }
  for (const auto& [place, all] : launches_) {
    for (const std::string& what : all)
      text += Format("launch: %s, PTX line %u: ", ShortKernelName(place.first, 60).c_str(), place.second) + what + "\n";
  }
  for (const auto& [what, count] : tasks_) {
    const auto& [name, why] = what;
    text += (why.empty() ? "tasks: " : "no tasks: ") + ShortKernelName(name, 60) +
            Format(": %llu launches", static_cast<unsigned long long>(count));
    text += (why.empty() ? "" : ": " + why) + "\n";
  }
  for (const auto& [name, why] : whole_) text += "whole: " + ShortKernelName(name, 60) + ": " + why + "\n";
  return text;
}

}  // namespace gridloom::session
