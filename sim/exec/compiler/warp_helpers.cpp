// Calls of the runtime's helpers, functions beside the warp form, and the switch to the next warp.
#include "sim/exec/compiler/warp_helpers.h"

#include <llvm/IR/InlineAsm.h>

#include <cstddef>

#include "sim/exec/compiler/out_of_line.h"
#include "sim/exec/compiler/turns.h"
#include "sim/exec/contract/warp_switch.h"

namespace gridloom::exec {

using llvm::Value;

/// Hands the core to the next warp of the ring. When control comes back, all others have had their turn
/// (warp_switch.h). A kernel of many barriers calls a function for it: the list of what the assembly clobbers takes
/// LLVM a millisecond to read.
void HelperCalls::EmitRingSwitch() {
  if (module_.turns) {
    EmitTurnMark(b_, TurnMark::kTurn);
    return;
  }
  constexpr unsigned kMostInLine = 64;
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy()}, false);
  auto* assembly = llvm::InlineAsm::get(type, kRingSwitchAsm, kRingSwitchConstraints, true, false);
  if (source_.barriers <= kMostInLine) {
    b_.CreateCall(assembly, {w_.warp});
    return;
  }
  llvm::IRBuilder<> inside(b_.getContext());
  llvm::Function* function = FunctionBeside(b_, "gl.ring_switch", type, inside);
  if (inside.GetInsertBlock()) {
    inside.CreateCall(assembly, {function->getArg(0)});
    inside.CreateRetVoid();
  }
  b_.CreateCall(function, {w_.warp});
}

void HelperCalls::CallHelper(Helper helper, Value* mask, Value* line, std::uint64_t imm, llvm::ArrayRef<Value*> args) {
  Value* table = w_.LaunchField(offsetof(LaunchCtx, helpers), b_.getPtrTy());
  auto* load = b_.CreateLoad(b_.getPtrTy(),
                             b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), table, static_cast<std::uint64_t>(helper)));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
  Value* pointers = llvm::ConstantPointerNull::get(b_.getPtrTy());
  if (!args.empty()) {
    pointers = w_.Scratch(1000, static_cast<unsigned>(args.size()) * 8);
    for (unsigned i = 0; i < args.size(); ++i) {
      b_.CreateAlignedStore(args[i], b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), pointers, i), llvm::Align(8));
    }
  }
  auto* type = llvm::FunctionType::get(
      b_.getVoidTy(), {b_.getPtrTy(), b_.getInt32Ty(), b_.getInt32Ty(), b_.getInt64Ty(), b_.getPtrTy()}, false);
  b_.CreateCall(type, load, {w_.warp, mask, line, b_.getInt64(imm), pointers});
}

/// Internal function `name`(ptr warp, i32 mask, i32 line, i64 imm, addresses, more…) that is never inlined; addresses
/// are <32 x i64> unless another type is given.
llvm::Function* HelperCalls::OutOfLine(const std::string& name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> more,
                                       llvm::Type* addresses) {
  llvm::SmallVector<llvm::Type*, 8> types{b_.getPtrTy(), b_.getInt32Ty(), b_.getInt32Ty(), b_.getInt64Ty(),
                                          addresses ? addresses : WarpType(b_.getInt64Ty())};
  types.append(more.begin(), more.end());
  auto* function = llvm::Function::Create(llvm::FunctionType::get(result, types, false),
                                          llvm::Function::InternalLinkage, name, w_.target->getParent());
  function->setAttributes(function->getAttributes().addFnAttributes(
      b_.getContext(), llvm::AttrBuilder(b_.getContext(), w_.target->getAttributes().getFnAttrs())));
  function->addFnAttr(llvm::Attribute::NoInline);
  function->addFnAttr(llvm::Attribute::Cold);
  return function;
}

Value* AlignedAlloca(llvm::IRBuilder<>& b, llvm::Type* type) {
  auto* buffer = b.CreateAlloca(type);
  buffer->setAlignment(llvm::Align(64));
  return buffer;
}

/// Helper call inside an out-of-line function, with the warp, mask, line (unless there is another) and immediate it was
/// given.
void CallHelperFrom(llvm::IRBuilder<>& b, llvm::Function* function, Helper helper, llvm::ArrayRef<Value*> args,
                    Value* line) {
  const auto field = [&](Value* base, std::size_t offset) {
    return b.CreateLoad(b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, offset));
  };
  Value* table = field(field(function->getArg(0), offsetof(WarpCtx, launch)), offsetof(LaunchCtx, helpers));
  Value* callee = field(table, static_cast<std::size_t>(helper) * sizeof(void*));
  auto* array = llvm::ArrayType::get(b.getPtrTy(), args.size());
  Value* pointers = b.CreateAlloca(array);
  for (unsigned i = 0; i < args.size(); ++i)
    b.CreateStore(args[i], b.CreateConstInBoundsGEP2_32(array, pointers, 0, i));
  auto* type = llvm::FunctionType::get(
      b.getVoidTy(), {b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty(), b.getInt64Ty(), b.getPtrTy()}, false);
  b.CreateCall(
      type, callee,
      {function->getArg(0), function->getArg(1), line ? line : function->getArg(2), function->getArg(3), pointers});
}

void HelperCalls::CheckOrder(std::uint64_t among) {
  CallHelper(Helper::kCheckOrder, w_.mask, b_.getInt32(0), among, {});
}

/// Whether warps take turns in line. At a switch everything alive is spilled anyway, and a tree of sums in shared
/// memory lost 5 to 10 % to slow paths that leave more to the caller's registers: such kernels keep 32 addresses and
/// the usual call.
bool HelperCalls::SwitchesInLine() const { return source_.barriers != 0 && module_.simple_barriers && !module_.turns; }

}  // namespace gridloom::exec
