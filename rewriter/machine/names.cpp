#include "rewriter/machine/names.h"

namespace gridloom::machine {

std::optional<std::string_view> SharedNames(std::string_view name) {
#define MACHINE_NAMES(id, list) \
  if (name == #id) return std::string_view(list);
#include "rewriter/machine/table/names.def"
#undef MACHINE_NAMES
  return std::nullopt;
}

}  // namespace gridloom::machine
