// Branches, ends, barriers and the like (PTX ISA, 9.7.12, 9.7.13.1, 9.7.19).
#include "sim/exec/compiler/lift_parts.h"
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

template <>
void Lift<semantic::Bra>(Lifter& l, const Instruction& inst) {
  const Operand& target = l.Op(0);
  if (target.kind != OperandKind::kLabel) l.Refuse("branch target '" + std::string(target.text) + "' is not a label");
  llvm::BasicBlock* block = l.BlockOf(*target.label);
  if (inst.guard) {
    auto* next = l.NewBlock("next");
    l.b.CreateCondBr(l.GuardValue(*inst.guard), block, next);
    l.b.SetInsertPoint(next);
    return;
  }
  l.b.CreateBr(block);
  l.terminated = true;
}

// brx.idx index, list: an index beyond the list is undefined behaviour; it goes to the last target.
template <>
void Lift<semantic::Brx>(Lifter& l, const Instruction& inst) {
  const ptx::LabelDirective* list = l.Op(1).directive;
  if (!list || list->targets.empty()) l.RefuseInstruction("needs a .branchtargets list");
  Value* index = l.Read(l.Op(0), ScalarType::kU32);
  auto target = [&](const Operand& operand) {
    if (operand.kind != OperandKind::kLabel)
      l.Refuse("branch target '" + std::string(operand.text) + "' is not a label");
    return l.BlockOf(*operand.label);
  };
  auto* jump = l.b.CreateSwitch(index, target(list->targets.back()), static_cast<unsigned>(list->targets.size()));
  for (std::size_t i = 0; i + 1 < list->targets.size(); ++i)
    jump->addCase(l.b.getInt32(static_cast<std::uint32_t>(i)), target(list->targets[i]));
  l.terminated = true;
}

template <>
void Lift<semantic::Ret>(Lifter& l, const Instruction&) {
  EmitReturn(l);
}

template <>
void Lift<semantic::Exit>(Lifter& l, const Instruction&) {
  l.terminated = true;
  if (l.function.is_entry) {
    l.b.CreateRetVoid();
    return;
  }
  l.b.ExitThread();
  llvm::Type* type = l.ir->getReturnType();
  if (type->isVoidTy()) {
    l.b.CreateRetVoid();
  } else {
    l.b.CreateRet(llvm::Constant::getNullValue(type));
  }
}

// trap and brkpt end the grid with an error; there is no debugger to stop in.
template <>
void Lift<semantic::Trap>(Lifter& l, const Instruction& inst) {
  l.b.CallHelper(Helper::kTrap, {}, {}, inst.opcode == Opcode::kBrkpt ? 1 : 0);
}

template <>
void Lift<semantic::Nanosleep>(Lifter& l, const Instruction&) {
  l.b.CallHelper(Helper::kNanosleep, {}, {l.Read(l.Op(0), ScalarType::kU32)});
}

namespace {

// barrier.cluster.arrive and .wait: of all threads of the cluster. Without clusters every CTA is one of its own.
void LiftClusterBarrier(Lifter& l, const Instruction& inst) {
  const BarrierOp op = inst.Has(Mod::kWait) ? BarrierOp::kClusterWait : BarrierOp::kClusterArrive;
  l.b.Barrier(op, l.b.getInt32(0), l.b.getInt32(0), l.b.getFalse());
}

}  // namespace

// bar.sync a {, b};  bar.arrive a, b;  bar.red.op d, a {, b}, {!}c;  bar.warp.sync mask;  barrier{.cta} likewise.
template <>
void Lift<semantic::Bar>(Lifter& l, const Instruction& inst) {
  if (inst.Has(Mod::kWarp)) {
    l.b.Sync({}, l.Read(l.Op(0), ScalarType::kB32), {});
    return;
  }
  if (inst.Has(Mod::kCluster)) return LiftClusterBarrier(l, inst);
  Value* zero = l.b.getInt32(0);
  const bool aligned = inst.opcode == Opcode::kBar || inst.Has(Mod::kAligned);
  const std::uint64_t flags = l.module.options().memcheck && aligned ? kBarrierAligned : 0;
  auto number = [&](std::size_t n) { return n < l.OpCount() ? l.Read(l.Op(n), ScalarType::kU32) : zero; };
  if (inst.Has(Mod::kArrive)) {
    l.b.Barrier(BarrierOp::kArrive, number(0), number(1), l.b.getFalse());
    return;
  }
  if (!inst.Has(Mod::kRed)) {
    l.b.Barrier(BarrierOp::kSync, number(0), number(1), l.b.getFalse(), flags);
    return;
  }
  const std::size_t last = l.OpCount() - 1;
  const BarrierOp op = inst.Has(Mod::kPopc)  ? BarrierOp::kRedPopc
                       : inst.Has(Mod::kAnd) ? BarrierOp::kRedAnd
                                             : BarrierOp::kRedOr;
  Value* result = l.b.Barrier(op, number(1), last >= 3 ? number(2) : zero, l.ReadPredicate(l.Op(last)), flags);
  if (op == BarrierOp::kRedPopc) return l.Write(l.Op(0), result, ScalarType::kU32);
  l.Write(l.Op(0), l.b.CreateICmpNE(result, zero), ScalarType::kPred);
}

}  // namespace gridloom::exec
