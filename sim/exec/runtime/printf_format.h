// The device's printf: format strings with the arguments as vprintf packs them (CUDA C++ Programming Guide, "Formatted
// Output"): each argument aligned to its size, integers and characters 4 or 8 bytes, floats as doubles, pointers 8
// bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace gridloom::exec {

struct PrintfArguments {
  /// Copies `bytes` at `offset` of the argument block; false when they cannot be read.
  std::function<bool(std::uint64_t offset, void* to, std::size_t bytes)> read;
  /// The text of a %s argument.
  std::function<std::string(std::uint64_t address)> string;
};

struct PrintfText {
  std::string text;
  std::int32_t arguments = 0;  ///< conversions with an argument: what printf returns on the device
};

PrintfText FormatPrintf(std::string_view format, const PrintfArguments& arguments);

}  // namespace gridloom::exec
