// Kernels that may run and have not ended, and what the policy wants of them next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "scheduler/policy/policy.h"
#include "sim/timing/dispatch/cta_placement.h"
#include "sim/timing/dispatch/stream_order.h"

namespace gridloom::timing {

class ReadyKernels {
 public:
  using Iterator = std::vector<policy::KernelView>::iterator;

  ReadyKernels(const Parameters& parameters, policy::Policy& policy, const Ports& ports, StreamOrder& works,
               const CtaPlacement& placement)
      : parameters_(parameters), policy_(policy), ports_(ports), works_(works), placement_(placement) {}

  /// Each tenant has as many places for kernels that are ready as on a device of its own.
  bool HasRoomFor(std::uint32_t tenant) const;
  /// The kernel may run from now on.
  void Add(WorkId id, Cycle now);
  /// The kernel has ended.
  void Remove(Iterator kernel);
  Iterator Find(std::uint64_t id);
  Iterator end() { return kernels_.end(); }
  /// The kernel is scheduled anew, behind all others.
  void MoveBehindOthers(Iterator kernel);
  /// Another kernel was given that comes behind all of the stream.
  void SetFollowed(std::uint32_t stream);

  // ---- one decision: which CTAs start now
  void BeginDecision() { limited_.clear(); }
  /// What the policy wants next, of the kernels that are not held back.
  std::optional<policy::Slice> NextSlice(Cycle now);
  /// Limits of parts hold the kernel back on all SMs, in this decision.
  void HoldBack(std::uint64_t id) { limited_.push_back(id); }
  /// policy::Policy::Again.
  std::optional<Cycle> Again() const { return policy_.Again(); }

 private:
  void ShowPages(policy::KernelView& kernel) const;

  const Parameters& parameters_;
  policy::Policy& policy_;
  const Ports& ports_;
  StreamOrder& works_;
  const CtaPlacement& placement_;
  std::unordered_map<std::uint32_t, std::size_t> count_of_;  // kernels of each tenant
  std::vector<policy::KernelView> kernels_;
  std::vector<std::uint64_t> limited_;
  std::vector<policy::KernelView> unlimited_;  // the others
};

}  // namespace gridloom::timing
