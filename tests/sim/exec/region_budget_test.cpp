// Threads that want different budgets of LLVM's register allocator, which has one for the process.
#include "sim/exec/compiler/region_budget.h"

#include <llvm/Support/CommandLine.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

namespace gridloom::exec {
namespace {

unsigned BudgetNow() {
  return static_cast<llvm::cl::opt<unsigned>*>(llvm::cl::getRegisteredOptions().lookup("grow-region-complexity-budget"))
      ->getValue();
}

TEST_CASE("region budget: each thread finds the one it asked for, and LLVM its own in the end") {
  const unsigned usual = BudgetNow();
  std::atomic<unsigned> wrong = 0, together = 0, inside = 0;
  const auto work = [&](unsigned thread) {
    for (unsigned round = 0; round < 30; ++round) {
      const bool small = (round / 3 + thread) % 2 != 0;
      const WithRegionBudget budget(small ? RegionBudget::kSmall : RegionBudget::kUsual);
      together += inside.fetch_add(1) != 0;
      for (unsigned look = 0; look < 3; ++look) {
        wrong += small ? BudgetNow() >= usual : BudgetNow() != usual;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
      --inside;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(together > 0);  // those who want the same do not wait for each other
  CHECK(BudgetNow() == usual);
}

}  // namespace
}  // namespace gridloom::exec
