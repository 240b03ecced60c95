// From records (sim/exec/contract/records.h) to the traces of CTAs that the timing model reads: takes a launch's
// records while the executor runs it and hands out each CTA when all its warps have ended.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/trace/cta_stream.h"

namespace gridloom::trace {

/// Streams that launches of any kernels leave to later ones of the same, with what they have learned. The code tables
/// and the compiled kernels must outlive it. Thread-safe.
class StreamPool {
 public:
  std::unique_ptr<CtaStream> Take(const CodeTable& table, std::uint32_t warps);
  void Return(std::unique_ptr<CtaStream> stream);

 private:
  static constexpr std::size_t kMost = 16;
  std::mutex mutex_;
  std::list<std::unique_ptr<CtaStream>> idle_;  ///< the latest first
};

class Capture final : public exec::RecordSink {
 public:
  /// Takes CTAs that are complete, and may keep what it is given. Called from several host threads, one call at a time.
  using Take = std::function<void(CtaRun&& run)>;
  Capture(const CodeTable& table, const LaunchShape& shape, Take take,
          std::optional<exec::CountedClocks> clocks = std::nullopt, StreamPool* pool = nullptr)
      : table_(table), shape_(shape), take_(std::move(take)), clocks_(clocks), pool_(pool) {}
  ~Capture() override;

  exec::RecordStream& Open() override;
  std::optional<exec::CountedClocks> clocks() const override { return clocks_; }

  /// Accesses that the trace has no place for: loops inside of one instruction (bulk copies) keep their first.
  std::uint64_t dropped() const;
  /// CTAs that do more than a trace may have (kMostVisits, kMostVisitsMade): theirs have what came first.
  std::uint64_t cut() const;

 private:
  const CodeTable& table_;
  const LaunchShape shape_;
  const Take take_;
  const std::optional<exec::CountedClocks> clocks_;
  StreamPool* const pool_;
  mutable std::mutex mutex_;  // of what follows, and of take_
  std::vector<std::unique_ptr<CtaStream>> streams_;
  std::uint64_t dropped_ = 0, cut_ = 0;
};

}  // namespace gridloom::trace
