// What the readers of forms.def have in common: parts of a row's text, types, rows by opcode.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/ptx/ir.h"
#include "rewriter/support/check.h"

namespace gridloom::ptx {

constexpr std::size_t kOpcodeCount = kOpcodeInfo.size();

/// Calls `visit` for each part of a text between separators; empty parts are left out.
template <typename Visit>
void ForEachPart(std::string_view text, char separator, const Visit& visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end != 0) visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// A type, or a group: i16 = u16 s16, x16 = b16 u16 s16.
inline void AppendTypes(std::string_view name, std::vector<ScalarType>& out) {
  if (const auto type = TypeFromText(name)) {
    out.push_back(*type);
    return;
  }
  GL_CHECK(name.front() == 'i' || name.front() == 'x', "forms.def: unknown type");
  for (const char kind : name.front() == 'i' ? std::string_view("us") : std::string_view("usb")) {
    const auto type = TypeFromText(std::string(1, kind) + std::string(name.substr(1)));
    GL_CHECK(type.has_value(), "forms.def: unknown group of types");
    out.push_back(*type);
  }
}

/// Rows of each opcode stand together (checked), so a table per opcode is a range of the rows.
template <typename T>
void IndexByOpcode(std::span<const T> rows, std::array<std::span<const T>, kOpcodeCount>& out) {
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t end = i + 1;
    while (end < rows.size() && rows[end].opcode == rows[i].opcode) ++end;
    auto& slot = out[static_cast<std::size_t>(rows[i].opcode)];
    GL_CHECK(slot.empty(), "forms.def: rows of an opcode must stand together");
    slot = rows.subspan(i, end - i);
    i = end;
  }
}

/// m64n128k16: the shapes of wgmma are too many for a table.
inline bool IsShape(std::string_view text) {
  std::size_t at = 0;
  for (const char letter : {'m', 'n', 'k'}) {
    if (at == text.size() || text[at] != letter) return false;
    const std::size_t digits = ++at;
    while (at != text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    if (at == digits) return false;
  }
  return at == text.size();
}

inline bool HasText(const Instruction& instruction, std::string_view modifier) {
  return std::ranges::find(instruction.modifiers, modifier, &Modifier::text) != instruction.modifiers.end();
}

}  // namespace gridloom::ptx
