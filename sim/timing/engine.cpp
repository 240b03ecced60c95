#include "sim/timing/engine.h"

#include <algorithm>
#include <utility>

namespace gridloom::timing {
namespace {

/// Who looks on or acts between windows sees partitions that are not behind.
bool MayOverlap(const Parameters& parameters, const EngineOptions& options, unsigned threads) {
  const bool alone = options.hooks.window == nullptr && options.hooks.observer == nullptr;
  return threads > 1 && !options.plain && alone && 2 * parameters.window <= parameters.request_latency + parameters.response_latency;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::Create(const sim::DeviceSpec& device, policy::Policy& policy, EngineOptions options) {
  auto parameters = Derive(device);
  if (!parameters.ok()) return Error{device.id + ": " + parameters.error().message};
  return std::unique_ptr<Engine>(new Engine(std::move(*parameters), policy, options));
}

Engine::Engine(Parameters parameters, policy::Policy& policy, EngineOptions options)
    : parameters_(std::move(parameters)),
      options_(options),
      threads_(std::clamp(options.threads, 1u, parameters_.device.sm.count)),
      overlaps_(MayOverlap(parameters_, options_, threads_)),
      map_(parameters_),
      dispatcher_(parameters_, policy, options_.hooks, options_.layout, options_.keep_ended) {
  for (std::uint32_t s = 0; s < parameters_.device.sm.count; ++s) {
    sms_.push_back(std::make_unique<Sm>(parameters_, map_, options_.hooks, s, threads_, options_.plain));
  }
  for (std::uint32_t p = 0; p < parameters_.timing().dram.channels; ++p) {
    partitions_.push_back(std::make_unique<MemoryPartition>(parameters_, map_, options_.hooks, p, threads_, options_.plain));
  }
}

Counters Engine::counters() const {
  Counters sum;
  for (const auto& sm : sms_) sum.sm += sm->counters();
  for (const auto& partition : partitions_) sum.memory += partition->counters();
  return sum;
}

Counters Engine::counters_now() const {
  Counters sum;
  for (const auto& sm : sms_) sum.sm += sm->counters_until(now_);
  for (const auto& partition : partitions_) sum.memory += partition->counters();
  return sum;
}

void Engine::RunSms(unsigned thread, Cycle begin, Cycle end) {
  for (const auto& partition : partitions_) {
    std::vector<Response>& responses = partition->outbox().sealed(thread);
    for (const Response& response : responses) sms_[response.sm]->Add(response);
    responses.clear();
  }
  if (thread < sms_.size()) sms_[thread]->Prefetch();
  for (std::size_t s = thread; s < sms_.size(); s += threads_) {
    if (s + threads_ < sms_.size()) sms_[s + threads_]->Prefetch();
    sms_[s]->SortInbox();
    sms_[s]->Run(begin, end);
  }
}

/// Groups are given out the other way round, so that the thread with one SM more does not also have one partition more.
void Engine::RunPartitions(unsigned thread, Cycle end) {
  const unsigned group = threads_ - 1 - thread;
  for (const auto& sm : sms_) {
    std::vector<Request>& requests = sm->outbox().sealed(group);
    for (const Request& request : requests) partitions_[request.partition()]->Add(request);
    requests.clear();
  }
  for (std::size_t p = group; p < partitions_.size(); p += threads_) {
    partitions_[p]->SortInboxes();
    partitions_[p]->Run(end);
  }
}

void Engine::SealSms() {
  for (const auto& sm : sms_) sm->outbox().Seal();
}
void Engine::SealPartitions() {
  for (const auto& partition : partitions_) partition->outbox().Seal();
}

/// The cycles from `begin` to now_ on the SMs, and of the partitions what they have to do until SMs may go on.
void Engine::RunWindow(PhaseThreads& threads, Cycle begin) {
  const Cycle behind = std::exchange(behind_, now_ + parameters_.request_latency);
  threads.Run([&](unsigned thread) {
    RunSms(thread, begin, now_);
    if (behind != 0) RunPartitions(thread, behind);
  });
  SealSms();
  if (behind != 0) SealPartitions();
  if (!overlaps_) CatchUp(threads);
}

/// Simulates partitions as far as SMs have been.
void Engine::CatchUp(PhaseThreads& threads) {
  if (behind_ == 0) return;
  threads.Run([&](unsigned thread) { RunPartitions(thread, behind_); });
  SealPartitions();
  behind_ = 0;
}

Status Engine::Dispatch(Cycle end) {
  for (const auto& sm : sms_) {
    if (!sm->ended().empty()) dispatcher_.Ended(sm->ended());
  }
  return dispatcher_.Run(end, [&](std::uint32_t sm, CtaStart start) { sms_[sm]->Start(std::move(start)); });
}

/// Nothing happens before that cycle; kNever: nothing at all.
Cycle Engine::NextEvent() const {
  Cycle next = dispatcher_.held_back() ? now_ : dispatcher_.next();
  for (const auto& partition : partitions_) {
    for (unsigned group = 0; group < threads_; ++group) {
      if (!partition->outbox().sealed(group).empty()) return now_;
    }
    next = std::min(next, partition->next());
  }
  for (const auto& sm : sms_) next = std::min(next, sm->next());
  return next;
}

/// Windows begin at multiples of their length, so that what is measured at their ends does not depend on where RunUntil stopped.
Status Engine::RunUntil(Cycle limit, const std::function<bool()>& stop) {
  const Cycle window = options_.window == 0 ? parameters_.window : std::min(options_.window, parameters_.window);
  PhaseThreads threads(threads_, options_.times);
  while (true) {
    // A decision at t starts a CTA at t + launch.cta_cycles, which is not before the next window.
    GL_TRY_STATUS(Dispatch(now_));
    if (HasReports()) {
      CatchUp(threads);
      Report();
    }
    const bool stops = stop && stop();
    Cycle next = stops ? kNever : NextEvent();
    if (next >= now_ + window && behind_ != 0) {
      // Nothing near is known; but what partitions have not done yet may come of it.
      CatchUp(threads);
      next = NextEvent();
    }
    if (stops) return {};
    const Cycle begin = options_.plain || next == kNever ? now_ : std::max(now_, next / window * window);
    if (next != kNever && begin + window > limit) {
      CatchUp(threads);
      return {};
    }
    if (options_.hooks.observer != nullptr) options_.hooks.observer->OnWindow(*this, begin);
    if (next == kNever) return {};
    now_ = begin + window;
    if (options_.hooks.window != nullptr) options_.hooks.window->OnWindow(begin, now_);
    RunWindow(threads, begin);
  }
}

Status Engine::Run() {
  GL_TRY_STATUS(RunUntil(kNever, {}));
  if (!dispatcher_.all_done()) return Error{"the device stands still: the policy starts none of the kernels that are ready"};
  return {};
}

bool Engine::HasReports() const { return options_.on_finished && !(dispatcher_.begun().empty() && dispatcher_.finished().empty()); }

void Engine::Report() {
  const Counters sum = counters_now();
  for (const WorkId id : dispatcher_.finished()) {
    const auto begin = counters_at_begin_.find(id);
    Counters during;
    if (begin != counters_at_begin_.end()) {
      during = sum;
      during -= begin->second;
      counters_at_begin_.erase(begin);
    }
    options_.on_finished(id, result(id), during);
  }
  for (const WorkId id : dispatcher_.begun()) counters_at_begin_.emplace(id, sum);
}

}  // namespace gridloom::timing
