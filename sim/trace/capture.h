// From records (sim/exec/records.h) to the traces of CTAs that the timing model reads: takes a launch's records while the
// executor runs it and hands out each CTA when all its warps have ended.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sim/exec/record_sink.h"
#include "sim/exec/records.h"
#include "sim/trace/code_table.h"
#include "sim/trace/kernel_trace.h"

namespace gridloom::trace {

class Capture final : public exec::RecordSink {
 public:
  /// Takes a CTA that is complete. Called from several host threads, one call at a time.
  using Take = std::function<void(std::uint64_t cta, CtaTrace trace)>;
  Capture(const CodeTable& table, const LaunchShape& shape, Take take) : table_(table), shape_(shape), take_(std::move(take)) {}

  void OnRecords(const exec::RecordPlace& place, std::span<const std::uint64_t> words, bool ended) override;

  /// Accesses that the trace has no place for: loops inside of one instruction (bulk copies) keep their first.
  std::uint64_t dropped() const;

 private:
  /// A warp's part while it grows.
  struct Warp {
    std::vector<BlockVisit> visits;
    std::vector<MemoryAccess> accesses;
    std::vector<std::uint64_t> lanes;
    std::vector<const std::int64_t*> patterns;
    std::uint32_t next = 0, end = 0;  ///< what is left of the block being visited
    bool ended = false;
  };
  struct Cta {
    std::vector<Warp> warps;
    std::uint32_t ended = 0;
  };

  void Append(Warp& warp, const exec::RecordPlace& place, std::span<const std::uint64_t> words);
  void BeginBlock(Warp& warp, const exec::RecordHeader& header);
  /// The access of the next memory instruction that it can be; those before it were off.
  void AddAccess(Warp& warp, const exec::RecordPlace& place, exec::RecordReader& reader);
  /// The stride that names the warp's pattern; nothing when its distances are too large.
  static std::optional<std::int32_t> PatternStride(Warp& warp, const std::int64_t* pattern);
  void SkipTo(Warp& warp, std::uint32_t entry);
  static CtaTrace Join(Cta& cta);

  const CodeTable& table_;
  const LaunchShape shape_;
  const Take take_;
  mutable std::mutex mutex_;  // of the map and of take_; a CTA itself belongs to one thread at a time
  std::map<std::uint64_t, std::unique_ptr<Cta>> open_;
  std::uint64_t dropped_ = 0;
};

}  // namespace gridloom::trace
