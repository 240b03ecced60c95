// The driver API as a table: every exported function, the name and version a program looks it up by, and its address.
// The rows come from interpose/api/driver_api.txt through interpose/gen/generate.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "interpose/api/cuda_types.h"

namespace gridloom::api {

/// One enumerator per row of the table, named as the exported symbol, sorted by name and version.
enum class Fn : std::uint16_t {
#define GL_FN(symbol) symbol,
#include "api_ids.inc"
#undef GL_FN
  kCount
};
inline constexpr std::size_t kFunctionCount = static_cast<std::size_t>(Fn::kCount);

enum class Body : std::uint8_t {
  kHook,     ///< written by hand in interpose/hooks
  kRefused,  ///< answers NOT_SUPPORTED for a reason given in hooks.txt
  kMissing,  ///< answers NOT_SUPPORTED because nobody wrote it yet
};

struct Row {
  const char* symbol;       ///< exported name: "cuMemAlloc_v2"
  const char* name;         ///< what cuGetProcAddress is asked for: "cuMemAlloc"
  int version;              ///< driver version that introduced this variant: 3020
  const char* twin_suffix;  ///< "_ptds", "_ptsz", or empty when there is no per-thread twin
  int twin_version;
  void* address;
  void* twin_address;
  Body body;
  bool launches;  ///< starts kernels: counted when calls pass through to a real driver
};
std::span<const Row, kFunctionCount> Table();
inline const Row& RowOf(Fn fn) { return Table()[static_cast<std::size_t>(fn)]; }

struct Lookup {
  const Row* row = nullptr;
  void* address = nullptr;
  cuda::CUdriverProcAddressQueryResult status = cuda::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
};
/// The newest variant of `name` that existed in driver `version`; its per-thread twin when wanted and already there.
Lookup Find(std::string_view name, int version, bool per_thread);

}  // namespace gridloom::api
