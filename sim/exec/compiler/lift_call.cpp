// Calls: direct, indirect, and of the system functions every device program has (PTX ISA, 9.7.12.4 and 7.3).
#include <algorithm>

#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

// call (returns), callee, (arguments), prototype-or-targets;      lists may be left out
FunctionLifter::Call FunctionLifter::ParseCall(const Instruction& inst) const {
  static const std::vector<Operand> kNothing;
  Call call{.callee = nullptr, .returns = &kNothing, .args = &kNothing, .prototype = nullptr};
  for (const Operand& operand : inst.operands) {
    if (operand.kind == OperandKind::kList) {
      (call.callee ? call.args : call.returns) = &operand.elements;
    } else if (!call.callee) {
      call.callee = &operand;
    } else {
      call.prototype = operand.directive;
    }
  }
  if (!call.callee) RefuseInstruction("names no function");
  return call;
}

void FunctionLifter::LiftCall(const Instruction& inst) {
  const Call call = ParseCall(inst);
  const ptx::Function* target = call.callee->function;
  if (target) {
    if (llvm::Function* direct = module_.FunctionFor(*target)) {
      const ptx::Function& definition = *module_.symbols().functions[module_.symbols().function_index.at(target)];
      module_.frame(function_).callees.push_back(&definition);
      return EmitCall(call, definition.returns, definition.params, direct, nullptr);
    }
  }
  if (call.callee->kind == OperandKind::kRegister) {
    module_.NoteIndirectCall();
    module_.frame(function_).calls_indirectly = true;
    Value* address = Read(*call.callee, ScalarType::kB64);
    const std::deque<ptx::Variable>* returns = nullptr;
    const std::deque<ptx::Variable>* params = nullptr;
    if (call.prototype && call.prototype->kind == ptx::LabelDirective::Kind::kCallPrototype) {
      returns = &call.prototype->returns;
      params = &call.prototype->params;
    } else if (call.prototype && !call.prototype->targets.empty() && call.prototype->targets[0].function) {
      returns = &call.prototype->targets[0].function->returns;
      params = &call.prototype->targets[0].function->params;
    } else {
      RefuseInstruction("through a pointer needs a prototype or a list of targets");
    }
    return EmitCall(call, *returns, *params, nullptr, address);
  }
  const std::string_view name = target ? target->name : call.callee->text;
  if (!LiftSystemCall(call, name)) Refuse("function '" + std::string(name) + "' is called but not defined");
}

// A parameter of a call sequence is a .param variable; registers and constants may stand for scalars.
Value* FunctionLifter::ReadArgument(const Operand& operand, const ptx::Variable& formal) {
  const bool is_symbol = operand.kind == OperandKind::kSymbol && operand.variable;
  if (!IsDirect(formal)) {
    if (!is_symbol) RefuseInstruction("passes an array parameter that is not a .param variable");
    const auto it = memory_params_.find(operand.variable);
    if (it == memory_params_.end()) RefuseInstruction("passes '" + std::string(operand.text) + "' where an array is expected");
    return it->second;
  }
  if (!is_symbol) return Read(operand, formal.type);
  llvm::Type* type = TypeOf(formal.type);
  if (const auto it = scalar_params_.find(operand.variable); it != scalar_params_.end()) {
    return Resize(b_.CreateLoad(it->second->getAllocatedType(), it->second), type, false);
  }
  if (const auto it = memory_params_.find(operand.variable); it != memory_params_.end()) {
    return b_.LoadMem(Space::kLocal, type, 1, it->second, false);
  }
  RefuseInstruction("passes '" + std::string(operand.text) + "', which is no parameter");
}

void FunctionLifter::WriteReturn(const Operand& operand, Value* value, ScalarType type) {
  if (operand.kind != OperandKind::kSymbol || !operand.variable) return Write(operand, value, type);
  if (const auto it = scalar_params_.find(operand.variable); it != scalar_params_.end()) {
    b_.CreateStore(Resize(value, it->second->getAllocatedType(), false), it->second);
  } else if (const auto memory = memory_params_.find(operand.variable); memory != memory_params_.end()) {
    b_.StoreMem(Space::kLocal, {value}, memory->second, false);
  } else {
    RefuseInstruction("returns into '" + std::string(operand.text) + "', which is no parameter");
  }
}

void FunctionLifter::EmitCall(const Call& call, const std::deque<ptx::Variable>& returns, const std::deque<ptx::Variable>& params,
                              llvm::Function* direct, Value* indirect) {
  if (call.args->size() != params.size()) RefuseInstruction("passes another number of arguments than the function takes");
  if (call.returns->size() != returns.size()) RefuseInstruction("takes another number of results than the function returns");
  llvm::SmallVector<Value*, 8> args{CalleeFrame()};
  const bool direct_return = returns.size() == 1 && IsDirect(returns[0]);
  if (!direct_return) {
    for (const Operand& operand : *call.returns) {
      const auto it = operand.variable ? memory_params_.find(operand.variable) : memory_params_.end();
      if (it == memory_params_.end()) RefuseInstruction("returns an array into something that is not a .param array");
      args.push_back(it->second);
    }
  }
  for (std::size_t i = 0; i < params.size(); ++i) args.push_back(ReadArgument((*call.args)[i], params[i]));
  llvm::FunctionType* type = module_.Signature(returns, params);
  Value* result = direct ? b_.CreateCall(direct, args) : b_.IndirectCall(type->getReturnType(), indirect, args);
  if (direct_return) WriteReturn((*call.returns)[0], result, returns[0].type);
}

namespace {

struct SystemFunction {
  std::string_view name;
  Helper helper;
  ScalarType result;                                ///< kNone: returns nothing
  std::initializer_list<ScalarType> params;
};

constexpr ScalarType kNoResult = ScalarType::kNone;

const SystemFunction kSystemFunctions[] = {
    {"vprintf", Helper::kVprintf, ScalarType::kB32, {ScalarType::kB64, ScalarType::kB64}},
    {"malloc", Helper::kMalloc, ScalarType::kB64, {ScalarType::kB64}},
    {"free", Helper::kFree, kNoResult, {ScalarType::kB64}},
    {"__assertfail", Helper::kAssertFail, kNoResult,
     {ScalarType::kB64, ScalarType::kB64, ScalarType::kB32, ScalarType::kB64, ScalarType::kB64}},
};

}  // namespace

bool FunctionLifter::LiftSystemCall(const Call& call, std::string_view name) {
  const auto* function = std::ranges::find(kSystemFunctions, name, &SystemFunction::name);
  if (function == std::end(kSystemFunctions)) return false;
  if (call.args->size() != function->params.size()) RefuseInstruction("passes a wrong number of arguments to " + std::string(name));
  llvm::SmallVector<Value*, 5> inputs;
  for (std::size_t i = 0; i < function->params.size(); ++i) {
    ptx::Variable formal;
    formal.type = function->params.begin()[i];
    inputs.push_back(ReadArgument((*call.args)[i], formal));
  }
  if (function->result == kNoResult) {
    b_.CallHelper(function->helper, {}, inputs);
    return true;
  }
  Value* result = b_.CallHelper(function->helper, {TypeOf(function->result)}, inputs);
  if (!call.returns->empty()) WriteReturn((*call.returns)[0], result, function->result);
  return true;
}

}  // namespace gridloom::exec
