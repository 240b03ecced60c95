// One function: its blocks in the order they are reached, guards, dispatch. Only code that can be reached is lifted.
#include <llvm/IR/DebugInfoMetadata.h>

#include "rewriter/ptx/form.h"
#include "rewriter/ptx/verifier.h"
#include "rewriter/ptx/word_rules.h"
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {
namespace {

// Instructions that only write registers: under a guard they run always and a select keeps the old value.
bool IsPure(const Instruction& inst) { return ptx::IsArithmetic(inst.info().cls); }

}  // namespace

FunctionLifter::FunctionLifter(ModuleLifter& module, const ptx::Function& function, llvm::Function* ir)
    : module_(module),
      function_(function),
      ir_(ir),
      b_(module.out()),
      emit_(b_, module.options().cpu == "x86-64"),
      lanes_(b_, emit_) {}

void FunctionLifter::Refuse(const std::string& what) const {
  throw Refusal{inst_ ? inst_->loc.line : function_.loc.line, what};
}

void FunctionLifter::RefuseInstruction(const std::string& why) const {
  Refuse("instruction '" + inst_->FullName() + "' " + why);
}

void FunctionLifter::RefuseUnknown(const Instruction& inst) const {
  const ptx::Modifier* unknown = ptx::UnknownModifierOf(inst);
  if (unknown != nullptr) RefuseInstruction("has a modifier that is not known: ." + std::string(unknown->text));
  const ptx::Module& module = module_.module();
  const unsigned version = module.version_major * 10 + module.version_minor;
  const std::string wrong = ptx::WrongWordsOf(inst, version);
  if (!wrong.empty()) RefuseInstruction(wrong);
  // What the tables describe was looked at when the module was loaded.
  if (version <= ptx::kNewestPtx || inst.Has(ptx::Trait::kCalls)) return;
  DiagnosticSink sink;
  if (!ptx::VerifyInstruction(module, inst, sink))
    RefuseInstruction("is not known: " + sink.diagnostics().front().message);
}

const Operand& FunctionLifter::Op(std::size_t n) const {
  if (n >= inst_->operands.size()) RefuseInstruction("has too few operands");
  return inst_->operands[n];
}

void FunctionLifter::Flatten(const ptx::Block& block) {
  for (const ptx::Statement& statement : block.statements) {
    if (const auto* instruction = std::get_if<Instruction>(&statement)) {
      items_.push_back({.instruction = instruction, .number = next_number_++});
    } else if (const auto* label = std::get_if<ptx::Label*>(&statement)) {
      label_index_[*label] = items_.size();
      items_.push_back({.label = *label});
    } else if (const auto* nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement)) {
      Flatten(**nested);
    }
  }
}

llvm::BasicBlock* FunctionLifter::NewBlock(const char* name) {
  return llvm::BasicBlock::Create(b_.getContext(), name, ir_);
}

llvm::BasicBlock* FunctionLifter::BlockOf(const ptx::Label& label) {
  auto [it, inserted] = label_blocks_.try_emplace(&label, nullptr);
  if (inserted) {
    it->second = NewBlock("label");
    pending_labels_.push_back(&label);
  }
  return it->second;
}

// Entry block: allocas and their zeroes (before entry_end_), parameters, then the body.
void FunctionLifter::Run() {
  auto* entry = NewBlock("entry");
  auto* body = NewBlock("body");
  b_.SetInsertPoint(entry);
  entry_end_ = b_.CreateBr(body);
  b_.SetInsertPoint(body);
  b_.line = module_.lines().Begin(function_);
  next_number_ = module_.first_number(function_);
  Flatten(*function_.body);
  PlaceParams();
  ReceiveParams();
  LiftFrom(0);
  while (!pending_labels_.empty()) {
    const ptx::Label* label = pending_labels_.back();
    pending_labels_.pop_back();
    if (lifted_labels_.contains(label)) continue;
    b_.SetInsertPoint(BlockOf(*label));
    terminated_ = false;
    LiftFrom(label_index_.at(label));
  }
}

void FunctionLifter::LiftFrom(std::size_t index) {
  bool first = true, block_begins = true;
  b_.record = module_.options().record;
  for (; index < items_.size(); ++index, first = false) {
    const Item& item = items_[index];
    if (item.instruction) {
      b_.number = item.number;
      if (block_begins) b_.RecordBlock();
      block_begins = EndsBlock(*item.instruction);
      if (LiftInstruction(*item.instruction)) return;
      continue;
    }
    block_begins = true;
    llvm::BasicBlock* block = BlockOf(*item.label);
    if (!(first && b_.GetInsertBlock() == block)) b_.CreateBr(block);
    if (!lifted_labels_.insert(item.label).second) return;
    b_.SetInsertPoint(block);
  }
  EmitReturn();
}

bool FunctionLifter::LiftInstruction(const Instruction& inst) {
  inst_ = &inst;
  b_.line = module_.lines().Of(function_, inst.loc.line);
  b_.record = inst.space() == StateSpace::kConst && module_.options().record == Recording::kGlobal
                  ? Recording::kNone
                  : module_.options().record;
  b_.SetCurrentDebugLocation(llvm::DILocation::get(b_.getContext(), b_.line, 0, ir_->getSubprogram()));
  terminated_ = false;
  RefuseUnknown(inst);
  const Handler handler = HandlerFor(inst.opcode);
  if (!inst.guard) {
    (this->*handler)(inst);
  } else if (inst.opcode == Opcode::kBra) {
    Lift<semantic::Bra>(inst);
  } else if (IsPure(inst)) {
    guard_ = GuardValue(*inst.guard);
    (this->*handler)(inst);
    guard_ = nullptr;
  } else {
    LiftGuarded(inst, handler);
  }
  inst_ = nullptr;
  return terminated_;
}

void FunctionLifter::LiftGuarded(const Instruction& inst, Handler handler) {
  auto* then = NewBlock("guarded");
  auto* next = NewBlock("next");
  b_.CreateCondBr(GuardValue(*inst.guard), then, next);
  b_.SetInsertPoint(then);
  (this->*handler)(inst);
  if (!terminated_) b_.CreateBr(next);
  terminated_ = false;
  b_.SetInsertPoint(next);
}

// What `ret` does; the value comes from the return parameter.
void FunctionLifter::EmitReturn() {
  terminated_ = true;
  if (ir_->getReturnType()->isVoidTy()) {
    b_.CreateRetVoid();
    return;
  }
  const ptx::Variable& variable = function_.returns[0];
  llvm::Type* type = ir_->getReturnType();
  Value* value = nullptr;
  if (variable.space == StateSpace::kReg) {
    value = ReadRegister(variable, 0, 0);
  } else if (const auto it = scalar_params_.find(&variable); it != scalar_params_.end()) {
    value = b_.CreateLoad(type, it->second);
  } else {
    value = b_.LoadMem(Space::kLocal, type, 1, memory_params_.at(&variable), false);
  }
  b_.CreateRet(value);
}

}  // namespace gridloom::exec
