// Special registers (PTX ISA, chapter 10), one table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "rewriter/ptx/types.h"

namespace gridloom::ptx {

enum class Special : std::uint8_t {
#define PTX_SPECIAL(name, text, type, components, count, ptx, sm) name,
#include "rewriter/ptx/specials.def"
#undef PTX_SPECIAL
};

struct SpecialInfo {
  std::string_view text;    ///< with its percent sign; without the number of a numbered one
  ScalarType type;          ///< of one component
  std::uint8_t components;  ///< 4 when it is a vector (%tid), else 1
  std::uint8_t count;       ///< number of registers in a numbered family, 0 for a plain name
  std::uint8_t ptx, sm;     ///< first PTX version (major * 10 + minor) and first sm that have it
};

const SpecialInfo& Info(Special special);

/// A special register as an operand names it: "%tid.x" -> kTid, 'x'; "%envreg3" -> kEnvreg, index 3.
struct SpecialRef {
  Special special;
  std::uint8_t index = 0;
  char component = 0;  ///< 'x' 'y' 'z' 'w', 0 when the whole register is meant
};
std::optional<SpecialRef> SpecialFromText(std::string_view text);

inline bool IsSpecialRegister(std::string_view text) { return SpecialFromText(text).has_value(); }

}  // namespace gridloom::ptx
