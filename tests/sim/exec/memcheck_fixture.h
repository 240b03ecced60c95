// Kernels under memcheck: a body, what was found.
#pragma once

#include <string>
#include <vector>

#include "sim/exec/memcheck.h"
#include "tests/sim/exec/executor_fixture.h"

namespace gridloom::test {

/// A module with one kernel `k(.param .u64 p, .param .u64 q)` around `body`, in which %rd1 is p, %rd2 q, %r1 the
/// thread's index, %r2 its byte offset 4 * %r1 (%rd3: as 64 bits), %r3 %laneid. `before`: module variables.
std::string KernelText(const std::string& body, const std::string& before = "", const std::string& target = "sm_75");

class MemcheckRun {
 public:
  /// `tiers`: of Engine::Options; empty: those of the test.
  explicit MemcheckRun(std::uint32_t limit = 100, const std::string& tiers = "");

  exec::LaunchFault Run(const std::string& ptx, exec::Dim3 grid, exec::Dim3 block, std::uint64_t p = 0,
                        std::uint64_t q = 0, std::uint32_t dynamic_shared_bytes = 0);
  Executor& executor() { return executor_; }
  /// As told when grids ended.
  const std::vector<exec::MemcheckReport>& told() const { return told_; }
  exec::Engine::Findings findings() { return executor_.engine().MemcheckFindings(); }

 private:
  static exec::Engine::Options Options(std::uint32_t limit, const std::string& tiers,
                                       std::vector<exec::MemcheckReport>& told);

  std::vector<exec::MemcheckReport> told_;
  Executor executor_;
};

/// What is found in one grid of one kernel, as "kind kind …" in order.
std::string Kinds(const std::vector<exec::MemcheckReport>& reports);
std::string KindsFound(const std::string& ptx, exec::Dim3 block, std::uint32_t dynamic_shared_bytes = 0);

}  // namespace gridloom::test
