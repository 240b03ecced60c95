// The kernels of this folder as PTX modules, as clang has made them of the CUDA sources. A source declares the
// functions that it expects of whoever puts its kernels into a program, and calls them like any others.
#pragma once

#include <memory>
#include <string_view>

#include "rewriter/ptx/ir.h"

namespace gridloom::kernels {

extern const std::string_view kConsolidatePtx, kMasterPtx, kSuperPtx;  ///< consolidate.cu, master.cu, super.cu

/// A module of its own for whoever changes it, in which only kernels are visible. The text is the build's: that it does
/// not parse is a broken invariant.
std::unique_ptr<ptx::Module> Parse(std::string_view text);

}  // namespace gridloom::kernels
