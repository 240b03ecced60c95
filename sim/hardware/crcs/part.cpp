#include "sim/hardware/crcs/part.h"

#include <algorithm>

#include "sim/device/timing_spec.h"
#include "sim/timing/memory/accesses.h"

namespace gridloom::hardware::crcs {

using timing::Cycle;
using timing::kNever;
using timing::kNoWork;
using timing::Tracking;
using timing::WorkId;
using timing::WorkKind;

namespace {

/// Where the tables lie, in lines: above all that programs have.
constexpr std::uint64_t kPageTableLine = std::uint64_t{1} << 38,
                        kCountTableLine = kPageTableLine + (std::uint64_t{1} << 37);
constexpr std::uint64_t kLineBytes = sim::TimingSpec::kLineBytes;

bool IsCopy(WorkKind kind) {
  return kind == WorkKind::kCopyToDevice || kind == WorkKind::kCopyToHost || kind == WorkKind::kCopyOnDevice ||
         kind == WorkKind::kFill;
}

bool IsStorage(WorkKind kind) { return kind == WorkKind::kStorageRead || kind == WorkKind::kStorageWrite; }

/// Pages of one work at most, and twice as many in the tables: what there is memory for on a host. Traces can tell of
/// any number.
constexpr std::uint64_t kMostPages = 1u << 25;
/// Likewise, CTAs of a kernel of which it is kept what each touches.
constexpr std::uint64_t kMostCtas = 1u << 24;

/// Not less than the pages that a copy or fill uses, or the pieces that come from storage.
std::uint64_t MostPagesOf(const timing::WorkView& work, const Settings& settings) {
  if (IsStorage(work.kind)) return work.bytes / settings.read_bytes + 1;
  if (!IsCopy(work.kind)) return 0;
  const timing::MemoryUse& use = work.use;
  const std::uint64_t span = std::max(use.span, work.bytes), source_span = std::max(use.source_span, work.bytes);
  if (span > ~use.address || source_span > ~use.source) return ~std::uint64_t{0};
  return (span >> settings.page_shift) + (source_span >> settings.page_shift) + 4;
}

}  // namespace

CrcsPart::CrcsPart(const Settings& settings)
    : settings_(settings),
      ownership_(settings_, shares_, *this),
      host_(settings_, agenda_, ownership_, shares_, *this),
      scoreboard_(settings_.sms, settings_.page_shift),
      sms_(settings_.sms),
      empty_(settings_.sms) {}

void CrcsPart::Attach(timing::Ports& ports, timing::DeviceInput& input) {
  ports_ = &ports;
  input_ = &input;
  ports.work_events.push_back(this);
  ports.start_rules.push_back(this);
  ports.copy_paths.push_back(this);
  ports.cta_events.push_back(this);
  ports.cta_limits.push_back(this);
  ports.sources.push_back(this);
  ports.page_shares = &shares_;
  if (settings_.readiness) ports.placer = this;
  if (settings_.scoreboard) ports.warp_gates.push_back(&scoreboard_);
}

void CrcsPart::Count(std::span<std::uint64_t> values) const {
  std::ranges::copy(counts_of_, values.begin());
  values[kPassed] = ownership_.passed();
  values[kUses] = ownership_.uses();
  values[kEndedUses] = ownership_.ended();
  values[kPagesIn] = host_.counts().pages_in;
  values[kPagesOut] = host_.counts().pages_out;
  values[kDatMisses] = host_.counts().dat_misses;
}

// ---- works

void CrcsPart::OnWorkGiven(const timing::WorkView& view) {
  Work& work = works_[view.id];
  work.kind = view.kind;
  work.tracking = view.use.tracking;
  work.space = view.use.address_space;
  work.partner = view.use.partner;
  if (view.kind == WorkKind::kKernel) {
    if (work.tracking == Tracking::kProfiler) profiles_[view.id];
    else work.tracked = work.tracking == Tracking::kKernel && profiles_.contains(work.partner);
  } else if (IsCopy(view.kind)) {
    work.tracked = !view.use.special && view.use.address != 0;
  }
  work.too_large = !CanFollow(MostPagesOf(view, settings_));
  work.tracked = work.tracked && !work.too_large;
  order_.Give(view);
  if (view.kind == WorkKind::kMarker) {
    for (const Stage stage : {Stage::kKnown, Stage::kFilling, Stage::kProfiled}) order_.Reach(view.id, stage, 0);
  }
  if (work.tracking == Tracking::kProfiler) order_.Reach(view.id, Stage::kProfiled, 0);
  if (GoesByHostPath(work, view)) host_.Give(view);
}

/// Whether the table can hold so many pages of a work, and the works before it; else the simulation ends.
bool CrcsPart::CanFollow(std::uint64_t pages) {
  if (pages <= kMostPages && ownership_.pages() <= 2 * kMostPages) return true;
  input_->Fail(Error{"the part crcs follows no more than " + std::to_string(kMostPages) +
                     " pages of a work, and twice as many of all: choose " + "larger ones than " +
                     std::to_string(std::uint64_t{1} << settings_.page_shift) +
                     " bytes (--set hardware.crcs.page_bytes=2097152)"});
  return false;
}

/// Whether the host path does it when it starts.
bool CrcsPart::GoesByHostPath(const Work& work, const timing::WorkView& view) {
  if (work.too_large) return false;
  if (IsStorage(view.kind)) return !view.use.special;  // else it stands for itself
  const bool over_pcie = view.kind == WorkKind::kCopyToDevice || view.kind == WorkKind::kCopyToHost;
  return over_pcie || (IsCopy(view.kind) && work.tracked);
}

void CrcsPart::OnWorkEnd(Cycle now, WorkId id) {
  order_.End(id);
  const auto work = works_.extract(id);
  if (work.mapped().kind != WorkKind::kKernel && !work.mapped().taken) host_.Drop(now, id);
}

/// What the table follows may start once all that it depends on is in the table.
Cycle CrcsPart::MayStart(Cycle now, const timing::WorkView& view, const timing::WorkView& before) {
  const Work& work = works_.at(view.id);
  Cycle since = kNever;
  if (work.tracked) since = order_.Since(before.id, Stage::kKnown);
  else if (work.tracking == Tracking::kProfiler) since = order_.Since(before.id, Stage::kProfiled);
  // A kernel that nothing is known of looks at what is ready (section 4.1).
  else if (work.kind == WorkKind::kKernel) since = order_.Since(before.id, Stage::kFilling);
  return std::max(now, since);
}

bool CrcsPart::Takes(Cycle now, const timing::WorkView& view) {
  Work& work = works_.at(view.id);
  if (view.bytes == 0 || !GoesByHostPath(work, view)) return false;
  work.taken = true;
  if (IsStorage(view.kind)) {
    host_.StartStorage(now, view.id);
    return true;
  }
  if (work.tracked) order_.Reach(view.id, Stage::kKnown, now);
  if (work.tracked && view.kind == WorkKind::kCopyToDevice) order_.Reach(view.id, Stage::kFilling, now);
  host_.StartCopy(now, view.id, work.tracked);
  return true;
}

void CrcsPart::OnTransferred(Cycle at, WorkId work, std::uint64_t address, std::uint64_t bytes, bool writes) {
  for (timing::AccessEvents* const listener : ports_->access_events) {
    listener->OnTransfer(at, work, works_.at(work).space, address, bytes, writes);
  }
}

// ---- kernels and CTAs

void CrcsPart::OnKernelReady(Cycle now, const timing::KernelReady& ready) {
  const Work& work = works_.at(ready.launch);
  if (work.tracking != Tracking::kProfiler) ++counts_of_[work.tracked ? kTrackedKernels : kUntrackedKernels];
  Running& running = running_[ready.launch];
  running.alone = work.tracking != Tracking::kProfiler || timing::AccessesMemory(ready.source.code());
  running.all = ready.source.shape().ctas;
  running.turn = {now + settings_.after, ready.launch};
  if (work.tracked) {
    if (works_.contains(work.partner)) input_->Fail(Error{"a kernel with known ranges does not wait for its profiler"});
    ReferenceCounts& counts = counts_[ready.launch];
    if (auto profile = profiles_.extract(work.partner); !profile.empty()) {
      running.turn.at = std::max(running.turn.at, profile.mapped().until);
      counts = std::move(profile.mapped().counts);
      if (settings_.readiness && running.all > kMostCtas)
        return input_->Fail(Error{"what single CTAs touch (hardware.crcs.readiness) is kept of " +
                                  std::to_string(kMostCtas) + " CTAs of a kernel at most; one has " +
                                  std::to_string(running.all)});
      if (settings_.readiness) {
        profile.mapped().readiness.Build(running.all);
        shares_.Announce(ready.launch, std::move(profile.mapped().readiness));
      }
    }
    ownership_.Add(ready.launch, Role::kKernel, work.space);
    agenda_.Add(running.turn.at, EventKind::kEntered, ready.launch);
    order_.Reach(ready.launch, Stage::kKnown, running.turn.at);
    input_->Recheck(running.turn.at);
  } else {
    profiles_.erase(work.partner);  // of a profiler whose kernel runs without release code
  }
  if (!running.alone) return;
  scoreboard_.Add(running.turn, ownership_.TableOf(work.space), work.tracked);
  NoteNeed(ready.launch, running);
  counts_of_[kMostKernels] = std::max(counts_of_[kMostKernels], KernelsAlone());
}

/// Kernels that share no SM with others.
std::uint64_t CrcsPart::KernelsAlone() const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(running_, [](const auto& entry) { return entry.second.alone; }));
}

bool CrcsPart::MayHold(Cycle now, std::uint32_t launch, std::uint32_t sm, std::uint32_t) {
  const Running& running = running_.at(launch);
  asked_ = now;
  if (!running.alone) return true;
  if (works_.at(launch).tracked && running.turn.at > now) return false;
  if (sms_[sm].ctas != 0) return sms_[sm].kernel == launch;
  return empty_ > 1 || IsFirstInNeed(launch, running);
}

/// The last empty SM goes to the first kernel that has none and CTAs left, if there is one: others may wait for pages
/// that it owns.
bool CrcsPart::IsFirstInNeed(std::uint32_t launch, const Running& running) const {
  const auto starving = starving_.find(works_.at(launch).space);
  return starving == starving_.end() || starving->second.empty() || *starving->second.begin() >= running.turn;
}

void CrcsPart::NoteNeed(std::uint32_t launch, const Running& running) {
  std::set<Turn>& starving = starving_[works_.at(launch).space];
  if (running.starves()) {
    starving.insert(running.turn);
  } else if (starving.erase(running.turn) != 0) {
    input_->Recheck(asked_);  // for those that stood back
  }
}

void CrcsPart::OnCtaStart(Cycle at, const timing::CtaPlace& place) {
  Running& running = running_.at(place.launch);
  ++running.started;
  ++running.ctas[place.sm];
  if (!running.alone) return;
  NoteNeed(place.launch, running);
  OnSm& sm = sms_[place.sm];
  if (sm.ctas++ == 0) --empty_;
  if (sm.kernel == place.launch) return;
  // What the SM has read for another kernel may be old (section 4.3).
  if (sm.kernel != kNoWork) {
    input_->DropL1(place.sm, at);
    ++counts_of_[kL1Drops];
  }
  sm.kernel = place.launch;
}

/// CTAs whose pages are there go first, to SMs that have the kernel already; a small grid is spread, as its CTAs are
/// slower side by side.
std::optional<timing::Placement> CrcsPart::Place(const timing::PlacementQuery& query) {
  const auto kernel = static_cast<WorkId>(query.kernel.id);
  Readiness* const readiness = shares_.ReadinessOf(kernel);
  if (readiness == nullptr) {
    const auto sm = query.RoundRobin();
    return sm ? std::optional(timing::Placement{.sm = *sm, .cta = query.kernel.started}) : std::nullopt;
  }
  if (query.slice.pick == policy::Pick::kReady && readiness->ready() == 0) return std::nullopt;
  if (query.slice.pick == policy::Pick::kBegun && readiness->begun() == 0) return std::nullopt;
  const Running& running = running_.at(kernel);
  const std::uint64_t even = (running.all * KernelsAlone() + sms_.size() - 1) / sms_.size();
  std::optional<std::uint32_t> sm;
  for (const auto& [own, ctas] : running.ctas) {
    if (!sm && ctas < even && query.Allows(own)) sm = own;
  }
  for (std::uint32_t empty = 0; !sm && empty < sms_.size(); ++empty) {
    if (sms_[empty].ctas == 0 && query.Allows(empty)) sm = empty;
  }
  if (!sm) sm = query.RoundRobin();
  if (!sm) return std::nullopt;
  const std::uint64_t cta = query.slice.pick == policy::Pick::kReady   ? readiness->FirstReady()
                            : query.slice.pick == policy::Pick::kBegun ? readiness->FirstBegun()
                                                                       : readiness->FirstLeft();
  readiness->Start(cta);
  return timing::Placement{.sm = *sm, .cta = cta};
}

void CrcsPart::OnCtaEvent(const timing::CtaSignal& signal) {
  if (signal.event.kind == trace::EventKind::kSetRange) OnSet(signal);
  else if (signal.event.kind == trace::EventKind::kReleaseRange) OnRelease(signal);
}

/// The memory management unit changes the entries of these pages, one line of the table after the other. When that has
/// been done.
Cycle CrcsPart::Operate(Cycle at, WorkId kernel, const std::vector<PageRange>& pages) {
  const bool sets = works_.at(kernel).tracking == Tracking::kProfiler;
  const std::uint64_t table = sets ? kCountTableLine : kPageTableLine;
  Cycle next = std::max(at + settings_.after, unit_free_);
  for (const PageRange& range : pages) {
    const std::uint64_t first = range.first * settings_.entry_bytes / kLineBytes,
                        last = (range.end * settings_.entry_bytes - 1) / kLineBytes;
    for (std::uint64_t line = first; line <= last; ++line) {
      input_->Send(next,
                   {.line = table + line, .kind = timing::RequestKind::kReduce, .sectors = 0xf, .launch = kernel});
      next += settings_.line_cycles;
      ++counts_of_[kTableRequests];
    }
    counts_of_[sets ? kSetPages : kReleasePages] += range.size();
  }
  ++counts_of_[sets ? kSetOperations : kReleaseOperations];
  unit_free_ = next;
  return next + settings_.table;
}

void CrcsPart::OnSet(const timing::CtaSignal& signal) {
  const auto profile = profiles_.find(signal.place.launch);
  if (profile == profiles_.end() || !CanFollow(MostPagesOf(signal.event, settings_.page_shift))) return;
  const std::vector<PageRange> pages = PagesOf(signal.event, settings_.page_shift);
  profile->second.counts.Set(pages, signal.event.flags);
  if (settings_.readiness) profile->second.readiness.Announce(signal.place.cta, pages, signal.event.flags);
  profile->second.until = std::max(profile->second.until, Operate(signal.at, signal.place.launch, pages));
}

void CrcsPart::OnRelease(const timing::CtaSignal& signal) {
  const WorkId kernel = signal.place.launch;
  if (!works_.at(kernel).tracked || !CanFollow(MostPagesOf(signal.event, settings_.page_shift))) return;
  std::vector<PageRange> pages = PagesOf(signal.event, settings_.page_shift);
  Release& release = releasing_[{kernel, signal.place.cta}];
  release.kernel = kernel;
  release.at = std::max(release.at, Operate(signal.at, kernel, pages));
  release.ranges.emplace_back(std::move(pages), signal.event.flags);
}

/// What the CTA released counts when all of its stores have been accepted, too.
void CrcsPart::OnCtaEnd(const timing::CtaEnd& end) {
  Running& running = running_.at(end.launch);
  if (const auto sm = running.ctas.find(end.sm); --sm->second == 0) running.ctas.erase(sm);
  if (!running.alone) return;
  if (--sms_[end.sm].ctas == 0) ++empty_;
  NoteNeed(end.launch, running);
  auto release = releasing_.extract({end.launch, end.cta});
  if (release.empty()) return;
  const Cycle at = std::max(release.mapped().at, end.at + settings_.after);
  running.released = std::max(running.released, at);
  released_.emplace(releases_, std::move(release.mapped()));
  agenda_.Add(at, EventKind::kReleased, end.launch, releases_++);
}

void CrcsPart::OnKernelEnd(Cycle now, std::uint32_t launch) {
  const Running running = running_.extract(launch).mapped();
  scoreboard_.Forget(launch);
  shares_.Forget(launch);
  if (counts_.contains(launch))
    agenda_.Add(std::max(running.released, now + settings_.after), EventKind::kKernelEnd, launch);
}

// ---- what follows

void CrcsPart::Run(Cycle end) {
  while (agenda_.next() < end && CanFollow(0)) {
    const Event event = agenda_.Take();
    switch (event.kind) {
      case EventKind::kEntered: Enter(event); break;
      case EventKind::kReleased: Released(event); break;
      case EventKind::kKernelEnd: EndKernel(event); break;
      default: host_.Handle(event);
    }
  }
}

/// The counts of a kernel are complete: it comes behind all works before it on the pages that it will touch.
void CrcsPart::Enter(const Event& event) {
  const auto found = counts_.find(event.work);
  if (found == counts_.end()) return host_.Handle(event);
  ReferenceCounts& counts = found->second;
  counts.Build();
  counts_of_[kMostReferences] = std::max(counts_of_[kMostReferences], counts.most());
  if (!CanFollow(counts.pages())) return;
  counts.ForEach([&](const PageRange& pages, bool) {
    if (!CanFollow(pages.size())) return;
    for (std::uint64_t page = pages.first; page < pages.end; ++page) ownership_.Enter(event.at, event.work, page);
  });
}

ReferenceCounts::OnPages CrcsPart::Passing(Cycle at, WorkId kernel) {
  return [this, at, kernel](const PageRange& pages, bool writes) {
    for (std::uint64_t page = pages.first; page < pages.end; ++page) ownership_.Leave(at, kernel, page, writes);
  };
}

void CrcsPart::Released(const Event& event) {
  const Release release = released_.extract(event.detail).mapped();
  ReferenceCounts& counts = counts_.at(release.kernel);
  for (const auto& [pages, flags] : release.ranges) counts.Release(pages, flags, Passing(event.at, release.kernel));
}

/// Nobody waits for what a kernel did not release: CTAs that were never started, or ended by a fault.
void CrcsPart::EndKernel(const Event& event) {
  const auto counts = counts_.find(event.work);
  if (counts == counts_.end()) return;
  counts_of_[kUnreleased] += counts->second.pages();
  counts->second.ReleaseAll(Passing(event.at, event.work));
  counts_.erase(counts);
  ownership_.Forget(event.work);
}

// ---- who is told

void CrcsPart::Ask(std::uint32_t sm, Cycle at) {
  if (sms_[sm].asked == at) return;
  sms_[sm].asked = at;
  input_->AskGates(sm, at);
}

/// Gates of an SM are asked again when its kernel has got a page that one of its warps waits for: of all pages that
/// come while warps wait for others, nobody need be told.
void CrcsPart::AskWhereAwaited(WorkId kernel, std::uint64_t page, Cycle at) {
  const auto running = running_.find(kernel);
  if (running == running_.end()) return;
  for (const auto& [sm, ctas] : running->second.ctas) {
    if (scoreboard_.TakeWaitFor(sm, page)) Ask(sm, at);
  }
}

void CrcsPart::OnKernelOwns(Cycle at, WorkId kernel, std::uint64_t page, const PageEntry& entry) {
  AskWhereAwaited(kernel, page, entry.visible);
  if (!settings_.readiness) return;
  shares_.OwnPage(at, kernel, page);
  if (at != rechecked_) input_->Recheck(rechecked_ = at);
}

void CrcsPart::OnReady(Cycle visible) {
  for (std::uint32_t sm = 0; sm < sms_.size(); ++sm) {
    if (scoreboard_.TakeWaits(sm)) Ask(sm, visible);
  }
}

}  // namespace gridloom::hardware::crcs
