// What a cubin says of one kernel, and where the parameters of slices go (docs/machine-code.md#slices).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/machine/slice/attributes.h"
#include "rewriter/machine/slice/cubin_file.h"
#include "rewriter/passes/pass.h"

namespace gridloom::machine {

/// Where the driver puts the size of the grid in constant bank 0: x, y and z.
inline constexpr std::int32_t kGridFirst = 0xC, kGridEnd = 0x18;

/// Where the driver puts the descriptor of global memory, which accesses to it name from sm_80 on; 0: there is none.
constexpr std::int32_t GlobalDescriptorAt(unsigned sm) { return sm < 80 ? 0 : sm < 90 ? 0x118 : 0x208; }

/// Registers that the count of a kernel has beyond those that its code uses: ptxas adds two on these architectures.
inline constexpr unsigned kReservedRegisters = 2;

/// So many more than its kernel's a form may have: two, and as many as the table does not know of a vector of textures.
inline constexpr std::uint32_t kMostMoreRegisters = 4;

struct KernelParts {
  std::uint32_t symbol = 0;
  std::size_t text = 0, constants = 0, info = 0, file_info = 0;  ///< sections
  std::uint32_t constants_symbol = 0;
  std::vector<Attribute> attributes{};  ///< of .nv.info.KERNEL
  BranchTargets targets{};
  std::uint32_t registers = 0;       ///< that the driver gives a thread
  std::uint32_t register_limit = 0;  ///< the most it may have and run with as many threads as it says
  std::uint32_t first_param = 0;     ///< in constant bank 0
  std::uint32_t param_bytes = 0;

  /// Of the first hidden parameter in constant bank 0.
  std::uint32_t hidden_at() const { return (first_param + param_bytes + 7) / 8 * 8; }
};

/// The hidden parameters of slices in their order. Those of the grid's size stand to each other and to eight bytes as
/// the driver's own do, so that reads of two of them at once stay so.
const std::vector<passes::HiddenRole>& SliceRoles();
/// Behind the first one, in bytes.
std::uint32_t OffsetOf(passes::HiddenRole role);
/// Of all of them.
std::uint32_t HiddenBytes();

/// What the sliced form of a kernel is called.
std::string SlicedName(std::string_view kernel);
/// Names of the kernels, as the cubin's symbols have them, but for those of sliced forms.
std::vector<std::string> KernelNames(const CubinFile& cubin);

/// An error that says which attributes or sections contradict each other, or are of a kind that is not known.
Result<KernelParts> ReadKernelParts(const CubinFile& cubin, std::string_view kernel);

}  // namespace gridloom::machine
