// What a GPU executes of a kernel, as the timing model follows it beside a trace of PTX (docs/lowering.md).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/device/device_spec.h"
#include "sim/lowering/pass.h"
#include "sim/trace/kernel_trace.h"

namespace gridloom::lowering {

/// Instructions in the place of a kernel's, block by block: block b stands for block b of the trace, and a visit of it
/// has the records that the trace has.
struct Lowered {
  /// Blocks of the trace that run as one when a warp visits them one after the other: those that are not optional with
  /// the lanes of the first, the others with some of them or not at all.
  struct Region {
    struct Part {
      std::uint32_t block = 0;
      bool optional = false;
      bool operator==(const Part&) const = default;
    };
    static constexpr std::size_t kMostParts = 8;
    static constexpr std::uint32_t kNoBlock = ~0u;
    std::vector<Part> parts;
    std::uint32_t next = kNoBlock;  ///< where all lanes of the first have to go on, if that is one place
    std::uint32_t code = 0;         ///< its block of `code`, behind those of the trace's blocks
  };
  std::vector<Region> regions;
  trace::KernelCode code;  ///< without meanings
  /// By instruction: of one with a record, which of its visit's that is.
  std::vector<std::uint32_t> access;
  /// By instruction of a region: which of its parts the record is of.
  std::vector<std::uint8_t> part;
  struct Traits {
    bool one_lane = false;        ///< lanes that go to one address go there as one
    bool whole_warp = false;      ///< one_lane only where all lanes of the warp go
    bool guards = false;          ///< writes a predicate that decides what others do (TimingSpec::Sm::guard_latency)
    bool float_atomic = false;    ///< an atomic of floating point
    bool reads_operands = false;  ///< the first that has operands in the constant bank
  };
  std::vector<Traits> traits;  ///< by instruction
  /// By instruction: which of the trace's it stands for; kAdded: none.
  std::vector<std::uint32_t> ptx;
  /// By instruction of the trace: the one at which its events happen, of the same block; later ones of a block have no
  /// earlier place.
  std::vector<std::uint32_t> place;
  static constexpr std::uint32_t kAdded = ~0u;
};

/// The kernel as the trace has it.
Lowered Unchanged(const trace::KernelCode& code);
/// As `device` executes it, by the lowering that the device's file names. Fails where trace::ValidateCode does.
Result<Lowered> Lower(const trace::KernelCode& code, const sim::DeviceSpec& device);
/// By some passes only. The code is valid.
Lowered Lower(const trace::KernelCode& code, const sim::DeviceSpec& device, std::span<const Pass> passes);

/// Numbers of registers for Term::kRegister, as few as can be: what is live at one place has numbers of its own. In
/// Lowered::code.
void AssignRegisters(const Kernel& kernel, trace::KernelCode& code);

}  // namespace gridloom::lowering
