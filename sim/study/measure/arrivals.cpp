#include "sim/study/measure/arrivals.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <random>

namespace gridloom::study {
namespace {

struct Instance {
  std::size_t kind = 0;
  double arrived = 0, left = 0;  // cycle; thread blocks
};

/// A kind whose first waiting instance runs, and its rate.
struct Running {
  std::size_t kind = 0;
  double rate = 0;
};

class Simulation {
 public:
  Simulation(const std::vector<Kind>& kinds, Rates& rates, policy::CoSchedulePlanner* planner, const Arrivals& arrivals)
      : kinds_(kinds), rates_(rates), planner_(planner), queues_(kinds.size()) {
    Draw(arrivals);
  }

  Result<ArrivalResult> Run() {
    while (waiting_ > 0 || next_ < arriving_.size()) {
      Admit();
      if (waiting_ == 0) {
        result_.idle += arriving_[next_].arrived - now_;
        now_ = arriving_[next_].arrived;
        continue;
      }
      GL_TRY(running, Plan());
      Proceed(running);
    }
    result_.cycles = now_;
    result_.mean_turnaround = turnaround_ / static_cast<double>(std::max<std::size_t>(arriving_.size(), 1));
    return result_;
  }

 private:
  /// Exponential gaps for each kind; all kinds in order of time, those at one time in order of kind.
  void Draw(const Arrivals& arrivals) {
    std::mt19937_64 random(arrivals.seed);
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      double at = 0;
      for (std::uint64_t i = 0; i < arrivals.instances; ++i) {
        // 53 random bits, in (0, 1]: std::exponential_distribution may differ between libraries.
        const double uniform = (static_cast<double>(random() >> 11) + 1) * 0x1p-53;
        at += -std::log(uniform) * arrivals.interarrival;
        arriving_.push_back({.kind = kind, .arrived = at, .left = kinds_[kind].ctas});
      }
    }
    std::ranges::stable_sort(arriving_, {}, &Instance::arrived);
  }

  void Admit() {
    for (; next_ < arriving_.size() && arriving_[next_].arrived <= now_; ++next_, ++waiting_)
      queues_[arriving_[next_].kind].push_back(next_);
  }

  Instance& FirstOf(std::size_t kind) { return arriving_[queues_[kind].front()]; }

  /// The kinds that wait, in order of arrival.
  std::vector<std::size_t> Waiting() const {
    std::vector<std::size_t> waiting;
    for (std::size_t kind = 0; kind < queues_.size(); ++kind) {
      if (!queues_[kind].empty()) waiting.push_back(kind);
    }
    std::ranges::sort(waiting, {}, [&](std::size_t kind) { return queues_[kind].front(); });
    return waiting;
  }

  Result<std::vector<Running>> Plan() {
    if (planner_ != nullptr) {
      ++result_.plans;
      const std::vector<std::size_t> waiting = Waiting();
      std::vector<std::uint64_t> profiles;
      for (const std::size_t kind : waiting) profiles.push_back(kinds_[kind].profile);
      if (const auto schedule = planner_->Find(profiles)) return Pair(waiting, profiles, *schedule);
    }
    return Consolidated();
  }

  Result<std::vector<Running>> Pair(const std::vector<std::size_t>& waiting, const std::vector<std::uint64_t>& profiles,
                                    const policy::CoSchedule& schedule) {
    std::array<std::size_t, 2> kinds{};
    for (std::size_t i = 0; i < 2; ++i) {
      const auto found = std::ranges::find(profiles, schedule.parts[i].profile);
      if (found == profiles.end()) return Error{"the planner chose a kernel that does not wait"};
      kinds[i] = waiting[static_cast<std::size_t>(found - profiles.begin())];
    }
    GL_TRY(rates, rates_.Together(kinds[0], schedule.parts[0].ctas_per_sm, kinds[1], schedule.parts[1].ctas_per_sm));
    return std::vector<Running>{{kinds[0], rates[0]}, {kinds[1], rates[1]}};
  }

  Result<std::vector<Running>> Consolidated() {
    const std::vector<std::size_t> waiting = Waiting();
    const std::size_t first = waiting[0];
    // Whoever arrived next: nobody is taken beside his own kind, which leaves no room.
    const bool same_is_next =
        queues_[first].size() > 1 && (waiting.size() == 1 || queues_[first][1] < queues_[waiting[1]].front());
    if (waiting.size() > 1 && !same_is_next) {
      const std::size_t second = waiting[1];
      const std::uint32_t room = rates_.LeftOver(first, second);
      if (room != 0) {
        GL_TRY(rates, rates_.Together(first, rates_.Full(first), second, room));
        return std::vector<Running>{{first, rates[0]}, {second, rates[1]}};
      }
    }
    GL_TRY(rate, rates_.Alone(first));
    return std::vector<Running>{{first, rate}};
  }

  /// Until one of them ends; who runs alone, until another arrives.
  void Proceed(const std::vector<Running>& running) {
    double step = INFINITY;
    for (const Running& part : running) step = std::min(step, FirstOf(part.kind).left / part.rate);
    const bool interrupted = running.size() == 1 && next_ < arriving_.size() && arriving_[next_].arrived < now_ + step;
    if (interrupted) step = arriving_[next_].arrived - now_;
    now_ = interrupted ? arriving_[next_].arrived : now_ + step;
    if (running.size() == 2) result_.together += step;
    for (const Running& part : running) FirstOf(part.kind).left -= part.rate * step;
    if (interrupted) return;
    for (const Running& part : running) EndIfDone(part.kind);
  }

  /// The one whose end set the step, and another that ends with it but for rounding.
  void EndIfDone(std::size_t kind) {
    constexpr double kRounding = 1e-9;
    const Instance& instance = FirstOf(kind);
    if (instance.left > kRounding * kinds_[kind].ctas) return;
    turnaround_ += now_ - instance.arrived;
    queues_[kind].pop_front();
    --waiting_;
  }

  const std::vector<Kind>& kinds_;
  Rates& rates_;
  policy::CoSchedulePlanner* const planner_;
  std::vector<Instance> arriving_;               // in order of time
  std::size_t next_ = 0;                         // of them
  std::vector<std::deque<std::size_t>> queues_;  // by kind: positions in arriving_ of those that wait
  std::size_t waiting_ = 0;                      // in all queues
  double now_ = 0, turnaround_ = 0;
  ArrivalResult result_;
};

}  // namespace

Result<ArrivalResult> SimulateArrivals(const std::vector<Kind>& kinds, Rates& rates, policy::CoSchedulePlanner* planner,
                                       const Arrivals& arrivals) {
  return Simulation(kinds, rates, planner, arrivals).Run();
}

}  // namespace gridloom::study
