// Markers other than memory: special registers, parameters, address conversion, warp operations, helpers.
#include "sim/exec/compiler/warp_markers.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <cstddef>

#include "sim/exec/compiler/warp_atomics.h"
#include "sim/exec/compiler/warp_blocks.h"
#include "sim/exec/compiler/warp_calls.h"
#include "sim/exec/compiler/warp_fetch_ahead.h"
#include "sim/exec/compiler/warp_helpers.h"
#include "sim/exec/compiler/warp_meeting.h"
#include "sim/exec/compiler/warp_memcheck.h"
#include "sim/exec/compiler/warp_memory.h"
#include "sim/exec/compiler/warp_plain.h"
#include "sim/exec/compiler/warp_record.h"
#include "sim/exec/compiler/warp_record_buffer.h"
#include "sim/exec/compiler/warp_record_group.h"
#include "sim/exec/compiler/warp_record_loop.h"
#include "sim/exec/compiler/warp_values.h"
#include "sim/exec/compiler/warp_waiting.h"
#include "sim/exec/compiler/warp_window.h"
#include "sim/exec/contract/recorded_event.h"

namespace gridloom::exec {

using llvm::Value;

void MarkerEmitter::EmitMarker(llvm::CallInst& call, const MarkerInfo& info) {
  switch (info.kind) {
    case MarkerKind::kSpecial: return EmitSpecial(call, info.special);
    case MarkerKind::kParam: return EmitParam(call, info);
    case MarkerKind::kSymbol: {
      Value* table = w_.LaunchField(offsetof(LaunchCtx, symbols), b_.getPtrTy());
      return values_.Define(&call, w_.FieldOf(table, 's', info.imm * 8, b_.getInt64Ty()));
    }
    case MarkerKind::kLoad: return memory_.EmitLoad(call, info);
    case MarkerKind::kStore: return memory_.EmitStore(call, info);
    case MarkerKind::kAtomic: return atomics_.EmitAtomic(call, info);
    case MarkerKind::kToGeneric:
    case MarkerKind::kFromGeneric:
    case MarkerKind::kIsSpace: return EmitSpaceConversion(call, info);
    case MarkerKind::kBallot: {
      Value* predicate = call.getArgOperand(0);
      Value* bits = values_.ShapeOf(predicate).uniform()
                        ? b_.CreateSelect(values_.Base(predicate), w_.mask, b_.getInt32(0))
                        : b_.CreateAnd(w_.ToBits(values_.Lanes(predicate)), w_.mask);
      return values_.Define(&call, values_.ShapeOf(&call).vector() ? w_.Splat(bits) : bits);
    }
    case MarkerKind::kActiveMask:
      return values_.Define(&call, values_.ShapeOf(&call).vector() ? w_.Splat(w_.mask) : w_.mask);
    case MarkerKind::kShuffle: return EmitShuffle(call);
    case MarkerKind::kBarrier: return barriers_.EmitBarrierEnd(call, info);
    case MarkerKind::kSync: module_.error = "internal error: a .sync instruction that was not lowered"; return;
    case MarkerKind::kMet: return meetings_.EmitMet(call, info);
    case MarkerKind::kMeet:
    case MarkerKind::kWarpSync:
      if (module_.memcheck()) calls_.CheckOrder(kCheckOrderWarp);
      return CompilerFence(b_);
    case MarkerKind::kGiveWay:
      if (module_.simple_barriers) return calls_.EmitRingSwitch();
      return calls_.CallHelper(Helper::kGiveWay, w_.mask, b_.getInt32(0), 0, {});
    case MarkerKind::kExit:
      // A return follows, and each caller looks who is left (DropEndedLanes).
      b_.CreateStore(b_.CreateOr(b_.CreateLoad(b_.getInt32Ty(), w_.ExitedMask()), w_.mask), w_.ExitedMask());
      return;
    case MarkerKind::kRecord: return records_.EmitRecord(call, info);
    case MarkerKind::kRecordLoop: return loop_records_.BeginRecordLoop(static_cast<std::uint32_t>(info.imm));
    case MarkerKind::kFetchAhead: return ahead_.FetchAhead(call, info.imm);
    case MarkerKind::kIndirectCall: return device_calls_.EmitIndirectCall(call);
    case MarkerKind::kHelper: return EmitHelperMarker(call, info);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Identity and parameters
// ---------------------------------------------------------------------------------------------------------------------
void MarkerEmitter::EmitSpecial(llvm::CallInst& call, Special special) {
  llvm::Type* i32 = b_.getInt32Ty();
  const auto word = [](std::size_t offset, unsigned index) { return offset + 4 * index; };
  const auto thread_index = [&](unsigned axis) -> Value* {
    if (!values_.ShapeOf(&call).vector()) return w_.WarpField(word(offsetof(WarpCtx, tid0), axis), i32);
    return w_.AtEntry("tid" + std::to_string(axis), [&] {
      return b_.CreateAlignedLoad(
          WarpType(i32),
          b_.CreateConstGEP1_64(b_.getInt8Ty(), w_.warp, offsetof(WarpCtx, tid) + axis * sizeof(WarpCtx::tid[0])),
          llvm::Align(64));
    });
  };
  Value* value = nullptr;
  switch (special) {
    case Special::kTidX: value = thread_index(0); break;
    case Special::kTidY: value = thread_index(1); break;
    case Special::kTidZ: value = thread_index(2); break;
    case Special::kNtidX: value = w_.LaunchField(word(offsetof(LaunchCtx, block), 0), i32); break;
    case Special::kNtidY: value = w_.LaunchField(word(offsetof(LaunchCtx, block), 1), i32); break;
    case Special::kNtidZ: value = w_.LaunchField(word(offsetof(LaunchCtx, block), 2), i32); break;
    case Special::kCtaidX: value = w_.CtaField(word(offsetof(CtaCtx, ctaid), 0), i32); break;
    case Special::kCtaidY: value = w_.CtaField(word(offsetof(CtaCtx, ctaid), 1), i32); break;
    case Special::kCtaidZ: value = w_.CtaField(word(offsetof(CtaCtx, ctaid), 2), i32); break;
    case Special::kNctaidX: value = w_.LaunchField(word(offsetof(LaunchCtx, grid), 0), i32); break;
    case Special::kNctaidY: value = w_.LaunchField(word(offsetof(LaunchCtx, grid), 1), i32); break;
    case Special::kNctaidZ: value = w_.LaunchField(word(offsetof(LaunchCtx, grid), 2), i32); break;
    case Special::kLaneId: value = b_.getInt32(0); break;  // affine: base 0, pattern 0..31
    case Special::kWarpId: value = w_.WarpField(offsetof(WarpCtx, warp_id), i32); break;
    case Special::kNwarpId: value = w_.LaunchField(offsetof(LaunchCtx, warps_per_cta), i32); break;
    case Special::kSmId: value = w_.CtaField(offsetof(CtaCtx, smid), i32); break;
    case Special::kNsmId: value = w_.LaunchField(offsetof(LaunchCtx, sm_count), i32); break;
    case Special::kGridId: value = w_.LaunchField(offsetof(LaunchCtx, grid_id), b_.getInt64Ty()); break;
    case Special::kDynamicSharedBytes: value = w_.LaunchField(offsetof(LaunchCtx, dynamic_shared_bytes), i32); break;
    case Special::kTotalSharedBytes: value = w_.LaunchField(offsetof(LaunchCtx, total_shared_bytes), i32); break;
    case Special::kClusterRank: value = w_.CtaField(offsetof(CtaCtx, cluster_rank), i32); break;
    case Special::kClusterDimX: value = w_.LaunchField(word(offsetof(LaunchCtx, cluster), 0), i32); break;
    case Special::kClusterDimY: value = w_.LaunchField(word(offsetof(LaunchCtx, cluster), 1), i32); break;
    case Special::kClusterDimZ: value = w_.LaunchField(word(offsetof(LaunchCtx, cluster), 2), i32); break;
    case Special::kSharedOffset: value = w_.CtaField(offsetof(CtaCtx, shared_offset), i32); break;
    case Special::kSharedStride: value = w_.LaunchField(offsetof(LaunchCtx, shared_stride), i32); break;
    case Special::kGridWorkspaceLow: value = w_.LaunchField(offsetof(LaunchCtx, grid_workspace), i32); break;
    case Special::kGridWorkspaceHigh: value = w_.LaunchField(word(offsetof(LaunchCtx, grid_workspace), 1), i32); break;
    case Special::kOwnMemoryLow: value = w_.CtaField(offsetof(CtaCtx, own_memory), i32); break;
    case Special::kOwnMemoryHigh: value = w_.CtaField(word(offsetof(CtaCtx, own_memory), 1), i32); break;
  }
  values_.Define(&call, value);
}

void MarkerEmitter::EmitParam(llvm::CallInst& call, const MarkerInfo& info) {
  Value* params = w_.LaunchField(offsetof(LaunchCtx, params), b_.getPtrTy());
  Value* offset = call.getArgOperand(0);
  const auto load = [&](Value* at) {
    auto* loaded = b_.CreateAlignedLoad(info.element, at, llvm::Align(1));
    loaded->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
    return loaded;
  };
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(offset)) {
    std::string key = "param" + std::to_string(constant->getZExtValue()) + "." +
                      std::to_string(info.element->getTypeID()) + "." +
                      std::to_string(info.element->getScalarSizeInBits());
    return values_.Define(&call, w_.AtEntry(key, [&]() -> Value* {
      return load(b_.CreateConstGEP1_64(b_.getInt8Ty(), params, constant->getZExtValue()));
    }));
  }
  // A run-time offset (an array parameter indexed by a variable) stays inside the padded block.
  const auto clamp = [&](Value* at) {
    llvm::Type* type = at->getType();
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, at, llvm::ConstantInt::get(type, 32764));
  };
  if (values_.ShapeOf(&call).uniform())
    return values_.Define(&call, load(b_.CreateGEP(b_.getInt8Ty(), params, clamp(values_.Base(offset)))));
  Value* at = b_.CreateGEP(b_.getInt8Ty(), params, clamp(values_.Lanes(offset)));
  Value* lanes = llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(b_.getInt1Ty(), kWarpSize));
  values_.Define(&call, b_.CreateMaskedGather(WarpType(info.element), at, llvm::Align(1), lanes));
}

void MarkerEmitter::EmitSpaceConversion(llvm::CallInst& call, const MarkerInfo& info) {
  Value* address = call.getArgOperand(0);
  const Window window = windows_.WindowOf(info.space == Space::kGeneric ? Space::kGlobal : info.space);
  const Access access{nullptr, 1, 1, 1, 1, info.space, false, nullptr};
  if (info.kind == MarkerKind::kIsSpace) {
    Value* lanes = values_.Lanes(address);
    Value* low = info.space == Space::kLocal    ? windows_.HostLanes(w_.Splat(b_.getInt64(0)), access, window)
                 : info.space == Space::kShared ? w_.Splat(window.host)
                                                : w_.Splat(window.low);
    Value* inside = b_.CreateICmpULT(b_.CreateSub(lanes, low), w_.Splat(window.limit));
    if (info.space == Space::kGlobal) {
      // Shared and local memory lie in the device range, too, but are not global.
      Value* shared = b_.CreateICmpULT(b_.CreateSub(lanes, w_.Splat(windows_.WindowOf(Space::kShared).host)),
                                       w_.Splat(windows_.WindowOf(Space::kShared).limit));
      const Access local{nullptr, 1, 1, 1, 1, Space::kLocal, false, nullptr};
      const Window local_window = windows_.WindowOf(Space::kLocal);
      Value* in_local =
          b_.CreateICmpULT(b_.CreateSub(lanes, windows_.HostLanes(w_.Splat(b_.getInt64(0)), local, local_window)),
                           w_.Splat(local_window.limit));
      inside = b_.CreateNot(b_.CreateOr(shared, in_local));
    }
    return values_.Define(&call, inside);
  }
  const bool to = info.kind == MarkerKind::kToGeneric;
  if (!values_.ShapeOf(&call).vector()) {
    Value* base = values_.Base(address);
    if (window.host) base = to ? b_.CreateAdd(base, window.host) : b_.CreateSub(base, window.host);
    return values_.Define(&call, base);
  }
  Value* lanes = values_.Lanes(address);
  Value* zero = windows_.HostLanes(w_.Splat(b_.getInt64(0)), access, window);
  values_.Define(&call, to ? windows_.HostLanes(lanes, access, window) : b_.CreateSub(lanes, zero));
}

// ---------------------------------------------------------------------------------------------------------------------
// Warp operations
// ---------------------------------------------------------------------------------------------------------------------

/// lanes[index[i] & 31] for every i.
Value* MarkerEmitter::Permute(Value* lanes, Value* index) {
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
  Value* buffer = w_.SpillLanes(0, lanes);
  Value* out = llvm::PoisonValue::get(lanes->getType());
  for (unsigned i = 0; i < kWarpSize; ++i) {
    Value* at = b_.CreateAnd(b_.CreateExtractElement(index, i), b_.getInt32(31));
    out = b_.CreateInsertElement(out, b_.CreateLoad(b_.getInt32Ty(), b_.CreateGEP(b_.getInt32Ty(), buffer, at)), i);
  }
  return out;
}

/// A lane that does not take part gives zero. The manual leaves it open (ISA 9.7.9.6), hardware does so, and programs
/// rely on it: sums over a warp's first lanes shuffle down from lanes that are not there.
void MarkerEmitter::EmitShuffle(llvm::CallInst& call) {
  Value* value = call.getArgOperand(0);
  if (values_.ShapeOf(&call).uniform()) return values_.Define(&call, values_.Base(value));
  Value* own = values_.Lanes(value);
  Value* lanes =
      w_.divergent ? b_.CreateSelect(w_.MaskLanes(), own, llvm::Constant::getNullValue(own->getType())) : own;
  Value* source = call.getArgOperand(1);
  const Shape shape = values_.ShapeOf(source);
  Value* moved = nullptr;
  const auto* base = shape.vector() ? nullptr : llvm::dyn_cast<llvm::ConstantInt>(values_.Base(source));
  if (base) {
    llvm::SmallVector<int, 32> pick;
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      pick.push_back(static_cast<int>((base->getSExtValue() + shape.pattern[lane]) & 31));
    moved = b_.CreateShuffleVector(lanes, pick);
  } else {
    moved = Permute(lanes, values_.Lanes(source));
  }
  Value* valid = call.getArgOperand(2);
  if (!llvm::isa<llvm::ConstantInt>(valid) || llvm::cast<llvm::ConstantInt>(valid)->isZero()) {
    moved = b_.CreateSelect(values_.Lanes(valid), moved, own);
  }
  values_.Define(&call, moved);
}

namespace {

/// Whether the first inputs of a helper are what its outputs were before, in the same places: large accumulators are
/// not copied.
bool UpdatesInPlace(Helper helper) { return helper == Helper::kGroupMma; }

}  // namespace

/// match.any: the value of each lane beside those of all others, one after the other. A loop, as its 32 copies would be
/// no faster.
void MarkerEmitter::EmitMatchAny(llvm::CallInst& call) {
  Value* value = call.getArgOperand(0);
  // What an instruction of another block was made of need not be there any more.
  if (auto* wide = llvm::dyn_cast<llvm::ZExtInst>(value);
      wide && wide->getSrcTy()->isIntegerTy(32) && wide->getParent() == call.getParent())
    value = wide->getOperand(0);
  Value* members = call.getArgOperand(1);
  Value* lanes = values_.Lanes(value);
  Value* values = w_.SpillLanes(1, lanes);
  Value* named = values_.ShapeOf(members).uniform() ? nullptr : w_.SpillLanes(2, values_.Lanes(members));
  Value* same_members = named ? nullptr : values_.Base(members);
  llvm::Type *word = b_.getInt32Ty(), *element = value->getType();
  Value* out = w_.Scratch(0, kWarpSize * sizeof(std::uint32_t));
  ForEachActiveLane(w_, [&](Value* lane) {
    Value* one = b_.CreateLoad(element, b_.CreateGEP(element, values, lane));
    Value* same = w_.ToBits(b_.CreateICmpEQ(lanes, w_.Splat(one)));
    Value* company = named ? b_.CreateLoad(word, b_.CreateGEP(word, named, lane)) : same_members;
    b_.CreateStore(b_.CreateAnd(b_.CreateAnd(same, w_.mask), company), b_.CreateGEP(word, out, lane));
  });
  values_.Define(&call, w_.ReloadLanes(out, WarpType(word)));
}

void MarkerEmitter::EmitHelperMarker(llvm::CallInst& call, const MarkerInfo& info) {
  if (module_.memcheck() && info.helper == Helper::kFence) calls_.CheckOrder(kCheckOrderCta);
  if (memcheck_.EmitSyncCheck(call, info)) return;
  if (info.helper == Helper::kCheckReads) return memcheck_.EmitCheckReads(call);
  if (info.helper == Helper::kLoadedBits) return memcheck_.EmitLoadedBits(call, info);
  if (info.helper == Helper::kStoredBits) return memcheck_.EmitStoredBits(call, info);
  if (info.helper == Helper::kUseInvalid) return memcheck_.EmitUseInvalid(call, info);
  if (info.helper == Helper::kMatchAny) return EmitMatchAny(call);
  if (info.helper == Helper::kF64Rounded && module_.avx512) return plain_.EmitRoundedF64(call, info.imm);
  llvm::SmallVector<llvm::Type*, 8> outputs;
  if (auto* structure = llvm::dyn_cast<llvm::StructType>(call.getType())) {
    outputs.append(structure->element_begin(), structure->element_end());
  } else if (!call.getType()->isVoidTy()) {
    outputs.push_back(call.getType());
  }
  const llvm::DataLayout& layout = w_.target->getParent()->getDataLayout();
  llvm::SmallVector<Value*, 16> args;
  unsigned slot = 0;
  const bool in_place = UpdatesInPlace(info.helper);
  for (llvm::Type* output : outputs) {
    args.push_back(
        in_place ? w_.SpillLanes(slot, values_.Lanes(call.getArgOperand(slot)))
                 : w_.Scratch(slot, static_cast<unsigned>(layout.getTypeStoreSize(StorageType(WarpType(output))))));
    ++slot;
  }
  for (unsigned i = in_place ? outputs.size() : 0; i + 1 < call.arg_size(); ++i)
    args.push_back(w_.SpillLanes(slot++, values_.Lanes(call.getArgOperand(i))));
  const bool records = module_.options.record == Recording::kAll && MayRecordEvents(info.helper, info.imm);
  if (records) {
    record_groups_.SaveRecordCursor();
    record_buffer_.ReturnRecordCursor();
  }
  calls_.CallHelper(info.helper, w_.mask, call.getArgOperand(call.arg_size() - 1), info.imm, args);
  if (records) record_buffer_.TakeRecordCursor();
  if (outputs.empty() || call.use_empty()) return;
  if (!call.getType()->isStructTy()) return values_.Define(&call, w_.ReloadLanes(args[0], WarpType(outputs[0])));
  Value* result = llvm::PoisonValue::get(WarpType(call.getType()));
  for (unsigned i = 0; i < outputs.size(); ++i) {
    result = b_.CreateInsertValue(result, w_.ReloadLanes(args[i], WarpType(outputs[i])), i);
  }
  values_.Define(&call, result);
}

}  // namespace gridloom::exec
