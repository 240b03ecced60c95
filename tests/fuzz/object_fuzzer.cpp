// Compiled kernels as the cache on disk has them, behind the checksum that random changes do not get past: what loads
// must lie in the memory that it was given.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "sim/exec/runtime/object_loader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto object = gridloom::exec::CodeObject::Load({data, size}, "fuzzed");
  if (!object.ok()) return 0;
  const auto& code = **object;
  if (code.code_end() < code.code_begin() || code.text_begin() > code.code_end()) std::abort();
  if (code.text_bytes() > code.code_end() - code.text_begin()) std::abort();
  // All of it can be read, and what a symbol leads to, too.
  volatile unsigned sum = 0;
  for (std::uintptr_t at = code.text_begin(); at < code.text_begin() + code.text_bytes(); ++at)
    sum = sum + *reinterpret_cast<const std::uint8_t*>(at);
  for (const char* name : {"gl_kernel", "gl_data"}) {
    if (const void* const symbol = code.Find(name)) sum = sum + *static_cast<const std::uint8_t*>(symbol);
  }
  return 0;
}
