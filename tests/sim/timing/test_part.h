// Parts that tests plug into the model.
#pragma once

#include <memory>
#include <utility>

#include "sim/timing/device_input.h"
#include "sim/timing/part.h"

namespace gridloom::timing {

/// An object of a test's that is at some ports. The test owns it.
class BorrowedPart final : public Part {
 public:
  using Attacher = void (*)(void* object, Ports& ports, DeviceInput& input);
  BorrowedPart(void* object, Attacher attacher) : object_(object), attacher_(attacher) {}
  void Attach(Ports& ports, DeviceInput& input) override { attacher_(object_, ports, input); }

 private:
  void* const object_;
  const Attacher attacher_;
};

/// A part for an object that has a member Attach(Ports&, DeviceInput&).
template <typename Object>
std::shared_ptr<Part> Borrow(Object& object) {
  return std::make_shared<BorrowedPart>(
      &object, [](void* at, Ports& ports, DeviceInput& input) { static_cast<Object*>(at)->Attach(ports, input); });
}

/// At every port, and does nothing.
class IdlePart final : public Part,
                       CtaEvents,
                       StartRule,
                       CopyPath,
                       CtaLimit,
                       CtaPlacer,
                       WarpGate,
                       LineGate,
                       L2Replacement,
                       DramEvents,
                       TimedSource {
 public:
  void Attach(Ports& ports, DeviceInput&) override {
    ports.cta_events.push_back(this);
    ports.start_rules.push_back(this);
    ports.copy_paths.push_back(this);
    ports.cta_limits.push_back(this);
    ports.placer = this;
    ports.warp_gates.push_back(this);
    ports.line_gates.push_back(this);
    ports.l2 = this;
    ports.dram_events.push_back(this);
    ports.sources.push_back(this);
  }
  Cycle MayStart(Cycle, const WorkView&, const WorkView&) override { return kNever; }
  bool Takes(Cycle, const WorkView&) override { return false; }
  bool MayHold(Cycle, std::uint32_t, std::uint32_t, std::uint32_t) override { return true; }
  std::optional<Placement> Place(const PlacementQuery& query) override {
    const auto sm = query.RoundRobin();
    if (!sm) return std::nullopt;
    return Placement{.sm = *sm, .cta = query.kernel.started};
  }
  Cycle MayIssue(Cycle now, const GatedAccess&) override { return now; }
  Cycle MayAccess(Cycle now, const LineIssue&) override { return now; }
  void OnEnqueue(Cycle, const DramRequest&) override {}
  Cycle next() const override { return kNever; }
  void Run(Cycle) override {}
};

}  // namespace gridloom::timing
