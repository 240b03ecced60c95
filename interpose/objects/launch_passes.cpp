#include "interpose/objects/launch_passes.h"

#include <algorithm>
#include <utility>

#include "interpose/base/log.h"
#include "interpose/base/settings.h"
#include "interpose/base/summary.h"
#include "rewriter/passes/aggregate.h"
#include "rewriter/passes/consolidate.h"
#include "rewriter/passes/pipeline.h"
#include "rewriter/ptx/lazy_bodies.h"
#include "rewriter/ptx/printer.h"

namespace gridloom::session {
namespace {

/// True when the module is another one now. `verb`: what became of launches, "aggregated".
bool RunPass(const passes::Pass& pass, const std::string& verb, std::unique_ptr<ptx::Module>& module,
             Summary& summary) {
  passes::Rewritten rewritten;
  rewritten.module = std::move(module);
  const Status status = passes::RunInPlace(passes::Pipeline({&pass}), rewritten);
  module = std::move(rewritten.module);
  if (!status.ok()) {  // the passes have no errors of their own
    LogFormat(LogLevel::kError, "%s: %s", std::string(pass.name()).c_str(), status.error().message.c_str());
    return false;
  }
  bool changed = !rewritten.added.empty();
  for (const passes::KernelOutcome& kernel : rewritten.kernels) {
    for (const passes::PlaceReport& place : kernel.places) {
      changed = changed || place.changed;
      const std::string what = (place.changed ? "" : "not ") + verb +
                               (place.reason.empty() ? ""
                                : place.changed      ? ", unless "
                                                     : ": ") +
                               place.reason;
      summary.NoteLaunch(place.function, place.loc.line, what);
      LogFormat(LogLevel::kInfo, "%s: kernel %s, %s, PTX line %u: %s", std::string(pass.name()).c_str(),
                kernel.kernel.c_str(), place.function.c_str(), place.loc.line, what.c_str());
    }
  }
  return changed;
}

}  // namespace

void RewriteLaunches(std::unique_ptr<ptx::Module>& module, std::string& text, Summary& summary) {
  const std::string& wanted = TheSettings().consolidate.value_or("");
  if (module == nullptr || (wanted.empty() && !IsOn(TheSettings().aggregate))) return;
  ptx::ReadAllBodies(*module);
  std::string done;
  if (!wanted.empty()) {
    const auto options = passes::ParseConsolidateOptions(wanted);
    if (!options.ok()) LogFormat(LogLevel::kError, "GRIDLOOM_CONSOLIDATE is %s", options.error().message.c_str());
    else if (RunPass(passes::ConsolidatePass(*options), "consolidated", module, summary))
      done += "// consolidated " + wanted + "\n";
  }
  if (IsOn(TheSettings().aggregate) && RunPass(passes::AggregatePass(), "aggregated", module, summary))
    done += "// aggregated in place\n";
  // Compiled code is kept under the text. It is another one for a module that was parsed from what this one prints as,
  // whose functions have other numbers.
  if (!done.empty()) text = ptx::PrintModule(*module) + done;
}

}  // namespace gridloom::session
