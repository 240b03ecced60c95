// A kernel's instructions as one device executes them: pipe, latency and interval looked up, registers inline.
#pragma once

#include <cstdint>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/device/device_spec.h"
#include "sim/device/timing_spec.h"
#include "sim/lowering/lower.h"
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
  bool gated : 1 = false;         ///< gates of proposed parts are asked before it issues
  bool float_atomic : 1 = false;  ///< an atomic of floating point
  bool parameters : 1 = false;    ///< reads the launch's parameters (ParameterBank)
  bool holds_warp : 1 = false;    ///< of such a one: nothing of the warp issues before they are there
  std::uint32_t operands = 0;

  bool operator==(const DecodedOp&) const = default;
};
static_assert(sizeof(DecodedOp) == 32);

/// What a visit of one of the trace's blocks executes.
struct DecodedBlock {
  std::uint32_t first = 0, count = 0;  ///< of DecodedCode::ops
  std::uint32_t accesses = 0;          ///< records that a visit has in the trace
  std::uint32_t region = 0;            ///< of DecodedCode::regions, from 1: the one that begins with it; 0: none
  bool operator==(const DecodedBlock&) const = default;
};

/// Blocks that run as one when a warp visits them one after the other (lowering::Lowered::Region).
struct DecodedRegion {
  std::vector<lowering::Lowered::Region::Part> parts;
  std::uint32_t next = lowering::Lowered::Region::kNoBlock;
  std::uint32_t first = 0, count = 0;  ///< of DecodedCode::ops
  bool operator==(const DecodedRegion&) const = default;
};

struct DecodedCode {
  /// Which addresses an op takes.
  struct Access {
    std::uint32_t instruction =
        0;                     ///< memory instructions of the trace before its own, as LoadedCta::shifts counts them
    std::uint32_t record = 0;  ///< of the records of its block's visit
    std::uint8_t part = 0;     ///< of a region: which of its blocks that is
    bool one_lane = false;     ///< lanes that go to one address go there as one
    bool whole_warp = false;   ///< one_lane only where all lanes of the warp go
    bool operator==(const Access&) const = default;
  };
  std::vector<DecodedOp> ops;
  std::vector<Access> access;  ///< by op
  /// By instruction of the trace: the op with which its events happen.
  std::vector<std::uint32_t> event_ops;
  std::vector<std::uint16_t> operands;
  std::vector<DecodedBlock> blocks;  ///< by block of the trace
  std::vector<DecodedRegion> regions;
  std::uint32_t register_count = 0;

  const DecodedOp* EventOp(std::uint32_t instruction) const { return ops.data() + event_ops[instruction]; }
};

/// Fails if the tables are inconsistent (trace::ValidateCode) or the device lacks a pipe that an instruction needs.
Status CheckCode(const trace::KernelCode& code, const sim::TimingSpec& timing);
/// Instruction by instruction. Fails as CheckCode does.
Result<DecodedCode> Decode(const trace::KernelCode& code, const sim::TimingSpec& timing);
/// What the device executes of it, by the lowering that its file names. Fails as CheckCode does.
Result<DecodedCode> DecodeLowered(const trace::KernelCode& code, const sim::DeviceSpec& device);

}  // namespace gridloom::timing
