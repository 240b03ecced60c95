#include "rewriter/passes/slice.h"

#include <algorithm>
#include <array>

#include "rewriter/passes/cta_index.h"
#include "rewriter/ptx/special.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::passes {
namespace {

using analysis::NodeId;
using ptx::Instruction;
using ptx::Opcode;
using ptx::Operand;

bool IsDeviceRuntime(std::string_view name) {
  return name.starts_with("cuda") || name.starts_with("__cuda") || name.starts_with("cnp");
}

std::optional<std::string> WhyNotSpecial(const Operand& operand) {
  if (operand.kind != ptx::OperandKind::kSpecial) return std::nullopt;
  const auto ref = ptx::SpecialFromText(operand.text);
  if (!ref) return std::nullopt;
  switch (ref->special) {
    case ptx::Special::kEnvreg:
      // The driver passes the workspace of a grid-wide barrier in %envreg1 and 2 (cooperative groups' grid.sync).
      if (ref->index != 1 && ref->index != 2) return std::nullopt;
      return "it synchronises the whole grid (" + std::string(operand.text) + ")";
    case ptx::Special::kClusterid:
    case ptx::Special::kNclusterid:
      return "it reads its cluster's place in the grid (" + std::string(operand.text) + ")";
    default: return std::nullopt;
  }
}

std::optional<std::string> WhyNotSliced(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kUnknown: return "instruction " + instruction.FullName() + " is not known";
    case Opcode::kGriddepcontrol: return "the end of the grid controls the start of another (griddepcontrol)";
    case Opcode::kClusterlaunchcontrol: return "it cancels CTAs of its grid (clusterlaunchcontrol)";
    default: break;
  }
  std::optional<std::string> reason;
  for (const Operand& operand : instruction.operands) {
    ptx::VisitOperand(const_cast<Operand&>(operand), [&](const Operand& one) {
      if (!reason) reason = WhyNotSpecial(one);
    });
  }
  return reason;
}

std::optional<SliceRefusal> WhyNotFunction(const ptx::Function& function) {
  if (function.body == nullptr) {
    if (KnowsNoGrid(function.name)) return std::nullopt;
    if (IsDeviceRuntime(function.name))
      return SliceRefusal{"it launches grids or orders their work (" + std::string(function.name) + ")", {}};
    return SliceRefusal{"it calls " + std::string(function.name) + ", which is not in the module", {}};
  }
  std::optional<SliceRefusal> refusal;
  ptx::VisitStatements(*function.body, [&](ptx::Statement& statement) {
    const auto* instruction = std::get_if<Instruction>(&statement);
    if (instruction == nullptr || refusal) return;
    if (auto reason = WhyNotSliced(*instruction)) refusal = SliceRefusal{std::move(*reason), instruction->loc};
  });
  return refusal;
}

/// The first call of that function in the kernel or what it calls: the place that a message about a system function
/// names.
SourceLoc CallOf(const analysis::CallGraph& calls, const std::vector<NodeId>& reachable, NodeId callee) {
  for (const NodeId node : reachable) {
    for (const analysis::CallSite& call : calls.calls(node)) {
      if (std::ranges::find(call.callees, callee) != call.callees.end()) return call.instruction->loc;
    }
  }
  return {};
}

constexpr std::uint32_t kRoomForHidden = 64;  // of all roles together, and padding

}  // namespace

bool KnowsNoGrid(std::string_view name) {
  static constexpr std::array kNames = {"vprintf",
                                        "malloc",
                                        "free",
                                        "__assertfail",
                                        "__nanosleep",
                                        "cudaMalloc",
                                        "cudaFree",
                                        "cudaGetDevice",
                                        "cudaGetDeviceCount",
                                        "cudaDeviceGetAttribute",
                                        "cudaDeviceGetLimit",
                                        "cudaDeviceGetCacheConfig",
                                        "cudaDeviceGetSharedMemConfig",
                                        "cudaFuncGetAttributes",
                                        "cudaGetErrorString",
                                        "cudaGetErrorName",
                                        "cudaRuntimeGetVersion",
                                        "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
                                        "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
                                        "gridloom_release_range",
                                        "gridloom_release_strided",
                                        "gridloom_set_range",
                                        "gridloom_set_strided"};
  return std::ranges::find(kNames, name) != kNames.end();
}

std::optional<SliceRefusal> WhyTogether(const analysis::CallGraph& calls, const CtaWaits& waits,
                                        const ptx::Function& kernel) {
  for (const std::string_view directive : {"reqnctapercluster", "explicitcluster"}) {
    if (kernel.FindDirective(directive) != nullptr)
      return SliceRefusal{"it is launched in clusters (." + std::string(directive) + ")", kernel.loc};
  }
  const NodeId node = calls.NodeOf(kernel);
  if (calls.IsAddressTaken(node)) return SliceRefusal{"device code launches it", kernel.loc};
  const std::vector<NodeId> reachable = calls.Reachable(node);
  for (const NodeId one : reachable) {
    std::optional<SliceRefusal> refusal = WhyNotFunction(calls.function(one));
    if (!refusal) continue;
    if (refusal->loc.line == 0) refusal->loc = CallOf(calls, reachable, one);
    return refusal;
  }
  if (const auto& wait = waits.of(node)) {
    const bool own = wait->function->name == kernel.name;
    return SliceRefusal{wait->reason + (own ? "" : " in function " + std::string(wait->function->name)), wait->loc};
  }
  return std::nullopt;
}

std::optional<SliceRefusal> WhyNotSliceable(const ptx::Module& module, const analysis::CallGraph& calls,
                                            const CtaWaits& waits, const ptx::Function& kernel) {
  for (const ptx::Variable& param : kernel.params) {
    if (HiddenRoleOf(kernel, param) == HiddenRole::kFirstCtaX || HiddenRoleOf(kernel, param) == HiddenRole::kGridX)
      return SliceRefusal{"it is sliced already", kernel.loc};
  }
  if (ptx::LayoutParams(kernel).bytes + kRoomForHidden > MaxParamBytes(module))
    return SliceRefusal{"its parameters leave no room for more", kernel.loc};
  return WhyTogether(calls, waits, kernel);
}

namespace {

/// One run over one module.
class Slicer {
 public:
  explicit Slicer(ptx::Module& module)
      : module_(module), calls_(module), needs_(module, calls_), waits_(module, calls_) {}

  Result<PassReport> Run() {
    PassReport report = StartReport(module_);
    for (KernelReport& kernel : report.kernels) {
      if (const Status status = PrepareKernel(kernel); !status.ok()) return status.error();
    }
    for (ptx::Function& function : module_.functions) AppendToFunction(function);
    for (ptx::Function& function : module_.functions) RewriteFunction(function, report);
    return report;
  }

 private:
  Status PrepareKernel(KernelReport& report);
  void AppendToFunction(ptx::Function& function);
  void RewriteFunction(ptx::Function& function, const PassReport& report);

  ptx::Module& module_;
  const analysis::CallGraph calls_;
  const CtaValueNeeds needs_;
  const CtaWaits waits_;
};

/// Decides about a kernel and appends its hidden parameters, to prototypes of it, too.
Status Slicer::PrepareKernel(KernelReport& report) {
  const ptx::Function& kernel = *module_.FindFunction(report.kernel);
  if (auto refusal = WhyNotSliceable(module_, calls_, waits_, kernel)) {
    report.status = KernelStatus::kRefused;
    report.reason = std::move(refusal->reason);
    report.loc = refusal->loc;
    return {};
  }
  const auto roles = RolesFor(needs_.of(calls_.NodeOf(kernel)));
  if (roles.empty()) return {};
  report.status = KernelStatus::kChanged;
  for (ptx::Function& function : module_.functions) {
    if (function.name != kernel.name) continue;
    report.hidden.clear();
    for (const HiddenRole role : roles) {
      const auto param = AppendHidden(module_, function, role, report);
      if (!param.ok()) return param.error();
    }
  }
  return {};
}

void Slicer::AppendToFunction(ptx::Function& function) {
  const NodeId node = calls_.NodeOf(function);
  if (!function.is_entry && node != analysis::kNoNode)
    AppendValueParams(module_, function.params, needs_.of(node), calls_.function(node).name);
  if (function.body == nullptr || needs_.of_pointers().none()) return;
  ptx::VisitStatements(*function.body, [&](ptx::Statement& statement) {
    auto* directive = std::get_if<std::unique_ptr<ptx::LabelDirective>>(&statement);
    if (directive == nullptr || (*directive)->kind != ptx::LabelDirective::Kind::kCallPrototype) return;
    AppendValueParams(module_, (*directive)->params, needs_.of_pointers(), {});
  });
}

void Slicer::RewriteFunction(ptx::Function& function, const PassReport& report) {
  if (function.body == nullptr) return;
  const NodeId node = calls_.NodeOf(function);
  if (needs_.of(node).none()) return;
  ValueSource source = ValueSource::kParameter;
  if (function.is_entry) {
    const auto it = std::ranges::find(report.kernels, function.name, &KernelReport::kernel);
    source = it->status == KernelStatus::kRefused ? ValueSource::kSpecial : ValueSource::kSlice;
  }
  RewriteIndexReads(module_, function, source, calls_, needs_);
}

}  // namespace

Result<PassReport> SlicePass::Run(ptx::Module& module) const { return Slicer(module).Run(); }

}  // namespace gridloom::passes
