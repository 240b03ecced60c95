// CTAs as bytes (docs/trace-format.md). What a warp does is mostly what it, or the warp before it, did last time one
// step further: for every memory instruction encoder and decoder keep the same prediction, and a right one costs one
// byte.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/trace/byte_stream.h"
#include "sim/trace/kernel_trace.h"
#include "sim/trace/lane_pack.h"

namespace gridloom::trace {

/// What comes next, by memory instruction. The same sequence of calls gives the same predictions on both sides.
class AccessPredictor {
 public:
  explicit AccessPredictor(std::size_t instructions) : state_(instructions) {}
  void BeginWarp() { ++warp_; }

  struct Guess {
    std::uint64_t base = 0;
    std::int32_t stride = 0;
  };
  Guess Next(std::uint32_t instruction) const;
  /// The truth, after each Next; `base` of a scattered access is its low address.
  void Learn(std::uint32_t instruction, std::uint64_t base, std::int32_t stride);

 private:
  struct State {
    std::uint64_t last = 0, step = 0;        // in this warp
    std::uint64_t first = 0, warp_step = 0;  // of a warp's first one
    std::int32_t stride = 0;
    std::uint32_t warp = 0;  // that Learn was called for last; 0: never
  };
  std::vector<State> state_;
  std::uint32_t warp_ = 0;
};

/// The memory instructions of blocks, in their order.
class AccessIndex {
 public:
  explicit AccessIndex(const KernelCode& code);
  std::span<const std::uint32_t> Of(std::uint32_t block) const {
    const auto [begin, end] = blocks_[block];
    return {instructions_.data() + begin, instructions_.data() + end};
  }

 private:
  std::vector<std::uint32_t> instructions_;  ///< of the code
  /// For each block its part of instructions_: the first of its instructions, and the one behind the last.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> blocks_;
};

/// Traces that later CTAs of a batch may share, with the shifts of the last CTA that did. Both sides keep the same
/// ones.
class SharedTraces {
 public:
  static constexpr std::size_t kKept = 16;
  struct Trace {
    std::shared_ptr<const CtaTrace> trace;
    std::vector<AccessRange> ranges;  ///< of it; the encoder needs none
    std::vector<std::uint64_t> shifts, step;
    std::uint64_t Guess(std::size_t access) const { return shifts[access] + step[access]; }
    /// Empty: all 0.
    void Learn(const Shifts& next);
  };
  explicit SharedTraces(std::size_t accesses) : accesses_(accesses) {}
  /// How many traces ago this one was added, from 1; 0 when it is not there.
  std::size_t Find(const CtaTrace* trace) const;
  std::size_t size() const { return traces_.size(); }
  Trace& At(std::size_t ago) { return traces_[traces_.size() - ago]; }
  void Add(std::shared_ptr<const CtaTrace> trace, std::vector<AccessRange> ranges = {});

 private:
  const std::size_t accesses_;
  std::deque<Trace> traces_;
};

/// What the numbers of the next event are near to: those of the last one of its kind.
class EventPredictor {
 public:
  std::array<std::uint64_t, 4>& Of(EventKind kind) { return last_[static_cast<std::size_t>(kind)]; }

 private:
  std::array<std::array<std::uint64_t, 4>, kEventKindCount> last_{};
};

class CtaEncoder {
 public:
  explicit CtaEncoder(const KernelCode& code)
      : code_(code),
        index_(code),
        accesses_(AccessCount(code)),
        predictor_(code.instructions.size()),
        shared_(accesses_) {}
  /// Appends a valid CTA (ValidateCta, ValidateShifts).
  void Encode(const LoadedCta& cta, ByteWriter& out);

 private:
  void EncodeTrace(const CtaTrace& cta, ByteWriter& out);
  void EncodeEvents(const CtaTrace& cta, ByteWriter& out);
  void EncodeRepeats(const CtaTrace& cta, ByteWriter& out);
  void EncodePath(const CtaTrace& cta, const WarpTrace& warp, ByteWriter& out);
  void EncodeAccess(const CtaTrace& cta, const MemoryAccess& access, std::uint32_t instruction,
                    std::uint32_t visit_mask, ByteWriter& out);

  void EncodeLanes(const CtaTrace& cta, const MemoryAccess& access, std::uint32_t instruction, std::uint32_t visit_mask,
                   ByteWriter& out);

  const KernelCode& code_;
  const AccessIndex index_;
  const std::size_t accesses_;
  AccessPredictor predictor_;
  EventPredictor events_;
  SharedTraces shared_;
  PackedLanes packed_;
};

/// Who lets a decoder make traces of bytes, where these come from somebody who is not trusted: a few bytes can say that
/// a warp went round a loop a hundred million times.
class TraceKeeper {
 public:
  virtual ~TraceKeeper() = default;
  /// What the next trace may take of memory.
  virtual std::uint64_t most_bytes() const = 0;
  virtual std::shared_ptr<const CtaTrace> Keep(CtaTrace trace) = 0;
};

class CtaDecoder {
 public:
  /// Without a keeper traces are as large as a file may make them.
  explicit CtaDecoder(const KernelCode& code, TraceKeeper* keeper = nullptr);
  /// The next CTA; an error when the bytes are none, or more than the keeper allows. What it gives CtaChecks let pass,
  /// for a shape of as many warps.
  Result<LoadedCta> Decode(ByteReader& in);

 private:
  CtaTrace DecodeTrace(ByteReader& in);
  void DecodeEvents(ByteReader& in, CtaTrace& cta);
  void DecodeRepeats(ByteReader& in, CtaTrace& cta);
  /// False, and the reader fails, since the trace is beyond what is taken. `limit` says of what.
  bool Exceeds(ByteReader& in, std::string limit);
  void DecodeShifts(ByteReader& in, bool expected, SharedTraces::Trace& of, LoadedCta& cta);
  bool DecodePath(ByteReader& in, CtaTrace& cta, WarpTrace& warp);
  void DecodeAccess(ByteReader& in, CtaTrace& cta, std::uint32_t instruction, std::uint32_t visit_mask);

  void DecodeLanes(ByteReader& in, CtaTrace& cta, std::uint32_t instruction, std::uint8_t flags, MemoryAccess& access);
  /// False, and the reader fails, when the trace with so many further visits is too large.
  bool HasRoom(ByteReader& in, const CtaTrace& cta, std::uint64_t visits);

  const KernelCode& code_;
  TraceKeeper* const keeper_;
  std::uint64_t most_bytes_ = ~std::uint64_t{0};  ///< of this trace
  bool too_large_ = false;
  std::string limit_;  ///< that the trace exceeds
  const AccessIndex index_;
  const std::size_t accesses_;
  AccessPredictor predictor_;
  EventPredictor events_;
  SharedTraces shared_;
  std::vector<bool> moves_;  ///< by memory instruction: not of shared memory
};

}  // namespace gridloom::trace
