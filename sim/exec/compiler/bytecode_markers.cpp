// Markers as steps: identity, memory, the warp, helpers, calls.
#include <cstddef>

#include "sim/exec/compiler/bytecode_function.h"
#include "sim/exec/compiler/compare_and_swap.h"
#include "sim/exec/contract/abi.h"

namespace gridloom::exec {

std::uint32_t ByteModule::LineOf(const llvm::CallInst& call) {
  const auto* line = llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(call.arg_size() - 1));
  if (!line) {
    Refuse("an instruction with a line that is not constant");
    return 0;
  }
  return static_cast<std::uint32_t>(line->getZExtValue());
}

void ByteFunctionMaker::MakeMarker(llvm::CallInst& call, const MarkerInfo& info) {
  const auto simple = [&](ByteCode code, std::uint64_t imm = 0) {
    const ByteTypes types = module_.TypesOf(call.getType());
    llvm::SmallVector<std::uint32_t, 3> read;
    for (const llvm::Use& operand : call.args()) read.push_back(ReadOne(operand.get()));
    if (types.size() > 1) return module_.Refuse("a marker with a result in several parts");
    ByteStep step{.code = code, .imm = imm};
    if (!types.empty()) {
      step.type = types[0];
      step.dst = Define(call)[0];
    }
    if (!read.empty()) step.a = read[0];
    if (read.size() > 1) step.b = read[1];
    if (read.size() > 2) step.c = read[2];
    Add(step);
  };
  switch (info.kind) {
    case MarkerKind::kSpecial: return MakeSpecial(call, info.special);
    case MarkerKind::kParam: return simple(ByteCode::kParam);
    case MarkerKind::kSymbol: return simple(ByteCode::kSymbol, info.imm);
    case MarkerKind::kLoad:
    case MarkerKind::kStore: return MakeAccess(call, info);
    case MarkerKind::kAtomic: return MakeAtomic(call, info);
    case MarkerKind::kToGeneric: return simple(ByteCode::kToGeneric, static_cast<std::uint64_t>(info.space));
    case MarkerKind::kFromGeneric: return simple(ByteCode::kFromGeneric, static_cast<std::uint64_t>(info.space));
    case MarkerKind::kIsSpace: return simple(ByteCode::kIsSpace, static_cast<std::uint64_t>(info.space));
    case MarkerKind::kBallot: return simple(ByteCode::kBallot);
    case MarkerKind::kActiveMask: return simple(ByteCode::kActiveMask);
    case MarkerKind::kShuffle: return simple(ByteCode::kShuffle);
    case MarkerKind::kWarpSync: return CheckOrder(kCheckOrderWarp);
    case MarkerKind::kFetchAhead: return;
    case MarkerKind::kMet: return MakeMet(call, info);
    case MarkerKind::kGiveWay: Add({.code = ByteCode::kGiveWay}); return;
    case MarkerKind::kExit: Add({.code = ByteCode::kExit}); return;
    case MarkerKind::kIndirectCall: return MakeIndirectCall(call);
    case MarkerKind::kHelper: return MakeHelper(call, info);
    case MarkerKind::kBarrier:
    case MarkerKind::kMeet:
    case MarkerKind::kSync:
    case MarkerKind::kRecord:
    case MarkerKind::kRecordLoop: break;
  }
  module_.Refuse("a marker of kind " + std::to_string(static_cast<int>(info.kind)));
}

void ByteFunctionMaker::MakeSpecial(llvm::CallInst& call, Special special) {
  using S = ByteSpecial;
  struct Row {
    S what = S::kLane;
    std::size_t where = 0;
  };
  const auto row = [&]() -> Row {
    switch (special) {
      case Special::kTidX: return {S::kTid, 0};
      case Special::kTidY: return {S::kTid, 1};
      case Special::kTidZ: return {S::kTid, 2};
      case Special::kNtidX: return {S::kLaunchWord, offsetof(LaunchCtx, block)};
      case Special::kNtidY: return {S::kLaunchWord, offsetof(LaunchCtx, block) + 4};
      case Special::kNtidZ: return {S::kLaunchWord, offsetof(LaunchCtx, block) + 8};
      case Special::kCtaidX: return {S::kCtaWord, offsetof(CtaCtx, ctaid)};
      case Special::kCtaidY: return {S::kCtaWord, offsetof(CtaCtx, ctaid) + 4};
      case Special::kCtaidZ: return {S::kCtaWord, offsetof(CtaCtx, ctaid) + 8};
      case Special::kNctaidX: return {S::kLaunchWord, offsetof(LaunchCtx, grid)};
      case Special::kNctaidY: return {S::kLaunchWord, offsetof(LaunchCtx, grid) + 4};
      case Special::kNctaidZ: return {S::kLaunchWord, offsetof(LaunchCtx, grid) + 8};
      case Special::kLaneId: return {S::kLane, 0};
      case Special::kWarpId: return {S::kWarpWord, offsetof(WarpCtx, warp_id)};
      case Special::kNwarpId: return {S::kLaunchWord, offsetof(LaunchCtx, warps_per_cta)};
      case Special::kSmId: return {S::kCtaWord, offsetof(CtaCtx, smid)};
      case Special::kNsmId: return {S::kLaunchWord, offsetof(LaunchCtx, sm_count)};
      case Special::kGridId: return {S::kLaunchLong, offsetof(LaunchCtx, grid_id)};
      case Special::kDynamicSharedBytes: return {S::kLaunchWord, offsetof(LaunchCtx, dynamic_shared_bytes)};
      case Special::kTotalSharedBytes: return {S::kLaunchWord, offsetof(LaunchCtx, total_shared_bytes)};
      case Special::kClusterRank: return {S::kCtaWord, offsetof(CtaCtx, cluster_rank)};
      case Special::kClusterDimX: return {S::kLaunchWord, offsetof(LaunchCtx, cluster)};
      case Special::kClusterDimY: return {S::kLaunchWord, offsetof(LaunchCtx, cluster) + 4};
      case Special::kClusterDimZ: return {S::kLaunchWord, offsetof(LaunchCtx, cluster) + 8};
      case Special::kSharedOffset: return {S::kCtaWord, offsetof(CtaCtx, shared_offset)};
      case Special::kSharedStride: return {S::kLaunchWord, offsetof(LaunchCtx, shared_stride)};
      case Special::kGridWorkspaceLow: return {S::kLaunchWord, offsetof(LaunchCtx, grid_workspace)};
      case Special::kGridWorkspaceHigh: return {S::kLaunchWord, offsetof(LaunchCtx, grid_workspace) + 4};
      case Special::kOwnMemoryLow: return {S::kCtaWord, offsetof(CtaCtx, own_memory)};
      case Special::kOwnMemoryHigh: return {S::kCtaWord, offsetof(CtaCtx, own_memory) + 4};
    }
    return {};
  }();
  Add({.code = ByteCode::kSpecial, .dst = Define(call)[0], .imm = SpecialImm(row.what, row.where)});
}

/// What comes before it is ordered before what comes after it, for memcheck.
void ByteFunctionMaker::CheckOrder(std::uint64_t among) {
  if (module_.memcheck)
    Add({.code = ByteCode::kHelper,
         .a = static_cast<std::uint32_t>(Helper::kCheckOrder),
         .b = List({}),
         .c = 0,
         .imm = among});
}

/// memcheck's number of the access, 0 where it needs none.
void ByteFunctionMaker::MakeAccess(llvm::CallInst& call, const MarkerInfo& info) {
  const bool load = info.kind == MarkerKind::kLoad;
  const bool strong = info.strong || (module_.memcheck && load && BeginsCompareAndSwap(call, module_.spmd));
  if (strong) CheckOrder(kCheckOrderCta);
  ByteStep step;
  if (module_.memcheck) step.code = load ? ByteCode::kCheckedLoad : ByteCode::kCheckedStore;
  else step.code = load ? ByteCode::kLoad : ByteCode::kStore;
  step.line = module_.LineOf(call);
  step.a = ReadOne(call.getArgOperand(0));
  step.extra = static_cast<std::uint8_t>(static_cast<unsigned>(info.space) | (strong ? 0x80u : 0u));
  step.type = module_.TypesOf(info.element)[0];
  step.imm = module_.CheckSite(info.space);
  Registers elements;
  if (load) elements = Define(call);
  else
    for (unsigned i = 1; i + 1 < call.arg_size(); ++i) elements.push_back(ReadOne(call.getArgOperand(i)));
  step.b = List(elements);
  step.c = static_cast<std::uint32_t>(elements.size());
  Add(step);
}

void ByteFunctionMaker::MakeAtomic(llvm::CallInst& call, const MarkerInfo& info) {
  const ByteTypes types = module_.TypesOf(call.getArgOperand(1)->getType());
  ByteStep step;
  step.code = module_.memcheck ? ByteCode::kCheckedAtomic : ByteCode::kAtomic;
  step.type = types[0];
  step.line = module_.LineOf(call);
  step.a = ReadOne(call.getArgOperand(0));
  step.b = ReadOne(call.getArgOperand(1));
  step.c = ReadOne(call.getArgOperand(2));
  step.imm = info.imm | std::uint64_t{module_.CheckSite(info.space)} << 32;
  const bool wanted = !call.use_empty();
  if (wanted) CheckOrder(kCheckOrderCta);
  const auto type = static_cast<AtomicType>(info.imm >> 8 & 0xff);
  const bool exchanges = static_cast<AtomicOp>(info.imm & 0xff) == AtomicOp::kExch &&
                         (type == AtomicType::kI32 || type == AtomicType::kI64);
  if (module_.memcheck && exchanges && !wanted) step.extra = 1;
  if (!call.getType()->isVoidTy()) step.dst = Define(call)[0];
  Add(step);
}

void ByteFunctionMaker::MakeHelper(llvm::CallInst& call, const MarkerInfo& info) {
  if (info.helper == Helper::kFence) CheckOrder(kCheckOrderCta);
  const std::uint32_t line = module_.LineOf(call);
  const ByteTypes types = module_.TypesOf(call.getType());
  llvm::SmallVector<Registers, 16> inputs;
  for (unsigned i = 0; i + 1 < call.arg_size(); ++i) inputs.push_back(Read(call.getArgOperand(i)));
  const Registers outputs = Define(call);
  Registers all(outputs.begin(), outputs.end());
  // Large accumulators are read and written in the same place.
  const std::size_t in_place = info.helper == Helper::kGroupMma ? outputs.size() : 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (i < in_place) Add({.code = ByteCode::kMove, .type = types[i], .dst = outputs[i], .a = inputs[i][0]});
    else all.push_back(inputs[i][0]);
    if (inputs[i].size() != 1) return module_.Refuse("an input of a helper in several parts");
  }
  Add({.code = ByteCode::kHelper,
       .line = line,
       .a = static_cast<std::uint32_t>(info.helper),
       .b = List(all),
       .c = static_cast<std::uint32_t>(all.size()),
       .imm = info.imm});
}

void ByteFunctionMaker::MakeCall(llvm::CallInst& call) {
  const auto number = module_.numbers.find(call.getCalledFunction());
  if (number == module_.numbers.end()) {
    return module_.Refuse("a call of '" +
                          (call.getCalledFunction() ? call.getCalledFunction()->getName().str() : std::string("?")) +
                          "'");
  }
  Registers inputs;
  for (const llvm::Use& argument : call.args()) {
    const Registers parts = Read(argument.get());
    inputs.append(parts.begin(), parts.end());
  }
  Registers all = Define(call);
  const std::size_t results = all.size();
  all.append(inputs.begin(), inputs.end());
  Add({.code = ByteCode::kCall,
       .a = number->second,
       .b = List(all),
       .c = static_cast<std::uint32_t>(all.size()),
       .imm = results});
}

void ByteFunctionMaker::MakeIndirectCall(llvm::CallInst& call) {
  Registers inputs;
  ByteTypes parameters;
  for (unsigned i = 0; i < call.arg_size(); ++i) {
    const Registers parts = Read(call.getArgOperand(i));
    inputs.append(parts.begin(), parts.end());
    if (i == 0) continue;
    const ByteTypes& types = module_.TypesOf(call.getArgOperand(i)->getType());
    parameters.append(types.begin(), types.end());
  }
  const std::uint32_t signature = module_.Signature(module_.TypesOf(call.getType()), parameters);
  Registers all = Define(call);
  const std::size_t results = all.size();
  all.append(inputs.begin(), inputs.end());
  Add({.code = ByteCode::kIndirectCall,
       .b = List(all),
       .c = static_cast<std::uint32_t>(all.size()),
       .imm = results | std::uint64_t{signature} << 32});
}

void ByteFunctionMaker::MakeMet(llvm::CallInst& call, const MarkerInfo& info) {
  if (!met_ended_) Add({.code = ByteCode::kEndMet});
  met_ended_ = true;
  const Registers given = Read(call.getArgOperand(0));
  const ByteTypes types = module_.TypesOf(call.getType());
  const Registers out = Define(call);
  for (std::size_t i = 0; i < out.size(); ++i)
    Add({.code = ByteCode::kMet,
         .type = types[i],
         .dst = out[i],
         .a = given[i],
         .imm = out.size() == 1 ? info.imm : i});
}

}  // namespace gridloom::exec
