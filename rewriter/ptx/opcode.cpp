#include "rewriter/ptx/opcode.h"

#include <unordered_map>

namespace gridloom::ptx {
namespace {

constexpr std::string_view kModifiers[] = {
    "",
    "",
    "",
#define PTX_MODIFIER(name, text) text,
#include "rewriter/ptx/modifiers.def"
#undef PTX_MODIFIER
};

}  // namespace

std::optional<Opcode> OpcodeFromText(std::string_view text) {
  static const auto* index = [] {
    auto* map = new std::unordered_map<std::string_view, Opcode>;
    for (std::size_t i = 1; i < std::size(kOpcodeInfo); ++i) map->emplace(kOpcodeInfo[i].text, static_cast<Opcode>(i));
    return map;
  }();
  const auto it = index->find(text);
  if (it == index->end()) return std::nullopt;
  return it->second;
}

std::string_view TextOf(Mod mod) { return kModifiers[static_cast<std::size_t>(mod)]; }

Mod ModFromText(std::string_view text) {
  static const auto* index = [] {
    auto* map = new std::unordered_map<std::string_view, Mod>;
    for (std::size_t i = 3; i < std::size(kModifiers); ++i) map->emplace(kModifiers[i], static_cast<Mod>(i));
    return map;
  }();
  const auto it = index->find(text);
  return it == index->end() ? Mod::kOther : it->second;
}

}  // namespace gridloom::ptx
