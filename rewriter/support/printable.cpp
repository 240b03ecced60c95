#include "rewriter/support/printable.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

namespace gridloom {
namespace {

/// The character that `text` begins with. `bytes` 0: there is none, the first byte is no UTF-8 (RFC 3629).
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

Character First(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (at(i) & 0x3Fu);
  }
  static constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {};
  return {code, bytes};
}

struct Range {
  std::uint32_t first, last;
};

/// What is not printed: Unicode's control characters, its separators of lines, and what changes the direction of text
/// (UAX #9).
constexpr Range kHidden[] = {{0, 0x1F},        {0x7F, 0x9F},     {0x61C, 0x61C},
                             {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069}};

bool Hidden(std::uint32_t code) {
  return std::ranges::any_of(kHidden, [&](const Range& range) { return code >= range.first && code <= range.last; });
}

void AppendEscape(std::string& out, std::uint32_t code, bool json) {
  std::array<char, 8> escape{};
  std::snprintf(escape.data(), escape.size(), json || code > 0xFF ? "\\u%04x" : "\\x%02x", code);
  out += escape.data();
}

/// Length of the code of Coloured() that `text` begins with: ESC [ digits m.
std::size_t ColourCode(std::string_view text) {
  if (!text.starts_with("\033[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789", 2);
  return end != std::string_view::npos && end <= 4 && text[end] == 'm' ? end + 1 : 0;
}

enum class For { kPart, kText, kLines, kJson };

std::size_t Kept(std::string_view text, std::uint32_t code, For what) {
  if (what == For::kPart) return 0;
  if (code == '\n' || code == '\t') return 1;
  return what == For::kLines ? ColourCode(text) : 0;
}

bool IsPlain(char c) { return c >= 0x20 && c < 0x7F; }

std::string Escaped(std::string_view text, For what) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto plain = static_cast<std::size_t>(std::ranges::find_if_not(text, IsPlain) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const Character character = First(text);
    std::size_t used = std::max<std::size_t>(character.bytes, 1);
    const bool whole = character.bytes != 0 || what == For::kJson;  // JSON's bytes are none of this function's business
    if (whole && !Hidden(character.code)) {
      out += text.substr(0, used);
    } else if (const std::size_t kept = whole ? Kept(text, character.code, what) : 0; kept != 0) {
      out += text.substr(0, kept);
      used = kept;
    } else {
      AppendEscape(out, character.bytes != 0 ? character.code : static_cast<unsigned char>(text[0]),
                   what == For::kJson);
    }
    text.remove_prefix(used);
  }
  return out;
}

}  // namespace

std::string Printable(std::string_view text) { return Escaped(text, For::kPart); }
std::string PrintableText(std::string_view text) { return Escaped(text, For::kText); }
std::string PrintableLines(std::string_view text) { return Escaped(text, For::kLines); }
std::string PrintableJson(std::string json) {
  return std::ranges::all_of(json, IsPlain) ? json : Escaped(json, For::kJson);
}

}  // namespace gridloom
