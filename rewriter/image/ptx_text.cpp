#include "rewriter/image/ptx_text.h"

#include <algorithm>
#include <charconv>

namespace gridloom::image {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";

/// Cuts blanks and comments off the front.
void SkipBlanks(std::string_view& text) {
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    std::string_view close;
    if (text.starts_with("//")) close = "\n";
    else if (text.starts_with("/*")) close = "*/";
    else return;
    const std::size_t end = text.find(close, 2);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + close.size());
  }
}

std::optional<std::uint32_t> TakeNumber(std::string_view& text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool Take(std::string_view& text, std::string_view token) {
  if (!text.starts_with(token)) return false;
  text.remove_prefix(token.size());
  return true;
}

}  // namespace

std::optional<Arch> ParseArch(std::string_view text) {
  if (!Take(text, "sm_") && !Take(text, "compute_") && !Take(text, "lto_")) return std::nullopt;
  const auto number = TakeNumber(text);
  if (!number || *number > 999) return std::nullopt;
  Arch arch{ComputeCapability::FromSm(*number)};
  if (text == "a") arch.scope = ArchScope::kExact;
  else if (text == "f") arch.scope = ArchScope::kFamily;
  else if (!text.empty()) return std::nullopt;
  return arch;
}

std::optional<PtxHeader> ReadPtxHeader(std::string_view text) {
  SkipBlanks(text);
  if (!Take(text, ".version")) return std::nullopt;
  SkipBlanks(text);
  const auto major = TakeNumber(text);
  if (!major || !Take(text, ".")) return std::nullopt;
  const auto minor = TakeNumber(text);
  if (!minor) return std::nullopt;
  PtxHeader header{*major, *minor, {}};
  SkipBlanks(text);
  if (!Take(text, ".target")) return header;
  SkipBlanks(text);
  const std::string_view target = text.substr(0, text.find_first_of(" \t\r\n\v\f,;/"));
  if (const auto arch = ParseArch(target)) header.arch = *arch;
  return header;
}

}  // namespace gridloom::image
