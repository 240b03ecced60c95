#include "rewriter/ptx/special.h"

#include <unordered_map>

namespace gridloom::ptx {
namespace {

constexpr SpecialInfo kSpecials[] = {
#define PTX_SPECIAL(name, text, type, components, count, ptx, sm) {text, ScalarType::type, components, count, ptx, sm},
#include "rewriter/ptx/specials.def"
#undef PTX_SPECIAL
};

std::optional<Special> FindByText(std::string_view text) {
  static const auto* index = [] {
    auto* map = new std::unordered_map<std::string_view, Special>;
    for (std::size_t i = 0; i < std::size(kSpecials); ++i) map->emplace(kSpecials[i].text, static_cast<Special>(i));
    return map;
  }();
  const auto it = index->find(text);
  return it == index->end() ? std::nullopt : std::optional(it->second);
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

const SpecialInfo& Info(Special special) { return kSpecials[static_cast<std::size_t>(special)]; }

std::optional<SpecialRef> SpecialFromText(std::string_view text) {
  if (text.size() < 3 || (text[0] != '%' && text[0] != 'W')) return std::nullopt;
  SpecialRef ref{};
  if (text[text.size() - 2] == '.') {
    ref.component = text.back();
    if (std::string_view("xyzwrgba").find(ref.component) == std::string_view::npos) return std::nullopt;
    text.remove_suffix(2);
  }
  if (const auto plain = FindByText(text); plain && Info(*plain).count == 0) {
    ref.special = *plain;
  } else {
    std::size_t digits = text.size();
    while (digits > 0 && IsDigit(text[digits - 1])) --digits;
    const std::string_view number = text.substr(digits);
    if (number.empty() || number.size() > 2 || (number.size() == 2 && number[0] == '0')) return std::nullopt;
    const auto family = FindByText(text.substr(0, digits));
    if (!family) return std::nullopt;
    unsigned value = 0;
    for (const char c : number) value = value * 10 + static_cast<unsigned>(c - '0');
    if (value >= Info(*family).count) return std::nullopt;
    ref.special = *family;
    ref.index = static_cast<std::uint8_t>(value);
  }
  if (ref.component != 0 && Info(ref.special).components == 1) return std::nullopt;
  return ref;
}

}  // namespace gridloom::ptx
