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

/// Who generates code now. With the process's number: in the child of a fork, threads that did so in the parent are not there any more.
struct Users {
  std::uint32_t process;
  std::uint32_t count : 31;
  std::uint32_t small : 1;
};
std::atomic<Users> g_users{Users{0, 0, 0}};
static_assert(std::atomic<Users>::is_always_lock_free);

Users UsersNow() {
  Users users = g_users.load();
  if (users.process != static_cast<std::uint32_t>(getpid())) users = {static_cast<std::uint32_t>(getpid()), 0, 0};
  return users;
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
    Users next = UsersNow();
    if (next.count != 0 && next.small != small) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a compilation takes tens to hundreds of them
      continue;
    }
    next.small = small;
    ++next.count;
    if (g_users.compare_exchange_weak(seen, next)) break;
  }
  Set(small != 0);
}

WithRegionBudget::~WithRegionBudget() {
  for (;;) {
    Users seen = g_users.load();
    Users next = UsersNow();
    if (next.count != 0) --next.count;
    if (g_users.compare_exchange_weak(seen, next)) return;
  }
}

}  // namespace gridloom::exec
