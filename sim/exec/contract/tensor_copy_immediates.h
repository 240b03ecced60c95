// Immediates of the tensor copies' helpers: what the lifter writes and the runtime reads.
#pragma once

#include <cstdint>

#include "sim/exec/contract/immediates.h"

namespace gridloom::exec {

enum class TensorCopyOp : std::uint8_t { kLoad, kStore, kReduce };
enum class TensorReduction : std::uint8_t { kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor };

/// imm of kTensorCopy and kTensorPlace. in: i64 generic address of the map, i64 generic address in shared memory
/// (kTensorPlace: i64 offset in the box), a coordinate (i32) for each axis, the innermost first.
struct TensorCopyImm {
  TensorCopyOp op = TensorCopyOp::kLoad;
  TensorReduction reduction = TensorReduction::kAdd;
  std::uint8_t rank = 1;
  std::uint8_t unused[5] = {};
};

}  // namespace gridloom::exec
