#include "rewriter/passes/registry.h"

#include <algorithm>

#include "rewriter/passes/aggregate.h"
#include "rewriter/passes/consolidate.h"
#include "rewriter/passes/profile.h"
#include "rewriter/passes/release.h"
#include "rewriter/passes/slice.h"
#include "rewriter/passes/task.h"

namespace gridloom::passes {

std::span<const std::unique_ptr<const Pass>> AllPasses() {
  static const std::unique_ptr<const Pass> passes[] = {
      std::make_unique<AggregatePass>(),
      std::make_unique<ConsolidatePass>(),
      std::make_unique<ConsolidatePass>(ConsolidateOptions{.scope = ConsolidateScope::kBlock}),
      std::make_unique<ConsolidatePass>(ConsolidateOptions{.scope = ConsolidateScope::kGrid}),
      std::make_unique<ProfilePass>(RangeForm::kInterval),
      std::make_unique<ProfilePass>(RangeForm::kStrided),
      std::make_unique<ReleasePass>(RangeForm::kInterval),
      std::make_unique<ReleasePass>(RangeForm::kStrided),
      std::make_unique<SlicePass>(),
      std::make_unique<TaskPass>(),
  };
  return passes;
}

const Pass* FindPass(std::string_view name) {
  const auto passes = AllPasses();
  const auto it = std::ranges::find_if(passes, [name](const auto& pass) { return pass->name() == name; });
  return it == passes.end() ? nullptr : it->get();
}

}  // namespace gridloom::passes
