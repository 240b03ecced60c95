// Calls (PTX ISA, 9.7.12.5): call (results), function, (arguments);  call (results), register, (arguments), prototype;
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/verifier_impl.h"

namespace gridloom::ptx {

struct Verifier::CallParts {
  const Operand* results = nullptr;  // list, or null
  const Operand* callee = nullptr;
  const Operand* arguments = nullptr;  // list, or null
  const Operand* targets = nullptr;    // .callprototype or .calltargets of an indirect call
};

// call := 'call' ( ( list | '_' ) ',' )? callee ( ',' list )? ( ',' targets )?
bool Verifier::SplitCall(const Instruction& instruction, CallParts& parts) {
  const auto& operands = instruction.operands;
  std::size_t i = 0;
  const auto at_list = [&] { return i < operands.size() && operands[i].kind == OperandKind::kList; };
  if (at_list() || (!operands.empty() && operands[0].kind == OperandKind::kSink)) parts.results = &operands[i++];
  if (i < operands.size() && !at_list()) parts.callee = &operands[i++];
  if (at_list()) parts.arguments = &operands[i++];
  if (i < operands.size()) parts.targets = &operands[i++];
  if (parts.callee != nullptr && i == operands.size()) return true;
  Error(instruction.loc, "expected a call such as 'call (results), function, (arguments)'");
  return false;
}

void Verifier::VerifyCall(const Instruction& instruction) {
  CallParts parts;
  if (!SplitCall(instruction, parts)) return;
  if (const Function* function = parts.callee->function; function != nullptr) {
    if (function->is_entry)
      return Error(parts.callee->loc, "'" + std::string(function->name) + "' is a kernel; call takes a function");
    return VerifyCallSignature(instruction, parts, function->returns, function->params, function->variadic_param);
  }
  if (parts.callee->kind != OperandKind::kRegister) {
    Fail(*parts.callee,
         "expected a function or a register with its address, found '" + PrintOperand(*parts.callee) + "'");
    return;
  }
  if (parts.targets == nullptr || parts.targets->directive == nullptr) {
    return Error(instruction.loc, "an indirect call needs the label of a .callprototype or .calltargets");
  }
  const LabelDirective& directive = *parts.targets->directive;
  if (directive.kind == LabelDirective::Kind::kBranchTargets) {
    return Error(parts.targets->loc, "expected a .callprototype or .calltargets, found .branchtargets");
  }
  if (directive.kind == LabelDirective::Kind::kCallPrototype) {
    VerifyCallSignature(instruction, parts, directive.returns, directive.params, /*variadic=*/false);
  }
}

void Verifier::VerifyCallSignature(const Instruction& instruction, const CallParts& parts,
                                   const std::deque<Variable>& returns, const std::deque<Variable>& params,
                                   bool variadic) {
  static const std::vector<Operand> kNone;
  const auto list = [](const Operand* operand) -> const std::vector<Operand>& {
    return operand != nullptr && operand->kind == OperandKind::kList ? operand->elements : kNone;
  };
  const auto& results = list(parts.results);
  const auto& arguments = list(parts.arguments);
  if (results.size() > returns.size() || (results.size() < returns.size() && !results.empty())) {
    return Error(instruction.loc, "the function returns " + std::to_string(returns.size()) +
                                      " values, the call takes " + std::to_string(results.size()));
  }
  const bool enough = variadic ? arguments.size() + 1 >= params.size() : arguments.size() == params.size();
  if (!enough) {
    return Error(instruction.loc, "the function has " + std::to_string(params.size()) +
                                      " parameters, the call passes " + std::to_string(arguments.size()));
  }
  for (std::size_t i = 0; i < results.size(); ++i) VerifyArgument(results[i], returns[i], /*is_result=*/true);
  for (std::size_t i = 0; i < arguments.size() && i < params.size(); ++i)
    VerifyArgument(arguments[i], params[i], /*is_result=*/false);
}

// An argument in .param must have the parameter's size; a register its type; a constant will do for a value.
void Verifier::VerifyArgument(const Operand& argument, const Variable& parameter, bool is_result) {
  if (argument.kind == OperandKind::kSink ||
      (!is_result && (argument.kind == OperandKind::kInt || argument.kind == OperandKind::kFloat)))
    return;
  const Variable* variable = argument.variable;
  if (variable == nullptr) {
    Fail(argument, "expected a register or a .param variable, found '" + PrintOperand(argument) + "'");
    return;
  }
  const bool open = !parameter.dims.empty() && parameter.dims.front() == 0;
  if (argument.kind == OperandKind::kRegister) {
    const bool fits = variable->type == ScalarType::kPred || parameter.dims.empty();
    if (!fits || BitsOf(variable->type) != BitsOf(parameter.type)) {
      Fail(argument, "'" + PrintOperand(argument) + "' does not fit parameter '" + PrintVariable(parameter) + "'");
    }
    return;
  }
  if (variable->space != StateSpace::kParam) {
    Fail(argument, "expected a register or a .param variable, found '" + PrintOperand(argument) + "'");
  } else if (!open && variable->bytes() != parameter.bytes()) {
    Fail(argument, "'" + PrintOperand(argument) + "' has " + std::to_string(variable->bytes()) +
                       " bytes, the parameter " + std::to_string(parameter.bytes()));
  }
}

}  // namespace gridloom::ptx
