#include "scheduler/policy/builtin.h"

#include <algorithm>

#include "rewriter/support/suggest.h"
#include "scheduler/policy/crcs.h"
#include "scheduler/policy/dka.h"
#include "scheduler/policy/dka_guarded.h"
#include "scheduler/policy/fair.h"
#include "scheduler/policy/leftover.h"
#include "scheduler/policy/priority.h"
#include "scheduler/policy/serial.h"

namespace gridloom::policy {
namespace {

template <typename T>
std::unique_ptr<Policy> Make(const PolicyInputs&) {
  return std::make_unique<T>();
}

std::unique_ptr<Policy> MakeFair(const PolicyInputs& inputs) {
  return std::make_unique<Fair>(inputs.fair_wait, inputs.processors);
}
std::unique_ptr<Policy> MakeDka(const PolicyInputs& inputs) { return std::make_unique<Dka>(inputs.dka); }
std::unique_ptr<Policy> MakePredictedDka(const PolicyInputs& inputs) {
  return std::make_unique<Dka>(inputs.dka, inputs.scaling, "dka-predicted");
}
std::unique_ptr<Policy> MakeGemtc(const PolicyInputs&) { return std::make_unique<Leftover>("gemtc"); }
std::unique_ptr<Policy> MakePagoda(const PolicyInputs&) { return std::make_unique<Leftover>("pagoda"); }
std::unique_ptr<Policy> MakeKernelet(const PolicyInputs& inputs) {
  return std::make_unique<Kernelet>(inputs.planner, inputs.kernelet);
}

std::unique_ptr<Policy> MakeProbing(const PolicyInputs& inputs) {
  return std::make_unique<Kernelet>(inputs.learning_planner, inputs.kernelet, "kernelet-probing");
}

constexpr PolicyInfo kPolicies[] = {
    {"crcs-fifo",
     "dependent kernels side by side, on pages that those before them are done with; in their order",
     {Need::kRanges},
     Make<CrcsFifo>},
    {"crcs-ppcs",
     "the same, and while inputs come in, SMs for the kernels that own most pages",
     {Need::kRanges},
     Make<CrcsPpcs>},
    {"crcs-ready",
     "the same, thread blocks first whose pages are all there",
     {Need::kRanges, Need::kReadiness},
     Make<CrcsReady>},
    {"dka",
     "pipelines of kernels: those of two data sets side by side, on as many SMs as let them end together",
     {},
     MakeDka},
    {"dka-guarded",
     "dka where that was measured to pay, else the oldest data set's kernels first",
     {},
     Make<GuardedDka>},
    {"dka-predicted",
     "dka, whose search begins at the splits that kernelet's model expects",
     {Need::kProfiles},
     MakePredictedDka},
    {"fair", "equal shares of the device's time for tenants, by their weights", {}, MakeFair},
    {"gemtc",
     "kernels of few threads in batches, as tasks of a kernel with a queue; others as under leftover",
     {Need::kBatches},
     MakeGemtc},
    {"kernelet", "pairs of kernels side by side where a model promises that it pays", {Need::kProfiles}, MakeKernelet},
    {"kernelet-probing",
     "kernelet, which measures the pairs that it chose",
     {Need::kProfiles, Need::kLearning},
     MakeProbing},
    {"leftover", "the next kernel begins when all blocks of the one before have started", {}, Make<Leftover>},
    {"pagoda",
     "kernels of few threads as tasks of one that stays on the device, others as under leftover",
     {Need::kTasks},
     MakePagoda},
    {"priority", "the most urgent kernel first, among equals the one that waits longest", {}, Make<Priority>},
    {"serial", "one kernel after the other", {}, Make<Serial>},
};

/// What a need is, how it can be had, and whether it is there.
struct NeedInfo {
  Need need;
  std::string_view what, how;
  bool (*given)(const PolicyInputs& inputs);
};

constexpr NeedInfo kNeeds[] = {
    {Need::kProfiles, "profiles of kernels",
     "give a file of them with --profiles (`gridloom replay --write-profiles FILE TRACE` makes one), or simulate time "
     "with --timing, where "
     "kernels are profiled as they come",
     [](const PolicyInputs& inputs) { return inputs.planner != nullptr; }},
    {Need::kLearning, "simulated time, in which it measures pairs of kernels", "use --timing",
     [](const PolicyInputs& inputs) { return inputs.learning_planner != nullptr; }},
    {Need::kRanges, "a device that follows which kernel uses which page of memory",
     "replay a trace with ranges (`gridloom run --trace FILE --ranges interval -- PROGRAM`), or simulate time with "
     "`gridloom run --timing`",
     [](const PolicyInputs& inputs) { return inputs.follows_pages; }},
};

std::string ListOfNames() {
  std::string names;
  for (const PolicyInfo& policy : kPolicies) names += (names.empty() ? "" : ", ") + std::string(policy.name);
  return names;
}

}  // namespace

std::span<const PolicyInfo> Policies() { return kPolicies; }

std::vector<std::string_view> PolicyNames() {
  std::vector<std::string_view> names;
  for (const PolicyInfo& policy : kPolicies) names.push_back(policy.name);
  return names;
}

Result<const PolicyInfo*> FindPolicy(std::string_view name) {
  const auto* const found = std::ranges::find(kPolicies, name, &PolicyInfo::name);
  if (found != std::end(kPolicies)) return found;
  const std::string_view nearest = NearestName(name, PolicyNames());
  return Error{"no policy '" + std::string(name) + "'; there are " + ListOfNames() +
               (nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?")};
}

Result<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const PolicyInputs& inputs) {
  GL_TRY(policy, FindPolicy(name));
  std::string missing;
  for (const NeedInfo& info : kNeeds) {
    if (!policy->needs.Has(info.need) || info.given(inputs)) continue;
    missing += (missing.empty() ? " needs " : ", and ") + std::string(info.what) + ": " + std::string(info.how);
  }
  if (!missing.empty()) return Error{"policy " + std::string(name) + missing};
  return policy->make(inputs);
}

}  // namespace gridloom::policy
