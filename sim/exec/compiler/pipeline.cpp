#include "sim/exec/compiler/pipeline.h"

#include <llvm/ADT/SCCIterator.h>
#include <llvm/Analysis/CallGraph.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/DataExtractor.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/SubtargetFeature.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <mutex>

#include "sim/exec/compiler/fetch_ahead.h"
#include "sim/exec/compiler/invalid_values.h"
#include "sim/exec/compiler/lift.h"
#include "sim/exec/compiler/meetings.h"
#include "sim/exec/compiler/promote_registers.h"
#include "sim/exec/compiler/record_loops.h"
#include "sim/exec/compiler/region_budget.h"
#include "sim/exec/compiler/split_loops.h"
#include "sim/exec/compiler/sync_checks.h"
#include "sim/exec/compiler/thread_ends.h"
#include "sim/exec/compiler/turns.h"

namespace gridloom::exec {
namespace {

/// Instructions of a warp form above which compile time counts for more than the last bit of speed: first the register
/// allocator looks less far, then passes and scheduler that take more than linear time are left out.
constexpr std::size_t kMediumModule = 5000;
constexpr std::size_t kLargeModule = 20000;
/// Above this the register allocator's live-range splitting takes minutes: such kernels get the allocator of
/// unoptimised code.
constexpr std::size_t kHugeModule = 80000;

/// Keeps out of code generation what costs more than it brings: the pass that moves scalar integer work into mask
/// registers walks the whole function once per candidate (84 % of the time in kernels of hundreds of blocks) and finds
/// nothing to gain.
class CodeGenGate : public llvm::OptPassGate {
 public:
  bool shouldRunPass(const llvm::StringRef pass, llvm::StringRef) override {
    return pass != "X86 Domain Reassignment Pass";
  }
  bool isEnabled() const override { return true; }
};

/// Machine vectors a 32-lane operation becomes, relative to AVX-512: narrower processors have that much more code to
/// compile.
std::size_t PiecesPerOperation(const llvm::TargetMachine& machine) {
  const llvm::MCSubtargetInfo* info = machine.getMCSubtargetInfo();
  if (info->checkFeatures("+avx512f")) return 1;
  return info->checkFeatures("+avx2") ? 2 : 4;
}

/// Instructions of a warp form, as if for AVX-512.
std::size_t SizeOf(const llvm::Module& module, const llvm::TargetMachine& machine) {
  std::size_t instructions = 0;
  for (const llvm::Function& function : module) instructions += function.getInstructionCount();
  return instructions * PiecesPerOperation(machine);
}

/// Runs a textual pass pipeline over the module.
void RunPasses(llvm::Module& module, llvm::TargetMachine& machine, const char* pipeline) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(passes, pipeline)) {
    llvm::report_fatal_error(std::move(error));  // our own constant text
  }
  passes.run(module, modules);
}

bool IsSelfRecursive(const llvm::Function& function) {
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    if (call && call->getCalledFunction() == &function) return true;
  }
  return false;
}

/// Whether it becomes part of its callers as far as it alone says: it is called from one place, or small. Not what
/// passes have added, which is called rarely: code generation takes more than twice as long for twice the code.
bool MayInline(const llvm::Function& function) {
  constexpr unsigned kSmall = 200;
  if (!function.hasInternalLinkage() || IsSelfRecursive(function)) return false;
  return function.hasOneUse() || (function.getInstructionCount() <= kSmall && !function.hasFnAttribute(kOfPass));
}

/// Device functions become part of their callers: a call costs a spill of all lanes. Callees first, as what is part of
/// them comes along; small functions that call each other twice would become 2^depth copies.
void MarkForInlining(SpmdModule& spmd) {
  constexpr std::uint64_t kMostAdded = 250'000;  // instructions, by functions that are called from several places
  llvm::CallGraph calls(spmd.ir());
  llvm::DenseMap<const llvm::Function*, std::uint64_t> sizes;  // with all that becomes part of them
  std::uint64_t added = 0;
  for (auto component = llvm::scc_begin(&calls); !component.isAtEnd(); ++component) {
    for (const llvm::CallGraphNode* node : *component) {
      llvm::Function* const function = node->getFunction();
      if (!function || function->isDeclaration()) continue;
      std::uint64_t size = function->getInstructionCount();
      for (const auto& [site, callee] : *node) {
        const llvm::Function* const called = callee->getFunction();
        if (called && called->hasFnAttribute(llvm::Attribute::AlwaysInline)) size += sizes.lookup(called);
      }
      sizes[function] = size;
      if (!MayInline(*function)) continue;
      if (!function->hasOneUse()) {
        const std::uint64_t more = size * function->getNumUses();
        if (more > kMostAdded - added) continue;
        added += more;
      }
      function->removeFnAttr(llvm::Attribute::NoInline);
      function->addFnAttr(llvm::Attribute::AlwaysInline);
    }
  }
}

/// A barrier is the last instruction before its block's branch: the vectoriser parks lanes between blocks. So is a call
/// from which not all threads may come back.
void SplitAtBarriers(SpmdModule& spmd, const AddressTaken& address_taken) {
  const ThreadEnds ends(spmd, address_taken);
  std::vector<llvm::Instruction*> after;
  for (llvm::Function& function : spmd.ir()) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      const MarkerInfo* info = call && call->getCalledFunction() ? spmd.Find(call->getCalledFunction()) : nullptr;
      const bool barrier = info && info->kind == MarkerKind::kBarrier;
      if (barrier || (call && ends.MayEndIn(*call))) after.push_back(instruction.getNextNode());
    }
  }
  // What is split off is moved: from the back, each instruction is moved once.
  for (llvm::Instruction* instruction : llvm::reverse(after)) {
    if (instruction->isTerminator() && instruction->getNumSuccessors() == 1 &&
        instruction->getSuccessor(0)->getSinglePredecessor()) {
      continue;
    }
    llvm::SplitBlock(instruction->getParent(), instruction);
  }
}

/// exit in a kernel (also from an inlined function) is a return. In a function it stays, and a return follows: the
/// caller looks who is left (ThreadEnds).
void LowerExits(SpmdModule& spmd) {
  for (llvm::Function& function : spmd.ir()) {
    if (function.isDeclaration()) continue;
    std::vector<llvm::Instruction*> exits;
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      const MarkerInfo* info = call && call->getCalledFunction() ? spmd.Find(call->getCalledFunction()) : nullptr;
      if (info && info->kind == MarkerKind::kExit) exits.push_back(&instruction);
    }
    for (llvm::Instruction* exit : llvm::reverse(exits)) {  // as in SplitAtBarriers
      llvm::BasicBlock* block = exit->getParent();
      llvm::SplitBlock(block, function.hasInternalLinkage() ? exit->getNextNode() : exit);
      block->getTerminator()->eraseFromParent();
      llvm::Type* type = function.getReturnType();
      llvm::ReturnInst::Create(function.getContext(), type->isVoidTy() ? nullptr : llvm::Constant::getNullValue(type),
                               block);
    }
  }
}

/// Every latch branches unconditionally to its header: lanes that go on meet there (block_order.h).
void DedicateLatches(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
      llvm::BasicBlock* latch = loop->getLoopLatch();
      if (latch && latch->getTerminator()->getNumSuccessors() > 1)
        llvm::SplitEdge(latch, loop->getHeader(), &dominators, &loops);
    }
  }
}

}  // namespace

std::unique_ptr<llvm::TargetMachine> MakeTargetMachine(const std::string& cpu, std::string& error) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
  const std::string triple = llvm::sys::getProcessTriple();
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) return nullptr;
  llvm::SubtargetFeatures features;
  std::string name = cpu;
  if (cpu.empty()) {
    name = llvm::sys::getHostCPUName().str();
    for (const auto& feature : llvm::sys::getHostCPUFeatures())
      features.AddFeature(feature.getKey(), feature.getValue());
  }
  llvm::TargetOptions options;
  options.NoTrappingFPMath = true;
  options.EmitStackSizeSection = true;  // FrameBytes
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(triple, name, features.getString(), options,
                                                                          llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                                          llvm::CodeGenOptLevel::Default));
}

void SetFunctionTarget(llvm::Function& function, const llvm::TargetMachine& machine) {
  function.addFnAttr("target-cpu", machine.getTargetCPU());
  std::string features = machine.getTargetFeatureString().str();
  const llvm::MCSubtargetInfo* info = machine.getMCSubtargetInfo();
  const bool avx512 = info->checkFeatures("+avx512f") && info->checkFeatures("+avx512bw") &&
                      info->checkFeatures("+avx512vl") && info->checkFeatures("+avx512dq");
  const auto name = [&](const char* feature) {  // the vectoriser looks for it
    if (!llvm::StringRef(features).contains(feature)) features += (features.empty() ? "" : ",") + std::string(feature);
  };
  if (avx512) name("+avx512f");
  if (info->checkFeatures("+avx2")) name("+avx2");
  // Without it LLVM makes gathers of AVX2 from branches and loads, lane by lane, on all processors but some of Intel's:
  // on Zen 3 SpMV took seven times as long so.
  if (info->checkFeatures("+avx2") && !avx512) name("+fast-gather");
  function.addFnAttr("target-features", features);
  // Both, or LLVM splits everything into 256-bit pieces.
  function.addFnAttr("prefer-vector-width", avx512 ? "512" : "256");
  function.addFnAttr("min-legal-vector-width", avx512 ? "512" : "256");
  function.addFnAttr("no-trapping-math", "true");
  // A frame wider than half a stack guard is touched step by step, so that it cannot reach past the guard
  // (stack_area.cpp).
  function.addFnAttr("probe-stack", "inline-asm");
  function.addFnAttr("stack-probe-size", "32768");
  function.addFnAttr(llvm::Attribute::NoRedZone);  // the ring switch pushes onto the stack
  function.addFnAttr(llvm::Attribute::NullPointerIsValid);
}

void SetTarget(llvm::Module& module, const llvm::TargetMachine& machine) {
  module.setDataLayout(machine.createDataLayout());
  module.setTargetTriple(machine.getTargetTriple().str());
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) SetFunctionTarget(function, machine);
  }
}

void OptimizeSpmd(SpmdModule& spmd, const AddressTaken& address_taken, const CompileOptions& options,
                  llvm::TargetMachine& machine) {
  // Functions reached only through pointers have no use the optimiser could see.
  for (const auto& [index, function] : address_taken) function->setLinkage(llvm::GlobalValue::ExternalLinkage);
  MarkForInlining(spmd);
  RunPasses(spmd.ir(), machine, "always-inline,globaldce");
  PromoteRegistersOfLongBlocks(spmd.ir());
  RunPasses(spmd.ir(), machine,
            "function(sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,reassociate,early-cse,"
            "loop-mssa(licm),gvn<no-pre;no-load-pre>,sccp,correlated-propagation,adce,simplifycfg,"
            "instcombine<no-verify-fixpoint>,early-cse,simplifycfg)");
  for (const auto& [index, function] : address_taken) function->setLinkage(llvm::GlobalValue::InternalLinkage);
  if (options.memcheck) {
    FollowInvalidValues(spmd);
    RunPasses(spmd.ir(), machine, "function(instsimplify,early-cse,adce)");
  }
  LowerExits(spmd);
  RunPasses(spmd.ir(), machine, "function(lower-switch,fix-irreducible)");
  SplitAtBarriers(spmd, address_taken);
  RunPasses(spmd.ir(), machine, "function(loop-simplify,lcssa)");
  DedicateLatches(spmd.ir());
  if (options.memcheck) PlaceSyncChecks(spmd);
  LowerSyncs(spmd);
  if (options.record == Recording::kAll) PlaceRecordLoops(spmd);
  if (options.fetch_ahead && !options.memcheck) PlaceFetchAhead(spmd);
}

namespace {

/// The most warps of a CTA of that shape.
unsigned WarpsOf(const std::uint32_t (&block)[3]) {
  constexpr unsigned kMost = 32;
  const std::uint64_t threads = std::uint64_t{block[0]} * block[1] * block[2];
  return threads == 0 ? kMost : static_cast<unsigned>((threads + kWarpSize - 1) / kWarpSize);
}

bool IsInARow(const std::uint32_t (&block)[3]) { return block[1] == 1 && block[2] == 1; }

}  // namespace

bool OptimizeWarp(llvm::Module& module, const CompileOptions& options, bool turns, llvm::TargetMachine& machine) {
  const std::size_t instructions = SizeOf(module, machine);
  // Code with checks spends its time in them: it is optimised as what is one size larger.
  const std::size_t large = options.memcheck ? kMediumModule : kLargeModule;
  const std::size_t huge = options.memcheck ? kLargeModule : kHugeModule;
  if (instructions > large) {
    machine.setOptLevel(instructions > huge ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Less);
    RunPasses(module, machine, "function(sroa,early-cse,simplifycfg,adce)");
    return !turns || TakeTurns(module, WarpsOf(options.block), IsInARow(options.block));
  }
  RunPasses(module, machine,
            "function(sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,early-cse,loop-mssa(licm),"
            "gvn<no-pre;no-load-pre>,adce,simplifycfg)");
  if (turns) {
    if (!TakeTurns(module, WarpsOf(options.block), IsInARow(options.block))) return false;
    RunPasses(module, machine, "function(early-cse,simplifycfg,loop-mssa(licm),early-cse,adce,simplifycfg)");
  }
  constexpr unsigned kWideBits = 512;  // processors with such vectors have 32 of them
  if (const std::size_t pieces = PiecesPerOperation(machine); pieces > 1)
    SplitWideLoops(module, kWideBits / static_cast<unsigned>(pieces));
  return true;
}

std::vector<std::uint8_t> EmitObject(llvm::Module& module, llvm::TargetMachine& machine, std::string& error) {
  const WithRegionBudget budget(SizeOf(module, machine) > kMediumModule ? RegionBudget::kSmall : RegionBudget::kUsual);
  static CodeGenGate gate;
  module.getContext().setOptPassGate(gate);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    error = "the target cannot emit object files";
    return {};
  }
  passes.run(module);
  return {bytes.begin(), bytes.end()};
}

std::uint32_t FrameBytes(const std::vector<std::uint8_t>& object) {
  const llvm::StringRef bytes(reinterpret_cast<const char*>(object.data()), object.size());
  auto file = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "kernel"));
  if (!file) {
    llvm::consumeError(file.takeError());
    return 0;
  }
  std::uint64_t total = 0;
  for (const llvm::object::SectionRef& section : (*file)->sections()) {
    const auto name = llvm::expectedToOptional(section.getName());
    const auto contents = llvm::expectedToOptional(section.getContents());
    if (!name || !contents || *name != ".stack_sizes") continue;
    llvm::DataExtractor data(*contents, true, 8);
    // Entries: the function's address, then its frame in ULEB128.
    for (llvm::DataExtractor::Cursor at(0); at && !data.eof(at);) {
      data.skip(at, 8);
      total += data.getULEB128(at);
      if (!at) llvm::consumeError(at.takeError());
    }
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(total, UINT32_MAX));
}

}  // namespace gridloom::exec
