#include "interpose/launcher/inspect/strings.h"

#include <algorithm>

namespace gridloom::launcher {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

/// Whether the word at `at` is the first of its line, and a blank follows it.
bool BeginsLine(std::string_view text, std::size_t at, std::size_t bytes) {
  if (at + bytes >= text.size() || !IsBlank(text[at + bytes])) return false;
  while (at > 0 && IsBlank(text[at - 1])) --at;
  return at == 0 || text[at - 1] == '\n';
}

std::size_t FindDirective(std::string_view text, std::string_view word, std::size_t from) {
  for (std::size_t at = text.find(word, from); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if (BeginsLine(text, at, word.size())) return at;
  }
  return std::string_view::npos;
}

}  // namespace

std::vector<std::string_view> PtxInStrings(std::string_view bytes) {
  constexpr std::string_view kVersion = ".version", kTarget = ".target", kEntry = ".entry";
  std::vector<std::string_view> found;
  for (std::size_t at = bytes.find(kVersion); at != std::string_view::npos;) {
    const std::size_t before = bytes.rfind('\0', at);
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const std::size_t end = std::min(bytes.find('\0', at), bytes.size());
    const std::string_view text = bytes.substr(begin, end - begin);
    const std::size_t version = FindDirective(text, kVersion, 0);
    const std::size_t target = version == std::string_view::npos ? version : FindDirective(text, kTarget, version);
    if (target != std::string_view::npos && text.find(kEntry, target) != std::string_view::npos) found.push_back(text);
    at = bytes.find(kVersion, end);
  }
  return found;
}

}  // namespace gridloom::launcher
