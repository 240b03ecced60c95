#include "tests/sim/exec/spmd_runner.h"

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ThreadSafeModule.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>

#include <bit>
#include <cstring>
#include <mutex>

#include "rewriter/ptx/parser.h"
#include "sim/exec/compiler/lift.h"
#include "sim/exec/compiler/pipeline.h"
#include "sim/exec/contract/immediates.h"

namespace gridloom::exec {

// Pure helpers of the runtime, called as they are.
#define GL_PURE_HELPER(name) void Helper_##name(WarpCtx*, std::uint32_t, std::uint32_t, std::uint64_t, void* const*);
#include "tests/sim/exec/pure_helpers.def"
#undef GL_PURE_HELPER

namespace {

/// What the marker bodies read. One thread at a time, so one of them.
struct ThreadState {
  const std::uint8_t* params;
  const std::uint64_t* symbols;
  std::uint64_t shared;
  std::uint64_t local;
  std::uint32_t special[64];
};

HelperFn PureHelper(Helper helper) {
  switch (helper) {
#define GL_PURE_HELPER(name) \
  case Helper::name:         \
    return &Helper_##name;
#include "tests/sim/exec/pure_helpers.def"
#undef GL_PURE_HELPER
    default: return nullptr;
  }
}

template <typename T>
T Combine(AtomicOp op, T old, T b, T c) {
  using S = std::make_signed_t<T>;
  switch (op) {
    case AtomicOp::kAdd: return static_cast<T>(old + b);
    case AtomicOp::kMin: return static_cast<S>(b) < static_cast<S>(old) ? b : old;
    case AtomicOp::kMax: return static_cast<S>(b) > static_cast<S>(old) ? b : old;
    case AtomicOp::kUMin: return std::min(old, b);
    case AtomicOp::kUMax: return std::max(old, b);
    case AtomicOp::kInc: return old >= b ? 0 : old + 1;
    case AtomicOp::kDec: return old == 0 || old > b ? b : old - 1;
    case AtomicOp::kAnd: return old & b;
    case AtomicOp::kOr: return old | b;
    case AtomicOp::kXor: return old ^ b;
    case AtomicOp::kExch: return b;
    case AtomicOp::kCas: return old == b ? c : old;
    default: return old;
  }
}

template <typename T>
std::uint64_t AtomicAt(std::uint64_t address, AtomicOp op, std::uint64_t b, std::uint64_t c) {
  T old;
  std::memcpy(&old, reinterpret_cast<void*>(address), sizeof old);
  const T next = Combine<T>(op, old, static_cast<T>(b), static_cast<T>(c));
  std::memcpy(reinterpret_cast<void*>(address), &next, sizeof next);
  return old;
}

template <typename F, typename Bits>
std::uint64_t FloatAdd(std::uint64_t address, std::uint64_t b) {
  F old;
  std::memcpy(&old, reinterpret_cast<void*>(address), sizeof old);
  const F next = old + std::bit_cast<F>(static_cast<Bits>(b));
  std::memcpy(reinterpret_cast<void*>(address), &next, sizeof next);
  return std::bit_cast<Bits>(old);
}

std::uint64_t DoAtomic(std::uint64_t address, std::uint64_t b, std::uint64_t c, std::uint64_t imm) {
  const auto op = static_cast<AtomicOp>(imm & 0xff);
  switch (static_cast<AtomicType>(imm >> 8 & 0xff)) {
    case AtomicType::kI16: return AtomicAt<std::uint16_t>(address, op, b, c);
    case AtomicType::kI64: return AtomicAt<std::uint64_t>(address, op, b, c);
    case AtomicType::kF32: return FloatAdd<float, std::uint32_t>(address, b);
    case AtomicType::kF64: return FloatAdd<double, std::uint64_t>(address, b);
    default: return AtomicAt<std::uint32_t>(address, op, b, c);
  }
}

/// Gives every marker of a module a body.
class Bodies {
 public:
  Bodies(SpmdModule& spmd, ThreadState& state) : spmd_(spmd), b_(spmd.ir().getContext()), state_(&state) {}

  void Define() {
    std::vector<llvm::Function*> markers;
    for (llvm::Function& function : spmd_.ir()) {
      if (function.isDeclaration() && spmd_.Find(&function)) markers.push_back(&function);
    }
    for (llvm::Function* marker : markers) DefineMarker(*marker, *spmd_.Find(marker));
  }
  /// Function pointers -> code: filled by the caller before Define().
  std::vector<std::pair<std::uint32_t, llvm::Function*>> functions;

 private:
  llvm::Value* Pointer(const void* address) {
    return b_.CreateIntToPtr(b_.getInt64(reinterpret_cast<std::uint64_t>(address)), b_.getPtrTy());
  }
  llvm::Value* Field(const void* field, llvm::Type* type) { return b_.CreateLoad(type, Pointer(field)); }
  llvm::Value* Host(Space space, llvm::Value* address) {
    if (space == Space::kShared) address = b_.CreateAdd(address, Field(&state_->shared, b_.getInt64Ty()));
    if (space == Space::kLocal) address = b_.CreateAdd(address, Field(&state_->local, b_.getInt64Ty()));
    return address;
  }
  llvm::Value* Word(llvm::Value* value) {
    auto* bits = b_.getIntNTy(value->getType()->getScalarSizeInBits());
    return b_.CreateZExtOrTrunc(b_.CreateBitCast(value, bits), b_.getInt64Ty());
  }

  void DefineMarker(llvm::Function& f, const MarkerInfo& info) {
    f.setLinkage(llvm::Function::InternalLinkage);
    f.removeFnAttr(llvm::Attribute::Convergent);
    f.removeFnAttr(llvm::Attribute::Memory);
    b_.SetInsertPoint(llvm::BasicBlock::Create(b_.getContext(), "entry", &f));
    llvm::Value* result = Body(f, info);
    if (f.getReturnType()->isVoidTy()) {
      b_.CreateRetVoid();
    } else {
      b_.CreateRet(result ? result : llvm::Constant::getNullValue(f.getReturnType()));
    }
  }

  llvm::Value* Body(llvm::Function& f, const MarkerInfo& info) {
    llvm::Type* result = f.getReturnType();
    switch (info.kind) {
      case MarkerKind::kSpecial:
        return b_.CreateZExtOrTrunc(Field(&state_->special[static_cast<int>(info.special)], b_.getInt32Ty()), result);
      case MarkerKind::kParam:
        return b_.CreateAlignedLoad(
            result, b_.CreateGEP(b_.getInt8Ty(), Field(&state_->params, b_.getPtrTy()), f.getArg(0)), llvm::Align(1));
      case MarkerKind::kSymbol:
        return b_.CreateLoad(b_.getInt64Ty(),
                             b_.CreateConstGEP1_64(b_.getInt64Ty(), Field(&state_->symbols, b_.getPtrTy()), info.imm));
      case MarkerKind::kLoad: return Load(f, info);
      case MarkerKind::kStore: return Store(f, info);
      case MarkerKind::kAtomic: return Atomic(f, info);
      case MarkerKind::kToGeneric: return Host(info.space, f.getArg(0));
      case MarkerKind::kFromGeneric: return b_.CreateSub(f.getArg(0), Host(info.space, b_.getInt64(0)));
      case MarkerKind::kIsSpace:
        return b_.CreateICmpULT(b_.CreateSub(f.getArg(0), Host(info.space, b_.getInt64(0))), b_.getInt64(1 << 16));
      case MarkerKind::kBallot: return b_.CreateZExt(f.getArg(0), result);
      case MarkerKind::kActiveMask: return b_.getInt32(1);
      case MarkerKind::kMet:
      case MarkerKind::kShuffle: return f.getArg(0);
      case MarkerKind::kBarrier: return b_.CreateZExt(f.getArg(2), result);
      case MarkerKind::kWarpSync:
      case MarkerKind::kSync:
      case MarkerKind::kMeet:
      case MarkerKind::kGiveWay:
      case MarkerKind::kRecord:
      case MarkerKind::kRecordLoop:
      case MarkerKind::kFetchAhead:
      case MarkerKind::kExit: return nullptr;
      case MarkerKind::kIndirectCall: return IndirectCall(f);
      case MarkerKind::kHelper: return CallHelper(f, info);
    }
    return nullptr;
  }

  llvm::Value* Load(llvm::Function& f, const MarkerInfo& info) {
    llvm::Value* base = b_.CreateIntToPtr(Host(info.space, f.getArg(0)), b_.getPtrTy());
    if (info.count == 1) return b_.CreateAlignedLoad(info.element, base, llvm::Align(1));
    llvm::Value* out = llvm::PoisonValue::get(f.getReturnType());
    for (unsigned i = 0; i < info.count; ++i) {
      out = b_.CreateInsertValue(
          out, b_.CreateAlignedLoad(info.element, b_.CreateConstGEP1_64(info.element, base, i), llvm::Align(1)), i);
    }
    return out;
  }

  llvm::Value* Store(llvm::Function& f, const MarkerInfo& info) {
    llvm::Value* base = b_.CreateIntToPtr(Host(info.space, f.getArg(0)), b_.getPtrTy());
    for (unsigned i = 0; i < info.count; ++i) {
      b_.CreateAlignedStore(f.getArg(1 + i), b_.CreateConstGEP1_64(info.element, base, i), llvm::Align(1));
    }
    return nullptr;
  }

  llvm::Value* Atomic(llvm::Function& f, const MarkerInfo& info) {
    auto* i64 = b_.getInt64Ty();
    auto* type = llvm::FunctionType::get(i64, {i64, i64, i64, i64}, false);
    llvm::Value* old =
        b_.CreateCall(type, Pointer(reinterpret_cast<const void*>(&DoAtomic)),
                      {Host(info.space, f.getArg(0)), Word(f.getArg(1)), Word(f.getArg(2)), b_.getInt64(info.imm)});
    llvm::Type* result = f.getReturnType();
    return b_.CreateBitCast(b_.CreateZExtOrTrunc(old, b_.getIntNTy(result->getScalarSizeInBits())), result);
  }

  llvm::Value* IndirectCall(llvm::Function& f) {
    llvm::SmallVector<llvm::Value*, 8> args;
    llvm::SmallVector<llvm::Type*, 8> types;
    for (unsigned i = 1; i < f.arg_size(); ++i) {
      args.push_back(f.getArg(i));
      types.push_back(f.getArg(i)->getType());
    }
    auto* type = llvm::FunctionType::get(f.getReturnType(), types, false);
    llvm::Value* target = llvm::ConstantPointerNull::get(b_.getPtrTy());
    for (const auto& [number, function] : functions) {
      target = b_.CreateSelect(b_.CreateICmpEQ(f.getArg(0), b_.getInt64((std::uint64_t{number} + 1) * 16)), function,
                               target);
    }
    llvm::Value* value = b_.CreateCall(type, target, args);
    return f.getReturnType()->isVoidTy() ? nullptr : value;
  }

  // Arrays of 32 values, of which lane 0 is used.
  llvm::Value* CallHelper(llvm::Function& f, const MarkerInfo& info) {
    const HelperFn fn = PureHelper(info.helper);
    if (!fn) return nullptr;
    std::vector<llvm::Type*> outputs;
    if (auto* many = llvm::dyn_cast<llvm::StructType>(f.getReturnType())) {
      outputs.assign(many->element_begin(), many->element_end());
    } else if (!f.getReturnType()->isVoidTy()) {
      outputs.push_back(f.getReturnType());
    }
    std::vector<llvm::Value*> slots;
    for (llvm::Type* type : outputs) slots.push_back(Slot(type));
    for (unsigned i = 0; i + 1 < f.arg_size(); ++i) {
      slots.push_back(Slot(f.getArg(i)->getType()));
      llvm::Value* value = f.getArg(i);
      if (value->getType()->isIntegerTy(1)) value = b_.CreateZExt(value, b_.getInt32Ty());
      b_.CreateStore(value, slots.back());
    }
    llvm::Value* table = b_.CreateAlloca(llvm::ArrayType::get(b_.getPtrTy(), slots.size() + 1));
    for (std::size_t i = 0; i < slots.size(); ++i)
      b_.CreateStore(slots[i], b_.CreateConstGEP1_64(b_.getPtrTy(), table, i));
    auto* type = llvm::FunctionType::get(
        b_.getVoidTy(), {b_.getPtrTy(), b_.getInt32Ty(), b_.getInt32Ty(), b_.getInt64Ty(), b_.getPtrTy()}, false);
    b_.CreateCall(
        type, Pointer(reinterpret_cast<const void*>(fn)),
        {llvm::ConstantPointerNull::get(b_.getPtrTy()), b_.getInt32(1), b_.getInt32(0), b_.getInt64(info.imm), table});
    auto take = [&](std::size_t i) -> llvm::Value* {
      if (!outputs[i]->isIntegerTy(1)) return b_.CreateLoad(outputs[i], slots[i]);
      return b_.CreateTrunc(b_.CreateLoad(b_.getInt32Ty(), slots[i]), b_.getInt1Ty());
    };
    if (outputs.empty()) return nullptr;
    if (outputs.size() == 1) return take(0);
    llvm::Value* all = llvm::PoisonValue::get(f.getReturnType());
    for (unsigned i = 0; i < outputs.size(); ++i) all = b_.CreateInsertValue(all, take(i), i);
    return all;
  }

  llvm::Value* Slot(llvm::Type* type) {
    if (type->isIntegerTy(1)) return b_.CreateAlloca(b_.getInt32Ty());
    return b_.CreateAlloca(llvm::ArrayType::get(type, kWarpSize));
  }

  SpmdModule& spmd_;
  llvm::IRBuilder<> b_;
  ThreadState* state_;
};

std::string Text(llvm::Error error) { return llvm::toString(std::move(error)); }

}  // namespace

struct SpmdRunner::Impl {
  ThreadState state{};
  std::unique_ptr<llvm::orc::LLJIT> jit;
  void (*kernel)() = nullptr;
};

SpmdRunner::SpmdRunner(std::string_view ptx, std::string_view kernel, const CompileOptions& options)
    : impl_(std::make_unique<Impl>()) {
  DiagnosticSink sink;
  const std::unique_ptr<ptx::Module> module = ptx::ParseModule(ptx, sink);
  if (sink.has_errors()) {
    error_ = FormatDiagnostics(sink, "test.ptx", ptx);
    return;
  }
  const ptx::Function* function = module->FindFunction(kernel);
  if (!function) {
    error_ = "no such kernel";
    return;
  }
  const std::unique_ptr<llvm::TargetMachine> machine = MakeTargetMachine(options.cpu, error_);
  if (!machine) return;
  auto context = std::make_unique<llvm::LLVMContext>();
  SpmdModule spmd(*context, "test");
  spmd.ir().setDataLayout(machine->createDataLayout());
  const LiftedKernel lifted = LiftKernel(*module, *function, options, spmd);
  error_ = lifted.error;
  error_line_ = lifted.error_line;
  local_bytes_ = lifted.facts.local_bytes;
  recursive_ = lifted.facts.recursive;
  if (!error_.empty()) return;
  SetTarget(spmd.ir(), *machine);
  llvm::raw_string_ostream ir(ir_);
  spmd.ir().print(ir, nullptr);
  llvm::raw_string_ostream problem(error_);
  if (llvm::verifyModule(spmd.ir(), &problem)) return;
  OptimizeSpmd(spmd, lifted.address_taken, {}, *machine);
  Bodies bodies(spmd, impl_->state);
  bodies.functions = lifted.address_taken;
  bodies.Define();
  if (llvm::verifyModule(spmd.ir(), &problem)) return;
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit) {
    error_ = Text(jit.takeError());
    return;
  }
  impl_->jit = std::move(*jit);
  if (auto failed = impl_->jit->addIRModule(llvm::orc::ThreadSafeModule(spmd.TakeIr(), std::move(context)))) {
    error_ = Text(std::move(failed));
    return;
  }
  auto entry = impl_->jit->lookup("gl_spmd_kernel");
  if (!entry) {
    error_ = Text(entry.takeError());
    return;
  }
  impl_->kernel = entry->toPtr<void (*)()>();
}

SpmdRunner::~SpmdRunner() = default;

void SpmdRunner::Run(const void* params, std::uint32_t tid, std::uint32_t ntid) {
  ThreadState& state = impl_->state;
  state.params = static_cast<const std::uint8_t*>(params);
  state.symbols = symbols.data();
  state.shared = reinterpret_cast<std::uint64_t>(shared.data());
  state.local = reinterpret_cast<std::uint64_t>(local.data());
  auto set = [&](Special special, std::uint32_t value) { state.special[static_cast<int>(special)] = value; };
  for (const Special one :
       {Special::kNtidX, Special::kNtidY, Special::kNtidZ, Special::kNctaidX, Special::kNctaidY, Special::kNctaidZ,
        Special::kNwarpId, Special::kNsmId, Special::kClusterDimX, Special::kClusterDimY, Special::kClusterDimZ}) {
    set(one, 1);
  }
  set(Special::kTidX, tid);
  set(Special::kNtidX, ntid);
  impl_->kernel();
}

}  // namespace gridloom::exec
