#include "sim/exec/compiler/lift.h"

#include <algorithm>

#include "sim/exec/compiler/debug_lines.h"
#include "sim/exec/compiler/lift_flush.h"
#include "sim/exec/compiler/lift_fuse.h"
#include "sim/exec/compiler/lift_nan.h"
#include "sim/exec/compiler/lifter.h"
#include "sim/exec/contract/call_depth.h"

namespace gridloom::exec {

llvm::Type* IrType(llvm::LLVMContext& context, ScalarType type) {
  if (type == ScalarType::kF32) return llvm::Type::getFloatTy(context);
  if (type == ScalarType::kF64) return llvm::Type::getDoubleTy(context);
  if (type == ScalarType::kPred) return llvm::Type::getInt1Ty(context);
  return llvm::Type::getIntNTy(context, std::max(8u, ptx::BitsOf(type)));
}

ScalarType BitsType(unsigned bits) {
  switch (bits) {
    case 8: return ScalarType::kB8;
    case 16: return ScalarType::kB16;
    case 64: return ScalarType::kB64;
    case 128: return ScalarType::kB128;
    default: return ScalarType::kB32;
  }
}

ModuleLifter::ModuleLifter(const ptx::Module& module, const ptx::Function& kernel, const CompileOptions& options,
                           SpmdModule& out)
    : module_(module),
      kernel_(kernel),
      options_(options),
      out_(out),
      symbols_(NumberSymbols(module)),
      shared_(LayoutShared(module, kernel)),
      lines_(module, kernel) {
  if (options.record == Recording::kNone) return;
  numbers_ = NumberInstructions(module, kernel);
  if (numbers_.instructions.size() >> RecordHeader::kInstructionBits != 0)
    throw Refusal{kernel.loc.line, "has too many instructions to be recorded"};
}

llvm::FunctionType* ModuleLifter::Signature(const std::deque<ptx::Variable>& returns,
                                            const std::deque<ptx::Variable>& params) {
  llvm::LLVMContext& context = out_.ir().getContext();
  llvm::Type* offset = llvm::Type::getInt64Ty(context);
  llvm::SmallVector<llvm::Type*, 8> types{offset};
  const bool direct = returns.size() == 1 && IsDirect(returns[0]);
  if (!direct) types.append(returns.size(), offset);
  for (const ptx::Variable& param : params) types.push_back(IsDirect(param) ? IrType(context, param.type) : offset);
  return llvm::FunctionType::get(direct ? IrType(context, returns[0].type) : llvm::Type::getVoidTy(context), types,
                                 false);
}

llvm::Function* ModuleLifter::FunctionFor(const ptx::Function& function) {
  const auto number = symbols_.function_index.find(&function);
  if (number == symbols_.function_index.end()) return nullptr;
  const ptx::Function& definition = *symbols_.functions[number->second];
  auto [it, inserted] = functions_.try_emplace(&definition, nullptr);
  if (!inserted) return it->second;
  auto* type = Signature(definition.returns, definition.params);
  it->second = llvm::Function::Create(type, llvm::Function::InternalLinkage,
                                      "gl_func_" + std::to_string(number->second), out_.ir());
  if (definition.name.starts_with("gridloom_")) it->second->addFnAttr(kOfPass);
  AddSubprogram(*it->second, definition.name, lines_.Begin(definition));
  pending_.push_back(&definition);
  return it->second;
}

std::uint32_t ModuleLifter::TakeAddress(const ptx::Function& function, std::uint32_t line) {
  const auto number = symbols_.function_index.find(&function);
  if (number == symbols_.function_index.end()) {
    throw Refusal{line, "the address of function '" + std::string(function.name) + "' is taken, but it is not defined"};
  }
  const ptx::Function* definition = symbols_.functions[number->second];
  // The address of a kernel is what device-side launches pass on; it is never called.
  if (!definition->is_entry) address_taken_.emplace(number->second, definition);
  return number->second;
}

void ModuleLifter::NoteIndirectCall() {
  if (initializers_noted_) return;
  initializers_noted_ = true;
  for (const ptx::Variable& variable : module_.variables) {
    for (const ptx::Initializer& element : variable.initializer) {
      const auto* symbol = std::get_if<Operand>(&element.value);
      if (symbol && symbol->function && symbols_.function_index.contains(symbol->function))
        TakeAddress(*symbol->function, 0);
    }
  }
}

/// The deepest sum of frames from the function on. `reached`: the functions that it may call are added, itself
/// included.
std::uint32_t ModuleLifter::StackBytes(const ptx::Function& function, std::unordered_set<const ptx::Function*>& reached,
                                       bool& recursive) {
  std::vector<const ptx::Function*> taken;  // that a call of no name may reach
  for (const auto& [number, callee] : address_taken_) taken.push_back(callee);
  const CallDepth depth = DeepestCalls(&function, [&](const ptx::Function* one) {
    reached.insert(one);
    const Frame& own = frames_[one];
    CallFrame calls{.bytes = own.bytes, .callees = own.callees};
    if (own.calls_indirectly) calls.others = taken;
    return calls;
  });
  recursive |= depth.recursive;
  return depth.bytes;
}

LiftedKernel ModuleLifter::Run() {
  LiftedKernel result;
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(out_.ir().getContext()), false);
  result.kernel = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "gl_spmd_kernel", out_.ir());
  AddSubprogram(*result.kernel, kernel_.name, lines_.Begin(kernel_));
  FunctionLifter(*this, kernel_, result.kernel).Run();
  bool calls_indirectly = frames_[&kernel_].calls_indirectly;
  do {
    while (!pending_.empty()) {
      const ptx::Function* function = pending_.back();
      pending_.pop_back();
      FunctionLifter(*this, *function, functions_[function]).Run();
      calls_indirectly |= frames_[function].calls_indirectly;
    }
    if (!calls_indirectly) break;
    for (const auto& [number, function] : address_taken_) FunctionFor(*function);
  } while (!pending_.empty());
  if (calls_indirectly) {
    for (const auto& [number, function] : address_taken_)
      result.address_taken.emplace_back(number, functions_[function]);
  } else {
    address_taken_.clear();
  }
  CanonicalizeNans(out_.ir());
  FuseProducts(out_.ir(), options_.cpu == "x86-64");
  ExpandFlushes(out_.ir());
  std::unordered_set<const ptx::Function*> reached;
  result.facts.local_bytes = StackBytes(kernel_, reached, result.facts.recursive);
  result.facts.static_shared_bytes = shared_.static_end;
  return result;
}

LiftedKernel LiftKernel(const ptx::Module& module, const ptx::Function& kernel, const CompileOptions& options,
                        SpmdModule& out) {
  try {
    return ModuleLifter(module, kernel, options, out).Run();
  } catch (const Refusal& refusal) {
    LiftedKernel result;
    result.error = refusal.what;
    result.error_line = refusal.line;
    return result;
  }
}

}  // namespace gridloom::exec
