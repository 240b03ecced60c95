// Modules for tests of analyses and passes.
#pragma once

#include <memory>
#include <string>

#include "rewriter/ptx/ir.h"

namespace gridloom::analysis::testing {

/// A module of .version 8.0 with these items; the current test fails on a syntax error.
std::unique_ptr<ptx::Module> ParseItems(const std::string& items);
/// `.entry k` with this body and 64 registers each of %r (.b32), %rd (.b64), %f (.f32) and %p (.pred).
std::unique_ptr<ptx::Module> ParseKernel(const std::string& body);

}  // namespace gridloom::analysis::testing
