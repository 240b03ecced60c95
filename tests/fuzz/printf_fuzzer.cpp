// The formats of a device's printf, which are the program's, before they are handed to the host's snprintf: the format
// up to the first zero byte, the packed arguments behind it.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "sim/exec/runtime/printf_format.h"

namespace {

/// Widths of many digits are legal, and fill the fuzzer's memory with blanks.
bool HasWideField(std::string_view format) {
  std::size_t digits = 0;
  for (const char c : format) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (digits > 3 || c == '*') return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::string_view format = all.substr(0, all.find('\0'));
  const std::string_view packed = all.substr(std::min(format.size() + 1, size));
  if (HasWideField(format)) return 0;
  gridloom::exec::PrintfArguments arguments;
  arguments.read = [&](std::uint64_t offset, void* to, std::size_t bytes) {
    if (offset > packed.size() || bytes > packed.size() - offset) return false;
    std::memcpy(to, packed.data() + offset, bytes);
    return true;
  };
  arguments.string = [](std::uint64_t address) { return std::string(address % 40, 'x'); };
  const auto text = gridloom::exec::FormatPrintf(format, arguments);
  if (text.arguments < 0 || static_cast<std::size_t>(text.arguments) > format.size()) std::abort();
  return 0;
}
