#include "rewriter/ptx/types.h"

#include <array>
#include <unordered_map>

namespace gridloom::ptx {
namespace {

constexpr TypeInfo kTypes[] = {
#define X(id, text, cls, bits, lanes) {text, TypeClass::cls, bits, lanes},
    GL_PTX_TYPES(X)
#undef X
};

constexpr std::string_view kSpaces[] = {
#define X(id, text) text,
    GL_PTX_SPACES(X)
#undef X
};

template <typename Enum, typename Table, typename Text>
const std::unordered_map<std::string_view, Enum>& IndexOf(const Table& table, Text text_of) {
  static const auto* index = [&] {
    auto* map = new std::unordered_map<std::string_view, Enum>;
    for (std::size_t i = 1; i < std::size(table); ++i) map->emplace(text_of(table[i]), static_cast<Enum>(i));
    return map;
  }();
  return *index;
}

}  // namespace

const TypeInfo& Info(ScalarType type) { return kTypes[static_cast<std::size_t>(type)]; }

std::optional<ScalarType> TypeFromText(std::string_view text) {
  const auto& index = IndexOf<ScalarType>(kTypes, [](const TypeInfo& info) { return info.text; });
  const auto it = index.find(text);
  if (it == index.end()) return std::nullopt;
  return it->second;
}

std::string_view TextOf(StateSpace space) { return kSpaces[static_cast<std::size_t>(space)]; }

std::optional<StateSpace> SpaceFromText(std::string_view text) {
  const auto& index = IndexOf<StateSpace>(kSpaces, [](std::string_view s) { return s; });
  const auto it = index.find(text);
  if (it == index.end()) return std::nullopt;
  return it->second;
}

}  // namespace gridloom::ptx
