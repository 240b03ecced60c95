// A kernel's sliced form in the file: a kernel of its own beside it, with another name, which shares with it the
// variables and constants of the cubin.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rewriter/machine/slice/kernel_parts.h"
#include "rewriter/machine/slice/patch.h"

namespace gridloom::machine {

/// A section that belongs to one kernel: ".text." and its number.
struct KernelSection {
  std::string prefix{};
  std::size_t section = 0;
};

/// An error that names one whose use is not known, or in which the driver fills in places.
Result<std::vector<KernelSection>> SectionsOf(const CubinFile& cubin, const std::string& kernel);

/// Puts the form of a kernel into the cubin. It stays half done when that fails.
Status AddForm(CubinFile& cubin, const std::string& kernel, const KernelParts& parts, const PatchedCode& code);

/// What the file says of a symbol's code in .nv.info: records that begin with the symbol's number.
bool IsOfSymbol(const Attribute& attribute, std::uint32_t symbol);

/// Calls that .nv.callgraph lists: the numbers of two symbols, or negative numbers that stand for kinds of calls.
using Calls = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
Calls CallsOf(const CubinFile& cubin);

}  // namespace gridloom::machine
