// The policies there are, by name: the one list, with what each has to be given. A new policy is its own pair of files
// and a row here.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/policy/dka.h"
#include "scheduler/policy/kernelet.h"
#include "scheduler/policy/policy.h"
#include "scheduler/policy/scaling_model.h"

namespace gridloom::policy {

/// What a policy may have to be given besides launches. Who runs policies looks at what the chosen one needs, not at
/// its name.
enum class Need : std::uint8_t {
  kProfiles,   ///< of kernels: KernelView::profile says which one a launch has, PolicyInputs::planner knows them
  kLearning,   ///< rates that are measured on the device whose cycles the profiles are in:
               ///< PolicyInputs::learning_planner
  kRanges,     ///< a device that follows who uses which page (sim/hardware/crcs): Snapshot::pages
  kTasks,      ///< a device on which kernels run as tasks of one that stays (sim/hardware/pagoda)
  kBatches,    ///< the same, of one that ends with each batch (sim/hardware/gemtc)
  kReadiness,  ///< which besides knows the pages of single thread blocks: KernelView::ready
};

class Needs {
 public:
  constexpr Needs() = default;
  constexpr Needs(std::initializer_list<Need> needs) {
    for (const Need need : needs) bits_ |= Bit(need);
  }
  constexpr bool Has(Need need) const { return (bits_ & Bit(need)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }

 private:
  static constexpr std::uint32_t Bit(Need need) { return 1u << static_cast<unsigned>(need); }
  std::uint32_t bits_ = 0;
};

/// What is provided for needs, and parameters.
struct PolicyInputs {
  std::shared_ptr<CoSchedulePlanner> planner{};           ///< Need::kProfiles
  std::shared_ptr<CoSchedulePlanner> learning_planner{};  ///< Need::kLearning
  std::shared_ptr<const ScalingModel> scaling{};          ///< Need::kProfiles
  bool follows_pages = false;                             ///< Need::kRanges
  KerneletOptions kernelet{};
  DkaOptions dka{};
  std::uint64_t fair_wait = 0;   ///< of `fair`: Fair::Fair
  std::uint32_t processors = 0;  ///< likewise
};

struct PolicyInfo {
  std::string_view name;
  std::string_view summary;  ///< one line
  Needs needs;
  std::unique_ptr<Policy> (*make)(const PolicyInputs& inputs);  ///< with all that it needs; MakePolicy sees to that
};

/// All policies, sorted by name.
std::span<const PolicyInfo> Policies();
std::vector<std::string_view> PolicyNames();

/// The policy of that name; the error lists those there are, and the nearest one.
Result<const PolicyInfo*> FindPolicy(std::string_view name);

/// The error says what is missing of what the policy needs, and how it can be had.
Result<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const PolicyInputs& inputs = {});

}  // namespace gridloom::policy
