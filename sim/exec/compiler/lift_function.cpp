// One function: its blocks in the order they are reached, guards, dispatch. Only code that can be reached is lifted.
#include <llvm/IR/DebugInfoMetadata.h>

#include "rewriter/ptx/form.h"
#include "rewriter/ptx/verifier.h"
#include "rewriter/ptx/word_rules.h"
#include "sim/exec/compiler/lift_parts.h"
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

namespace {

// Instructions that only write registers: under a guard they run always and a select keeps the old value.
bool IsPure(const Instruction& inst) { return ptx::IsArithmetic(inst.info().cls); }

}  // namespace

void Lifter::Refuse(const std::string& what) const { throw Refusal{inst ? inst->loc.line : function.loc.line, what}; }

void Lifter::RefuseInstruction(const std::string& why) const {
  Refuse("instruction '" + inst->FullName() + "' " + why);
}

void FunctionLifter::RefuseUnknown(const Instruction& inst) const {
  const ptx::Modifier* unknown = ptx::UnknownModifierOf(inst);
  if (unknown != nullptr) l_.RefuseInstruction("has a modifier that is not known: ." + std::string(unknown->text));
  const ptx::Module& module = l_.module.module();
  const unsigned version = module.version_major * 10 + module.version_minor;
  const std::string wrong = ptx::WrongWordsOf(inst, version);
  if (!wrong.empty()) l_.RefuseInstruction(wrong);
  // What the tables describe was looked at when the module was loaded.
  if (version <= ptx::kNewestPtx || inst.Has(ptx::Trait::kCalls)) return;
  DiagnosticSink sink;
  if (!ptx::VerifyInstruction(module, inst, sink))
    l_.RefuseInstruction("is not known: " + sink.diagnostics().front().message);
}

const Operand& Lifter::Op(std::size_t n) const {
  if (n >= inst->operands.size()) RefuseInstruction("has too few operands");
  return inst->operands[n];
}

void FunctionLifter::Flatten(const ptx::Block& block) {
  for (const ptx::Statement& statement : block.statements) {
    if (const auto* instruction = std::get_if<Instruction>(&statement)) {
      items_.push_back({.instruction = instruction, .number = next_number_++});
      instructions_.push_back(instruction);
    } else if (const auto* label = std::get_if<ptx::Label*>(&statement)) {
      label_index_[*label] = items_.size();
      items_.push_back({.label = *label});
    } else if (const auto* nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement)) {
      Flatten(**nested);
    }
  }
}

llvm::BasicBlock* Lifter::NewBlock(const char* name) { return llvm::BasicBlock::Create(b.getContext(), name, ir); }

llvm::BasicBlock* Lifter::BlockOf(const ptx::Label& label) {
  auto [it, inserted] = label_blocks_.try_emplace(&label, nullptr);
  if (inserted) {
    it->second = NewBlock("label");
    pending_labels.push_back(&label);
  }
  return it->second;
}

// Entry block: allocas and their zeroes (before entry_end_), parameters, then the body.
void FunctionLifter::Run() {
  auto* entry = l_.NewBlock("entry");
  auto* body = l_.NewBlock("body");
  l_.b.SetInsertPoint(entry);
  l_.entry_end = l_.b.CreateBr(body);
  l_.b.SetInsertPoint(body);
  l_.b.line = l_.module.lines().Begin(l_.function);
  next_number_ = l_.module.first_number(l_.function);
  Flatten(*l_.function.body);
  PlaceParams(l_, instructions_);
  ReceiveParams(l_);
  LiftFrom(0);
  while (!l_.pending_labels.empty()) {
    const ptx::Label* label = l_.pending_labels.back();
    l_.pending_labels.pop_back();
    if (lifted_labels_.contains(label)) continue;
    l_.b.SetInsertPoint(l_.BlockOf(*label));
    l_.terminated = false;
    LiftFrom(label_index_.at(label));
  }
}

void FunctionLifter::LiftFrom(std::size_t index) {
  bool first = true, block_begins = true;
  l_.b.record = l_.module.options().record;
  for (; index < items_.size(); ++index, first = false) {
    const Item& item = items_[index];
    if (item.instruction) {
      l_.b.number = item.number;
      if (block_begins) l_.b.RecordBlock();
      block_begins = EndsBlock(*item.instruction);
      if (LiftInstruction(*item.instruction)) return;
      continue;
    }
    block_begins = true;
    llvm::BasicBlock* block = l_.BlockOf(*item.label);
    if (!(first && l_.b.GetInsertBlock() == block)) l_.b.CreateBr(block);
    if (!lifted_labels_.insert(item.label).second) return;
    l_.b.SetInsertPoint(block);
  }
  EmitReturn(l_);
}

bool FunctionLifter::LiftInstruction(const Instruction& inst) {
  l_.inst = &inst;
  l_.b.line = l_.module.lines().Of(l_.function, inst.loc.line);
  l_.b.record = inst.space() == StateSpace::kConst && l_.module.options().record == Recording::kGlobal
                    ? Recording::kNone
                    : l_.module.options().record;
  l_.b.SetCurrentDebugLocation(llvm::DILocation::get(l_.b.getContext(), l_.b.line, 0, l_.ir->getSubprogram()));
  l_.terminated = false;
  RefuseUnknown(inst);
  const LiftHandler handler = HandlerFor(inst.opcode);
  if (!inst.guard) {
    handler(l_, inst);
  } else if (inst.opcode == Opcode::kBra) {
    Lift<semantic::Bra>(l_, inst);
  } else if (IsPure(inst)) {
    l_.guard = l_.GuardValue(*inst.guard);
    handler(l_, inst);
    l_.guard = nullptr;
  } else {
    LiftGuarded(inst, handler);
  }
  l_.inst = nullptr;
  return l_.terminated;
}

void FunctionLifter::LiftGuarded(const Instruction& inst, LiftHandler handler) {
  auto* then = l_.NewBlock("guarded");
  auto* next = l_.NewBlock("next");
  l_.b.CreateCondBr(l_.GuardValue(*inst.guard), then, next);
  l_.b.SetInsertPoint(then);
  handler(l_, inst);
  if (!l_.terminated) l_.b.CreateBr(next);
  l_.terminated = false;
  l_.b.SetInsertPoint(next);
}

// What `ret` does; the value comes from the return parameter.
void EmitReturn(Lifter& l) {
  l.terminated = true;
  if (l.ir->getReturnType()->isVoidTy()) {
    l.b.CreateRetVoid();
    return;
  }
  const ptx::Variable& variable = l.function.returns[0];
  llvm::Type* type = l.ir->getReturnType();
  Value* value = nullptr;
  if (variable.space == StateSpace::kReg) {
    value = l.ReadRegister(variable, 0, 0);
  } else if (const auto it = l.frame.scalar_params.find(&variable); it != l.frame.scalar_params.end()) {
    value = l.b.CreateLoad(type, it->second);
  } else {
    value = l.b.LoadMem(Space::kLocal, type, 1, l.frame.memory_params.at(&variable), false);
  }
  l.b.CreateRet(value);
}

}  // namespace gridloom::exec
