#include "scheduler/policy/dka.h"

#include <algorithm>
#include <iterator>

namespace gridloom::policy {
namespace {

/// A launch that is to come is waited for no longer than this part of a step: something else may stand before it, such as a copy.
constexpr std::uint64_t kPatience = 4;
/// A pair whose split still changes after so many is taken as it is.
constexpr std::size_t kMostSearched = 6;
/// What the allocator knows of more kernels and pairs than that is forgotten.
constexpr std::size_t kMostKnown = 4096;

const KernelView* Find(const Snapshot& snapshot, std::uint64_t launch) {
  const auto kernel = std::ranges::find(snapshot.kernels, launch, &KernelView::id);
  return kernel != snapshot.kernels.end() ? &*kernel : nullptr;
}

Slice Rest(const KernelView& kernel) { return {.kernel = kernel.id, .ctas = kernel.ctas - kernel.started}; }

}  // namespace

void Dka::Watch(const Snapshot& snapshot) {
  if (pipelines_.See(snapshot)) NoteEnds(snapshot.cycle);
}

std::optional<double> Dka::Gain() const {
  // Pipelines of two kernels have one pair, others as many as they have kernels.
  const std::size_t pairs = alone_.size() == 2 ? 1 : alone_.size();
  if (alone_.size() < 2 || tables_.size() < pairs) return std::nullopt;
  double serial = 0, steps = 0;
  for (const auto& [codes, table] : tables_) {
    if (table.measured() == 0 || (!table.converged() && table.measured() < kMostSearched)) return std::nullopt;
    serial += alone_.at(codes.first) + alone_.at(codes.second);
    steps += table.StepTime(table.Choose());
  }
  return serial / steps;
}

std::optional<Slice> Dka::Next(const Snapshot& snapshot) {
  wait_until_.reset();
  Watch(snapshot);
  if (step_) return NextOfStep(snapshot);
  if (const KernelView* const other = Other(snapshot)) return Rest(*other);
  auto parts = Candidates(snapshot);
  if (!parts || parts->empty()) return std::nullopt;
  waiting_since_.reset();
  Begin(snapshot, std::move(*parts));
  return NextOfStep(snapshot);
}

void Dka::NoteEnds(std::uint64_t cycle) {
  waiting_since_.reset();
  if (!step_) return;
  for (Part& part : step_->parts) {
    if (std::ranges::find(pipelines_.ended(), part.launch) != pipelines_.ended().end()) part.ended = cycle;
  }
  if (std::ranges::all_of(step_->parts, [](const Part& part) { return part.ended.has_value(); })) EndStep();
}

/// Keeps what the kernels took.
void Dka::EndStep() {
  const Step step = *std::exchange(step_, std::nullopt);
  const auto time = [&](const Part& part) { return static_cast<double>(*part.ended - step.begin); };
  last_step_ = 0;
  for (const Part& part : step.parts) last_step_ = std::max(last_step_, *part.ended - step.begin);
  Log(step);
  if (!step.measured) return;
  if (alone_.size() > kMostKnown || tables_.size() > kMostKnown) {
    alone_.clear();
    tables_.clear();
  }
  if (step.parts.size() == 1) alone_[step.parts[0].code] = time(step.parts[0]);
  if (step.parts.size() != 2) return;
  const auto table = tables_.find({step.parts[0].code, step.parts[1].code});
  if (table == tables_.end()) return;
  table->second.Measured(static_cast<std::uint32_t>(step.parts[0].sms.size()), {time(step.parts[0]), time(step.parts[1])});
}

void Dka::Log(const Step& step) const {
  if (options_.log == nullptr) return;
  DkaStep& entry = options_.log->emplace_back(DkaStep{.begin = step.begin, .kernels = {}});
  for (const Part& part : step.parts) {
    entry.kernels.push_back({.launch = part.launch,
                             .code = part.code,
                             .stage = part.stage,
                             .sms = static_cast<std::uint32_t>(part.sms.size()),
                             .took = *part.ended - step.begin});
  }
}

/// The step's kernels have multiprocessors of their own; one without room for its next block leaves the turn to the other.
std::optional<Slice> Dka::NextOfStep(const Snapshot& snapshot) {
  for (const Part& part : step_->parts) {
    const KernelView* const kernel = Find(snapshot, part.launch);
    if (kernel == nullptr || kernel->all_started()) continue;
    if (std::ranges::none_of(part.sms, [&](std::uint32_t sm) { return snapshot.sms[sm].Fits(kernel->needs); })) continue;
    Slice slice = Rest(*kernel);
    slice.sms = part.sms;
    return slice;
  }
  return std::nullopt;
}

/// The first launch with blocks to start that is in no pipeline, if no launch of a pipeline became ready before it.
const KernelView* Dka::Other(const Snapshot& snapshot) const {
  for (const KernelView& kernel : snapshot.kernels) {
    if (kernel.all_started()) continue;
    const auto set = std::ranges::find(pipelines_.sets(), kernel.id, &DataSet::launch);
    return set == pipelines_.sets().end() || !pipelines_.InPipeline(*set) ? &kernel : nullptr;
  }
  return nullptr;
}

/// Whether what is to come is still worth waiting for.
bool Dka::WaitFor(std::uint64_t cycle) {
  if (!waiting_since_) waiting_since_ = cycle;
  const std::uint64_t until = *waiting_since_ + last_step_ / kPatience;
  if (cycle >= until) {
    pipelines_.GiveUpWaiting();
    return false;
  }
  wait_until_ = until;
  return true;
}

/// The oldest data set that is on its way, and those behind it, each at an earlier stage than the one before it. Those that have begun go
/// first: as few data sets as possible are on their way.
std::optional<std::vector<Dka::Part>> Dka::Candidates(const Snapshot& snapshot) {
  std::vector<Part> parts;
  for (const bool begun : {true, false}) {
    for (const DataSet& set : pipelines_.sets()) {
      if (set.begun != begun || !pipelines_.InPipeline(set) || parts.size() >= options_.together) continue;
      if (!set.here) {
        if (!set.late && WaitFor(snapshot.cycle)) return std::nullopt;
        continue;
      }
      const KernelView* const kernel = Find(snapshot, set.launch);
      if (kernel == nullptr || kernel->all_started()) continue;
      if (!parts.empty() && set.stage() >= parts.back().stage) continue;
      parts.push_back({.launch = set.launch, .code = set.codes.back(), .stage = set.stage(), .sms = {}});
    }
  }
  return parts;
}

/// Nobody else may have blocks on the device when speeds are measured.
bool Dka::OthersRun(const Snapshot& snapshot, const std::vector<Part>& parts) const {
  return std::ranges::any_of(snapshot.kernels, [&](const KernelView& kernel) {
    const bool ours = std::ranges::any_of(parts, [&](const Part& part) { return part.launch == kernel.id && kernel.started == 0; });
    return !ours && kernel.started != 0;
  });
}

void Dka::Begin(const Snapshot& snapshot, std::vector<Part> parts) {
  Share(snapshot, parts);
  const bool measured = !OthersRun(snapshot, parts);
  step_ = Step{.begin = snapshot.cycle, .parts = std::move(parts), .measured = measured};
}

/// Gives each part its multiprocessors, and lets those wait for whom there are none.
void Dka::Share(const Snapshot& snapshot, std::vector<Part>& parts) {
  const std::vector<std::uint32_t> shares = SharesOf(parts, static_cast<std::uint32_t>(snapshot.sms.size()));
  parts.resize(shares.size());
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::uint32_t n = 0; n < shares[i]; ++n) parts[i].sms.push_back(next++);
  }
}

/// Multiprocessors of the first parts of a step, or of as many of them as shares are known for. A pair of kernels whose speeds on the whole
/// device are not known has none: the first one runs alone.
std::vector<std::uint32_t> Dka::SharesOf(const std::vector<Part>& parts, std::uint32_t sms) {
  std::vector<std::size_t> stages;
  for (const Part& part : parts) stages.push_back(part.stage);
  for (; stages.size() > 1; stages.pop_back()) {
    if (const auto fixed = options_.fixed.find(stages); fixed != options_.fixed.end()) return fixed->second;
    const bool known = alone_.contains(parts[0].code) && alone_.contains(parts[1].code);
    if (stages.size() > 2 || !known || sms < 2) continue;
    const auto [table, made] =
        tables_.try_emplace({parts[0].code, parts[1].code}, sms, std::array{alone_.at(parts[0].code), alone_.at(parts[1].code)});
    const std::uint32_t first = table->second.Choose();
    return {first, sms - first};
  }
  return {sms};
}

}  // namespace gridloom::policy
