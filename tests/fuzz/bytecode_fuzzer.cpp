// Bytecode as the kernel cache on disk has it, behind the checksum and the name of the build that random changes do not
// get past: what reads is written the same again, and what loads is within its bounds.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "gl_compiler_interface.h"
#include "sim/exec/runtime/bytecode_text.h"
#include "sim/exec/runtime/interpreter/interpreter.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gridloom::exec;
  std::string text = kCompilerInterface;
  text.append(reinterpret_cast<const char*>(data), size);
  const auto code = ReadBytecode(text);
  if (!code) return 0;
  const std::string written = WriteBytecode(*code);
  const auto again = ReadBytecode(written);
  if (!again || WriteBytecode(*again) != written || written.size() > text.size()) std::abort();
  const auto loaded = InterpretedCode::Load(*code);
  if (!loaded.ok()) return 0;
  // Who looks at loaded code meets nothing that is not there.
  volatile std::uint64_t sum = (*loaded)->size().steps + (*loaded)->stack_bytes();
  sum = sum + ((*loaded)->has_loops() ? 1 : 0) + ((*loaded)->can_begin_again() ? 1 : 0);
  return 0;
}
