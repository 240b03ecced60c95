// Markers other than memory: special registers, parameters, address conversion, warp operations, helpers, calls.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/Support/raw_ostream.h>

#include <cstddef>

#include "sim/exec/compiler/out_of_line.h"
#include "sim/exec/compiler/warp_function.h"
#include "sim/exec/contract/recorded_event.h"
#include "sim/exec/contract/warp_switch.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

const MarkerInfo* WarpModule::MarkerOf(const llvm::Instruction& instruction) const {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  return call && call->getCalledFunction() ? spmd.Find(call->getCalledFunction()) : nullptr;
}

// ---------------------------------------------------------------------------------------------------------------------
// Context: fields that do not change while a warp runs, read once at its start
// ---------------------------------------------------------------------------------------------------------------------

Value* WarpFunction::AtEntry(const std::string& key, const std::function<Value*()>& make) {
  if (auto it = entry_values_.find(key); it != entry_values_.end()) return it->second;
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  b_.SetInsertPoint(head_->getTerminator());
  Value* value = make();
  entry_values_[key] = value;
  return value;
}

Value* WarpFunction::FieldOf(Value* base, char which, std::size_t offset, llvm::Type* type) {
  return AtEntry(FieldKey(which, offset), [&]() -> Value* {
    auto* load = b_.CreateLoad(type, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), base, offset));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    return load;
  });
}

Value* WarpFunction::ExitedMask() {
  return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), warp_, offsetof(WarpCtx, exited_mask));
}

Value* WarpFunction::WarpField(std::size_t offset, llvm::Type* type) { return FieldOf(warp_, 'w', offset, type); }

Value* WarpFunction::LaunchField(std::size_t offset, llvm::Type* type) {
  return FieldOf(WarpField(offsetof(WarpCtx, launch), b_.getPtrTy()), 'l', offset, type);
}

Value* WarpFunction::CtaField(std::size_t offset, llvm::Type* type) {
  return FieldOf(WarpField(offsetof(WarpCtx, cta), b_.getPtrTy()), 'c', offset, type);
}

void WarpFunction::EmitMarker(llvm::CallInst& call, const MarkerInfo& info) {
  switch (info.kind) {
    case MarkerKind::kSpecial: return EmitSpecial(call, info.special);
    case MarkerKind::kParam: return EmitParam(call, info);
    case MarkerKind::kSymbol: {
      Value* table = LaunchField(offsetof(LaunchCtx, symbols), b_.getPtrTy());
      return Define(&call, FieldOf(table, 's', info.imm * 8, b_.getInt64Ty()));
    }
    case MarkerKind::kLoad: return EmitLoad(call, info);
    case MarkerKind::kStore: return EmitStore(call, info);
    case MarkerKind::kAtomic: return EmitAtomic(call, info);
    case MarkerKind::kToGeneric:
    case MarkerKind::kFromGeneric:
    case MarkerKind::kIsSpace: return EmitSpaceConversion(call, info);
    case MarkerKind::kBallot: {
      Value* predicate = call.getArgOperand(0);
      Value* bits = ShapeOf(predicate).uniform() ? b_.CreateSelect(Base(predicate), mask_, b_.getInt32(0))
                                                 : b_.CreateAnd(ToBits(Lanes(predicate)), mask_);
      return Define(&call, ShapeOf(&call).vector() ? Splat(bits) : bits);
    }
    case MarkerKind::kActiveMask: return Define(&call, ShapeOf(&call).vector() ? Splat(mask_) : mask_);
    case MarkerKind::kShuffle: return EmitShuffle(call);
    case MarkerKind::kBarrier: return EmitBarrierEnd(call, info);
    case MarkerKind::kSync: module_.error = "internal error: a .sync instruction that was not lowered"; return;
    case MarkerKind::kMet: return EmitMet(call, info);
    case MarkerKind::kMeet:
    case MarkerKind::kWarpSync:
      if (memcheck()) CheckOrder(kCheckOrderWarp);
      return CompilerFence();
    case MarkerKind::kGiveWay:
      if (module_.simple_barriers) return EmitRingSwitch();
      return CallHelper(Helper::kGiveWay, mask_, b_.getInt32(0), 0, {});
    case MarkerKind::kExit:
      // A return follows, and each caller looks who is left (DropEndedLanes).
      b_.CreateStore(b_.CreateOr(b_.CreateLoad(b_.getInt32Ty(), ExitedMask()), mask_), ExitedMask());
      return;
    case MarkerKind::kRecord: return EmitRecord(call, info);
    case MarkerKind::kRecordLoop: return BeginRecordLoop(static_cast<std::uint32_t>(info.imm));
    case MarkerKind::kFetchAhead: return FetchAhead(call, info.imm);
    case MarkerKind::kIndirectCall: return EmitIndirectCall(call);
    case MarkerKind::kHelper: return EmitHelperMarker(call, info);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Identity and parameters
// ---------------------------------------------------------------------------------------------------------------------

void WarpFunction::EmitSpecial(llvm::CallInst& call, Special special) {
  llvm::Type* i32 = b_.getInt32Ty();
  const auto word = [](std::size_t offset, unsigned index) { return offset + 4 * index; };
  const auto thread_index = [&](unsigned axis) -> Value* {
    if (!ShapeOf(&call).vector()) return WarpField(word(offsetof(WarpCtx, tid0), axis), i32);
    return AtEntry("tid" + std::to_string(axis), [&] {
      return b_.CreateAlignedLoad(
          WarpType(i32),
          b_.CreateConstGEP1_64(b_.getInt8Ty(), warp_, offsetof(WarpCtx, tid) + axis * sizeof(WarpCtx::tid[0])),
          llvm::Align(64));
    });
  };
  Value* value = nullptr;
  switch (special) {
    case Special::kTidX: value = thread_index(0); break;
    case Special::kTidY: value = thread_index(1); break;
    case Special::kTidZ: value = thread_index(2); break;
    case Special::kNtidX: value = LaunchField(word(offsetof(LaunchCtx, block), 0), i32); break;
    case Special::kNtidY: value = LaunchField(word(offsetof(LaunchCtx, block), 1), i32); break;
    case Special::kNtidZ: value = LaunchField(word(offsetof(LaunchCtx, block), 2), i32); break;
    case Special::kCtaidX: value = CtaField(word(offsetof(CtaCtx, ctaid), 0), i32); break;
    case Special::kCtaidY: value = CtaField(word(offsetof(CtaCtx, ctaid), 1), i32); break;
    case Special::kCtaidZ: value = CtaField(word(offsetof(CtaCtx, ctaid), 2), i32); break;
    case Special::kNctaidX: value = LaunchField(word(offsetof(LaunchCtx, grid), 0), i32); break;
    case Special::kNctaidY: value = LaunchField(word(offsetof(LaunchCtx, grid), 1), i32); break;
    case Special::kNctaidZ: value = LaunchField(word(offsetof(LaunchCtx, grid), 2), i32); break;
    case Special::kLaneId: value = b_.getInt32(0); break;  // affine: base 0, pattern 0..31
    case Special::kWarpId: value = WarpField(offsetof(WarpCtx, warp_id), i32); break;
    case Special::kNwarpId: value = LaunchField(offsetof(LaunchCtx, warps_per_cta), i32); break;
    case Special::kSmId: value = CtaField(offsetof(CtaCtx, smid), i32); break;
    case Special::kNsmId: value = LaunchField(offsetof(LaunchCtx, sm_count), i32); break;
    case Special::kGridId: value = LaunchField(offsetof(LaunchCtx, grid_id), b_.getInt64Ty()); break;
    case Special::kDynamicSharedBytes: value = LaunchField(offsetof(LaunchCtx, dynamic_shared_bytes), i32); break;
    case Special::kTotalSharedBytes: value = LaunchField(offsetof(LaunchCtx, total_shared_bytes), i32); break;
    case Special::kClusterRank: value = CtaField(offsetof(CtaCtx, cluster_rank), i32); break;
    case Special::kClusterDimX: value = LaunchField(word(offsetof(LaunchCtx, cluster), 0), i32); break;
    case Special::kClusterDimY: value = LaunchField(word(offsetof(LaunchCtx, cluster), 1), i32); break;
    case Special::kClusterDimZ: value = LaunchField(word(offsetof(LaunchCtx, cluster), 2), i32); break;
    case Special::kSharedOffset: value = CtaField(offsetof(CtaCtx, shared_offset), i32); break;
    case Special::kSharedStride: value = LaunchField(offsetof(LaunchCtx, shared_stride), i32); break;
    case Special::kGridWorkspaceLow: value = LaunchField(offsetof(LaunchCtx, grid_workspace), i32); break;
    case Special::kGridWorkspaceHigh: value = LaunchField(word(offsetof(LaunchCtx, grid_workspace), 1), i32); break;
  }
  Define(&call, value);
}

void WarpFunction::EmitParam(llvm::CallInst& call, const MarkerInfo& info) {
  Value* params = LaunchField(offsetof(LaunchCtx, params), b_.getPtrTy());
  Value* offset = call.getArgOperand(0);
  const auto load = [&](Value* at) {
    auto* loaded = b_.CreateAlignedLoad(info.element, at, llvm::Align(1));
    loaded->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    return loaded;
  };
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(offset)) {
    std::string key = "param" + std::to_string(constant->getZExtValue()) + "." +
                      std::to_string(info.element->getTypeID()) + "." +
                      std::to_string(info.element->getScalarSizeInBits());
    return Define(&call, AtEntry(key, [&]() -> Value* {
      return load(b_.CreateConstGEP1_64(b_.getInt8Ty(), params, constant->getZExtValue()));
    }));
  }
  // A run-time offset (an array parameter indexed by a variable) stays inside the padded block.
  const auto clamp = [&](Value* at) {
    llvm::Type* type = at->getType();
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, at, llvm::ConstantInt::get(type, 32764));
  };
  if (ShapeOf(&call).uniform()) return Define(&call, load(b_.CreateGEP(b_.getInt8Ty(), params, clamp(Base(offset)))));
  Value* at = b_.CreateGEP(b_.getInt8Ty(), params, clamp(Lanes(offset)));
  Value* lanes = llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(b_.getInt1Ty(), kWarpSize));
  Define(&call, b_.CreateMaskedGather(WarpType(info.element), at, llvm::Align(1), lanes));
}

void WarpFunction::EmitSpaceConversion(llvm::CallInst& call, const MarkerInfo& info) {
  Value* address = call.getArgOperand(0);
  const Window window = WindowOf(info.space == Space::kGeneric ? Space::kGlobal : info.space);
  const Access access{nullptr, 1, 1, 1, 1, info.space, false, nullptr};
  if (info.kind == MarkerKind::kIsSpace) {
    Value* lanes = Lanes(address);
    Value* low = info.space == Space::kLocal    ? HostLanes(Splat(b_.getInt64(0)), access, window)
                 : info.space == Space::kShared ? Splat(window.host)
                                                : Splat(window.low);
    Value* inside = b_.CreateICmpULT(b_.CreateSub(lanes, low), Splat(window.limit));
    if (info.space == Space::kGlobal) {
      // Shared and local memory lie in the device range, too, but are not global.
      Value* shared = b_.CreateICmpULT(b_.CreateSub(lanes, Splat(WindowOf(Space::kShared).host)),
                                       Splat(WindowOf(Space::kShared).limit));
      const Access local{nullptr, 1, 1, 1, 1, Space::kLocal, false, nullptr};
      const Window local_window = WindowOf(Space::kLocal);
      Value* in_local = b_.CreateICmpULT(b_.CreateSub(lanes, HostLanes(Splat(b_.getInt64(0)), local, local_window)),
                                         Splat(local_window.limit));
      inside = b_.CreateNot(b_.CreateOr(shared, in_local));
    }
    return Define(&call, inside);
  }
  const bool to = info.kind == MarkerKind::kToGeneric;
  if (!ShapeOf(&call).vector()) {
    Value* base = Base(address);
    if (window.host) base = to ? b_.CreateAdd(base, window.host) : b_.CreateSub(base, window.host);
    return Define(&call, base);
  }
  Value* lanes = Lanes(address);
  Value* zero = HostLanes(Splat(b_.getInt64(0)), access, window);
  Define(&call, to ? HostLanes(lanes, access, window) : b_.CreateSub(lanes, zero));
}

// ---------------------------------------------------------------------------------------------------------------------
// Warp operations
// ---------------------------------------------------------------------------------------------------------------------

/// lanes[index[i] & 31] for every i.
Value* WarpFunction::Permute(Value* lanes, Value* index) {
  if (module_.avx512) {
    const auto half = [&](Value* value, unsigned which) {
      llvm::SmallVector<int, 16> pick;
      for (unsigned i = 0; i < 16; ++i) pick.push_back(static_cast<int>(which * 16 + i));
      return b_.CreateShuffleVector(value, pick);
    };
    Value* parts[2];
    for (unsigned i = 0; i < 2; ++i) {
      parts[i] = b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_d_512, {},
                                    {half(lanes, 0), half(index, i), half(lanes, 1)});
    }
    llvm::SmallVector<int, 32> both;
    for (unsigned i = 0; i < kWarpSize; ++i) both.push_back(static_cast<int>(i));
    return b_.CreateShuffleVector(parts[0], parts[1], both);
  }
  Value* buffer = SpillLanes(0, lanes);
  Value* out = llvm::PoisonValue::get(lanes->getType());
  for (unsigned i = 0; i < kWarpSize; ++i) {
    Value* at = b_.CreateAnd(b_.CreateExtractElement(index, i), b_.getInt32(31));
    out = b_.CreateInsertElement(out, b_.CreateLoad(b_.getInt32Ty(), b_.CreateGEP(b_.getInt32Ty(), buffer, at)), i);
  }
  return out;
}

/// A lane that does not take part gives zero. The manual leaves it open (ISA 9.7.9.6), hardware does so, and programs
/// rely on it: sums over a warp's first lanes shuffle down from lanes that are not there.
void WarpFunction::EmitShuffle(llvm::CallInst& call) {
  Value* value = call.getArgOperand(0);
  if (ShapeOf(&call).uniform()) return Define(&call, Base(value));
  Value* own = Lanes(value);
  Value* lanes = divergent_ ? b_.CreateSelect(MaskLanes(), own, llvm::Constant::getNullValue(own->getType())) : own;
  Value* source = call.getArgOperand(1);
  const Shape shape = ShapeOf(source);
  Value* moved = nullptr;
  const auto* base = shape.vector() ? nullptr : llvm::dyn_cast<llvm::ConstantInt>(Base(source));
  if (base) {
    llvm::SmallVector<int, 32> pick;
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      pick.push_back(static_cast<int>((base->getSExtValue() + shape.pattern[lane]) & 31));
    moved = b_.CreateShuffleVector(lanes, pick);
  } else {
    moved = Permute(lanes, Lanes(source));
  }
  Value* valid = call.getArgOperand(2);
  if (!llvm::isa<llvm::ConstantInt>(valid) || llvm::cast<llvm::ConstantInt>(valid)->isZero()) {
    moved = b_.CreateSelect(Lanes(valid), moved, own);
  }
  Define(&call, moved);
}

/// Hands the core to the next warp of the ring. When control comes back, all others have had their turn
/// (warp_switch.h). A kernel of many barriers calls a function for it: the list of what the assembly clobbers takes
/// LLVM a millisecond to read.
void WarpFunction::EmitRingSwitch() {
  constexpr unsigned kMostInLine = 64;
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy()}, false);
  auto* assembly = llvm::InlineAsm::get(type, kRingSwitchAsm, kRingSwitchConstraints, true, false);
  if (barriers_ <= kMostInLine) {
    b_.CreateCall(assembly, {warp_});
    return;
  }
  llvm::IRBuilder<> inside(context_);
  llvm::Function* function = FunctionBeside(b_, "gl.ring_switch", type, inside);
  if (inside.GetInsertBlock()) {
    inside.CreateCall(assembly, {function->getArg(0)});
    inside.CreateRetVoid();
  }
  b_.CreateCall(function, {warp_});
}

// ---------------------------------------------------------------------------------------------------------------------
// Helpers
// ---------------------------------------------------------------------------------------------------------------------

Value* WarpFunction::Scratch(unsigned slot, unsigned bytes) {
  auto& [buffer, size] = scratch_[slot];
  bytes = std::max(bytes, 128u);
  if (!buffer) {
    llvm::IRBuilder<> at(entry_, entry_->begin());
    buffer = at.CreateAlloca(llvm::ArrayType::get(at.getInt8Ty(), bytes));
    buffer->setAlignment(llvm::Align(64));
    size = bytes;
  } else if (size < bytes) {
    buffer->setAllocatedType(llvm::ArrayType::get(b_.getInt8Ty(), bytes));
    size = bytes;
  }
  return buffer;
}

Value* WarpFunction::SpillLanes(unsigned slot, Value* lanes) {
  llvm::Type* type = StorageType(lanes->getType());
  if (type != lanes->getType()) lanes = b_.CreateBitCast(lanes, type);
  const unsigned bytes = static_cast<unsigned>(target_->getParent()->getDataLayout().getTypeStoreSize(type));
  Value* buffer = Scratch(slot, bytes);
  b_.CreateAlignedStore(lanes, buffer, llvm::Align(64));
  return buffer;
}

Value* WarpFunction::ReloadLanes(Value* buffer, llvm::Type* warp_type) {
  llvm::Type* type = StorageType(warp_type);
  Value* value = b_.CreateAlignedLoad(type, buffer, llvm::Align(64));
  return type == warp_type ? value : b_.CreateBitCast(value, warp_type);
}

void WarpFunction::CallHelper(Helper helper, Value* mask, Value* line, std::uint64_t imm, llvm::ArrayRef<Value*> args) {
  Value* table = LaunchField(offsetof(LaunchCtx, helpers), b_.getPtrTy());
  auto* load = b_.CreateLoad(b_.getPtrTy(),
                             b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), table, static_cast<std::uint64_t>(helper)));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  Value* pointers = llvm::ConstantPointerNull::get(b_.getPtrTy());
  if (!args.empty()) {
    pointers = Scratch(1000, static_cast<unsigned>(args.size()) * 8);
    for (unsigned i = 0; i < args.size(); ++i) {
      b_.CreateAlignedStore(args[i], b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), pointers, i), llvm::Align(8));
    }
  }
  auto* type = llvm::FunctionType::get(
      b_.getVoidTy(), {b_.getPtrTy(), b_.getInt32Ty(), b_.getInt32Ty(), b_.getInt64Ty(), b_.getPtrTy()}, false);
  b_.CreateCall(type, load, {warp_, mask, line, b_.getInt64(imm), pointers});
}

/// Internal function `name`(ptr warp, i32 mask, i32 line, i64 imm, addresses, more…) that is never inlined; addresses
/// are <32 x i64> unless another type is given.
llvm::Function* WarpFunction::OutOfLine(const std::string& name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> more,
                                        llvm::Type* addresses) {
  llvm::SmallVector<llvm::Type*, 8> types{b_.getPtrTy(), b_.getInt32Ty(), b_.getInt32Ty(), b_.getInt64Ty(),
                                          addresses ? addresses : WarpType(b_.getInt64Ty())};
  types.append(more.begin(), more.end());
  auto* function = llvm::Function::Create(llvm::FunctionType::get(result, types, false),
                                          llvm::Function::InternalLinkage, name, target_->getParent());
  function->setAttributes(function->getAttributes().addFnAttributes(
      context_, llvm::AttrBuilder(context_, target_->getAttributes().getFnAttrs())));
  function->addFnAttr(llvm::Attribute::NoInline);
  function->addFnAttr(llvm::Attribute::Cold);
  return function;
}

Value* WarpFunction::AlignedAlloca(llvm::IRBuilder<>& b, llvm::Type* type) {
  auto* buffer = b.CreateAlloca(type);
  buffer->setAlignment(llvm::Align(64));
  return buffer;
}

/// Helper call inside an out-of-line function, with the warp, mask, line (unless there is another) and immediate it was
/// given.
void WarpFunction::CallHelperFrom(llvm::IRBuilder<>& b, llvm::Function* function, Helper helper,
                                  llvm::ArrayRef<Value*> args, Value* line) {
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

namespace {

/// Whether the first inputs of a helper are what its outputs were before, in the same places: large accumulators are
/// not copied.
bool UpdatesInPlace(Helper helper) { return helper == Helper::kGroupMma; }

}  // namespace

void WarpFunction::EmitHelperMarker(llvm::CallInst& call, const MarkerInfo& info) {
  if (memcheck() && info.helper == Helper::kFence) CheckOrder(kCheckOrderCta);
  if (EmitSyncCheck(call, info)) return;
  if (info.helper == Helper::kLoadedBits) return EmitLoadedBits(call, info);
  if (info.helper == Helper::kStoredBits) return EmitStoredBits(call, info);
  if (info.helper == Helper::kUseInvalid) return EmitUseInvalid(call, info);
  if (info.helper == Helper::kF64Rounded && module_.avx512) return EmitRoundedF64(call, info.imm);
  llvm::SmallVector<llvm::Type*, 8> outputs;
  if (auto* structure = llvm::dyn_cast<llvm::StructType>(call.getType())) {
    outputs.append(structure->element_begin(), structure->element_end());
  } else if (!call.getType()->isVoidTy()) {
    outputs.push_back(call.getType());
  }
  const llvm::DataLayout& layout = target_->getParent()->getDataLayout();
  llvm::SmallVector<Value*, 16> args;
  unsigned slot = 0;
  const bool in_place = UpdatesInPlace(info.helper);
  for (llvm::Type* output : outputs) {
    args.push_back(in_place
                       ? SpillLanes(slot, Lanes(call.getArgOperand(slot)))
                       : Scratch(slot, static_cast<unsigned>(layout.getTypeStoreSize(StorageType(WarpType(output))))));
    ++slot;
  }
  for (unsigned i = in_place ? outputs.size() : 0; i + 1 < call.arg_size(); ++i)
    args.push_back(SpillLanes(slot++, Lanes(call.getArgOperand(i))));
  const bool records = module_.options.record == Recording::kAll && MayRecordEvents(info.helper, info.imm);
  if (records) {
    SaveRecordCursor();
    ReturnRecordCursor();
  }
  CallHelper(info.helper, mask_, call.getArgOperand(call.arg_size() - 1), info.imm, args);
  if (records) TakeRecordCursor();
  if (outputs.empty() || call.use_empty()) return;
  if (!call.getType()->isStructTy()) return Define(&call, ReloadLanes(args[0], WarpType(outputs[0])));
  Value* result = llvm::PoisonValue::get(WarpType(call.getType()));
  for (unsigned i = 0; i < outputs.size(); ++i) {
    result = b_.CreateInsertValue(result, ReloadLanes(args[i], WarpType(outputs[i])), i);
  }
  Define(&call, result);
}

// ---------------------------------------------------------------------------------------------------------------------
// Calls
// ---------------------------------------------------------------------------------------------------------------------

void WarpFunction::EmitCall(llvm::CallInst& call) {
  llvm::Function* callee = call.getCalledFunction();
  llvm::Function* warp_callee = callee ? module_.warp_of.lookup(callee) : nullptr;
  if (!warp_callee) {
    module_.error = "call of '" + (callee ? callee->getName().str() : std::string("?")) + "', which has no body";
    return;
  }
  SaveRecordCursor();
  ReturnRecordCursor();
  llvm::SmallVector<Value*, 8> args{warp_, mask_};
  for (const llvm::Use& arg : call.args()) args.push_back(Lanes(arg.get()));
  Value* result = b_.CreateCall(warp_callee, args);
  TakeRecordCursor();
  if (!call.getType()->isVoidTy()) Define(&call, result);
}

/// R @gl.indirect(ptr warp, i32 mask, i64 target, lanes…): one call for lanes that agree on the target.
llvm::Function* WarpFunction::IndirectTarget(llvm::FunctionType* type) {
  std::string name = "gl.indirect.";
  {
    llvm::raw_string_ostream out(name);
    out << *type;
  }
  if (llvm::Function* existing = target_->getParent()->getFunction(name)) return existing;
  auto* function = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, target_->getParent());
  llvm::IRBuilder<> b(BasicBlock::Create(context_, "entry", function));
  BasicBlock* bad = BasicBlock::Create(context_, "bad", function);
  auto* choose = b.CreateSwitch(function->getArg(2), bad, 8);
  for (const auto& [index, target] : module_.address_taken) {
    llvm::Function* warp_target = module_.warp_of.lookup(target);
    if (!warp_target || warp_target->getReturnType() != type->getReturnType() ||
        warp_target->arg_size() + 1 != function->arg_size()) {
      continue;
    }
    bool same = true;
    for (unsigned i = 2; i < warp_target->arg_size(); ++i)
      same &= warp_target->getArg(i)->getType() == function->getArg(i + 1)->getType();
    if (!same) continue;
    BasicBlock* block = BasicBlock::Create(context_, "call", function);
    choose->addCase(b.getInt64((std::uint64_t{index} + 1) * 16), block);
    llvm::IRBuilder<> at(block);
    llvm::SmallVector<Value*, 8> args{function->getArg(0), function->getArg(1)};
    for (unsigned i = 3; i < function->arg_size(); ++i) args.push_back(function->getArg(i));
    Value* result = at.CreateCall(warp_target, args);
    if (type->getReturnType()->isVoidTy()) {
      at.CreateRetVoid();
    } else {
      at.CreateRet(result);
    }
  }
  // A pointer that is no function of this signature: the runtime reports it and does not return.
  b.SetInsertPoint(bad);
  Value* target = b.CreateAlloca(b.getInt64Ty());
  b.CreateStore(function->getArg(2), target);
  Value* pointers = b.CreateAlloca(b.getPtrTy());
  b.CreateStore(target, pointers);
  const auto field = [&](Value* base, std::size_t offset) {
    return b.CreateLoad(b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, offset));
  };
  Value* table = field(field(function->getArg(0), offsetof(WarpCtx, launch)), offsetof(LaunchCtx, helpers));
  auto* helper_type = llvm::FunctionType::get(
      b.getVoidTy(), {b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty(), b.getInt64Ty(), b.getPtrTy()}, false);
  b.CreateCall(helper_type, field(table, static_cast<std::size_t>(Helper::kInvalidCall) * sizeof(void*)),
               {function->getArg(0), function->getArg(1), b.getInt32(0), b.getInt64(0), pointers});
  b.CreateUnreachable();
  return function;
}

void WarpFunction::EmitIndirectCall(llvm::CallInst& call) {
  SaveRecordCursor();
  llvm::Type* result_type = WarpType(call.getType());
  llvm::SmallVector<llvm::Type*, 8> types{b_.getPtrTy(), b_.getInt32Ty(), b_.getInt64Ty()};
  llvm::SmallVector<Value*, 8> values;
  for (unsigned i = 1; i < call.arg_size(); ++i) {
    values.push_back(Lanes(call.getArgOperand(i)));
    types.push_back(values.back()->getType());
  }
  llvm::Function* target = IndirectTarget(llvm::FunctionType::get(result_type, types, false));
  const bool has_result = !call.getType()->isVoidTy();
  const auto invoke = [&](Value* mask, Value* pointer) {
    llvm::SmallVector<Value*, 8> args{warp_, mask, pointer};
    args.append(values.begin(), values.end());
    ReturnRecordCursor();
    llvm::CallInst* const result = b_.CreateCall(target, args);
    TakeRecordCursor();
    return result;
  };
  Value* pointer = call.getArgOperand(0);
  if (ShapeOf(pointer).uniform()) {
    Value* result = invoke(mask_, Base(pointer));
    if (has_result) Define(&call, result);
    return;
  }
  // One call per distinct target, until every active lane has made its call.
  llvm::IRBuilder<> at(entry_, entry_->begin());
  Value* pointers = Lanes(pointer);
  Value* buffer = AlignedAlloca(at, pointers->getType());
  llvm::AllocaInst* results = has_result ? at.CreateAlloca(result_type) : nullptr;
  b_.CreateStore(pointers, buffer);
  if (results) b_.CreateStore(llvm::Constant::getNullValue(result_type), results);
  WhileLanesAreLeft([&](Value* left) {
    Value* lane = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, left, b_.getTrue());
    Value* chosen = b_.CreateLoad(b_.getInt64Ty(), b_.CreateGEP(b_.getInt64Ty(), buffer, lane));
    Value* again = b_.CreateLoad(pointers->getType(), buffer);
    Value* group = b_.CreateAnd(ToBits(b_.CreateICmpEQ(again, Splat(chosen))), left);
    Value* result = invoke(group, chosen);
    if (results) b_.CreateStore(SelectLanes(ToLaneMask(group), result, b_.CreateLoad(result_type, results)), results);
    return b_.CreateXor(left, group);
  });
  if (results) Define(&call, b_.CreateLoad(result_type, results));
}

}  // namespace gridloom::exec
