#include "rewriter/passes/pipeline.h"

#include <algorithm>

#include "rewriter/passes/registry.h"
#include "rewriter/ptx/clone.h"

namespace gridloom::passes {
namespace {

std::string KnownPasses() {
  std::string names;
  for (const auto& pass : AllPasses()) (names += names.empty() ? "" : ", ") += pass->name();
  return names.empty() ? "there is none" : "there is " + names;
}

KernelOutcome& OutcomeOf(Rewritten& rewritten, const std::string& kernel) {
  const auto it = std::ranges::find(rewritten.kernels, kernel, &KernelOutcome::kernel);
  return it != rewritten.kernels.end() ? *it
                                       : rewritten.kernels.emplace_back(KernelOutcome{
                                             .kernel = kernel, .refused_by = {}, .reason = {}, .loc = {}});
}

void Merge(const Pass& pass, const PassReport& report, Rewritten& rewritten) {
  for (const KernelReport& kernel : report.kernels) {
    KernelOutcome& outcome = OutcomeOf(rewritten, kernel.kernel);
    outcome.hidden.insert(outcome.hidden.end(), kernel.hidden.begin(), kernel.hidden.end());
    outcome.places.insert(outcome.places.end(), kernel.places.begin(), kernel.places.end());
    if (outcome.status == KernelStatus::kRefused || kernel.status == KernelStatus::kUnchanged) continue;
    outcome.status = kernel.status;
    if (kernel.status != KernelStatus::kRefused) continue;
    outcome.refused_by = pass.name();
    outcome.reason = kernel.reason;
    outcome.loc = kernel.loc;
  }
  rewritten.added.insert(rewritten.added.end(), report.added.begin(), report.added.end());
}

/// A pass that answers another one follows it, with none that changes kernels in between.
Status CheckOrder(const std::vector<const Pass*>& passes) {
  for (auto pass = passes.begin(); pass != passes.end(); ++pass) {
    const auto answered =
        std::ranges::find(passes, (*pass)->answers(), [](const Pass* other) { return other->name(); });
    if (answered == passes.end()) continue;
    const std::string order =
        "'" + std::string((*pass)->name()) + "' has to follow '" + std::string((*answered)->name()) + "'";
    if (answered > pass) return Error{order};
    const auto between = std::find_if(answered + 1, pass, [](const Pass* other) { return other->changes_kernels(); });
    if (between != pass)
      return Error{order + " at once: both have to see the kernels that '" + std::string((*between)->name()) +
                   "' changes"};
  }
  return {};
}

}  // namespace

Result<Pipeline> Pipeline::Parse(std::string_view text) {
  std::vector<const Pass*> passes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view name = text.substr(begin, end - begin);
    const Pass* const pass = FindPass(name);
    if (pass == nullptr) return Error{"no pass is named '" + std::string(name) + "'; " + KnownPasses()};
    if (std::ranges::find(passes, pass) != passes.end())
      return Error{"pass '" + std::string(name) + "' stands twice in '" + std::string(text) + "'"};
    passes.push_back(pass);
    begin = end + 1;
  }
  if (const Status status = CheckOrder(passes); !status.ok()) return status.error();
  return Pipeline(std::move(passes));
}

std::string Pipeline::text() const {
  std::string text;
  for (const Pass* pass : passes_) (text += text.empty() ? "" : ",") += pass->name();
  return text;
}

const KernelOutcome* Rewritten::Find(std::string_view kernel) const {
  const auto it = std::ranges::find(kernels, kernel, &KernelOutcome::kernel);
  return it == kernels.end() ? nullptr : &*it;
}

Status RunInPlace(const Pipeline& pipeline, Rewritten& rewritten) {
  for (const Pass* pass : pipeline.passes()) {
    GL_TRY(report, pass->Run(*rewritten.module));
    Merge(*pass, report, rewritten);
    rewritten.pass_names.emplace_back(pass->name());
    rewritten.reports.push_back(std::move(report));
  }
  return {};
}

Result<Rewritten> Run(const Pipeline& pipeline, const ptx::Module& module) {
  Rewritten rewritten;
  rewritten.module = ptx::CloneModule(module);
  GL_TRY_STATUS(RunInPlace(pipeline, rewritten));
  return rewritten;
}

}  // namespace gridloom::passes
