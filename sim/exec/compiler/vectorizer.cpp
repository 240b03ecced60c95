#include "sim/exec/compiler/vectorizer.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "sim/exec/compiler/give_way.h"
#include "sim/exec/compiler/meetings.h"
#include "sim/exec/compiler/read_groups.h"
#include "sim/exec/compiler/warp_function.h"
#include "sim/exec/contract/warp_switch.h"

namespace gridloom::exec {

namespace {

bool OnlyFullBarriers(const std::vector<llvm::Function*>& functions, const SpmdModule& spmd, bool& any) {
  bool simple = true;
  for (llvm::Function* function : functions) {
    for (llvm::Instruction& instruction : llvm::instructions(*function)) {
      const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      const MarkerInfo* info = call && call->getCalledFunction() ? spmd.Find(call->getCalledFunction()) : nullptr;
      if (!info || info->kind != MarkerKind::kBarrier) continue;
      any = true;
      const auto zero = [&](unsigned arg) {
        const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(call->getArgOperand(arg));
        return constant && constant->isZero();
      };
      simple &= info->imm == static_cast<std::uint64_t>(BarrierOp::kSync) && zero(0) && zero(1);
    }
  }
  return simple;
}

/// True when a marker satisfies `matches`.
template <typename Matches>
bool UsesMarker(const std::vector<llvm::Function*>& functions, const SpmdModule& spmd, Matches matches) {
  for (llvm::Function* function : functions) {
    for (llvm::Instruction& instruction : llvm::instructions(*function)) {
      const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      const MarkerInfo* info = call && call->getCalledFunction() ? spmd.Find(call->getCalledFunction()) : nullptr;
      if (info && matches(*info)) return true;
    }
  }
  return false;
}

bool IsBarrier(const MarkerInfo& info) { return info.kind == MarkerKind::kBarrier; }

/// Whether a loop over the warps of a CTA is worth it: what it saves is a warp's start, some 3 to 5 ns. Memcheck wants
/// to know each warp, and the CTAs of a cluster are not one CTA.
bool GainsByCta(const llvm::Function& kernel, const CompileOptions& options) {
  constexpr unsigned kMostInstructions = 500;  // of one thread
  return !options.memcheck && !options.clusters && kernel.getInstructionCount() <= kMostInstructions;
}

/// Whether the warps of a CTA can take turns at barriers within one call: no function but the kernel has some. What is
/// large is left alone, as its values that live across barriers would be kept and taken once more.
bool MayTakeTurns(SpmdModule& spmd, const llvm::Function& kernel, const CompileOptions& options) {
  constexpr unsigned kMostInstructions = 2000;  // of one thread
  return !options.memcheck && !options.clusters && options.record == Recording::kNone &&
         kernel.getInstructionCount() <= kMostInstructions && !HasBarriers(DeviceFunctions(spmd, &kernel), spmd);
}

/// Whether a call goes on with the next CTAs of a row: the kernel is alone, so that nothing else reads the number of
/// its CTA, and does not ask where it runs.
bool RunsInRows(const std::vector<llvm::Function*>& functions, const SpmdModule& spmd, const CompileOptions& options) {
  const auto asks = [](const MarkerInfo& info) {
    return info.kind == MarkerKind::kSpecial && info.special == Special::kSmId;
  };
  return functions.size() == 1 && options.record == Recording::kNone && !UsesMarker(functions, spmd, asks);
}

/// The parameters of a CtaEntry.
llvm::SmallVector<llvm::Type*, 8> CtaEntryTypes(llvm::LLVMContext& context) {
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  llvm::Type* word = llvm::Type::getInt64Ty(context);
  return {pointer, pointer, word, word};
}

llvm::Function* DeclareWarpForm(llvm::Function& source, bool is_kernel, bool by_cta) {
  llvm::LLVMContext& context = source.getContext();
  llvm::SmallVector<llvm::Type*, 8> types{llvm::PointerType::get(context, 0)};
  if (is_kernel && by_cta) types = CtaEntryTypes(context);
  if (!is_kernel) types.push_back(llvm::Type::getInt32Ty(context));
  for (const llvm::Argument& argument : source.args()) types.push_back(WarpType(argument.getType()));
  auto* type = llvm::FunctionType::get(WarpType(source.getReturnType()), types, false);
  auto* target =
      llvm::Function::Create(type, is_kernel ? llvm::Function::ExternalLinkage : llvm::Function::InternalLinkage,
                             is_kernel ? "gl_kernel" : source.getName() + ".warp", source.getParent());
  target->setDoesNotThrow();
  target->setSubprogram(source.getSubprogram());
  return target;
}

}  // namespace

std::vector<llvm::Function*> DeviceFunctions(SpmdModule& spmd, const llvm::Function* kernel) {
  std::vector<llvm::Function*> functions;
  for (llvm::Function& function : spmd.ir()) {
    if (&function != kernel && !function.isDeclaration() && !spmd.Find(&function)) functions.push_back(&function);
  }
  return functions;
}

bool HasBarriers(const std::vector<llvm::Function*>& functions, const SpmdModule& spmd) {
  return UsesMarker(functions, spmd, IsBarrier);
}

bool WaitsForChildren(const std::vector<llvm::Function*>& functions, const SpmdModule& spmd) {
  return UsesMarker(functions, spmd, [](const MarkerInfo& info) {
    return info.kind == MarkerKind::kHelper && info.helper == Helper::kDeviceRuntime &&
           (info.imm & 0xff) == static_cast<std::uint64_t>(DeviceCall::kDeviceSynchronize);
  });
}

Status Vectorize(SpmdModule& spmd, llvm::Function* kernel, const AddressTaken& address_taken,
                 const CompileOptions& options, KernelFacts& facts, bool may_take_turns) {
  const ThreadEnds thread_ends(spmd, address_taken);
  WarpModule module(spmd, options, address_taken, thread_ends);
  module.static_shared_bytes = facts.static_shared_bytes;
  const llvm::StringRef features = kernel->getFnAttribute("target-features").getValueAsString();
  module.avx512 = features.contains("+avx512f");
  module.few_lanes = options.record == Recording::kNone ? options.few_lanes : 8;  // records are of whole warps
  module.pieces = module.avx512 ? 1 : features.contains("+avx2") ? 2 : 4;
  std::vector<llvm::Function*> sources = DeviceFunctions(spmd, kernel);
  sources.push_back(kernel);
  bool any_barrier = false;
  module.simple_barriers = OnlyFullBarriers(sources, spmd, any_barrier);

  std::vector<std::unique_ptr<WarpFunction>> functions;
  bool yields = false;
  for (llvm::Function* source : sources) {
    if (any_barrier) module.gives_way |= PlaceGiveWays(spmd, *source, options);
    PlaceMeetings(spmd, *source, options);
    if (options.memcheck) PlaceReadGroups(spmd, *source, options);
    functions.push_back(std::make_unique<WarpFunction>(module, *source, source == kernel));
    yields |= functions.back()->needs_yield();
  }
  if (options.memcheck) module.simple_barriers = false;  // the runtime must see every barrier
  const auto sleeps = [](const MarkerInfo& info) {
    return info.kind == MarkerKind::kHelper && info.helper == Helper::kNanosleep;
  };
  yields |= WaitsForChildren(sources, spmd);
  if (yields || !kInlineRingSwitch || UsesMarker(sources, spmd, sleeps)) module.simple_barriers = false;
  facts.needs_fiber = any_barrier || yields;
  module.turns = may_take_turns && any_barrier && module.simple_barriers && !module.gives_way &&
                 MayTakeTurns(spmd, *kernel, options);
  if (module.turns) facts.needs_fiber = false;
  facts.simple_barriers = any_barrier && module.simple_barriers && !module.turns;
  facts.gives_way = module.gives_way;
  facts.turns = module.turns;
  facts.by_cta = module.by_cta = module.turns || (!facts.needs_fiber && GainsByCta(*kernel, options));
  facts.by_row = module.by_row = module.by_cta && RunsInRows(sources, spmd, options);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    llvm::Function* target = DeclareWarpForm(*sources[i], sources[i] == kernel, module.by_cta);
    target->setAttributes(target->getAttributes().addFnAttributes(
        spmd.ir().getContext(), llvm::AttrBuilder(spmd.ir().getContext(), kernel->getAttributes().getFnAttrs())));
    if (sources[i] != kernel) module.warp_of[sources[i]] = target;
    functions[i]->SetTarget(*target);
  }
  for (auto& function : functions) {
    function->Emit();
    if (!module.error.empty()) {
      return Error{module.error};
    }
  }
  facts.check_sites = module.check_sites;
  functions.clear();
  for (llvm::Function* source : sources) source->setSubprogram(nullptr);  // the warp form has it now
  for (llvm::Function* source : sources) source->deleteBody();
  for (llvm::Function* source : sources) source->eraseFromParent();
  return {};
}

}  // namespace gridloom::exec
