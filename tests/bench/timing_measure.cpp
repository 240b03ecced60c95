#include "tests/bench/timing_measure.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>

#include "scheduler/policy/builtin.h"

namespace gridloom::timing {
namespace {

class LoadedSource final : public trace::CtaSource {
 public:
  explicit LoadedSource(trace::CtaSource& source) : code_(source.code()), shape_(source.shape()) {
    for (std::uint64_t i = 0; i < shape_.ctas; ++i) ctas_.push_back(*source.Load(i));
  }
  const trace::KernelCode& code() const override { return code_; }
  const trace::LaunchShape& shape() const override { return shape_; }
  Result<trace::LoadedCta> Load(std::uint64_t index) override { return ctas_[index]; }

 private:
  trace::KernelCode code_;
  trace::LaunchShape shape_;
  std::vector<trace::LoadedCta> ctas_;
};

/// Of this thread: waiting does not count.
double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::shared_ptr<trace::CtaSource> Loaded(trace::CtaSource& source) { return std::make_shared<LoadedSource>(source); }

Measurement Measure(const sim::DeviceSpec& device, const std::vector<std::shared_ptr<trace::CtaSource>>& sources,
                    const EngineOptions& options, double seconds) {
  Measurement best;
  const double until = WallSeconds() + seconds;
  do {
    const auto policy = policy::MakePolicy("leftover").value();
    auto engine = Engine::Create(device, *policy, options);
    if (!engine.ok()) std::exit(1);
    for (std::uint32_t i = 0; i < sources.size(); ++i) {
      WorkOrder order;
      order.stream = i;
      if (!(*engine)->Add(KernelWork{order, sources[i]}).ok()) std::exit(1);
    }
    // One thread: its CPU time. Several: the time that passes, since they wait for each other.
    const double start = options.threads == 1 ? CpuSeconds() : WallSeconds();
    if (!(*engine)->Run().ok()) std::exit(1);
    best.seconds = std::min(best.seconds, (options.threads == 1 ? CpuSeconds() : WallSeconds()) - start);
    Cycle first = kNever, last = 0;
    for (const auto& result : (*engine)->results()) {
      first = std::min(first, result.started);
      last = std::max(last, result.ended);
    }
    best.cycles = last - first;
    best.counters = (*engine)->counters();
  } while (WallSeconds() < until);
  return best;
}

double WorkShared(const sim::DeviceSpec& device, const std::vector<std::shared_ptr<trace::CtaSource>>& sources,
                  EngineOptions options) {
  ThreadTimes alone, together;
  EngineOptions one = options;
  one.threads = 1;
  one.times = &alone;
  const double between = std::max(0.0, Measure(device, sources, one, 0).seconds - alone.all);
  options.times = &together;
  Measure(device, sources, options, 0);
  return (between + together.all) / (between + together.longest);
}

}  // namespace gridloom::timing
