#include "interpose/session/aggregating.h"

#include <algorithm>
#include <utility>

#include "interpose/session/log.h"
#include "interpose/session/settings.h"
#include "interpose/session/summary.h"
#include "rewriter/passes/aggregate.h"
#include "rewriter/passes/pipeline.h"
#include "rewriter/ptx/printer.h"

namespace gridloom::session {

void AggregateLaunches(std::unique_ptr<ptx::Module>& module, std::string& text) {
  if (!IsOn(TheSettings().aggregate) || module == nullptr) return;
  static const passes::AggregatePass pass;
  passes::Rewritten rewritten;
  rewritten.module = std::move(module);
  const Status status = passes::RunInPlace(passes::Pipeline({&pass}), rewritten);
  module = std::move(rewritten.module);
  if (!status.ok()) {  // the pass has no errors of its own
    LogFormat(LogLevel::kError, "aggregate: %s", status.error().message.c_str());
    return;
  }
  bool changed = false;
  for (const passes::KernelOutcome& kernel : rewritten.kernels) {
    for (const passes::PlaceReport& place : kernel.places) {
      changed = changed || place.changed;
      Summary::Get().NoteLaunch(place.function, place.loc.line, place.changed, place.reason);
      LogFormat(LogLevel::kInfo, "aggregate: kernel %s, %s, PTX line %u: %s%s%s", kernel.kernel.c_str(), place.function.c_str(),
                place.loc.line, place.changed ? "aggregated" : "not aggregated",
                place.reason.empty() ? ""
                : place.changed      ? ", unless "
                                     : ": ",
                place.reason.c_str());
    }
  }
  // Compiled code is kept under the text. It is another one for a module that was parsed from what this one prints as, whose functions have
  // other numbers.
  if (changed) text = ptx::PrintModule(*module) + "// aggregated in place\n";
}

}  // namespace gridloom::session
