#include "scheduler/daemon/session.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

#include "scheduler/protocol/wait.h"

namespace gridloom::broker {

using protocol::Record;

Status Session::Admit(std::uint32_t tenant_id) {
  tenant = tenant_id;
  GL_TRY(segment, protocol::Segment::Create());
  doorbell_ = protocol::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!doorbell_) return Error{"no descriptors are left"};
  segment_.emplace(std::move(segment));
  reader_.emplace(segment_->layout());
  return {};
}

Result<std::uint32_t> Session::Take(std::uint32_t most, sched::Scheduler& scheduler, const FactsFunction& facts,
                                    SessionHost& host) {
  std::uint32_t taken = 0;
  for (; taken < most; ++taken) {
    const std::uint64_t sequence = reader_->taken();
    GL_TRY(raw, reader_->Take());
    if (!raw) break;
    GL_TRY(record, protocol::ParseRecord(*raw, sequence));
    copied_bytes += record.copied_bytes;
    GL_TRY_STATUS(Handle(record, scheduler, facts, host));
  }
  return taken;
}

Status Session::Handle(const Record& record, sched::Scheduler& scheduler, const FactsFunction& facts,
                       SessionHost& host) {
  if (const auto* launch = std::get_if<protocol::LaunchRecord>(&record.body))
    return Launch(record, *launch, scheduler, facts, host);
  if (const auto* wanted = std::get_if<protocol::MemoryRecord>(&record.body)) {
    host.OnMemory(*this, wanted->bytes);
    return {};
  }
  GL_TRY(slot, SlotOf(record));
  if (const auto* progress = std::get_if<protocol::ProgressRecord>(&record.body))
    return Progress(*slot, progress->done, scheduler);
  const auto& end = std::get<protocol::EndRecord>(record.body);
  if (end.done != 0) GL_TRY_STATUS(Progress(*slot, end.done, scheduler));
  if (slot->id != 0) {
    GL_TRY_STATUS(scheduler.End(slot->id, end.faulted));
    host.OnEnd(slot->id);
  }
  *slot = {};
  --announced_;
  return {};
}

Status Session::Launch(const Record& record, const protocol::LaunchRecord& launch, sched::Scheduler& scheduler,
                       const FactsFunction& facts, SessionHost& host) {
  Slot& slot = slots_[record.slot];
  if (slot.launch != 0) return Error{"slot " + std::to_string(record.slot) + " has a launch already"};
  if (record.launch != launches + 1) {
    return Error{"launch " + std::to_string(record.launch) + " is announced where " + std::to_string(launches + 1) +
                 " has to come"};
  }
  const auto known = facts(launch);
  if (!known.ok()) return Error{"launch of " + launch.name + ": " + known.error().message};
  ++launches;
  ++announced_;
  protocol::Mailbox& mailbox = segment_->layout().mailboxes[record.slot];
  mailbox.granted.store(0, std::memory_order_release);
  mailbox.launch.store(record.launch, std::memory_order_release);
  slot.launch = record.launch;
  slot.name = launch.name;
  slot.ctas = launch.ctas;
  if (ending) return {};  // it was on its way when the tenant was told
  slot.id = scheduler.Submit({.tenant = tenant,
                              .owner = id,
                              .stream = launch.stream,
                              .kernel = launch.kernel,
                              .ctas = launch.ctas,
                              .needs = known->needs,
                              .priority = launch.priority,
                              .profile = known->profile,
                              .divisible = launch.divisible,
                              .name = launch.name});
  host.OnSubmit(slot.id, *this, record.slot);
  return {};
}

Result<Session::Slot*> Session::SlotOf(const Record& record) {
  Slot& slot = slots_[record.slot];
  if (slot.launch == 0 || slot.launch != record.launch) {
    return Error{"slot " + std::to_string(record.slot) + " does not hold launch " + std::to_string(record.launch)};
  }
  return &slot;
}

Status Session::Progress(Slot& slot, std::uint64_t done, sched::Scheduler& scheduler) {
  if (slot.id == 0) {
    return done == slot.done ? Status() : Error{"launch of " + slot.name + " has run although it was withdrawn"};
  }
  GL_TRY_STATUS(scheduler.Progress(slot.id, done));
  if (done == slot.done) return {};  // a report of nothing is no sign of life
  slot.done = done;
  slot.since = protocol::NowNs();
  if (done >= slot.turn_end) {
    slot.turn_end = slot.granted;
    slot.turn_since = slot.since;
  }
  return {};
}

void Session::Grant(std::uint32_t index, std::uint64_t end, std::uint64_t now) {
  Slot& slot = slots_[index];
  if (slot.granted == slot.done) {
    slot.since = slot.turn_since = now;
    slot.turn_end = end;
  }
  slot.granted = end;
  protocol::Mailbox& mailbox = segment_->layout().mailboxes[index];
  mailbox.granted.store(end, std::memory_order_seq_cst);
  mailbox.bell.fetch_add(1, std::memory_order_seq_cst);
  if (mailbox.sleepers.load(std::memory_order_seq_cst) != 0) protocol::FutexWakeAll(mailbox.bell);
}

void Session::Withdraw(sched::Scheduler& scheduler, SessionHost& host) {
  ending = true;
  for (Slot& slot : slots_) {
    if (slot.id == 0) continue;
    static_cast<void>(scheduler.Withdraw(slot.id).ok());  // it is known
    if (slot.granted != slot.done) continue;
    host.OnEnd(slot.id);
    slot.id = 0;
  }
}

bool Session::runs() const {
  return announced_ != 0 && std::ranges::any_of(slots_, [](const Slot& slot) { return slot.granted > slot.done; });
}

void Session::Abandon(sched::Scheduler& scheduler, SessionHost& host) {
  for (Slot& slot : slots_) {
    if (slot.launch == 0) continue;
    const Slot ended = std::exchange(slot, {});
    if (ended.id == 0) continue;
    static_cast<void>(scheduler.End(ended.id, false).ok());  // it is known: every slot with a launch is
    host.OnEnd(ended.id);
  }
  announced_ = 0;
}

std::string Session::Overdue(std::uint64_t now, const Patience& patience) const {
  if (announced_ == 0) return {};
  const auto over = [now](std::uint64_t since, std::uint64_t limit) {
    return limit != 0 && now > since && now - since > limit;
  };
  const auto seconds = [](std::uint64_t ns) { return std::to_string(ns / 1'000'000'000) + " s"; };
  for (const Slot& slot : slots_) {
    if (slot.granted <= slot.done) continue;
    if (over(slot.since, patience.slice)) return "a slice took longer than " + seconds(patience.slice);
    if (over(slot.turn_since, patience.grant)) return "a grant had not run after " + seconds(patience.grant);
  }
  return {};
}

Session::Running Session::RunningKernel() const {
  if (announced_ == 0) return {};
  for (const Slot& slot : slots_) {
    if (slot.granted > slot.done) return {slot.name, slot.ctas, slot.done};
  }
  return {};
}

}  // namespace gridloom::broker
