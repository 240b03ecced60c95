// A CTA on its way through the device: the dispatcher's order to start it, what it says while it runs, and what became
// of it.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/timing/cycle.h"
#include "sim/trace/kernel_trace.h"

namespace gridloom::timing {

struct DecodedCode;
class AddressSpace;

/// A CTA in its place.
struct CtaPlace {
  std::uint32_t launch = 0;
  std::uint32_t sm = 0, slot = 0;
  std::uint64_t cta = 0;
};

/// The dispatcher's order to start a CTA. It has made sure that there is room.
struct CtaStart {
  Cycle at = 0;  ///< first cycle in which its warps can issue
  std::uint64_t cta = 0;
  std::uint32_t launch = 0;
  std::uint16_t slot = 0;  ///< of the SM, free
  std::shared_ptr<const trace::CtaTrace> trace;
  trace::Shifts shifts;  ///< as LoadedCta has them
  const DecodedCode* code = nullptr;
  const AddressSpace* memory = nullptr;
};

/// A trace of as many warps as `cta` has, which have nothing to do.
inline std::shared_ptr<const trace::CtaTrace> NothingOf(const trace::CtaTrace& cta) {
  auto nothing = std::make_shared<trace::CtaTrace>();
  nothing->warps.resize(cta.warps.size());
  return nothing;
}

/// What became of it.
struct CtaEnd {
  Cycle at = 0;  ///< all warps have ended, all loads have come back, all stores are accepted
  std::uint64_t cta = 0;
  std::uint64_t warp_instructions = 0, thread_instructions = 0;
  /// Warp instructions that all CTAs of the launch on this SM have issued since each of them started, this one's
  /// included. Only where somebody listens to CTAs (CtaEvents), else 0.
  std::uint64_t resident_instructions = 0;
  std::uint32_t launch = 0;
  std::uint16_t sm = 0, slot = 0;

  CtaPlace place() const { return {.launch = launch, .sm = sm, .slot = slot, .cta = cta}; }
};

/// An instruction of a CTA was issued that its trace has an event for.
struct CtaSignal {
  Cycle at = 0;
  Cycle done = 0;  ///< when the warp goes on: what the call takes has passed
  CtaPlace place;
  trace::CtaEvent event;
};

}  // namespace gridloom::timing
