// CTAs as bytes (docs/trace-format.md). What a warp does is mostly what it, or the warp before it, did last time one step further:
// for every memory instruction encoder and decoder keep the same prediction, and a right one costs one byte.
#pragma once

#include <cstdint>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/trace/byte_stream.h"
#include "sim/trace/kernel_trace.h"

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
  /// The truth, after each Next; `base` of a scattered access is its lowest address.
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

class CtaEncoder {
 public:
  explicit CtaEncoder(const KernelCode& code) : code_(code), predictor_(code.instructions.size()) {}
  /// Appends a valid CTA (ValidateCta).
  void Encode(const CtaTrace& cta, ByteWriter& out);

 private:
  void EncodePath(const CtaTrace& cta, const WarpTrace& warp, ByteWriter& out);
  void EncodeAccess(const CtaTrace& cta, const MemoryAccess& access, std::uint32_t instruction, std::uint32_t visit_mask, ByteWriter& out);

  const KernelCode& code_;
  AccessPredictor predictor_;
};

class CtaDecoder {
 public:
  explicit CtaDecoder(const KernelCode& code) : code_(code), predictor_(code.instructions.size()) {}
  /// The next CTA; an error when the bytes are none. What it gives satisfies ValidateCta.
  Result<CtaTrace> Decode(ByteReader& in);

 private:
  bool DecodePath(ByteReader& in, CtaTrace& cta, WarpTrace& warp);
  void DecodeAccess(ByteReader& in, CtaTrace& cta, std::uint32_t instruction, std::uint32_t visit_mask);

  const KernelCode& code_;
  AccessPredictor predictor_;
};

}  // namespace gridloom::trace
