// The PTX that clang makes of our own kernels is the one that is pinned in tests/golden/kernels: whoever changes a
// source or the compiler sees what changes for programs and in the timing model. `passes_test --rebase` pins what was
// built.
#include <catch2/catch.hpp>
#include <fstream>

#include "rewriter/kernels/kernels.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/verifier.h"
#include "tests/golden.h"

using namespace gridloom;

namespace {

struct OwnKernel {
  const char* name;
  std::string_view ptx;
};
const OwnKernel kOwnKernels[] = {
    {"consolidate", kernels::kConsolidatePtx}, {"master", kernels::kMasterPtx}, {"super", kernels::kSuperPtx}};

std::string PinnedPath(const OwnKernel& kernel) { return std::string("tests/golden/kernels/") + kernel.name + ".ptx"; }

/// Another clang may well make something else; what its code does, other tests say.
std::string HeadLine() {
  const std::string version = GRIDLOOM_CLANG_VERSION;
  return "// clang " + version.substr(0, version.find('.')) + "\n";
}

}  // namespace

TEST_CASE("OwnKernels_Ptx_IsThePinnedOne") {
  for (const OwnKernel& kernel : kOwnKernels) {
    const std::string built = HeadLine() + std::string(kernel.ptx);
    if (gridloom::testing::RebaseGoldens()) std::ofstream(PinnedPath(kernel)) << built;
    const std::string pinned = gridloom::testing::ReadFile(PinnedPath(kernel));
    if (!pinned.starts_with(HeadLine())) {
      WARN(PinnedPath(kernel) << " is of another clang than this build's " << GRIDLOOM_CLANG_VERSION
                              << ": not compared");
      continue;
    }
    INFO("to pin what was built: build/tests/passes_test --rebase OwnKernels_Ptx_IsThePinnedOne");
    CHECK(built == pinned);
  }
}

/// Where a program's device has no such instruction, the pass leaves out what has it.
TEST_CASE("OwnKernels_Ptx_IsValid") {
  for (const OwnKernel& kernel : kOwnKernels) {
    INFO(kernel.name);
    const auto module = kernels::Parse(kernel.ptx);
    CHECK(module->sm() <= 35);
    CHECK(module->version_major < 7);
    module->targets.front() = "sm_70";
    DiagnosticSink sink;
    ptx::VerifyModule(*module, sink);
    INFO(FormatDiagnostics(sink, kernel.name, std::string(kernel.ptx)));
    CHECK(!sink.has_errors());
  }
}
