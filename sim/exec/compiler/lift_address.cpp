// Where variables and parameters live, and the frame of a function in local memory (PTX ISA, chapter 5.1 and 7.1).
#include <algorithm>

#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {
namespace {

constexpr std::uint32_t kFrameAlign = 16;

std::uint32_t RoundUp(std::uint64_t value, std::uint64_t align) {
  return static_cast<std::uint32_t>(align <= 1 ? value : (value + align - 1) / align * align);
}

bool IsParamSpace(StateSpace space) {
  return space == StateSpace::kParam || space == StateSpace::kParamEntry || space == StateSpace::kParamFunc;
}

bool IsShared(StateSpace space) {
  return space == StateSpace::kShared || space == StateSpace::kSharedCta || space == StateSpace::kSharedCluster;
}

template <typename Visit>
void ForEachVariable(const ptx::Block& block, Visit visit) {
  for (const ptx::Variable& variable : block.variables) visit(variable);
  for (const ptx::Statement& statement : block.statements) {
    if (const auto* nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement)) ForEachVariable(**nested, visit);
  }
}

}  // namespace

Space FunctionLifter::SpaceOf(StateSpace space) const {
  switch (space) {
    case StateSpace::kNone:
    case StateSpace::kGeneric: return Space::kGeneric;
    case StateSpace::kGlobal:
    case StateSpace::kConst: return Space::kGlobal;
    case StateSpace::kShared:
    case StateSpace::kSharedCta:
    case StateSpace::kSharedCluster: return Space::kShared;
    case StateSpace::kLocal: return Space::kLocal;
    default: RefuseInstruction("cannot access state space '" + std::string(ptx::TextOf(space)) + "'");
  }
}

// A scalar parameter whose address is taken (`mov.b64 %rd, param`) must lie in memory.
void FunctionLifter::FindAddressedParams() {
  for (const Item& item : items_) {
    if (!item.instruction || item.instruction->Has(ptx::Trait::kCalls)) continue;
    for (const Operand& operand : item.instruction->operands) {
      if (operand.kind == OperandKind::kSymbol && operand.variable) addressed_params_.insert(operand.variable);
    }
  }
}

// Fixes the frame: .local variables, then parameters of call sequences that lie in memory, then spilled formals.
void FunctionLifter::PlaceParams() {
  FindAddressedParams();
  local_ = LayoutLocal(function_);
  std::uint32_t frame_align = kFrameAlign;
  ForEachVariable(*function_.body, [&](const ptx::Variable& variable) {
    if (variable.space == StateSpace::kLocal) frame_align = std::max(frame_align, variable.alignment());
  });
  // The caller aligns frames to kFrameAlign; a function that wants more moves its base up and pays the difference.
  const std::uint32_t slack = function_.is_entry ? 0 : frame_align - kFrameAlign;
  frame_base_ = function_.is_entry ? b_.getInt64(0) : static_cast<Value*>(ir_->getArg(0));
  if (slack != 0)
    frame_base_ = b_.CreateAnd(b_.CreateAdd(frame_base_, b_.getInt64(slack)), ~std::uint64_t{frame_align - 1});
  frame_bytes_ = local_.bytes;
  auto reserve = [&](const ptx::Variable& variable) {
    frame_bytes_ = RoundUp(frame_bytes_, std::max<std::uint32_t>(variable.alignment(), 8));
    memory_params_[&variable] = LocalAddress(frame_bytes_);
    frame_bytes_ += static_cast<std::uint32_t>(variable.bytes());
  };
  ForEachVariable(*function_.body, [&](const ptx::Variable& variable) {
    if (!IsParamSpace(variable.space)) return;
    if (IsDirect(variable) && !addressed_params_.contains(&variable)) {
      scalar_params_[&variable] = EntryAlloca(TypeOf(variable.type), "param");
    } else {
      reserve(variable);
    }
  });
  for (const ptx::Variable& variable : function_.params) {
    if (!function_.is_entry && IsDirect(variable) && addressed_params_.contains(&variable)) reserve(variable);
  }
  bool has_alloca = false, copies_params = false;
  for (const Item& item : items_) {
    if (!item.instruction) continue;
    has_alloca |= item.instruction->Has(ptx::Trait::kMovesStack);
    copies_params |= item.instruction->opcode == Opcode::kCvta && IsParamSpace(item.instruction->space());
  }
  if (copies_params && function_.is_entry) {
    kernel_param_copy_ = RoundUp(frame_bytes_, 128);
    const std::uint32_t bytes = ptx::LayoutParams(function_).bytes;
    module_.param_copy() = {.offset = kernel_param_copy_, .bytes = bytes};
    frame_bytes_ = kernel_param_copy_ + RoundUp(bytes, 8);
  }
  // A frame that is not empty tells the runtime that the thread needs local memory.
  frame_bytes_ = RoundUp(std::max(frame_bytes_, has_alloca ? 1u : 0u), kFrameAlign);
  if (has_alloca) {
    dynamic_top_ = EntryAlloca(b_.getInt64Ty(), "top");
    b_.CreateStore(LocalAddress(frame_bytes_), dynamic_top_);
  }
  module_.frame(function_).bytes = frame_bytes_ + slack;
}

void FunctionLifter::ReceiveParams() {
  if (function_.is_entry) {
    const ptx::ParamLayout layout = ptx::LayoutParams(function_);
    for (std::size_t i = 0; i < function_.params.size(); ++i) kernel_params_[&function_.params[i]] = layout.offsets[i];
    if (kernel_param_copy_ == ~0u) return;
    for (std::uint32_t offset = 0; offset < layout.bytes; offset += 8) {
      Value* word = b_.LoadParam(b_.getInt64Ty(), b_.getInt64(offset));
      b_.StoreMem(Space::kLocal, {word}, b_.getInt64(kernel_param_copy_ + offset), false);
    }
    return;
  }
  auto* arg = ir_->arg_begin() + 1;
  const bool direct = !ir_->getReturnType()->isVoidTy();
  for (const ptx::Variable& variable : function_.returns) {
    if (!direct) {
      memory_params_[&variable] = arg++;
    } else if (IsParamSpace(variable.space)) {
      scalar_params_[&variable] = EntryAlloca(TypeOf(variable.type), "retval");
    }
  }
  for (const ptx::Variable& variable : function_.params) {
    llvm::Argument* value = arg++;
    if (variable.space == StateSpace::kReg) {
      if (!IsDirect(variable))
        Refuse("vector register '" + std::string(variable.name) + "' as a parameter is not supported");
      b_.CreateStore(value, RegisterSlot(variable, 0, 0));
    } else if (const auto it = memory_params_.find(&variable); it != memory_params_.end()) {
      b_.StoreMem(Space::kLocal, {value}, it->second, false);
    } else if (IsDirect(variable)) {
      scalar_params_[&variable] = EntryAlloca(TypeOf(variable.type), "param");
      b_.CreateStore(value, scalar_params_[&variable]);
    } else {
      memory_params_[&variable] = value;
    }
  }
}

Value* FunctionLifter::LocalAddress(std::uint32_t offset) {
  return offset == 0 ? frame_base_ : b_.CreateAdd(frame_base_, b_.getInt64(offset));
}

Value* FunctionLifter::CalleeFrame() {
  if (!dynamic_top_) return LocalAddress(frame_bytes_);
  Value* top = b_.CreateLoad(b_.getInt64Ty(), dynamic_top_);
  return b_.CreateAnd(b_.CreateAdd(top, b_.getInt64(kFrameAlign - 1)), ~std::uint64_t{kFrameAlign - 1});
}

// Address of a variable in its own state space.
Value* FunctionLifter::VariableAddress(const ptx::Variable& variable) {
  const std::string name(variable.name);
  if (IsShared(variable.space)) {
    const auto it = module_.shared().offsets.find(&variable);
    if (it == module_.shared().offsets.end()) Refuse("shared variable '" + name + "' is not defined");
    Value* offset = b_.getInt64(it->second);
    if (!module_.options().clusters) return offset;
    return b_.CreateAdd(b_.CreateZExt(b_.SpecialReg(Special::kSharedOffset), b_.getInt64Ty()), offset);
  }
  if (variable.space == StateSpace::kLocal) {
    const auto it = local_.offsets.find(&variable);
    if (it == local_.offsets.end()) Refuse(".local variable '" + name + "' outside of a function is not supported");
    return LocalAddress(it->second);
  }
  if (const auto it = kernel_params_.find(&variable); it != kernel_params_.end()) return b_.getInt64(it->second);
  if (const auto it = memory_params_.find(&variable); it != memory_params_.end()) return it->second;
  const auto it = module_.symbols().variable_index.find(&variable);
  if (it == module_.symbols().variable_index.end()) Refuse("variable '" + name + "' has no address here");
  return b_.SymbolAddress(it->second);
}

FunctionLifter::Place FunctionLifter::Locate(const Operand& operand, StateSpace space) {
  if (operand.kind != OperandKind::kAddress) RefuseInstruction("needs an address in [ ]");
  const ptx::AddressOperand& address = *operand.address;
  const Operand* base = address.base.empty() ? nullptr : &address.base[0];
  const ptx::Variable* variable = base && base->kind == OperandKind::kSymbol ? base->variable : nullptr;
  Place place;
  if (variable && scalar_params_.contains(variable)) {
    return {.kind = Place::Kind::kScalarParam, .slot = scalar_params_[variable], .offset = address.offset};
  }
  if (base && base->kind == OperandKind::kName) Refuse("'" + std::string(base->text) + "' is not declared");
  if (base && base->kind == OperandKind::kRegister && ptx::BitsOf(base->variable->type) == 32 &&
      space != StateSpace::kNone) {
    // 32-bit addresses wrap at 32 bits, constant offset included.
    Value* low = b_.CreateAdd(Read(*base, ScalarType::kB32), b_.getInt32(static_cast<std::uint32_t>(address.offset)));
    place.address = b_.CreateZExt(low, b_.getInt64Ty());
  } else {
    Value* offset = b_.getInt64(static_cast<std::uint64_t>(address.offset));
    place.address = !base ? offset : Read(*base, ScalarType::kB64);
    if (base && address.offset != 0) place.address = b_.CreateAdd(place.address, offset);
  }
  if (IsParamSpace(space)) {
    const bool formal =
        variable ? kernel_params_.contains(variable) : function_.is_entry && space != StateSpace::kParamFunc;
    if (formal) place.kind = Place::Kind::kKernelParam;
    place.space = Space::kLocal;
  } else {
    // A symbol accessed generically stands for its own state space (`ld.u32 %r, [symbol]`).
    const bool own = variable && (space == StateSpace::kNone || space == StateSpace::kGeneric);
    place.space = SpaceOf(own ? variable->space : space);
  }
  return place;
}

Value* FunctionLifter::AddressOf(const Operand& address, StateSpace space) {
  const Place place = Locate(address, space);
  if (place.kind != Place::Kind::kMemory) RefuseInstruction("cannot access a parameter");
  return place.address;
}

}  // namespace gridloom::exec
