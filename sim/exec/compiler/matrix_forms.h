// What the modifiers of matrix instructions say: shapes and types of elements.
#pragma once

#include <cstdint>
#include <optional>

#include "rewriter/ptx/ir.h"
#include "sim/exec/contract/tensor_immediates.h"

namespace gridloom::exec {

struct MatrixShape {
  std::uint16_t m = 0, n = 0, k = 0;
  friend bool operator==(const MatrixShape&, const MatrixShape&) = default;
};
/// The modifier m16n8k16.
std::optional<MatrixShape> ShapeOf(const ptx::Instruction& inst);

std::optional<MatrixType> MatrixTypeOf(ptx::ScalarType type);

}  // namespace gridloom::exec
