// What policies need where time is simulated: profiles of kernels, from a file or measured on the timing model when a
// kernel may first run.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "rewriter/support/result.h"
#include "scheduler/model/kernelet_setup.h"
#include "scheduler/policy/builtin.h"
#include "sim/device/device_spec.h"
#include "sim/trace/kernel_trace.h"

namespace gridloom::study {

/// For one simulated device. A kernel is profiled as `replay` does it (kernel_profiles.h), from the first thread blocks
/// of its first launch, on a device of its own: the simulation waits for it, simulated time does not. So a profile
/// follows from the program alone, whoever shares the device with it. What it may cost is
/// KerneletConfig::profile_instructions.
///
/// Make and cost may be called from any thread, Profile from that of the simulation alone.
class PolicySupply {
 public:
  struct Options {
    std::string profiles{};  ///< file of them; empty: they are measured
    /// About each kernel that gets no profile, once; of a tenant's kernels beyond most_kinds nothing more is said.
    std::function<void(const std::string& sentence)> tell{};
    /// So many of one tenant's kernels, with blocks of one shape each, are profiled; further ones have no profile. What
    /// is known of kernels is kept as long as the device, and tenants choose how many they have.
    std::size_t most_kinds = 1024;
  };
  /// Fails when the file makes no sense.
  static Result<std::shared_ptr<PolicySupply>> Create(const sim::DeviceSpec& device, Options options);

  /// The policy with all that it needs. Launches that may run from now on have what it needs of them.
  Result<std::unique_ptr<policy::Policy>> Make(std::string_view name);

  /// What timing::Profiler answers: the number of the profile of a launch of the tenant's, and a source that still
  /// gives all of its blocks.
  std::uint64_t Profile(std::uint32_t tenant, std::shared_ptr<trace::CtaSource>& source);

  struct Cost {
    std::uint64_t kernels = 0;            ///< profiled
    std::uint64_t warp_instructions = 0;  ///< simulated for it
  };
  Cost cost() const;

 private:
  PolicySupply(const sim::DeviceSpec& device, Options options) : device_(device), options_(std::move(options)) {}
  Result<policy::PolicyInputs> Inputs();
  std::uint64_t Look(std::uint32_t tenant, const trace::CtaSource& source);
  Result<std::uint64_t> Measure(std::shared_ptr<trace::CtaSource>& source, std::uint64_t most_blocks,
                                std::uint64_t* blocks);
  void Tell(std::uint32_t tenant, const std::string& kernel, const std::string& why);

  /// Launches that a profile describes: hash of the code, threads, registers, shared memory.
  using Kind = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  struct Profiled {
    std::uint64_t id = 0;      ///< 0: it has none
    std::uint64_t blocks = 0;  ///< that it was made from
    bool failed = false;       ///< and will again
  };

  /// What a tenant has brought.
  struct Brought {
    std::size_t kinds = 0;           ///< of kinds_, those that it launched first
    std::set<std::uint64_t> told{};  ///< hashes of the names of kernels of which was said that they have no profile
  };

  const sim::DeviceSpec device_;
  const Options options_;
  std::optional<model::ProfileFile> file_;
  std::atomic<bool> wanted_{
      false};  ///< the policy made last needs profiles; set after what the simulation's thread reads
  std::atomic<std::uint64_t> kernels_{0}, warp_instructions_{0};

  std::mutex mutex_;  ///< guards what follows until it is there; then it does not change
  bool ready_ = false;
  model::KerneletConfig config_;
  policy::PolicyInputs inputs_;

  // Only the simulation's thread touches what follows.
  std::shared_ptr<model::ProfileTable> table_;
  std::map<Kind, Profiled> kinds_;
  std::map<std::uint32_t, Brought> brought_;  ///< by tenant
};

}  // namespace gridloom::study
