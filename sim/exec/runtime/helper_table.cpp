#include "sim/exec/runtime/helpers.h"

namespace gridloom::exec {

const HelperFn* HelperTable() {
  static constexpr HelperFn kTable[] = {
#define GL_HELPER(name, convergent, reads, writes) &Helper_##name,
#include "sim/exec/contract/helpers.def"
#undef GL_HELPER
  };
  static_assert(sizeof kTable / sizeof kTable[0] == static_cast<std::size_t>(Helper::kCount));
  return kTable;
}

}  // namespace gridloom::exec
