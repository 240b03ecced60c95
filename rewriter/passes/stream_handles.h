// Where the streams of a function's launches come from, and what becomes of the streams that it makes: what the pass
// `aggregate` decides by. In doubt a stream is one of which nothing is known.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/analysis/cfg.h"
#include "rewriter/passes/thread_memory.h"
#include "rewriter/ptx/ir.h"

namespace gridloom::passes {

/// Functions of the device runtime library, whether of CUDA dynamic parallelism 1 (cudaX) or 2 (__cudaCDP2X).
enum class RuntimeCall : std::uint8_t {
  kNone,
  kCreateStream,
  kDestroyStream,
  kLaunch,        ///< kernel, buffer, grid, block, dynamic shared bytes, stream
  kLaunchBuffer,  ///< buffer, stream
  kGetBuffer,     ///< kernel, grid, block, dynamic shared bytes
  kWait,          ///< for all that the block has launched
};
RuntimeCall RuntimeCallOf(std::string_view function);
/// Whether a function takes parameters of these sizes and returns a word.
bool TakesBytes(const ptx::Function& function, std::initializer_list<std::uint64_t> bytes);
/// A part of the runtime library, which programs do not define.
bool IsOfRuntime(std::string_view function);
/// The function's name as programs call it: cudaX.
std::string PublicName(std::string_view function);

/// Whether a handle in a .local variable stays what it is, and nobody else sees it, unless an instruction names its
/// place: pointers that are computed write nothing that is as wide as one. Compilers put all variables of a function
/// into one of PTX, and take what C++ says for granted: that a pointer leads to the variable that it was computed from,
/// and that an int is not written where a pointer lies.
bool KeepsHandles(const ThreadMemory::Use& use);

/// The number of the argument that is a stream, or points to one, and how many arguments there are.
struct StreamArgument {
  std::size_t number = 0, arguments = 0;
};
StreamArgument StreamArgumentOf(RuntimeCall call);

/// Where a stream handle may come from.
struct StreamSource {
  enum class Kind : std::uint8_t { kConstant, kMade, kUnknown };
  Kind kind = Kind::kUnknown;
  std::uint64_t handle = 0;  ///< kConstant
  std::size_t made = 0;      ///< kMade: StreamHandles::made()
  std::string why{};         ///< kUnknown: completes "a stream that …"

  bool operator==(const StreamSource&) const = default;
};

/// A call with a stream.
struct StreamUse {
  std::uint32_t instruction = 0;  ///< Cfg::instructions()
  RuntimeCall call = RuntimeCall::kNone;
  std::vector<StreamSource> sources{};  ///< each once
};

/// A stream that the function makes.
struct MadeStream {
  std::uint32_t instruction = 0;
  Place slot{};           ///< where the handle is put
  std::string why_not{};  ///< why it may say more than that one launch waits for nothing: completes "a stream that …"

  bool refused() const { return !why_not.empty(); }
};

class StreamHandles {
 public:
  explicit StreamHandles(const analysis::Cfg& cfg);

  /// Launches, and streams destroyed, in the order of the code.
  const std::vector<StreamUse>& uses() const { return uses_; }
  const std::vector<MadeStream>& made() const { return made_; }
  /// Whether nothing but a call and what passes its arguments and takes its results has to do with its .param
  /// variables.
  bool IsSequence(std::uint32_t call) const;

 private:
  bool OnlyPasses(const ptx::Variable& variable, bool result) const;

  const analysis::Cfg& cfg_;
  ThreadMemory memory_;
  std::vector<StreamUse> uses_;
  std::vector<MadeStream> made_;
};

}  // namespace gridloom::passes
