// A kernel on its way from PTX to what a GPU executes: blocks of nodes that passes change.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/device/device_spec.h"
#include "sim/lowering/operation.h"
#include "sim/trace/kernel_trace.h"

namespace gridloom::lowering {

using trace::Term;
using Register = std::uint32_t;  ///< as Term::kRegister has it; 0: none

/// An instruction of a lowered kernel.
struct Node {
  trace::Instruction shape;  ///< its fields about registers are filled in at the end
  std::uint32_t text = 0;    ///< which opcode of the kernel's: equal ones have equal numbers; 0: not known
  Operation operation;
  std::vector<Term> results, sources;
  /// Registers that it also has to wait for, though what it computes does not follow from them: carries, conditions.
  std::vector<Term> waits_for;
  /// Of one that does what several instructions of PTX do: these, in their order.
  std::vector<Node> parts;
  std::uint8_t flags = 0;       ///< trace::Meaning::Flag
  bool ordered = false;         ///< nothing passes it, in neither direction: branches, calls, clocks, what is not known
  std::uint32_t ptx = 0;        ///< the instruction of the trace that it stands for
  std::uint32_t access = 0;     ///< of one with a record: which of its visit's it is
  bool is_part = false;         ///< takes its time, and the last one that stands for the instruction does what it does
  bool predicated = false;      ///< of an optional part of a region: runs for the lanes that would go there
  bool keeps = false;           ///< predicated, and others read behind it what it writes
  std::uint8_t part = 0;        ///< of a region's: which of its parts the record is of
  bool is_free = false;         ///< no instruction: what reads its results waits for what it reads
  bool one_lane = false;        ///< lanes that go to one address go there as one
  bool whole_warp = false;      ///< one_lane only where all lanes of the warp go
  bool reads_operands = false;  ///< the first of the kernel with operands in the constant bank
  bool guards = false;          ///< writes a predicate that decides what other instructions do
  bool guarded() const { return (flags & trace::Meaning::kGuarded) != 0; }
  bool partial() const { return (flags & trace::Meaning::kPartial) != 0 || keeps; }
};

struct Block {
  std::vector<Node> nodes;
  std::vector<std::uint32_t> next;  ///< blocks that may follow
  std::uint32_t accesses = 0;       ///< records of a visit in the trace
};

/// Blocks that run as one: the first of them, and others that follow it on every way, some of them for some lanes only,
/// whose instructions are predicated.
struct Region {
  struct Part {
    std::uint32_t block = 0;
    bool optional = false;
    Term condition = {};  ///< of an optional one: the predicate that says which lanes
  };
  static constexpr std::size_t kMostParts = 8;
  std::vector<Part> parts;
  /// Where all lanes go on, if that is one place, which the region ends before.
  std::uint32_t next = kNoBlock;
  static constexpr std::uint32_t kNoBlock = ~0u;
  std::uint32_t code = 0;  ///< the block that has its instructions; 0: not made yet
};

struct Kernel {
  std::vector<Block> blocks;
  std::vector<Region> regions;  ///< at most one begins at a block
  Register registers = 0;       ///< highest number
  /// By number of a Term::kName: whether it is a special register that an instruction of its own reads. Sizes of blocks
  /// and grids lie beside the parameters.
  std::vector<bool> is_special;
  std::vector<bool> differs_by_lane;  ///< likewise, whether lanes of a warp read different values
  /// Each register is one of PTX, and it is known where blocks go on; else registers are those that a packing of the
  /// whole kernel shares, and any may be live anywhere.
  bool has_meanings = false;
};

/// The device that a kernel is lowered for.
struct Target {
  const sim::DeviceSpec& device;
  /// Registers that a thread may hold at a time without a loss of occupancy: as many as each has when the SM is full
  /// of threads, or those that the kernel has anyway.
  std::uint32_t budget = 0;

  std::uint32_t sm() const { return device.compute_capability.sm(); }
  bool is_volta_or_later() const { return sm() >= 70; }
  /// Cycles until the results of a node can be used, as far as that is known before it runs.
  std::uint32_t LatencyOf(const Node& node) const;
};

/// Calls `visit(Register)` for each register that a list of terms names.
template <typename Visit>
void VisitRegisters(std::span<const Term> terms, const Visit& visit) {
  for (const Term& term : terms) {
    if (term.kind == Term::Kind::kRegister) visit(static_cast<Register>(term.value));
  }
}

/// Calls `visit(Register)` for each register that the node waits for, in any way but by its guard's lanes that keep
/// what it writes.
template <typename Visit>
void VisitReads(const Node& node, const Visit& visit) {
  VisitRegisters(node.sources, visit);
  VisitRegisters(node.waits_for, visit);
}

/// The kernel as the trace has it. The code is valid (trace::ValidateCode).
Kernel KernelOf(const trace::KernelCode& code);

}  // namespace gridloom::lowering
