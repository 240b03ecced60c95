// Takes the records of a launch (records.h) while it runs: the way to traces and to the timing model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace gridloom::exec {

/// Whose records they are, and where its private windows lie. Addresses of Space::kShared and kLocal are offsets in
/// them; generic ones may point into shared_base and generic_local.
struct RecordPlace {
  std::uint64_t cta_index = 0;  ///< linear, x fastest
  /// The buffer that the records were in: the warp of the CTA whose records it began with. Warps that run one after the
  /// other write into one buffer, in their order, and RecordKind::kWarpEnd ends each.
  std::uint32_t buffer = 0;
  std::uint64_t shared_base = 0, shared_bytes = 0;
  std::uint64_t generic_local = 0,
                generic_local_bytes = 0;  ///< local memories of all its lanes, local_stride bytes each
  /// A window for the CTA's local memory, warp after warp, that no other memory lies in; the same for any number of
  /// host threads.
  std::uint64_t local_base = 0;
  std::uint32_t local_stride = 0;  ///< bytes between two lanes' local memories
};

/// All records of a CTA, in one buffer. Whose they are, as RecordPlace says; the rest is the same for all that are
/// handed over together.
struct RecordedCta {
  std::uint64_t cta_index = 0, local_base = 0;
  std::span<const std::uint64_t> words;

  void PutIn(RecordPlace& place) const {
    place.cta_index = cta_index;
    place.local_base = local_base;
  }
};

/// Records of CTAs that run one after the other in the same place.
class RecordStream {
 public:
  virtual ~RecordStream() = default;
  /// The next records of a buffer, in the order in which they were made; none are left out. `ended`: warps whose last
  /// ones are among them. A CTA has ended when all of its warps have; then the next one may begin. Called by one host
  /// thread at a time. The words are gone when it returns.
  virtual void OnRecords(const RecordPlace& place, std::span<const std::uint64_t> words, std::uint32_t ended) = 0;
  /// The same for the last records of all warps of a CTA, by warp, each in a buffer of its own.
  virtual void OnCta(const RecordPlace& place, std::span<const std::span<const std::uint64_t>> buffers) {
    RecordPlace at = place;
    for (at.buffer = 0; at.buffer < buffers.size(); ++at.buffer) OnRecords(at, buffers[at.buffer], 1);
  }
  /// The same for whole CTAs of so many warps. What `place` says of one of them is put in on the way: a copy
  /// would wait for the stores of a kernel that streams.
  virtual void OnCtas(RecordPlace& place, std::span<const RecordedCta> ctas, std::uint32_t warps) {
    for (const RecordedCta& cta : ctas) {
      cta.PutIn(place);
      OnRecords(place, cta.words, warps);
    }
  }
};

/// What clocks of a launch begin with, in ns. From there a warp's clocks go on by kCyclesPerRead with each of its
/// reads, and by what `nanosleep` asks for, so that a kernel that looks at them does the same in every run.
struct CountedClocks {
  /// About what a round of a loop takes that waits until a clock says so: then its rounds take about as long as it
  /// waits for.
  static constexpr std::uint64_t kCyclesPerRead = 32;
  std::uint64_t clock_ns = 0;  ///< %clock, %clock64
  std::uint64_t timer_ns = 0;  ///< %globaltimer
};

class RecordSink {
 public:
  virtual ~RecordSink() = default;
  /// Nothing: the host's clocks.
  virtual std::optional<CountedClocks> clocks() const { return std::nullopt; }
  /// A new stream, for a part of the launch's CTAs; it is the sink's. Called from several host threads at once, as the
  /// streams are.
  virtual RecordStream& Open() = 0;
};

}  // namespace gridloom::exec
