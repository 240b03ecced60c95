#include "scheduler/policy/dka.h"

#include <algorithm>
#include <iterator>

#include "scheduler/policy/device_part.h"

namespace gridloom::policy {
namespace {

/// A launch that is to come is waited for no longer than this part of a step: something else may stand before it, such
/// as a copy.
constexpr std::uint64_t kPatience = 4;
/// A pair whose split still changes after so many steps is taken as it is.
constexpr std::uint64_t kMostSearched = 6;
/// What the allocator knows of more kernels and pairs than that is forgotten.
constexpr std::size_t kMostKnown = 4096;

const KernelView* Find(const Snapshot& snapshot, std::uint64_t launch) {
  const auto kernel = std::ranges::find(snapshot.kernels, launch, &KernelView::id);
  return kernel != snapshot.kernels.end() ? &*kernel : nullptr;
}

}  // namespace

void Dka::Watch(const Snapshot& snapshot) {
  service_.See(snapshot);
  if (pipelines_.See(snapshot)) NoteEnds(snapshot.cycle);
}

std::optional<double> Dka::Gain(std::span<const std::uint64_t> stages) const {
  // As many kernels side by side as there are have one table; fewer have one for each kernel that may be the most
  // advanced.
  const std::size_t together = std::min<std::size_t>(together_, stages.size());
  const std::size_t wanted = together == stages.size() ? 1 : stages.size();
  double serial = 0, steps = 0;
  std::size_t found = 0;
  for (const auto& [codes, table] : tables_) {
    const auto own = [&](std::uint64_t code) { return std::ranges::find(stages, code) != stages.end(); };
    if (codes.size() != together || together < 2 || !std::ranges::all_of(codes, own)) continue;
    if (table.runs() == 0 || (!table.converged() && table.runs() < kMostSearched)) return std::nullopt;
    for (const std::uint64_t code : codes) serial += alone_.at(code);
    steps += table.StepTime(table.Choose());
    ++found;
  }
  return found >= wanted && steps > 0 ? std::optional(serial / steps) : std::nullopt;
}

std::optional<Slice> Dka::Next(const Snapshot& snapshot) {
  wait_until_.reset();
  Watch(snapshot);
  if (step_) return NextOfStep(snapshot);
  turns_ = service_.Turns();
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
    const auto has_ended = [&](std::uint64_t launch) {
      return std::ranges::find(pipelines_.ended(), launch) != pipelines_.ended().end();
    };
    if (!part.ended && has_ended(part.launch)) part.ended = cycle;
    if (part.extra && has_ended(*part.extra)) part.extra.reset();
  }
  if (std::ranges::all_of(step_->parts, [](const Part& part) { return part.ended && !part.extra; })) EndStep();
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
  Codes codes;
  std::vector<std::uint32_t> shares;
  std::vector<double> times;
  for (const Part& part : step.parts) {
    codes.push_back(part.code);
    shares.push_back(static_cast<std::uint32_t>(part.sms.size()));
    times.push_back(time(part));
  }
  if (const auto table = tables_.find(codes); table != tables_.end()) table->second.Measured(shares, times);
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

/// The step's kernels have multiprocessors of their own; one without room for its next block leaves the turn to the
/// other.
std::optional<Slice> Dka::NextOfStep(const Snapshot& snapshot) {
  if (step_->expected > 0) RunExtras(snapshot);
  for (const Part& part : step_->parts) {
    const KernelView* const kernel = Find(snapshot, part.extra.value_or(part.launch));
    if (kernel == nullptr || kernel->all_started()) continue;
    if (std::ranges::none_of(part.sms, [&](std::uint32_t sm) { return snapshot.sms[sm].Fits(kernel->needs); }))
      continue;
    Slice slice = Rest(*kernel);
    slice.sms = part.sms;
    return slice;
  }
  return std::nullopt;
}

/// A tenant whose kernel has ended goes on with one that is expected to end before the others' do.
void Dka::RunExtras(const Snapshot& snapshot) {
  for (Part& part : step_->parts) {
    if (!part.ended || part.extra) continue;
    const auto next = Lead(snapshot, part.tenant);
    if (!next || !alone_.contains(next->code)) continue;
    const double time =
        alone_.at(next->code) * static_cast<double>(snapshot.sms.size()) / static_cast<double>(part.sms.size());
    if (static_cast<double>(snapshot.cycle - step_->begin) + time <= step_->expected) part.extra = next->launch;
  }
}

/// Whether steps are made of its launches.
bool Dka::Allots(const DataSet& set) const {
  return pipelines_.InPipeline(set) || (turns_.size() > 1 && pipelines_.Repeats(set));
}

/// The first launch with blocks to start, of the tenant whose turn it is, if it is one for no step.
const KernelView* Dka::Other(const Snapshot& snapshot) const {
  for (const std::uint32_t tenant : turns_) {
    const auto kernel = std::ranges::find_if(
        snapshot.kernels, [&](const KernelView& one) { return one.tenant == tenant && !one.all_started(); });
    if (kernel == snapshot.kernels.end()) continue;
    const auto set = std::ranges::find(pipelines_.sets(), kernel->id, &DataSet::launch);
    return set == pipelines_.sets().end() || !Allots(*set) ? &*kernel : nullptr;
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

/// The oldest data set that is on its way, and those behind it, each at an earlier stage than the one before it. Those
/// that have begun go first: as few data sets as possible are on their way.
std::optional<std::vector<Dka::Part>> Dka::Candidates(const Snapshot& snapshot) {
  std::vector<Part> parts;
  if (turns_.size() > 1) parts = CandidatesOfTenants(snapshot);
  if (parts.size() > 1) return parts;
  const bool of_one = !parts.empty();  // several tenants' turn, of whom this one has it alone
  const std::uint32_t tenant = of_one ? parts.front().tenant : 0;
  parts.clear();
  for (const bool begun : {true, false}) {
    for (const DataSet& set : pipelines_.sets()) {
      if (set.begun != begun || !Allots(set) || (of_one && set.tenant != tenant) || parts.size() >= together_) continue;
      if (!set.here) {
        if (!set.late && !of_one && WaitFor(snapshot.cycle)) return std::nullopt;
        continue;
      }
      const KernelView* const kernel = Find(snapshot, set.launch);
      if (kernel == nullptr || kernel->all_started()) continue;
      if (!parts.empty() && set.stage() >= parts.back().stage) continue;
      parts.push_back({.launch = set.launch,
                       .code = set.codes.back(),
                       .profile = kernel->profile,
                       .stage = set.stage(),
                       .tenant = set.tenant});
    }
  }
  return parts;
}

/// What the tenant's oldest data set has come to.
std::optional<Dka::Part> Dka::Lead(const Snapshot& snapshot, std::uint32_t tenant) const {
  for (const bool begun : {true, false}) {
    for (const DataSet& set : pipelines_.sets()) {
      if (set.tenant != tenant || set.begun != begun || !set.here || !Allots(set)) continue;
      const KernelView* const kernel = Find(snapshot, set.launch);
      if (kernel == nullptr || kernel->all_started()) continue;
      return Part{.launch = set.launch,
                  .code = set.codes.back(),
                  .profile = kernel->profile,
                  .stage = set.stage(),
                  .tenant = tenant};
    }
  }
  return std::nullopt;
}

/// Whether a step of its own brings a tenant nearer to the other than it is.
bool Dka::IsBehind(std::uint32_t tenant, std::uint32_t other) const {
  return service_.service(other) - service_.service(tenant) >
         static_cast<double>(last_step_) / service_.weight(tenant) / 2;
}

/// As many multiprocessors as have room for all blocks of the launch (Eq. 1); all of them where that is not known.
std::uint32_t Dka::RequiredSms(const Snapshot& snapshot, std::uint64_t launch) {
  const auto all = static_cast<std::uint32_t>(snapshot.sms.size());
  const KernelView* const kernel = Find(snapshot, launch);
  const auto idle = std::ranges::find(snapshot.sms, 0u, &SmView::resident_ctas);
  const std::uint64_t room = kernel != nullptr && idle != snapshot.sms.end() ? RoomOf(*idle, kernel->needs) : 0;
  if (room == 0) return all;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>((kernel->ctas + room - 1) / room, 1, all));
}

/// One of each tenant; the first one alone where it is too far behind, or is the only one. Sorted, so that two tenants
/// have one table.
std::vector<Dka::Part> Dka::CandidatesOfTenants(const Snapshot& snapshot) const {
  std::vector<Part> parts;
  for (const std::uint32_t tenant : turns_) {
    if (parts.size() >= together_) break;
    auto part = Lead(snapshot, tenant);
    if (!part) continue;
    if (parts.size() == 1 && IsBehind(parts.front().tenant, tenant)) {
      parts.front().wanted = RequiredSms(snapshot, parts.front().launch);
      if (parts.front().wanted == snapshot.sms.size()) break;
    }
    parts.push_back(std::move(*part));
    if (parts.front().wanted != 0) break;
  }
  const bool known = std::ranges::all_of(parts, [&](const Part& part) { return alone_.contains(part.code); });
  if (known) std::ranges::sort(parts, {}, &Part::tenant);
  return parts;
}

/// Nobody else may have blocks on the device when speeds are measured.
bool Dka::OthersRun(const Snapshot& snapshot, const std::vector<Part>& parts) const {
  return std::ranges::any_of(snapshot.kernels, [&](const KernelView& kernel) {
    const bool ours =
        std::ranges::any_of(parts, [&](const Part& part) { return part.launch == kernel.id && kernel.started == 0; });
    return !ours && kernel.started != 0;
  });
}

void Dka::Begin(const Snapshot& snapshot, std::vector<Part> parts) {
  // What has not been measured alone is first, so that the next ones can have shares.
  const auto unknown = std::ranges::find_if(parts, [&](const Part& part) { return !alone_.contains(part.code); });
  if (unknown != parts.end() && options_.fixed.empty()) parts = {*unknown};
  Share(snapshot, parts);
  step_ = Step{.begin = snapshot.cycle, .parts = {}, .measured = !OthersRun(snapshot, parts)};
  if (parts.size() > 1 && parts.front().tenant != parts.back().tenant) {
    std::vector<std::uint32_t> shares;
    for (const Part& part : parts) shares.push_back(static_cast<std::uint32_t>(part.sms.size()));
    step_->expected = TableOf(parts, static_cast<std::uint32_t>(snapshot.sms.size())).StepTime(shares);
  }
  step_->parts = std::move(parts);
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

/// Multiprocessors of the first parts of a step, or of as many of them as shares are known for. Kernels whose speeds on
/// the whole device are not known have none: the first one runs alone.
std::vector<std::uint32_t> Dka::SharesOf(const std::vector<Part>& parts, std::uint32_t sms) {
  const auto behind = std::ranges::find_if(parts, [](const Part& part) { return part.wanted != 0; });
  const bool all_known = std::ranges::all_of(parts, [&](const Part& part) { return alone_.contains(part.code); });
  if (parts.size() == 2 && behind != parts.end() && behind->wanted < sms && all_known) {
    return behind == parts.begin() ? std::vector{behind->wanted, sms - behind->wanted}
                                   : std::vector{sms - behind->wanted, behind->wanted};
  }
  std::vector<std::size_t> stages;
  for (const Part& part : parts) stages.push_back(part.stage);
  for (; stages.size() > 1; stages.pop_back()) {
    if (const auto fixed = options_.fixed.find(stages); fixed != options_.fixed.end()) return fixed->second;
    const std::span<const Part> side_by_side(parts.data(), stages.size());
    const bool known = std::ranges::all_of(side_by_side, [&](const Part& part) { return alone_.contains(part.code); });
    if (known && (stages.size() == 2 || options_.fixed.empty()) && sms >= stages.size())
      return TableOf(side_by_side, sms).Choose();
  }
  return {sms};
}

ShareTable& Dka::TableOf(std::span<const Part> parts, std::uint32_t sms) {
  Codes codes;
  std::vector<double> alone;
  for (const Part& part : parts) {
    codes.push_back(part.code);
    alone.push_back(alone_.at(part.code));
  }
  const auto [table, made] = tables_.try_emplace(codes, sms, alone);
  for (std::size_t i = 0; made && scaling_ != nullptr && i < parts.size(); ++i) {
    for (std::uint32_t n = 1; n <= sms; ++n) {
      if (const auto time = scaling_->Time(parts[i].profile, n)) table->second.Expect(i, n, *time);
    }
  }
  return table->second;
}

}  // namespace gridloom::policy
