#include "rewriter/passes/consolidate.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "rewriter/analysis/call_graph.h"
#include "rewriter/passes/aggregate.h"
#include "rewriter/passes/aggregate_functions.h"
#include "rewriter/passes/consolidate_functions.h"
#include "rewriter/passes/deferred_launches.h"
#include "rewriter/passes/edit.h"
#include "rewriter/passes/launch_sites.h"
#include "rewriter/passes/lower_exits.h"
#include "rewriter/passes/merged_kernel.h"
#include "rewriter/passes/module_text.h"
#include "rewriter/passes/serial_kernel.h"
#include "rewriter/passes/stream_handles.h"
#include "rewriter/passes/thread_memory.h"

namespace gridloom::passes {
namespace {

using ptx::Function;
using ptx::Instruction;
using ptx::Operand;
using ptx::Statement;

constexpr std::uint32_t kMostThreshold = 65536;

bool MayLaunch(const Function& function) {
  return !IsOfRuntime(function.name) && !function.name.starts_with(kEither) && HasLaunchSites(function);
}

/// Calls that a function makes instead.
struct Plan {
  std::map<const Instruction*, const Function*> buffers;  ///< calls that make buffers, with their kernels
  std::vector<const Instruction*> in_order;               ///< those calls
  std::map<const Instruction*, std::string> launches;
};

/// One run over one module.
class Consolidator {
 public:
  Consolidator(ptx::Module& module, const ConsolidateOptions& options) : module_(module), options_(options) {}

  PassReport Run() {
    FindWhyNot();
    PassReport report = AggregateLaunches(module_, [this](const Function&, const Instruction& launch) {
      const auto why = why_not_.find(&launch);
      return why == why_not_.end() ? "the launch names its kernel itself, and not in a parameter buffer" : why->second;
    });
    for (KernelReport& kernel : report.kernels) AddGroups(kernel);
    for (KernelReport& kernel : report.kernels) AddNotSerial(kernel);
    std::vector<Function*> functions;
    for (Function& function : module_.functions) {
      if (MayLaunch(function)) functions.push_back(&function);
    }
    for (Function* const function : functions) Edit(*function);
    for (const Function* const kernel : kernels_) AddKernel(*kernel, report);
    if (!kernels_.empty() && options_.scope != ConsolidateScope::kWarp) LaunchAtEnds(module_, merged_, options_.scope);
    return report;
  }

 private:
  void FindWhyNot() {
    const analysis::CallGraph calls(module_);
    std::optional<CtaWaits> waits;  // as long to find as all else together
    if (options_.threshold != 0) waits.emplace(module_, calls);
    if (options_.scope != ConsolidateScope::kWarp) FindNotDeferred(calls);
    for (const Function& function : module_.functions) {
      if (!MayLaunch(function)) continue;
      for (const LaunchSite& site : LaunchSitesOf(analysis::Cfg(function))) {
        why_not_[site.launch] = WhyNot(calls, waits, function, site);
        if (site.kind != LaunchKind::kStream) NoteGroup(calls, function, site);
        if (site.child != nullptr) children_[{std::string(function.name), site.launch->loc.line}] = site.child->name;
      }
    }
  }

  /// A launch that is one of a group in the program itself, of which `aggregate` says nothing.
  void NoteGroup(const analysis::CallGraph& calls, const Function& function, const LaunchSite& site) {
    const std::string& why = why_not_.at(site.launch);
    const PlaceReport place{
        .function = std::string(function.name), .loc = site.launch->loc, .changed = why.empty(), .reason = why};
    for (const Function& kernel : module_.functions) {
      if (!kernel.is_entry || kernel.body == nullptr) continue;
      const auto reachable = calls.Reachable(calls.NodeOf(kernel));
      if (std::ranges::find(reachable, calls.NodeOf(function)) != reachable.end())
        groups_[std::string(kernel.name)].push_back(place);
    }
  }

  void AddGroups(KernelReport& kernel) const {
    const auto places = groups_.find(kernel.kernel);
    if (places == groups_.end()) return;
    kernel.places.insert(kernel.places.end(), places->second.begin(), places->second.end());
    const bool changed = std::ranges::any_of(kernel.places, &PlaceReport::changed);
    kernel.status = changed ? KernelStatus::kChanged : KernelStatus::kRefused;
    kernel.reason = changed ? "" : kernel.places.front().reason;
    kernel.loc = changed ? SourceLoc{} : kernel.places.front().loc;
  }

  /// What a kernel reaches whose launches cannot be deferred.
  void FindNotDeferred(const analysis::CallGraph& calls) {
    const std::set<std::string> with_exits = FunctionsWithExits(calls);
    for (const Function& kernel : module_.functions) {
      if (!kernel.is_entry || kernel.body == nullptr) continue;
      const std::string why = WhyNotDeferred(calls, with_exits, kernel);
      if (why.empty()) continue;
      for (const analysis::NodeId node : calls.Reachable(calls.NodeOf(kernel)))
        why_not_deferred_.emplace(std::string(calls.function(node).name), why);
    }
  }

  /// Says of launches that small ones are no work of the launching thread, in places of their own.
  void AddNotSerial(KernelReport& kernel) const {
    std::vector<PlaceReport> more;
    for (const PlaceReport& place : kernel.places) {
      const auto child = children_.find({place.function, place.loc.line});
      const auto why =
          !place.changed || child == children_.end() ? why_not_serial_.end() : why_not_serial_.find(child->second);
      if (why == why_not_serial_.end() || why->second.empty()) continue;
      more.push_back({.function = place.function,
                      .loc = place.loc,
                      .reason = "small launches are launches, too: of kernel " + child->second + ", " + why->second});
    }
    kernel.places.insert(kernel.places.end(), std::make_move_iterator(more.begin()),
                         std::make_move_iterator(more.end()));
  }

  std::string WhyNot(const analysis::CallGraph& calls, const std::optional<CtaWaits>& waits, const Function& function,
                     const LaunchSite& site) {
    if (const auto why = why_not_deferred_.find(function.name); why != why_not_deferred_.end()) return why->second;
    if (!site.why_not.empty()) return site.why_not;
    const auto [it, is_new] = why_not_child_.try_emplace(std::string(site.child->name));
    if (is_new) it->second = WhyNotMerged(calls, *site.child);
    if (is_new && it->second.empty() && options_.threshold != 0)
      why_not_serial_[it->first] = WhyNotSerial(calls, *waits, *site.child);
    return it->second;
  }

  Plan PlanOf(const Function& function) {
    Plan plan;
    const analysis::Cfg cfg(function);
    const std::vector<LaunchSite> sites = LaunchSitesOf(cfg);
    if (why_not_deferred_.contains(function.name)) return plan;
    const auto followed = [this](const LaunchSite& site) {
      return site.why_not.empty() && why_not_child_[std::string(site.child->name)].empty();
    };
    for (const LaunchSite& site : sites) {
      if (site.kind == LaunchKind::kStream || !followed(site)) continue;
      if (plan.buffers.emplace(site.buffer, site.child).second) plan.in_order.push_back(site.buffer);
    }
    for (const LaunchSite& site : sites) {
      if (!site.why_not.empty() || !plan.buffers.contains(site.buffer)) continue;
      const LaunchFunctions names = LaunchFunctionsOf(*site.child);
      plan.launches.emplace(site.launch, site.kind == LaunchKind::kStream ? names.plain : names.launch);
    }
    return plan;
  }

  void Edit(Function& function) {
    const Plan plan = PlanOf(function);
    if (plan.buffers.empty()) return;
    for (const Instruction* const call : plan.in_order) Declare(*call, *plan.buffers.at(call));
    FunctionEditor editor(module_, function);
    EditStatements(*function.body, [&](Statement& statement, Replacement& replacement) {
      auto* const instruction = std::get_if<Instruction>(&statement);
      if (instruction == nullptr) return;
      if (const auto buffer = plan.buffers.find(instruction); buffer != plan.buffers.end())
        UseSlot(editor, *instruction, *buffer->second, replacement);
      if (const auto launch = plan.launches.find(instruction); launch != plan.launches.end()) {
        Call(*instruction, launch->second);
        auto& arguments = const_cast<Operand*>(ArgumentsOf(*instruction))->elements;
        if (arguments.size() == 1) arguments.push_back(IntOperand(kForgotten));
      }
    });
  }

  void Declare(const Instruction& call, const Function& kernel) {
    if (std::ranges::find(kernels_, &kernel) != kernels_.end()) return;
    if (kernels_.empty()) {
      std::string_view prefix = analysis::CalleeOf(call)->name;
      prefix.remove_suffix(std::string_view("GetParameterBufferV2").size());
      AddLaunchFunctions(module_, prefix, options_);
    }
    kernels_.push_back(&kernel);
    AddModuleText(module_, DeclarationsText(kernel, options_.scope));
  }

  void UseSlot(FunctionEditor& editor, Instruction& call, const Function& kernel, Replacement& replacement) {
    const std::string slot = editor.NewVariable(ptx::StateSpace::kLocal, ptx::ScalarType::kB8, "slot");
    ptx::Variable& variable = *editor.Find(slot).variable;
    variable.align = 16;
    variable.dims = {SlotBytes(kernel)};
    const std::string address = editor.NewRegister(ptx::ScalarType::kB64, "slot_at");
    replacement.before = editor.Text(
        "mov.u64 " + address + ", " + slot + "; cvta.local.u64 " + address + ", " + address + ";", call.loc);
    Call(call, std::string(kSlotFunction));
    const Operand* const target = analysis::CallTargetOf(call);
    call.operands[static_cast<std::size_t>(target - call.operands.data()) + 1].elements.push_back(
        RegisterOperand(*editor.Find(address).variable));
  }

  void Call(Instruction& call, const std::string& name) {
    auto* const target = const_cast<Operand*>(analysis::CallTargetOf(call));
    target->function = module_.FindFunction(name);
    target->text = target->function->name;
  }

  void AddKernel(const Function& kernel, PassReport& report) {
    const Function& merged = AddMergedKernel(module_, kernel);
    const bool serial = options_.threshold != 0 && why_not_serial_[std::string(kernel.name)].empty();
    if (serial) AddSerialFunction(module_, kernel);
    AddModuleText(module_,
                  DefinitionsText({&kernel, &merged, module_.sm(), options_.scope, serial ? options_.threshold : 0}));
    merged_.push_back({&kernel, &merged});
    report.added.push_back({.name = std::string(merged.name), .of = std::string(kernel.name), .purpose = "merged"});
  }

  ptx::Module& module_;
  const ConsolidateOptions options_;
  std::map<const Instruction*, std::string> why_not_;                      ///< by launch, before anything is edited
  std::map<std::string, std::vector<PlaceReport>, std::less<>> groups_;    ///< by kernel
  std::map<std::pair<std::string, std::uint32_t>, std::string> children_;  ///< by function and line
  std::map<std::string, std::string, std::less<>> why_not_child_;          ///< by kernel
  std::map<std::string, std::string, std::less<>> why_not_deferred_;       ///< by function
  std::map<std::string, std::string, std::less<>> why_not_serial_;         ///< by kernel
  std::vector<const Function*> kernels_;                                   ///< that are launched
  std::vector<MergedKernel> merged_;                                       ///< the same, when they have been added
};

}  // namespace

Result<ConsolidateOptions> ParseConsolidateOptions(std::string_view text) {
  ConsolidateOptions options;
  const std::size_t colon = text.find(':');
  const std::string_view scope = text.substr(0, colon), threshold = colon == text.npos ? "0" : text.substr(colon + 1);
  const auto [end, error] = std::from_chars(threshold.begin(), threshold.end(), options.threshold);
  const bool number = error == std::errc() && end == threshold.end() && options.threshold <= kMostThreshold;
  static constexpr std::string_view kScopes[] = {"warp", "block", "grid"};
  const auto found = std::ranges::find(kScopes, scope);
  options.scope = static_cast<ConsolidateScope>(found - std::begin(kScopes));
  if (found != std::end(kScopes) && number) return options;
  return Error{"'" + std::string(text) +
               "'; expected warp, block or grid, alone or with :N behind it, a number of threads up to " +
               std::to_string(kMostThreshold)};
}

std::string_view ConsolidatePass::name() const {
  static constexpr std::string_view kNames[] = {"consolidate", "consolidate-block", "consolidate-grid"};
  return kNames[static_cast<std::size_t>(options_.scope)];
}

std::string_view ConsolidatePass::summary() const {
  static constexpr std::string_view kSummaries[] = {
      "launches by the lanes of a warp that nothing waits for become one launch",
      "the same for those of a block, when it ends", "the same for those of a grid, when it ends"};
  return kSummaries[static_cast<std::size_t>(options_.scope)];
}

Result<PassReport> ConsolidatePass::Run(ptx::Module& module) const { return Consolidator(module, options_).Run(); }

}  // namespace gridloom::passes
