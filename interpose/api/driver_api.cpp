#include "interpose/api/driver_api.h"

#include <algorithm>

#include "api_exports.h"

namespace gridloom::api {
namespace {

const Row kRows[] = {
#define GL_ROW(symbol, name, version, suffix, twin_version, twin, body, launches) \
  {#symbol, name, version, suffix, twin_version, reinterpret_cast<void*>(&symbol), twin, Body::body, launches},
#include "api_rows.inc"
#undef GL_ROW
};

}  // namespace

std::span<const Row, kFunctionCount> Table() { return kRows; }

Lookup Find(std::string_view name, int version, bool per_thread) {
  const auto variants =
      std::ranges::equal_range(kRows, name, {}, [](const Row& row) { return std::string_view(row.name); });
  Lookup found;
  for (const Row& row : variants) {  // ascending versions
    if (row.version > version) {
      if (found.row == nullptr) found.status = cuda::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
      break;
    }
    const bool twin = per_thread && row.twin_address != nullptr && row.twin_version <= version;
    found = {&row, twin ? row.twin_address : row.address, cuda::CU_GET_PROC_ADDRESS_SUCCESS};
  }
  return found;
}

}  // namespace gridloom::api
