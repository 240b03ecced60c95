// What happened when: counters over time, which kernel was on which SM, and what the device did during each kernel. Its
// size is bounded however long the simulation: times become coarser, and what is left out is counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/timing/counters.h"
#include "sim/timing/ports.h"

namespace gridloom::timing {

/// The sums up to a cycle; the difference of two samples is what happened between them.
struct Sample {
  Cycle at = 0;
  Counters sums;
};

/// A kernel was on an SM. After coarsening, with pauses that add up to end - begin - busy, and for several launches of
/// the kernel.
struct Residency {
  std::uint32_t sm = 0;
  std::uint32_t first_launch = 0, last_launch = 0;
  Cycle begin = 0, end = 0;
  Cycle busy = 0;  ///< cycles with a CTA of the kernel
};

struct CtaInterval {
  CtaPlace place;
  Cycle begin = 0, end = 0;
};

struct SamplerOptions {
  std::size_t max_samples = 320;
  std::size_t max_residencies = 12'000;
  std::size_t max_ctas = 6'000;                      ///< CTAs that are kept one by one, the first ones
  Cycle interval = 256;                              ///< between samples, at least, at first
  Cycle resolution = 64;                             ///< pauses up to this are no pauses in a residency, at first
  std::atomic<std::uint64_t>* ended_ctas = nullptr;  ///< counted for whoever shows progress
};

/// An observer of one engine.
class Sampler final : public Observer {
 public:
  explicit Sampler(SamplerOptions options = {})
      : options_(options), interval_(options.interval), resolution_(options.resolution) {}

  void OnCtaStart(Cycle at, const CtaPlace& place) override;
  void OnCtaEnd(Cycle at, const CtaPlace& place) override;
  void OnKernelEnd(Cycle at, std::uint32_t launch) override;
  void OnWindow(const Engine& engine, Cycle begin) override;
  Cycle WantsWindows(const Engine& engine, Cycle period) const override;

  /// After Engine::Run: closes what is open.
  void Finish(const Engine& engine);

  const std::vector<Sample>& samples() const { return samples_; }
  const std::vector<Residency>& residencies() const { return residencies_; }  ///< by SM and begin, once finished
  const std::vector<CtaInterval>& ctas() const { return ctas_; }              ///< in the order of their ends
  /// By kernel: what the whole device counted while a launch of it ran, summed over its launches, to the precision of a
  /// window.
  const std::map<std::string, Counters>& kernels() const { return kernels_; }
  Cycle interval() const { return interval_; }
  Cycle resolution() const { return resolution_; }
  std::uint64_t ctas_left_out() const { return ctas_left_out_; }
  std::uint64_t residencies_left_out() const { return residencies_left_out_; }

 private:
  /// The last residency of a launch on an SM; it goes on when the next CTA starts soon enough.
  struct Open {
    Residency residency;
    std::uint32_t ctas = 0;
    Cycle busy_since = 0;
  };
  void Take(const Engine& engine, Cycle at);
  void Close(Open& open);
  void SnapKernels(const Engine& engine);
  void Coarsen(const Engine& engine);

  const SamplerOptions options_;
  Cycle interval_, resolution_;
  std::vector<Sample> samples_;
  std::vector<Residency> residencies_;
  std::vector<CtaInterval> ctas_;
  std::uint64_t ctas_left_out_ = 0, residencies_left_out_ = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Open> open_;        // by launch and SM
  std::map<std::pair<std::uint32_t, std::uint32_t>, Cycle> cta_begin_;  // by SM and slot
  std::map<std::uint32_t, Counters> running_;                           // by launch: the sums when it began
  std::vector<std::uint32_t> began_, ended_;                            // launches, since the last window
  std::map<std::string, Counters> kernels_;
};

}  // namespace gridloom::timing
