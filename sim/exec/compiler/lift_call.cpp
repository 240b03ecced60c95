// Calls: direct, indirect, and of the system functions every device program has (PTX ISA, 9.7.12.4 and 7.3).
#include <algorithm>

#include "sim/exec/compiler/lift_fuse.h"
#include "sim/exec/compiler/lift_parts.h"
#include "sim/exec/compiler/lifter.h"
#include "sim/exec/contract/grid_workspace.h"

namespace gridloom::exec {

namespace {

/// Functions of the device runtime library that are system calls themselves, whatever the library says: those that
/// every launch makes (one call instead of three functions), and the wait for children, which its PTX defines to fail.
/// Likewise launches of aggregated groups, which gridloom/agg_group.h defines as ordinary launches for other drivers.
struct ReplacedFunction {
  std::string_view name;  ///< without its prefix
  DeviceCall call;
};
constexpr ReplacedFunction kReplaced[] = {
    {"GetParameterBufferV2", DeviceCall::kGetParameterBufferV2},
    {"LaunchDeviceV2", DeviceCall::kLaunchDeviceV2},
    {"LaunchDeviceV2_ptsz", DeviceCall::kLaunchDeviceV2PerThread},
    {"DeviceSynchronize", DeviceCall::kDeviceSynchronize},
    {"DeviceSynchronizeDeprecationAvoidance", DeviceCall::kDeviceSynchronize},
    {"LaunchAggGroup", DeviceCall::kLaunchGroup},
    {"LaunchAggGroupV2", DeviceCall::kLaunchGroupV2},
};

/// The row named as `name` is behind the first of `prefixes` it starts with; null when there is none.
template <typename Row, std::size_t count>
const Row* FindBehind(std::initializer_list<std::string_view> prefixes, const Row (&rows)[count],
                      std::string_view name) {
  for (const std::string_view prefix : prefixes) {
    if (!name.starts_with(prefix)) continue;
    const auto* found = std::ranges::find(rows, name.substr(prefix.size()), &Row::name);
    return found == std::end(rows) ? nullptr : found;
  }
  return nullptr;
}

const ReplacedFunction* FindReplaced(std::string_view name) {
  return FindBehind({"__cudaCDP2", "__cuda", "cuda"}, kReplaced, name);
}

struct ParsedCall {
  const Operand* callee = nullptr;
  const std::vector<Operand>* returns = nullptr;
  const std::vector<Operand>* args = nullptr;
  const ptx::LabelDirective* prototype = nullptr;
};

// call (returns), callee, (arguments), prototype-or-targets;      lists may be left out
ParsedCall ParseCall(Lifter& l, const Instruction& inst) {
  static const std::vector<Operand> kNothing;
  ParsedCall call{.callee = nullptr, .returns = &kNothing, .args = &kNothing, .prototype = nullptr};
  for (const Operand& operand : inst.operands) {
    if (operand.kind == OperandKind::kList) {
      (call.callee ? call.args : call.returns) = &operand.elements;
    } else if (!call.callee) {
      call.callee = &operand;
    } else {
      call.prototype = operand.directive;
    }
  }
  if (!call.callee) l.RefuseInstruction("names no function");
  return call;
}

struct SystemFunction {
  std::string_view name;
  Helper helper;
  ScalarType result;  ///< kNone: returns nothing
  std::initializer_list<ScalarType> params;
  std::uint64_t imm = 0;
};

constexpr ScalarType kNoResult = ScalarType::kNone, kAddress = ScalarType::kB64, kFlags = ScalarType::kB32;

struct DeviceFunction {
  std::string_view name;
  DeviceCall call;
  unsigned bits;
  std::string_view params;
};

constexpr DeviceFunction kDeviceFunctions[] = {
#define GL_DEVICE_CALL(name, bits, params) {#name, DeviceCall::k##name, bits, params},
#include "sim/exec/contract/device_calls.def"
#undef GL_DEVICE_CALL
};

const DeviceFunction* FindDeviceFunction(std::string_view name) {
  return FindBehind({"__cuda_syscall_cnpv2", "__cuda_syscall_cnp", "cnp"}, kDeviceFunctions, name);
}

const SystemFunction kSystemFunctions[] = {
    {"vprintf", Helper::kVprintf, ScalarType::kB32, {ScalarType::kB64, ScalarType::kB64}},
    {"malloc", Helper::kMalloc, ScalarType::kB64, {ScalarType::kB64}},
    {"free", Helper::kFree, kNoResult, {ScalarType::kB64}},
    {"__assertfail",
     Helper::kAssertFail,
     kNoResult,
     {ScalarType::kB64, ScalarType::kB64, ScalarType::kB32, ScalarType::kB64, ScalarType::kB64}},
    {"cudaGraphSetConditional", Helper::kSetConditional, kNoResult, {ScalarType::kB64, ScalarType::kB32}},
    // What the profile and release passes call (docs/ranges.md).
    {"gridloom_set_range",
     Helper::kRange,
     kNoResult,
     {kAddress, kAddress, kAddress, kFlags},
     PackImm(RangeImm{RangeOp::kSet, false})},
    {"gridloom_release_range",
     Helper::kRange,
     kNoResult,
     {kAddress, kAddress, kAddress, kFlags},
     PackImm(RangeImm{RangeOp::kRelease, false})},
    {"gridloom_set_strided",
     Helper::kRange,
     kNoResult,
     {kAddress, kAddress, kAddress, kAddress, kAddress, kFlags},
     PackImm(RangeImm{RangeOp::kSet, true})},
    {"gridloom_release_strided",
     Helper::kRange,
     kNoResult,
     {kAddress, kAddress, kAddress, kAddress, kAddress, kFlags},
     PackImm(RangeImm{RangeOp::kRelease, true})},
};

// Cooperative groups of the device runtime library (cudaCGSynchronize and the like): a handle is the address of the
// grid's workspace, 0 in launches that are not cooperative. With one device, all grids of a multi-device launch are one
// grid.

llvm::Value* Workspace(SpmdBuilder& b) {
  const auto word = [&](Special half) { return b.CreateZExt(b.SpecialReg(half), b.getInt64Ty()); };
  return b.CreateOr(word(Special::kGridWorkspaceLow), b.CreateShl(word(Special::kGridWorkspaceHigh), b.getInt64(32)));
}

/// Product of the sizes along x, y and z that follow each other in Special.
llvm::Value* Volume(SpmdBuilder& b, Special x, Special y, Special z) {
  return b.CreateMul(b.CreateMul(b.SpecialReg(x), b.SpecialReg(y)), b.SpecialReg(z));
}
llvm::Value* LinearIndex(SpmdBuilder& b, const Special (&at)[3], const Special (&size)[3]) {
  llvm::Value* row = b.CreateAdd(b.CreateMul(b.SpecialReg(at[2]), b.SpecialReg(size[1])), b.SpecialReg(at[1]));
  return b.CreateAdd(b.CreateMul(row, b.SpecialReg(size[0])), b.SpecialReg(at[0]));
}
constexpr Special kCta[] = {Special::kCtaidX, Special::kCtaidY, Special::kCtaidZ};
constexpr Special kGrid[] = {Special::kNctaidX, Special::kNctaidY, Special::kNctaidZ};
constexpr Special kThread[] = {Special::kTidX, Special::kTidY, Special::kTidZ};
constexpr Special kBlock[] = {Special::kNtidX, Special::kNtidY, Special::kNtidZ};

llvm::Value* EmitGetHandle(SpmdBuilder& b, llvm::ArrayRef<llvm::Value*>) { return Workspace(b); }

/// Adds one for a CTA to the count behind the workspace's size, as grid.sync does, and waits for all others: the first
/// CTA of the grid adds so much that the top bit changes when all have come.
void EmitMeetCtas(SpmdBuilder& b, llvm::Value* workspace) {
  constexpr std::uint32_t kTop = 0x80000000u;
  llvm::Function* const function = b.GetInsertBlock()->getParent();
  llvm::Value* const count = b.CreateAdd(workspace, b.getInt64(kGridCountOffset));
  llvm::Value* const others = b.CreateSub(Volume(b, kGrid[0], kGrid[1], kGrid[2]), b.getInt32(1));
  llvm::Value* const is_first = b.CreateICmpEQ(LinearIndex(b, kCta, kGrid), b.getInt32(0));
  llvm::Value* const step = b.CreateSelect(is_first, b.CreateSub(b.getInt32(kTop), others), b.getInt32(1));
  llvm::Value* const before = b.Atomic(Space::kGlobal, AtomicOp::kAdd, AtomicType::kI32, count, step, nullptr, false);
  auto* wait = llvm::BasicBlock::Create(b.getContext(), "grid.wait", function);
  auto* done = llvm::BasicBlock::Create(b.getContext(), "grid.done", function);
  b.CreateBr(wait);
  b.SetInsertPoint(wait);
  llvm::Value* const now = b.LoadMem(Space::kGlobal, b.getInt32Ty(), 1, count, true);
  b.CreateCondBr(b.CreateICmpEQ(b.CreateAnd(b.CreateXor(before, now), b.getInt32(kTop)), b.getInt32(0)), wait, done);
  b.SetInsertPoint(done);
}

// One thread of each CTA comes here, between two barriers of its CTA (bit 0 of the flags), or all threads do. Of all
// threads, those that have ended do not count, as at any barrier of a CTA: the barrier tells how many have come, and
// the last one to say so goes on for its CTA.
llvm::Value* EmitGridSync(SpmdBuilder& b, llvm::ArrayRef<llvm::Value*> args) {
  llvm::Function* const function = b.GetInsertBlock()->getParent();
  const auto block = [&](const char* name) { return llvm::BasicBlock::Create(b.getContext(), name, function); };
  auto *const gather = block("grid.gather"), *const meet = block("grid.meet"), *const met = block("grid.met"),
              *const leave = block("grid.leave"), *const end = block("grid.end");
  llvm::Value* const by_cta = b.CreateTrunc(args[1], b.getInt1Ty());
  llvm::Value* const zero = b.getInt32(0);
  llvm::Value* const word = b.CreateShl(b.CreateZExt(LinearIndex(b, kCta, kGrid), b.getInt64Ty()), 2);
  llvm::Value* const arrivals = b.CreateAdd(args[0], b.CreateAdd(b.getInt64(kGridArrivalsOffset), word));
  b.CreateCondBr(by_cta, meet, gather);
  b.SetInsertPoint(gather);
  llvm::Value* const threads = b.Barrier(BarrierOp::kRedPopc, zero, zero, b.getTrue());
  llvm::Value* const before =
      b.Atomic(Space::kGlobal, AtomicOp::kAdd, AtomicType::kI32, arrivals, b.getInt32(1), nullptr, false);
  b.CreateCondBr(b.CreateICmpEQ(b.CreateAdd(before, b.getInt32(1)), threads), meet, met);
  b.SetInsertPoint(meet);
  b.StoreMem(Space::kGlobal, {zero}, arrivals, true);  // for the next time
  EmitMeetCtas(b, args[0]);
  b.CreateBr(met);
  b.SetInsertPoint(met);
  b.CreateCondBr(by_cta, end, leave);
  b.SetInsertPoint(leave);
  b.Barrier(BarrierOp::kSync, zero, zero, b.getFalse());
  b.CreateBr(end);
  b.SetInsertPoint(end);
  return b.getInt32(0);
}

/// Stores two words where the pointers (i64) are not null; 0 for success.
llvm::Value* StoreWords(SpmdBuilder& b, llvm::ArrayRef<llvm::Value*> pointers, llvm::ArrayRef<llvm::Value*> words) {
  for (unsigned i = 0; i < 2; ++i) {
    llvm::Function* const function = b.GetInsertBlock()->getParent();
    auto* store = llvm::BasicBlock::Create(b.getContext(), "store", function);
    auto* next = llvm::BasicBlock::Create(b.getContext(), "next", function);
    b.CreateCondBr(b.CreateICmpNE(pointers[i], b.getInt64(0)), store, next);
    b.SetInsertPoint(store);
    b.StoreMem(Space::kGeneric, {words[i]}, pointers[i], false);
    b.CreateBr(next);
    b.SetInsertPoint(next);
  }
  return b.getInt32(0);
}
llvm::Value* EmitGetSize(SpmdBuilder& b, llvm::ArrayRef<llvm::Value*> args) {
  llvm::Value* const threads =
      b.CreateMul(Volume(b, kGrid[0], kGrid[1], kGrid[2]), Volume(b, kBlock[0], kBlock[1], kBlock[2]));
  return StoreWords(b, args, {threads, b.getInt32(1)});
}
llvm::Value* EmitGetRank(SpmdBuilder& b, llvm::ArrayRef<llvm::Value*> args) {
  llvm::Value* const first = b.CreateMul(LinearIndex(b, kCta, kGrid), Volume(b, kBlock[0], kBlock[1], kBlock[2]));
  return StoreWords(b, args, {b.CreateAdd(first, LinearIndex(b, kThread, kBlock)), b.getInt32(0)});
}

struct GridFunction {
  std::string_view name;
  ScalarType result;
  std::initializer_list<ScalarType> params;
  llvm::Value* (*emit)(SpmdBuilder& b, llvm::ArrayRef<llvm::Value*> args);
};
const GridFunction kGridFunctions[] = {
    {"__cuda_syscall_CGS_get_intrinsic_handle", ScalarType::kB64, {ScalarType::kB32}, EmitGetHandle},
    {"__cuda_syscall_CGS_sync", ScalarType::kB32, {ScalarType::kB64, ScalarType::kB32}, EmitGridSync},
    {"__cuda_syscall_CGS_get_size",
     ScalarType::kB32,
     {ScalarType::kB64, ScalarType::kB64, ScalarType::kB64},
     EmitGetSize},
    {"__cuda_syscall_CGS_get_rank",
     ScalarType::kB32,
     {ScalarType::kB64, ScalarType::kB64, ScalarType::kB64},
     EmitGetRank},
};

// A parameter of a call sequence is a .param variable; registers and constants may stand for scalars.
Value* ReadArgument(Lifter& l, const Operand& operand, const ptx::Variable& formal) {
  const bool is_symbol = operand.kind == OperandKind::kSymbol && operand.variable;
  if (!IsDirect(formal)) {
    if (!is_symbol) l.RefuseInstruction("passes an array parameter that is not a .param variable");
    const auto it = l.frame.memory_params.find(operand.variable);
    if (it == l.frame.memory_params.end())
      l.RefuseInstruction("passes '" + std::string(operand.text) + "' where an array is expected");
    return it->second;
  }
  if (!is_symbol) return l.Read(operand, formal.type);
  llvm::Type* type = l.TypeOf(formal.type);
  if (const auto it = l.frame.scalar_params.find(operand.variable); it != l.frame.scalar_params.end()) {
    return l.Resize(l.b.CreateLoad(it->second->getAllocatedType(), it->second), type, false);
  }
  if (const auto it = l.frame.memory_params.find(operand.variable); it != l.frame.memory_params.end()) {
    return l.b.LoadMem(Space::kLocal, type, 1, it->second, false);
  }
  l.RefuseInstruction("passes '" + std::string(operand.text) + "', which is no parameter");
}

void WriteReturn(Lifter& l, const Operand& operand, Value* value, ScalarType type) {
  if (operand.kind != OperandKind::kSymbol || !operand.variable) return l.Write(operand, value, type);
  if (const auto it = l.frame.scalar_params.find(operand.variable); it != l.frame.scalar_params.end()) {
    l.b.CreateStore(l.Resize(value, it->second->getAllocatedType(), false), it->second);
  } else if (const auto memory = l.frame.memory_params.find(operand.variable); memory != l.frame.memory_params.end()) {
    l.b.StoreMem(Space::kLocal, {value}, memory->second, false);
  } else {
    l.RefuseInstruction("returns into '" + std::string(operand.text) + "', which is no parameter");
  }
}

void EmitCall(Lifter& l, const ParsedCall& call, const std::deque<ptx::Variable>& returns,
              const std::deque<ptx::Variable>& params, llvm::Function* direct, Value* indirect) {
  if (call.args->size() != params.size())
    l.RefuseInstruction("passes another number of arguments than the function takes");
  if (call.returns->size() != returns.size())
    l.RefuseInstruction("takes another number of results than the function returns");
  llvm::SmallVector<Value*, 8> args{CalleeFrame(l)};
  const bool direct_return = returns.size() == 1 && IsDirect(returns[0]);
  if (!direct_return) {
    for (const Operand& operand : *call.returns) {
      const auto it = operand.variable ? l.frame.memory_params.find(operand.variable) : l.frame.memory_params.end();
      if (it == l.frame.memory_params.end())
        l.RefuseInstruction("returns an array into something that is not a .param array");
      args.push_back(it->second);
    }
  }
  for (std::size_t i = 0; i < params.size(); ++i) args.push_back(ReadArgument(l, (*call.args)[i], params[i]));
  llvm::FunctionType* type = l.module.Signature(returns, params);
  Value* result = direct ? l.b.CreateCall(direct, args) : l.b.IndirectCall(type->getReturnType(), indirect, args);
  if (direct_return) WriteReturn(l, (*call.returns)[0], result, returns[0].type);
}

/// A system call of the device runtime library: every argument becomes 64 bits, a dim3 three of them.
void LiftDeviceCall(Lifter& l, const ParsedCall& call, std::uint64_t imm, unsigned bits, std::string_view params) {
  if (call.args->size() != params.size())
    l.RefuseInstruction("passes a wrong number of arguments to a function of the device runtime");
  llvm::SmallVector<Value*, 8> inputs;
  for (std::size_t i = 0; i < params.size(); ++i) {
    ptx::Variable formal;
    formal.type = params[i] == '8' ? ScalarType::kB64 : ScalarType::kB32;
    if (params[i] == 'd') formal.dims.push_back(3);
    Value* value = ReadArgument(l, (*call.args)[i], formal);
    if (params[i] != 'd') {
      inputs.push_back(l.b.CreateZExt(value, l.b.getInt64Ty()));
      continue;
    }
    for (unsigned axis = 0; axis < 3; ++axis) {
      Value* size =
          l.b.LoadMem(Space::kLocal, l.b.getInt32Ty(), 1, l.b.CreateAdd(value, l.b.getInt64(4 * axis)), false);
      inputs.push_back(l.b.CreateZExt(size, l.b.getInt64Ty()));
    }
  }
  Value* result = l.b.CallHelper(Helper::kDeviceRuntime, {l.b.getInt64Ty()}, inputs, imm);
  if (call.returns->empty()) return;
  WriteReturn(l, (*call.returns)[0], l.b.CreateTrunc(result, l.b.getIntNTy(bits)),
              bits == 64 ? ScalarType::kB64 : ScalarType::kB32);
}

bool LiftSystemCall(Lifter& l, const ParsedCall& call, std::string_view name) {
  const ReplacedFunction* const replaced = FindReplaced(name);
  const DeviceFunction* const system =
      replaced ? &kDeviceFunctions[static_cast<std::size_t>(replaced->call)] : FindDeviceFunction(name);
  if (system) {
    const std::uint64_t imm = static_cast<std::uint64_t>(system->call) | (replaced ? kDeviceCallByLibrary : 0);
    LiftDeviceCall(l, call, imm, system->bits, system->params);
    return true;
  }
  const auto arguments = [&](const std::initializer_list<ScalarType>& params) {
    if (call.args->size() != params.size())
      l.RefuseInstruction("passes a wrong number of arguments to " + std::string(name));
    llvm::SmallVector<Value*, 5> inputs;
    for (std::size_t i = 0; i < params.size(); ++i) {
      ptx::Variable formal;
      formal.type = params.begin()[i];
      inputs.push_back(ReadArgument(l, (*call.args)[i], formal));
    }
    return inputs;
  };
  const auto* grid = std::ranges::find(kGridFunctions, name, &GridFunction::name);
  if (grid != std::end(kGridFunctions)) {
    Value* result = grid->emit(l.b, arguments(grid->params));
    if (!call.returns->empty()) WriteReturn(l, (*call.returns)[0], result, grid->result);
    return true;
  }
  const auto* function = std::ranges::find(kSystemFunctions, name, &SystemFunction::name);
  if (function == std::end(kSystemFunctions)) return false;
  const llvm::SmallVector<Value*, 5> inputs = arguments(function->params);
  if (function->result == kNoResult) {
    l.b.CallHelper(function->helper, {}, inputs, function->imm);
    return true;
  }
  Value* result = l.b.CallHelper(function->helper, {l.TypeOf(function->result)}, inputs, function->imm);
  if (!call.returns->empty()) WriteReturn(l, (*call.returns)[0], result, function->result);
  return true;
}

}  // namespace

template <>
void Lift<semantic::Call>(Lifter& l, const Instruction& inst) {
  MarkBranches(l.b);
  const ParsedCall call = ParseCall(l, inst);
  const ptx::Function* target = call.callee->function;
  if (target && !FindReplaced(target->name)) {
    if (llvm::Function* direct = l.module.FunctionFor(*target)) {
      const ptx::Function& definition = *l.module.symbols().functions[l.module.symbols().function_index.at(target)];
      l.module.frame(l.function).callees.push_back(&definition);
      return EmitCall(l, call, definition.returns, definition.params, direct, nullptr);
    }
  }
  if (call.callee->kind == OperandKind::kRegister) {
    l.module.NoteIndirectCall();
    l.module.frame(l.function).calls_indirectly = true;
    Value* address = l.Read(*call.callee, ScalarType::kB64);
    const std::deque<ptx::Variable>* returns = nullptr;
    const std::deque<ptx::Variable>* params = nullptr;
    if (call.prototype && call.prototype->kind == ptx::LabelDirective::Kind::kCallPrototype) {
      returns = &call.prototype->returns;
      params = &call.prototype->params;
    } else if (call.prototype && !call.prototype->targets.empty() && call.prototype->targets[0].function) {
      returns = &call.prototype->targets[0].function->returns;
      params = &call.prototype->targets[0].function->params;
    } else {
      l.RefuseInstruction("through a pointer needs a prototype or a list of targets");
    }
    return EmitCall(l, call, *returns, *params, nullptr, address);
  }
  const std::string_view name = target ? target->name : call.callee->text;
  if (!LiftSystemCall(l, call, name)) l.Refuse("function '" + std::string(name) + "' is called but not defined");
}

}  // namespace gridloom::exec
