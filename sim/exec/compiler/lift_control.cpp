// Branches, ends, barriers and the like (PTX ISA, 9.7.12, 9.7.13.1, 9.7.19).
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

template <>
void FunctionLifter::Lift<semantic::Bra>(const Instruction& inst) {
  const Operand& target = Op(0);
  if (target.kind != OperandKind::kLabel) Refuse("branch target '" + std::string(target.text) + "' is not a label");
  llvm::BasicBlock* block = BlockOf(*target.label);
  if (inst.guard) {
    auto* next = NewBlock("next");
    b_.CreateCondBr(GuardValue(*inst.guard), block, next);
    b_.SetInsertPoint(next);
    return;
  }
  b_.CreateBr(block);
  terminated_ = true;
}

// brx.idx index, list: an index beyond the list is undefined behaviour; it goes to the last target.
template <>
void FunctionLifter::Lift<semantic::Brx>(const Instruction& inst) {
  const ptx::LabelDirective* list = Op(1).directive;
  if (!list || list->targets.empty()) RefuseInstruction("needs a .branchtargets list");
  Value* index = Read(Op(0), ScalarType::kU32);
  auto target = [&](const Operand& operand) {
    if (operand.kind != OperandKind::kLabel) Refuse("branch target '" + std::string(operand.text) + "' is not a label");
    return BlockOf(*operand.label);
  };
  auto* jump = b_.CreateSwitch(index, target(list->targets.back()), static_cast<unsigned>(list->targets.size()));
  for (std::size_t i = 0; i + 1 < list->targets.size(); ++i)
    jump->addCase(b_.getInt32(static_cast<std::uint32_t>(i)), target(list->targets[i]));
  terminated_ = true;
}

template <>
void FunctionLifter::Lift<semantic::Ret>(const Instruction&) {
  EmitReturn();
}

template <>
void FunctionLifter::Lift<semantic::Exit>(const Instruction&) {
  terminated_ = true;
  if (function_.is_entry) {
    b_.CreateRetVoid();
    return;
  }
  b_.ExitThread();
  llvm::Type* type = ir_->getReturnType();
  if (type->isVoidTy()) {
    b_.CreateRetVoid();
  } else {
    b_.CreateRet(llvm::Constant::getNullValue(type));
  }
}

// trap and brkpt end the grid with an error; there is no debugger to stop in.
template <>
void FunctionLifter::Lift<semantic::Trap>(const Instruction& inst) {
  b_.CallHelper(Helper::kTrap, {}, {}, inst.opcode == Opcode::kBrkpt ? 1 : 0);
}

template <>
void FunctionLifter::Lift<semantic::Nanosleep>(const Instruction&) {
  b_.CallHelper(Helper::kNanosleep, {}, {Read(Op(0), ScalarType::kU32)});
}

// bar.sync a {, b};  bar.arrive a, b;  bar.red.op d, a {, b}, {!}c;  bar.warp.sync mask;  barrier{.cta} likewise.
template <>
void FunctionLifter::Lift<semantic::Bar>(const Instruction& inst) {
  if (inst.Has(Mod::kWarp)) {
    b_.Sync({}, Read(Op(0), ScalarType::kB32), {});
    return;
  }
  if (inst.Has(Mod::kCluster)) return LiftClusterBarrier(inst);
  Value* zero = b_.getInt32(0);
  const bool aligned = inst.opcode == Opcode::kBar || inst.Has(Mod::kAligned);
  const std::uint64_t flags = module_.options().memcheck && aligned ? kBarrierAligned : 0;
  auto number = [&](std::size_t n) { return n < OpCount() ? Read(Op(n), ScalarType::kU32) : zero; };
  if (inst.Has(Mod::kArrive)) {
    b_.Barrier(BarrierOp::kArrive, number(0), number(1), b_.getFalse());
    return;
  }
  if (!inst.Has(Mod::kRed)) {
    b_.Barrier(BarrierOp::kSync, number(0), number(1), b_.getFalse(), flags);
    return;
  }
  const std::size_t last = OpCount() - 1;
  const BarrierOp op = inst.Has(Mod::kPopc)  ? BarrierOp::kRedPopc
                       : inst.Has(Mod::kAnd) ? BarrierOp::kRedAnd
                                             : BarrierOp::kRedOr;
  Value* result = b_.Barrier(op, number(1), last >= 3 ? number(2) : zero, ReadPredicate(Op(last)), flags);
  if (op == BarrierOp::kRedPopc) return Write(Op(0), result, ScalarType::kU32);
  Write(Op(0), b_.CreateICmpNE(result, zero), ScalarType::kPred);
}

// barrier.cluster.arrive and .wait: of all threads of the cluster. Without clusters every CTA is one of its own.
void FunctionLifter::LiftClusterBarrier(const Instruction& inst) {
  const BarrierOp op = inst.Has(Mod::kWait) ? BarrierOp::kClusterWait : BarrierOp::kClusterArrive;
  b_.Barrier(op, b_.getInt32(0), b_.getInt32(0), b_.getFalse());
}

}  // namespace gridloom::exec
