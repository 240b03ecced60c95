#include "interpose/base/refusals.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>

#include "interpose/base/at_end.h"
#include "interpose/base/log.h"
#include "interpose/base/settings.h"
#include "interpose/base/summary.h"
#include "rewriter/support/json.h"

namespace gridloom::session {
namespace {

constexpr const char* kKindNames[] = {"call", "kernel", "module"};
/// A program that asks for ever new names, of kernels that it makes, is told of this many.
constexpr std::size_t kMost = 10'000;
constexpr std::size_t kLongestWhy = 2'000;

/// Appended whole: processes of one program share the file.
void Append(const std::string& path, const std::string& line) {
  if (path == "-") return LogText(line);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
  const bool written = fd >= 0 && write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int error = errno;
  if (fd >= 0) close(fd);
  static bool told = false;
  if (!written && !std::exchange(told, true))
    LogFormat(LogLevel::kError, "cannot write the report of what is not supported to %s: %s", path.c_str(),
              std::strerror(error));
}

/// A sentence, or a headline with the line behind it that says more.
std::string FirstLines(const std::string& text) {
  const std::size_t first = text.find('\n');
  if (first == std::string::npos || !text.substr(0, first).ends_with(':')) return text.substr(0, first);
  return text.substr(0, first) + " " + text.substr(first + 1, text.find('\n', first + 1) - first - 1);
}

class Refusals {
 public:
  Refusals() : path_(TheSettings().report_unsupported.value_or("")) {
    if (!path_.empty()) AtEnd([this] { LogText(Table()); });
  }

  void Note(RefusedKind kind, std::string_view name, std::string_view why, std::string_view library) {
    if (path_.empty()) return;
    const std::lock_guard lock(mutex_);
    const std::string_view known = !name.empty() ? name : !library.empty() ? library : "(made at run time)";
    const Key key{kind, std::string(known), std::string(library)};
    const auto [found, added] = all_.try_emplace(key, std::string(why.substr(0, kLongestWhy)), 0);
    if (added && all_.size() > kMost) {
      all_.erase(found);
      ++left_out_;
      return;
    }
    ++found->second.second;
    if (added) Append(path_, Line(key, found->second.first));
  }

 private:
  using Key = std::tuple<RefusedKind, std::string, std::string>;

  static std::string Line(const Key& key, const std::string& why) {
    const auto& [kind, name, library] = key;
    nlohmann::ordered_json line;
    line["kind"] = kKindNames[static_cast<unsigned>(kind)];
    line["name"] = name;
    if (!library.empty()) line["library"] = library;
    line["why"] = why;
    line["program"] = program_invocation_short_name;
    line["process"] = getpid();
    return JsonText(line) + "\n";
  }

  std::string Table() const {
    const std::lock_guard lock(mutex_);
    if (all_.empty()) return "\ngridloom: everything that the program asked for is supported\n";
    std::string text = Format("\ngridloom: %zu thing%s of this program cannot run\n%-7s %-44s %6s  why\n", all_.size(),
                              all_.size() == 1 ? "" : "s", "what", "name", "times");
    for (const auto& [key, value] : all_) {
      const auto& [kind, name, library] = key;
      const auto& [why, count] = value;
      const std::string shown = kind == RefusedKind::kKernel ? ShortKernelName(name, 44) : name;
      text += Format("%-7s %-44s %6llu  ", kKindNames[static_cast<unsigned>(kind)], shown.c_str(),
                     static_cast<unsigned long long>(count)) +
              FirstLines(why) + (library.empty() ? "" : " (" + library + ")") + "\n";
    }
    if (left_out_ != 0)
      text += Format("and %llu more, which are not listed\n", static_cast<unsigned long long>(left_out_));
    return text;
  }

  const std::string path_;
  mutable std::mutex mutex_;
  std::map<Key, std::pair<std::string, std::uint64_t>> all_;  ///< why, and how often
  std::uint64_t left_out_ = 0;
};

/// Never destroyed: programs are refused code while they end, too.
Refusals& TheRefusals() {
  static Refusals* const refusals = new Refusals;
  return *refusals;
}

}  // namespace

void WatchRefusals() { TheRefusals(); }

void NoteRefused(RefusedKind kind, std::string_view name, std::string_view why, std::string_view library) {
  TheRefusals().Note(kind, name, why, library);
}

}  // namespace gridloom::session
