#include "sim/exec/compiler/region_budget.h"

#include <llvm/Support/CommandLine.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace gridloom::exec {
namespace {

constexpr const char* kOption = "grow-region-complexity-budget";
constexpr const char* kSmallValue = "100";  // usual: 10,000

/// Who generates code now. With the process's number: in the child of a fork, threads that did so in the parent are not
/// there any more. Only the first of them touches LLVM's option, and the last one, who puts it back; all others wait
/// meanwhile.
struct Users {
  std::uint32_t process;
  std::uint32_t count : 30;
  std::uint32_t small : 1;
  std::uint32_t setting : 1;  ///< the first or the last one is at the option
};
std::atomic<Users> g_users{Users{0, 0, 0, 0}};
static_assert(std::atomic<Users>::is_always_lock_free);

Users OfThisProcess(Users users) {
  const auto process = static_cast<std::uint32_t>(getpid());
  return users.process == process ? users : Users{process, 0, 0, 0};
}

/// Null when LLVM has no such option, or somebody has set it before.
llvm::cl::Option* FindOption() {
  const auto& options = llvm::cl::getRegisteredOptions();
  const auto found = options.find(kOption);
  return found == options.end() || found->second->getNumOccurrences() > 0 ? nullptr : found->second;
}

void Set(bool small) {
  static llvm::cl::Option* const option = FindOption();
  if (!option) return;
  option->reset();
  if (small) option->addOccurrence(0, kOption, kSmallValue);
}

}  // namespace

WithRegionBudget::WithRegionBudget(RegionBudget budget) {
  const std::uint32_t small = budget == RegionBudget::kSmall ? 1 : 0;
  for (;;) {
    Users seen = g_users.load();
    Users next = OfThisProcess(seen);
    if (next.setting != 0 || (next.count != 0 && next.small != small)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a compilation takes tens to hundreds of them
      continue;
    }
    // Without users the option is as LLVM has it, unless this is the child of a fork that found it otherwise.
    next.setting = next.count == 0 && (small != 0 || seen.process != next.process) ? 1 : 0;
    next.small = small;
    ++next.count;
    if (!g_users.compare_exchange_weak(seen, next)) continue;
    if (next.setting == 0) return;
    Set(small != 0);
    next.setting = 0;
    g_users.store(next);
    return;
  }
}

WithRegionBudget::~WithRegionBudget() {
  for (;;) {
    Users seen = g_users.load();
    Users next = OfThisProcess(seen);
    if (next.count == 0) return;
    next.setting = next.count == 1 && next.small != 0 ? 1 : 0;
    if (next.setting == 0) --next.count;
    if (!g_users.compare_exchange_weak(seen, next)) continue;
    if (next.setting == 0) return;
    Set(false);
    g_users.store({next.process, 0, 0, 0});
    return;
  }
}

}  // namespace gridloom::exec
