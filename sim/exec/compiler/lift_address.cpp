// Where variables and parameters live, and the frame of a function in local memory (PTX ISA, chapter 5.1 and 7.1).
#include <algorithm>

#include "sim/exec/compiler/lift_parts.h"
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

Space SpaceOf(Lifter& l, StateSpace space) {
  switch (space) {
    case StateSpace::kNone:
    case StateSpace::kGeneric: return Space::kGeneric;
    case StateSpace::kGlobal:
    case StateSpace::kConst: return Space::kGlobal;
    case StateSpace::kShared:
    case StateSpace::kSharedCta:
    case StateSpace::kSharedCluster: return Space::kShared;
    case StateSpace::kLocal: return Space::kLocal;
    default: l.RefuseInstruction("cannot access state space '" + std::string(ptx::TextOf(space)) + "'");
  }
}

namespace {

// A scalar parameter whose address is taken (`mov.b64 %rd, param`) must lie in memory.
void FindAddressedParams(Lifter& l, llvm::ArrayRef<const Instruction*> instructions) {
  for (const Instruction* inst : instructions) {
    if (inst->Has(ptx::Trait::kCalls)) continue;
    for (const Operand& operand : inst->operands) {
      if (operand.kind == OperandKind::kSymbol && operand.variable) l.frame.addressed_params.insert(operand.variable);
    }
  }
}

Value* LocalAddress(Lifter& l, std::uint32_t offset) {
  return offset == 0 ? l.frame.base : l.b.CreateAdd(l.frame.base, l.b.getInt64(offset));
}

}  // namespace

// Fixes the frame: .local variables, then parameters of call sequences that lie in memory, then spilled formals.
void PlaceParams(Lifter& l, llvm::ArrayRef<const Instruction*> instructions) {
  FindAddressedParams(l, instructions);
  l.frame.local = LayoutLocal(l.function);
  std::uint32_t frame_align = kFrameAlign;
  ForEachVariable(*l.function.body, [&](const ptx::Variable& variable) {
    if (variable.space == StateSpace::kLocal) frame_align = std::max(frame_align, variable.alignment());
  });
  // The caller aligns frames to kFrameAlign; a function that wants more moves its base up and pays the difference.
  const std::uint32_t slack = l.function.is_entry ? 0 : frame_align - kFrameAlign;
  l.frame.base = l.function.is_entry ? l.b.getInt64(0) : static_cast<Value*>(l.ir->getArg(0));
  if (slack != 0)
    l.frame.base = l.b.CreateAnd(l.b.CreateAdd(l.frame.base, l.b.getInt64(slack)), ~std::uint64_t{frame_align - 1});
  l.frame.bytes = l.frame.local.bytes;
  auto reserve = [&](const ptx::Variable& variable) {
    l.frame.bytes = RoundUp(l.frame.bytes, std::max<std::uint32_t>(variable.alignment(), 8));
    l.frame.memory_params[&variable] = LocalAddress(l, l.frame.bytes);
    l.frame.bytes += static_cast<std::uint32_t>(variable.bytes());
  };
  ForEachVariable(*l.function.body, [&](const ptx::Variable& variable) {
    if (!IsParamSpace(variable.space)) return;
    if (IsDirect(variable) && !l.frame.addressed_params.contains(&variable)) {
      l.frame.scalar_params[&variable] = l.EntryAlloca(l.TypeOf(variable.type), "param");
    } else {
      reserve(variable);
    }
  });
  for (const ptx::Variable& variable : l.function.params) {
    if (!l.function.is_entry && IsDirect(variable) && l.frame.addressed_params.contains(&variable)) reserve(variable);
  }
  bool has_alloca = false, copies_params = false;
  for (const Instruction* inst : instructions) {
    has_alloca |= inst->Has(ptx::Trait::kMovesStack);
    copies_params |= inst->opcode == Opcode::kCvta && IsParamSpace(inst->space());
  }
  if (copies_params && l.function.is_entry) {
    l.frame.kernel_param_copy = RoundUp(l.frame.bytes, 128);
    const std::uint32_t bytes = ptx::LayoutParams(l.function).bytes;
    l.module.param_copy() = {.offset = l.frame.kernel_param_copy, .bytes = bytes};
    l.frame.bytes = l.frame.kernel_param_copy + RoundUp(bytes, 8);
  }
  // A frame that is not empty tells the runtime that the thread needs local memory.
  l.frame.bytes = RoundUp(std::max(l.frame.bytes, has_alloca ? 1u : 0u), kFrameAlign);
  if (has_alloca) {
    l.frame.dynamic_top = l.EntryAlloca(l.b.getInt64Ty(), "top");
    l.b.CreateStore(LocalAddress(l, l.frame.bytes), l.frame.dynamic_top);
  }
  l.module.frame(l.function).bytes = l.frame.bytes + slack;
}

void ReceiveParams(Lifter& l) {
  if (l.function.is_entry) {
    const ptx::ParamLayout layout = ptx::LayoutParams(l.function);
    for (std::size_t i = 0; i < l.function.params.size(); ++i)
      l.frame.kernel_params[&l.function.params[i]] = layout.offsets[i];
    if (l.frame.kernel_param_copy == ~0u) return;
    for (std::uint32_t offset = 0; offset < layout.bytes; offset += 8) {
      Value* word = l.b.LoadParam(l.b.getInt64Ty(), l.b.getInt64(offset));
      l.b.StoreMem(Space::kLocal, {word}, l.b.getInt64(l.frame.kernel_param_copy + offset), false);
    }
    return;
  }
  auto* arg = l.ir->arg_begin() + 1;
  const bool direct = !l.ir->getReturnType()->isVoidTy();
  for (const ptx::Variable& variable : l.function.returns) {
    if (!direct) {
      l.frame.memory_params[&variable] = arg++;
    } else if (IsParamSpace(variable.space)) {
      l.frame.scalar_params[&variable] = l.EntryAlloca(l.TypeOf(variable.type), "retval");
    }
  }
  for (const ptx::Variable& variable : l.function.params) {
    llvm::Argument* value = arg++;
    if (variable.space == StateSpace::kReg) {
      if (!IsDirect(variable))
        l.Refuse("vector register '" + std::string(variable.name) + "' as a parameter is not supported");
      l.b.CreateStore(value, l.RegisterSlot(variable, 0, 0));
    } else if (const auto it = l.frame.memory_params.find(&variable); it != l.frame.memory_params.end()) {
      l.b.StoreMem(Space::kLocal, {value}, it->second, false);
    } else if (IsDirect(variable)) {
      l.frame.scalar_params[&variable] = l.EntryAlloca(l.TypeOf(variable.type), "param");
      l.b.CreateStore(value, l.frame.scalar_params[&variable]);
    } else {
      l.frame.memory_params[&variable] = value;
    }
  }
}

Value* CalleeFrame(Lifter& l) {
  if (!l.frame.dynamic_top) return LocalAddress(l, l.frame.bytes);
  Value* top = l.b.CreateLoad(l.b.getInt64Ty(), l.frame.dynamic_top);
  return l.b.CreateAnd(l.b.CreateAdd(top, l.b.getInt64(kFrameAlign - 1)), ~std::uint64_t{kFrameAlign - 1});
}

// Address of a variable in its own state space.
Value* VariableAddress(Lifter& l, const ptx::Variable& variable) {
  const std::string name(variable.name);
  if (IsShared(variable.space)) {
    const auto it = l.module.shared().offsets.find(&variable);
    if (it == l.module.shared().offsets.end()) l.Refuse("shared variable '" + name + "' is not defined");
    Value* offset = l.b.getInt64(it->second);
    if (!l.module.options().clusters) return offset;
    return l.b.CreateAdd(l.b.CreateZExt(l.b.SpecialReg(Special::kSharedOffset), l.b.getInt64Ty()), offset);
  }
  if (variable.space == StateSpace::kLocal) {
    const auto it = l.frame.local.offsets.find(&variable);
    if (it == l.frame.local.offsets.end())
      l.Refuse(".local variable '" + name + "' outside of a function is not supported");
    return LocalAddress(l, it->second);
  }
  if (const auto it = l.frame.kernel_params.find(&variable); it != l.frame.kernel_params.end())
    return l.b.getInt64(it->second);
  if (const auto it = l.frame.memory_params.find(&variable); it != l.frame.memory_params.end()) return it->second;
  const auto it = l.module.symbols().variable_index.find(&variable);
  if (it == l.module.symbols().variable_index.end()) l.Refuse("variable '" + name + "' has no address here");
  return l.b.SymbolAddress(it->second);
}

Place Locate(Lifter& l, const Operand& operand, StateSpace space) {
  if (operand.kind != OperandKind::kAddress) l.RefuseInstruction("needs an address in [ ]");
  const ptx::AddressOperand& address = *operand.address;
  const Operand* base = address.base.empty() ? nullptr : &address.base[0];
  const ptx::Variable* variable = base && base->kind == OperandKind::kSymbol ? base->variable : nullptr;
  Place place;
  if (variable && l.frame.scalar_params.contains(variable)) {
    return {.kind = Place::Kind::kScalarParam, .slot = l.frame.scalar_params[variable], .offset = address.offset};
  }
  if (base && base->kind == OperandKind::kName) l.Refuse("'" + std::string(base->text) + "' is not declared");
  if (base && base->kind == OperandKind::kRegister && ptx::BitsOf(base->variable->type) == 32 &&
      space != StateSpace::kNone) {
    // 32-bit addresses wrap at 32 bits, constant offset included.
    Value* low =
        l.b.CreateAdd(l.Read(*base, ScalarType::kB32), l.b.getInt32(static_cast<std::uint32_t>(address.offset)));
    place.address = l.b.CreateZExt(low, l.b.getInt64Ty());
  } else {
    Value* offset = l.b.getInt64(static_cast<std::uint64_t>(address.offset));
    place.address = !base ? offset : l.Read(*base, ScalarType::kB64);
    if (base && address.offset != 0) place.address = l.b.CreateAdd(place.address, offset);
  }
  if (IsParamSpace(space)) {
    const bool formal =
        variable ? l.frame.kernel_params.contains(variable) : l.function.is_entry && space != StateSpace::kParamFunc;
    if (formal) place.kind = Place::Kind::kKernelParam;
    place.space = Space::kLocal;
  } else {
    // A symbol accessed generically stands for its own state space (`ld.u32 %r, [symbol]`).
    const bool own = variable && (space == StateSpace::kNone || space == StateSpace::kGeneric);
    place.space = SpaceOf(l, own ? variable->space : space);
  }
  return place;
}

Value* AddressOf(Lifter& l, const Operand& address, StateSpace space) {
  const Place place = Locate(l, address, space);
  if (place.kind != Place::Kind::kMemory) l.RefuseInstruction("cannot access a parameter");
  return place.address;
}

}  // namespace gridloom::exec
