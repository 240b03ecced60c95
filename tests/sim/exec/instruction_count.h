// Instructions that a launch executes, from the executor's records of its path.
#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/exec/executor_fixture.h"

namespace gridloom::test {

struct InstructionCount {
  std::uint64_t warp = 0;    ///< issued: once per warp
  std::uint64_t thread = 0;  ///< once per thread that executes it
};

/// Runs the launch; zeros when it fails.
InstructionCount CountInstructions(Executor& executor, const std::string& ptx, const std::string& kernel,
                                   exec::LaunchParams launch);

}  // namespace gridloom::test
