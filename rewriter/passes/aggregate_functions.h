// The functions that `aggregate` has a module call.
#pragma once

#include <cstdint>
#include <string_view>

#include "rewriter/ptx/ir.h"

namespace gridloom::passes {

/// The handle of a stream that is not made. It is odd, as no driver's is.
inline constexpr std::uint64_t kNoStream = 0x9c0fe5a13b7d2e61;
inline constexpr std::uint64_t kForgotten = 4;  ///< cudaStreamFireAndForget

/// Begins the names of functions that look at a handle.
inline constexpr std::string_view kEither = "gridloom_group_or_";

enum class AddedFunction : std::uint8_t {
  kGroup,           ///< cudaLaunchAggGroupV2(buffer)
  kGroupOfKernel,   ///< cudaLaunchAggGroup(kernel, buffer, grid, block, dynamic shared bytes)
  kEitherBuffer,    ///< that, or a launch, by the handle: buffer, stream
  kEitherKernel,    ///< likewise: kernel, buffer, grid, block, dynamic shared bytes, stream
  kDestroyIfThere,  ///< nothing, or the end of a stream
};

/// The module's function of that sort, added in front of the first of its functions that is `user` unless it is there.
/// `original`: the function of the device runtime library that it stands for, which the module declares in front of
/// `user`.
ptx::Function& AddFunction(ptx::Module& module, AddedFunction which, const ptx::Function& original,
                           const ptx::Function& user);

}  // namespace gridloom::passes
