// Runs kernels as bytecode, for as long as their machine code is being made (docs/design/executor.md). Warps, barriers,
// helpers and faults are those of machine code: only who carries out the instructions differs.
#pragma once

#include <memory>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/exec/contract/abi.h"
#include "sim/exec/contract/bytecode.h"
#include "sim/exec/runtime/interpreter/frame.h"

namespace gridloom::exec {

struct DecodedFunction {
  ByteFunction form;
  std::vector<DecodedStep> steps;
  std::unique_ptr<std::uint8_t[]> constant_memory;
  const std::uint8_t* constants = nullptr;
};

class InterpretedCode {
 public:
  /// The error names the step that this build has no function for, or what of the code is out of bounds.
  static Result<std::shared_ptr<const InterpretedCode>> Load(Bytecode code);

  const DecodedFunction& function(std::uint32_t number) const { return functions_[number]; }
  /// The function behind a pointer, of that signature, or null.
  const DecodedFunction* At(std::uint64_t pointer, std::uint32_t signature) const;

  /// How much there is, of all functions.
  struct Size {
    std::uint64_t steps = 0, accesses = 0, blocks = 0;  ///< accesses: those of the steps that load, store or are atomic
  };
  Size size() const;
  bool has_loops() const;
  /// memcheck: numbers given to global accesses, 0 included.
  std::uint32_t check_sites() const;
  /// Whether a grid can begin again before its end, because its stores are all that it does to memory outside of its
  /// CTAs (UndoLog).
  bool can_begin_again() const { return can_begin_again_; }
  /// What all functions take of a warp's stack, each once.
  std::size_t stack_bytes() const;

 private:
  std::vector<DecodedFunction> functions_;
  bool can_begin_again_ = false;
  std::vector<Bytecode::Pointer> pointers_;
};

/// WarpEntry of every interpreted kernel: its code is LoadedKernel::interpreted.
void InterpretWarp(WarpCtx* warp);

/// Runs `function` for the lanes of `mask`. `arguments` and `results` are operands of `caller`, null for a kernel.
void InterpretFunction(WarpCtx* warp, const InterpretedCode& code, const DecodedFunction& function, std::uint32_t mask,
                       const Frame* caller, const std::uint32_t* results, const std::uint32_t* arguments);

}  // namespace gridloom::exec
