// wgmma (PTX ISA, 9.7.15): products of a warp group. A product is computed when it is issued, by each warp for its own
// 16 rows; groups of products are complete when they are committed. But a warp that has waited for a group may tell
// others that the matrices in shared memory may go, for all four warps: wait_group therefore waits until all of them
// have come that far.
#include "sim/exec/compiler/lift_parts.h"
#include "sim/exec/compiler/lifter.h"
#include "sim/exec/compiler/matrix_forms.h"

namespace gridloom::exec {

namespace {

/// Types that go together: factors, and what their products are added up in.
bool AreTypes(MatrixType a, MatrixType b, MatrixType d) {
  const auto is_8_bit_float = [](MatrixType type) { return type == MatrixType::kE4M3 || type == MatrixType::kE5M2; };
  const auto is_8_bit_integer = [](MatrixType type) { return type == MatrixType::kS8 || type == MatrixType::kU8; };
  if (a == MatrixType::kF16 || is_8_bit_float(a)) {
    const bool factors = a == MatrixType::kF16 ? b == a : is_8_bit_float(b);
    return factors && (d == MatrixType::kF16 || d == MatrixType::kF32);
  }
  if (a == MatrixType::kBF16 || a == MatrixType::kTF32) return b == a && d == MatrixType::kF32;
  if (is_8_bit_integer(a)) return is_8_bit_integer(b) && d == MatrixType::kS32;
  return a == MatrixType::kB1 && b == a && d == MatrixType::kS32;
}

bool IsShape(const MatrixShape& shape, MatrixType factor) {
  if (shape.m != 64 || shape.k * BitsOf(factor) != kGroupDepthBytes * 8) return false;
  const unsigned step = IsIntegerMatrix(factor) && shape.n > 32 ? 16 : 8;
  return shape.n >= 8 && shape.n <= kMostGroupColumns && shape.n % step == 0;
}

GroupMmaImm GroupMmaImmOf(Lifter& l, const Instruction& inst) {
  const std::optional<MatrixShape> shape = ShapeOf(inst);
  const auto d = MatrixTypeOf(inst.type(0)), a = MatrixTypeOf(inst.type(1)), b = MatrixTypeOf(inst.type(2));
  if (inst.Has(Mod::kSp) || !shape || !d || !a || !b || !AreTypes(*a, *b, *d) || !IsShape(*shape, *a))
    l.RefuseInstruction();
  if (*a == MatrixType::kB1 && !inst.Has(Mod::kAnd)) l.RefuseInstruction();
  GroupMmaImm imm{.columns8 = static_cast<std::uint8_t>(shape->n / 8),
                  .types = static_cast<std::uint8_t>(static_cast<unsigned>(*a) | static_cast<unsigned>(*b) << 4),
                  .accumulator = *d};
  if (inst.Has(Mod::kSatfinite)) imm.flags |= GroupMmaImm::kSaturate;
  if (l.Op(1).kind == OperandKind::kVector) imm.flags |= GroupMmaImm::kRegistersA;
  const auto constant = [&](std::size_t n) -> std::int64_t {
    if (l.Op(n).kind != OperandKind::kInt) l.RefuseInstruction("needs a constant");
    return static_cast<std::int64_t>(l.Op(n).int_literal.value);
  };
  // d, a, b, scale-d {, scale-a, scale-b {, transpose-a} {, transpose-b}}: an A in registers is not transposed.
  const auto sign = [&](std::size_t n, std::uint8_t flag) {
    const std::int64_t value = constant(n);
    if (value != 1 && static_cast<std::int32_t>(value) != -1)
      l.RefuseInstruction("scales by something else than 1 and -1");
    if (value != 1) imm.flags |= flag;
  };
  if (l.OpCount() > 5) {
    sign(4, GroupMmaImm::kNegateA);
    sign(5, GroupMmaImm::kNegateB);
  }
  std::size_t next = 6;
  if (next < l.OpCount() && !imm.has(GroupMmaImm::kRegistersA) && constant(next++) != 0)
    imm.flags |= GroupMmaImm::kColumnA;
  if (next < l.OpCount() && constant(next++) != 0) imm.flags |= GroupMmaImm::kRowB;
  const bool across = imm.has(GroupMmaImm::kColumnA) || imm.has(GroupMmaImm::kRowB);
  if (across && BitsOf(*a) != 16) l.RefuseInstruction();
  return imm;
}

}  // namespace

// wgmma.mma_async.sync.aligned.shape.dtype.atype.btype d, a | a-descriptor, b-descriptor, scale-d, …
template <>
void Lift<semantic::Wgmma>(Lifter& l, const Instruction& inst) {
  if (HasText(inst, "fence") || inst.Has(Mod::kCommitGroup)) return;
  if (inst.Has(Mod::kWaitGroup)) {
    l.b.Barrier(BarrierOp::kWarpGroup, l.b.getInt32(0), l.b.getInt32(0), l.b.getFalse());
    return;
  }
  if (!inst.Has(Mod::kMmaAsync)) l.RefuseInstruction();
  const GroupMmaImm imm = GroupMmaImmOf(l, inst);
  const unsigned count = imm.accumulator_registers();
  if (l.Components(l.Op(0)).size() != count) l.RefuseInstruction("has an accumulator of another size");
  llvm::SmallVector<Value*, 136> inputs;
  ReadFragment(l, l.Op(0), count, false, inputs);
  if (imm.has(GroupMmaImm::kRegistersA)) {
    constexpr unsigned kRegisters = kGroupRows * kGroupDepthBytes / kWarpSize / 4;
    ReadFragment(l, l.Op(1), kRegisters, false, inputs);
  } else {
    inputs.push_back(l.Read(l.Op(1), ScalarType::kB64));
  }
  inputs.push_back(l.Read(l.Op(2), ScalarType::kB64));
  const bool predicate = l.Op(3).kind != OperandKind::kInt;
  inputs.push_back(predicate ? l.b.CreateZExt(l.ReadPredicate(l.Op(3)), l.b.getInt32Ty())
                             : l.Read(l.Op(3), ScalarType::kB32));
  const llvm::SmallVector<llvm::Type*, 128> outputs(count, l.b.getInt32Ty());
  WriteFragment(l, l.Op(0), l.b.CallHelper(Helper::kGroupMma, outputs, inputs, PackImm(imm)), count, false);
}

}  // namespace gridloom::exec
