// A function of bytecode while a warp runs it, and how steps are called.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/exec/contract/abi.h"
#include "sim/exec/contract/bytecode.h"
#include "sim/exec/contract/immediates.h"

namespace gridloom::exec {

class InterpretedCode;
struct DecodedFunction;

struct Frame {
  WarpCtx* warp = nullptr;
  const InterpretedCode* code = nullptr;
  const DecodedFunction* function = nullptr;
  /// Where operands lie: registers, and constants (kConstantOperand).
  std::uint8_t* registers = nullptr;
  const std::uint32_t* lists = nullptr;  ///< ByteFunction::lists
  const std::uint8_t* constants = nullptr;
  std::uint32_t mask = 0;     ///< lanes that run
  std::uint32_t current = 0;  ///< their block
  std::uint32_t fuel = 0;
  std::uint32_t here = 0, met = 0;         ///< in a block behind a meeting: all its lanes, and those that have waited
  std::uint32_t* pending_masks = nullptr;  ///< by block: lanes that will run it
  std::uint64_t* pending = nullptr;        ///< bit per block: lanes can run
  std::uint64_t* parked = nullptr;         ///< bit per block: lanes wait at a barrier in front of it
  std::uint32_t words = 0;                 ///< of the two
  WarpMeetings* meetings = nullptr;        ///< null: the function has none

  template <typename T>
  const T* In(std::uint32_t operand) const {
    const std::uint8_t* const base = (operand & kConstantOperand) != 0 ? constants : registers;
    return reinterpret_cast<const T*>(base + (operand & ~kConstantOperand));
  }
  template <typename T>
  T* Out(std::uint32_t operand) const {
    return reinterpret_cast<T*>(registers + operand);
  }
  std::uint32_t& BitsOut(std::uint32_t operand) const { return *Out<std::uint32_t>(operand); }
  std::uint32_t BitsIn(std::uint32_t operand) const { return *In<std::uint32_t>(operand); }
};

using StepFn = void (*)(Frame& frame, const ByteStep& step);

struct DecodedStep {
  StepFn run = nullptr;
  ByteStep step;
};

/// The state space of a load or store.
inline Space SpaceOf(const ByteStep& step) { return static_cast<Space>(step.extra & 0x7f); }
inline bool IsStrong(const ByteStep& step) { return (step.extra & 0x80) != 0; }
inline Space AtomicSpace(const ByteStep& step) { return static_cast<Space>(step.imm >> 24 & 0xff); }

/// Of a store: more makes no step.
inline constexpr std::uint32_t kMostStoredElements = 128;

/// memcheck's number of an access, 0 where it has none.
inline std::uint64_t CheckSiteOf(const ByteStep& step) {
  switch (step.code) {
    case ByteCode::kCheckedLoad:
    case ByteCode::kCheckedStore: return step.imm;
    case ByteCode::kCheckedAtomic: return step.imm >> 32;
    default: return 0;
  }
}

/// The function of a plain step for what the processor has, or null: no such step for its types.
StepFn PlainStepBaseline(const ByteStep& step);
StepFn PlainStepAvx2(const ByteStep& step);
/// The same of a step that touches the machine (machine_steps.cpp, memory_steps.cpp), and of helpers that only memcheck
/// has (check_steps.cpp).
StepFn MachineStep(const ByteStep& step);
StepFn MemoryStep(const ByteStep& step);
StepFn CheckStep(const ByteStep& step);

}  // namespace gridloom::exec
