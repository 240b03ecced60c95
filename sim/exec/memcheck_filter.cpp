#include "sim/exec/memcheck_filter.h"

#include <algorithm>

#include "rewriter/support/demangle.h"

namespace gridloom::exec {
namespace {

constexpr std::string_view kKinds[] = {
    "out-of-bounds", "use-after-free", "misaligned",      "read-only",          "uninitialised",
    "race",          "invalid-free",   "unfinished-copy", "barrier-divergence", "sync-mask",
    "sync-missing",  "shuffle-source", "stream-order",    "mbarrier",           "call",
    "fault",         "leak",           "object-leak"};

constexpr std::string_view kIn = " in ";  // between a kernel and its library

bool IsKind(std::string_view text) { return std::ranges::find(kKinds, text) != std::end(kKinds); }

std::string AllKinds() {
  std::string text;
  for (const std::string_view kind : kKinds) text += (text.empty() ? "" : ", ") + std::string(kind);
  return text;
}

/// The whole of `text`, with * for any characters and ? for one.
bool Matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, after_star = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::string_view Trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

}  // namespace

Status MemcheckFilter::Choose(std::string_view kinds) {
  std::vector<std::string> chosen;
  while (true) {
    const std::size_t comma = kinds.find(',');
    const std::string_view kind = Trimmed(kinds.substr(0, comma));
    if (!IsKind(kind)) return Error{"'" + std::string(kind) + "' is no kind of finding; there are " + AllKinds()};
    chosen.emplace_back(kind);
    if (comma == std::string_view::npos) break;
    kinds.remove_prefix(comma + 1);
  }
  chosen_ = std::move(chosen);
  return {};
}

Status MemcheckFilter::Suppress(std::string_view text) {
  std::vector<Suppression> suppressed;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line[0] == '#') continue;
    const std::size_t space = std::min(line.find_first_of(" \t"), line.size());
    const std::string_view kind = line.substr(0, space), rest = Trimmed(line.substr(space));
    const std::size_t in = std::min(rest.rfind(kIn), rest.size());
    const std::string_view name = Trimmed(rest.substr(0, in));
    const std::string_view library = in == rest.size() ? "*" : Trimmed(rest.substr(in + kIn.size()));
    const std::string where = "line " + std::to_string(number) + ": ";
    if (kind != "*" && !IsKind(kind))
      return Error{where + "'" + std::string(kind) + "' is no kind of finding; there are " + AllKinds()};
    if (name.empty()) return Error{where + "expected a kernel's name behind the kind, or *"};
    suppressed.push_back({std::string(kind), std::string(name), std::string(library)});
  }
  suppressed_ = std::move(suppressed);
  return {};
}

bool MemcheckFilter::Wants(std::string_view kind, std::string_view name, std::string_view library) const {
  if (!chosen_.empty() && std::ranges::find(chosen_, kind) == chosen_.end()) return false;
  if (suppressed_.empty()) return true;
  const std::string whole(name), demangled = DemangledName(whole);
  return std::ranges::none_of(suppressed_, [&](const Suppression& s) {
    return (s.kind == "*" || s.kind == kind) && Matches(s.library, library) &&
           (Matches(s.name, whole) || Matches(s.name, demangled));
  });
}

std::string MemcheckFilter::LineFor(std::string_view kind, std::string_view name, std::string_view library) {
  std::string line = std::string(kind) + " " + std::string(name);
  if (!library.empty()) line += std::string(kIn) + std::string(library);
  return line;
}

}  // namespace gridloom::exec
