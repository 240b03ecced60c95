// A pipeline: passes that run one after the other, written as one list ("slice,release"), and what came of it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/passes/pass.h"
#include "rewriter/ptx/ir.h"
#include "rewriter/support/result.h"

namespace gridloom::passes {

class Pipeline {
 public:
  /// "slice,release". Empty names, names no pass has and a pass that stands twice are errors that name what there is;
  /// so is one that does not follow at once what it answers (Pass::answers).
  static Result<Pipeline> Parse(std::string_view text);
  /// A pipeline of passes that need not be registered. The caller owns them.
  explicit Pipeline(std::vector<const Pass*> passes) : passes_(std::move(passes)) {}

  const std::vector<const Pass*>& passes() const { return passes_; }
  /// The text that Parse reads. It is part of the key of everything that is made with the pipeline.
  std::string text() const;

 private:
  std::vector<const Pass*> passes_;
};

/// What all passes of a pipeline did to one kernel.
struct KernelOutcome {
  std::string kernel;
  /// kRefused when any pass refused it: it may have been changed by another and must not run in place of the original.
  KernelStatus status = KernelStatus::kUnchanged;
  std::string refused_by, reason;
  SourceLoc loc;
  /// Hidden parameters in the order in which they were appended; the parameters before them are the kernel's own.
  std::vector<HiddenParam> hidden = {};
  std::vector<PlaceReport> places = {};
};

struct Rewritten {
  std::unique_ptr<ptx::Module> module;
  std::vector<std::string> pass_names;
  std::vector<PassReport> reports;  ///< one per pass
  std::vector<KernelOutcome> kernels;
  std::vector<AddedKernel> added;

  const KernelOutcome* Find(std::string_view kernel) const;
};

/// Runs the passes on `rewritten.module` and enters what they did.
Status RunInPlace(const Pipeline& pipeline, Rewritten& rewritten);

/// Runs the passes on a copy of the module, which is complete: nobody outside of it calls its functions.
Result<Rewritten> Run(const Pipeline& pipeline, const ptx::Module& module);

}  // namespace gridloom::passes
