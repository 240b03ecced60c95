#include "sim/timing/sm/sm.h"

#include <algorithm>

#include "rewriter/support/check.h"

namespace gridloom::timing {
namespace {

/// Compute capability from which on parameters come from L2 first; of older devices nothing was found.
constexpr std::uint32_t kFirstCold = 70;

}  // namespace

Sm::Sm(const Parameters& parameters, const AddressMap& map, const Ports& ports, std::uint32_t index,
       std::uint32_t groups, bool plain)
    : parameters_(parameters),
      timing_(parameters.timing()),
      ports_(ports),
      index_(index),
      plain_(plain),
      gated_(!ports.warp_gates.empty()),
      memory_(parameters, map, ports, index, plain, counters_),
      parameter_bank_(parameters.device.compute_capability.sm() >= kFirstCold ? parameters.timing().l2.latency : 0),
      in_port_(parameters.SmInPort()),
      out_(groups),
      warps_(parameters.device.max_warps_per_sm()),
      ctas_(parameters.device.sm.max_blocks + (ports.feed != nullptr ? WarpFeed::kMostBlocks : 0)),
      schedulers_(timing_.sm.schedulers),
      held_(gated_ ? timing_.sm.schedulers : 0),
      entering_(ports.feed != nullptr ? warps_.size() : 0) {
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    warps_[w].scheduler = static_cast<std::uint8_t>(w % schedulers_.size());
    warps_[w].index = static_cast<std::uint8_t>(w / schedulers_.size());
  }
  for (std::size_t p = 0; p < sim::kPipeCount; ++p) {
    units_[p].assign(timing_.units[p], 0);
    private_[p] = timing_.sm.sub_cores && timing_.units[p] % schedulers_.size() == 0;
    per_scheduler_[p] = timing_.units[p] / schedulers_.size();
  }
}

Cycle Sm::next() const {
  if (plain_ && resident_ctas_ > 0) return last_step_ + 1;
  Cycle next = next_issue_;
  next = std::min(next, std::max(memory_.next(), last_step_ + 1));
  if (!inbox_.empty()) next = std::min(next, std::max(inbox_.next_arrival(), in_port_.free_at()));
  if (!starts_.empty()) next = std::min(next, starts_.front().at);
  return std::min(next, next_command_);
}

void Sm::Add(const SmCommand& command) {
  const auto later = std::ranges::upper_bound(commands_, command.at, {}, &SmCommand::at);
  commands_.insert(later, command);
  next_command_ = commands_.front().at;
}

void Sm::Run(Cycle begin, Cycle end) {
  if (plain_) {
    for (Cycle now = begin; now < end; ++now) Tick(now);
    return;
  }
  for (Cycle now = std::max(next(), begin); now < end; now = next()) Tick(now);
}

/// Output end first: what comes back in this cycle can be used in it.
void Sm::Tick(Cycle now) {
  if (!inbox_.empty()) TakeResponses(now);
  const bool told = next_command_ <= now;
  if (told) DropL1IfTold(now);
  if (plain_ || memory_.next() <= now) memory_.Tick(now, out_);
  last_step_ = now;
  const bool starts = !starts_.empty() && starts_.front().at <= now;
  const bool nothing_new =
      now < next_issue_ && !starts && !told && memory_.completions().empty() && memory_.full() == queue_was_full_;
  if (nothing_new && !plain_) return;
  Account(now);
  if (told) ObeyIfTold(now);
  StartCtas(now);
  TakeCompletions(now);
  if (resident_ctas_ > 0) RunSchedulers(now);
  next_issue_ = NextIssue(now);
  last_issue_ = now;
  queue_was_full_ = memory_.full();
}

/// Counts the cycles since the schedulers were looked at, in which nothing changed for them; returns how many.
Cycle Sm::CountSkipped(Cycle now, SmCounters& counters) const {
  if (resident_ctas_ == 0 || now <= last_issue_ + 1) return 0;
  const Cycle skipped = now - last_issue_ - 1;
  counters.warp_cycles += resident_warps_ * skipped;
  counters.resident_cycles += skipped;
  for (const Scheduler& scheduler : schedulers_) StallCounter(scheduler, queue_was_full_, counters) += skipped;
  return skipped;
}

void Sm::Account(Cycle now) {
  if (CountSkipped(now, counters_) == 0 || timing_.sm.warp_order != sim::WarpOrder::kTwoLevel) return;
  // Chooses as it would have in the first of the cycles left out.
  for (Scheduler& scheduler : schedulers_) scheduler.Refill(timing_.sm.active_warps);
}

SmCounters Sm::counters_until(Cycle end) const {
  SmCounters counters = counters_;
  CountSkipped(end, counters);
  return counters;
}

void Sm::RunSchedulers(Cycle now) {
  ++counters_.resident_cycles;
  counters_.warp_cycles += resident_warps_;
  // Turns with the cycle, so that no scheduler is always first at the units they share.
  const auto count = static_cast<std::uint32_t>(schedulers_.size());
  std::uint32_t scheduler = count == 1 ? 0 : static_cast<std::uint32_t>(now % count);
  for (std::uint32_t i = 0; i < count; ++i) {
    RunScheduler(now, scheduler);
    scheduler = scheduler + 1 == count ? 0 : scheduler + 1;
  }
}

void Sm::DropL1IfTold(Cycle now) {
  for (const SmCommand& command : commands_) {
    if (command.at > now) break;
    if (command.kind == SmCommand::Kind::kDropL1) memory_.DropL1(now, out_);
  }
}

/// The last use of the commands that are due.
void Sm::ObeyIfTold(Cycle now) {
  bool ask = false;
  for (; !commands_.empty() && commands_.front().at <= now; commands_.pop_front()) {
    ask |= commands_.front().kind == SmCommand::Kind::kAskGates;
    if (commands_.front().kind == SmCommand::Kind::kCancel) Cancel(commands_.front().launch);
  }
  next_command_ = commands_.empty() ? kNever : commands_.front().at;
  for (std::size_t s = 0; ask && s < held_.size(); ++s) {
    for (WarpMask held = held_[s].all(); held != 0; held &= held - 1) {
      Arm(now, warps_[static_cast<std::size_t>(std::countr_zero(held)) * schedulers_.size() + s]);
    }
  }
}

/// Warps of the launch have nothing behind their next instruction, and those that are still to start nothing at all.
void Sm::Cancel(std::uint32_t launch) {
  for (Warp& warp : warps_) {
    const bool runs = warp.state != WarpState::kFree && warp.state != WarpState::kFinished;
    if (!runs || warp.op == nullptr || ctas_[warp.cta_slot].launch != launch) continue;
    warp.visits_end = warp.visit;
    warp.repeat = warp.repeats_end = nullptr;
    warp.block_end = warp.op + 1;
    warp.event_op = nullptr;
  }
  for (CtaStart& start : starts_) {
    if (start.launch != launch) continue;
    start.trace = NothingOf(*start.trace);
  }
  // Warps that have not come to a block of software's yet. What runs holds on to its trace, which who gave the block
  // keeps.
  for (std::size_t slot = parameters_.device.sm.max_blocks; slot < ctas_.size(); ++slot) {
    Cta& block = ctas_[slot];
    if (block.launch == launch && block.trace != nullptr) block.trace = NothingOf(*block.trace);
  }
}

void Sm::TakeResponses(Cycle now) {
  while (!inbox_.empty() && inbox_.next_arrival() <= now && in_port_.free_at() <= now) {
    const Response& response = inbox_.front();
    in_port_.Send(now, static_cast<std::uint32_t>(std::popcount(response.sectors)));
    memory_.Fill(now, response, out_);
    inbox_.Pop();
  }
}

void Sm::StartCtas(Cycle now) {
  while (!starts_.empty() && starts_.front().at <= now) {
    CtaStart start = std::move(starts_.front());
    starts_.pop_front();
    Cta& cta = ctas_[start.slot];
    GL_CHECK(cta.undrained == 0, "a CTA was started in a slot that is not free");
    cta.id = start.cta;
    cta.launch = start.launch;
    cta.shifts = std::move(start.shifts);
    cta.memory = start.memory;
    cta.trace = start.trace;
    cta.warps.clear();
    cta.barriers = {};
    cta.waiting = 0;
    cta.warp_instructions = cta.thread_instructions = 0;
    cta.running = cta.undrained = static_cast<std::uint32_t>(start.trace->warps.size());
    ++resident_ctas_;
    for (std::uint32_t w = 0; w < start.trace->warps.size(); ++w) StartWarp(now, start, w);
    // A warp without instructions has ended, or is told some; only now, when all of its CTA are there.
    for (const std::uint16_t w : std::vector<std::uint16_t>(cta.warps)) {
      if (warps_[w].op != nullptr) continue;
      GoOn(now, warps_[w]);
      if (warps_[w].state == WarpState::kRunning) Arm(now, warps_[w]);
    }
  }
}

void Sm::StartWarp(Cycle now, const CtaStart& start, std::uint32_t number) {
  const std::uint16_t slot = FreeWarp();
  Warp& warp = warps_[slot];
  warp.state = WarpState::kRunning;
  warp.cta_slot = warp.home = start.slot;
  warp.number = static_cast<std::uint16_t>(number);
  warp.fed = ports_.feed != nullptr && ports_.feed->Feeds(start.launch);
  warp.next_issue = now;
  warp.age = ++next_age_;
  warp.loads = warp.stores = 0;
  warp.granted = false;
  Follow(warp, *start.trace, *start.code, number);
  ctas_[start.slot].warps.push_back(slot);
  ++resident_warps_;
  Scheduler& scheduler = schedulers_[warp.scheduler];
  scheduler.resident |= Bit(warp);
  scheduler.age[warp.index] = warp.age;
  warp.op = nullptr;
  if (warp.NextBlock()) Arm(now, warp);
}

/// The warp goes the way of one of the CTA's, from its beginning.
void Sm::Follow(Warp& warp, const trace::CtaTrace& cta, const DecodedCode& code, std::uint32_t number) {
  const trace::WarpTrace& trace = cta.warps[number];
  warp.code = &code;
  warp.trace = &cta;
  warp.visit = cta.visits.data() + trace.first_visit;
  warp.visits_end = warp.visit + trace.visit_count;
  warp.accesses = warp.next_accesses = cta.accesses.data() + trace.first_access;
  warp.repeat = warp.repeats_end = nullptr;
  warp.region = nullptr;
  warp.absent = 0;
  warp.path = warp.visit;
  if (!cta.repeats.empty()) {
    const auto repeats = trace::RepeatsOf(cta, number);
    warp.repeat = repeats.data();
    warp.repeats_end = repeats.data() + repeats.size();
    warp.path_end = warp.visits_end;
    warp.path_access = warp.next_accesses;
    warp.SetPart();
  }
  warp.parked = 0;
  warp.event_op = nullptr;
  if (!cta.events.empty()) {
    const auto events = trace::EventsOf(cta, number);
    if (!events.empty()) warp.event_op = code.EventOp(events.front().instruction);
    warp.event = events.data();
    warp.events_end = events.data() + events.size();
  }
  warp.ready.assign(code.register_count + 1, 0);
}

/// A free warp of the scheduler that has the fewest.
std::uint16_t Sm::FreeWarp() const {
  std::size_t best = 0;
  for (std::size_t s = 1; s < schedulers_.size(); ++s) {
    if (std::popcount(schedulers_[s].resident) < std::popcount(schedulers_[best].resident)) best = s;
  }
  const auto index = static_cast<std::size_t>(std::countr_one(schedulers_[best].resident));
  const std::size_t slot = index * schedulers_.size() + best;
  GL_CHECK(slot < warps_.size(), "a CTA was started without room for its warps");
  return static_cast<std::uint16_t>(slot);
}

void Sm::TakeCompletions(Cycle now) {
  std::vector<Completion>& completions = memory_.completions();
  for (const Completion& completion : completions) {
    Warp& warp = warps_[completion.warp];
    if (completion.op != nullptr) {
      --warp.loads;
      warp.SetDestinations(*completion.op, completion.ready);
      if (warp.state == WarpState::kRunning && warp.wake == kNever) Arm(now, warp);
    } else {
      --warp.stores;
      if (warp.state == WarpState::kFence && warp.stores == 0) {
        warp.state = WarpState::kRunning;
        warp.next_issue = now + timing_.of(trace::OpClass::kFence).latency;
        if (warp.op == nullptr) GoOn(now, warp);
        if (warp.state == WarpState::kRunning) Arm(now, warp);
      }
    }
    if (warp.state == WarpState::kFinished) EndIfDrained(now, warp);
  }
  completions.clear();
}

/// Instructions of all CTAs of the launch that are on this SM.
std::uint64_t Sm::ResidentInstructions(std::uint32_t launch) const {
  std::uint64_t sum = 0;
  for (const Cta& cta : ctas_) {
    if (cta.trace != nullptr && cta.launch == launch) sum += cta.warp_instructions;
  }
  return sum;
}

void Sm::EndIfDrained(Cycle now, Warp& warp) {
  if (warp.loads > 0 || warp.stores > 0) return;
  if (warp.fed) return LeaveBlock(now, warp);
  warp.state = WarpState::kFree;
  Scheduler& scheduler = schedulers_[warp.scheduler];
  scheduler.resident &= ~Bit(warp);
  scheduler.finished &= ~Bit(warp);
  scheduler.active &= ~Bit(warp);
  --resident_warps_;
  ++counters_.warps;
  Cta& cta = ctas_[warp.cta_slot];
  if (--cta.undrained > 0) return;
  ++counters_.ctas;
  --resident_ctas_;
  ended_.push_back({.at = now,
                    .cta = cta.id,
                    .warp_instructions = cta.warp_instructions,
                    .thread_instructions = cta.thread_instructions,
                    .resident_instructions = ports_.cta_events.empty() ? 0 : ResidentInstructions(cta.launch),
                    .launch = cta.launch,
                    .sm = static_cast<std::uint16_t>(index_),
                    .slot = warp.cta_slot});
  cta.trace.reset();
}

}  // namespace gridloom::timing
