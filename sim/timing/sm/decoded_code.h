// A kernel's instructions as one device executes them: pipe, latency and interval looked up, registers inline.
#pragma once

#include <cstdint>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/device/timing_spec.h"
#include "sim/trace/kernel_trace.h"

namespace gridloom::timing {

/// What issuing an instruction does besides occupying a pipe and setting registers ready.
enum class OpKind : std::uint8_t { kArithmetic, kBranch, kBarrier, kFence, kMemory };

struct DecodedOp {
  static constexpr std::size_t kInlineRegisters = 7;
  OpKind kind = OpKind::kArithmetic;
  std::uint8_t pipe = 0;
  std::uint8_t destinations = 0;  ///< of `registers`, the first ones
  /// Destinations and sources; above kInlineRegisters they are in DecodedCode::operands.
  std::uint8_t register_count = 0;
  std::uint16_t latency = 0;
  std::uint16_t interval = 0;
  std::uint16_t registers[kInlineRegisters] = {};  ///< unused ones are 0, the register that is always ready
  trace::Space space = trace::Space::kNone;
  std::uint8_t width = 0;
  std::uint8_t flags = 0;
  std::uint8_t barrier = 0;
  std::uint8_t barrier_warps = 0;
  bool gated = false;  ///< gates of proposed parts are asked before it issues
  std::uint32_t operands = 0;

  bool operator==(const DecodedOp&) const = default;
};
static_assert(sizeof(DecodedOp) == 32);

struct DecodedCode {
  std::vector<DecodedOp> ops;
  std::vector<std::uint32_t> access_number;  ///< by op: memory instructions before it, as LoadedCta::shifts counts them
  std::vector<std::uint16_t> operands;
  std::vector<trace::BasicBlock> blocks;
  std::uint32_t register_count = 0;
};

/// Fails if the tables are inconsistent (trace::ValidateCode) or the device lacks a pipe that an instruction needs.
Status CheckCode(const trace::KernelCode& code, const sim::TimingSpec& timing);
/// Fails as CheckCode does.
Result<DecodedCode> Decode(const trace::KernelCode& code, const sim::TimingSpec& timing);

}  // namespace gridloom::timing
