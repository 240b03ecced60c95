#include "sim/study/measure/co_run.h"

#include <algorithm>
#include <optional>

#include "scheduler/policy/leftover.h"
#include "sim/hardware/catalog.h"
#include "sim/timing/engine.h"
#include "sim/timing/sm/occupancy.h"

namespace gridloom::study {
namespace {

using timing::Cycle;

constexpr std::uint64_t kEndless = std::uint64_t{1} << 40;  // blocks; a measurement ends long before

/// Launch i holds up to quota[i] blocks on every SM.
class Quotas final : public policy::Policy {
 public:
  explicit Quotas(std::vector<std::uint32_t> quotas) : quotas_(std::move(quotas)) {}
  std::string_view name() const override { return "quotas"; }
  std::optional<policy::Slice> Next(const policy::Snapshot& snapshot) override {
    for (const policy::KernelView& kernel : snapshot.kernels) {
      const std::uint32_t quota = quotas_[kernel.id];
      for (std::size_t sm = 0; sm < snapshot.sms.size(); ++sm) {
        if (kernel.resident[sm] < quota && snapshot.sms[sm].Fits(kernel.needs))
          return policy::Slice{.kernel = kernel.id, .ctas = kEndless, .max_per_sm = quota};
      }
    }
    return std::nullopt;
  }

 private:
  const std::vector<std::uint32_t> quotas_;
};

timing::Counters Difference(const timing::Counters& end, const timing::Counters& begin) {
  timing::Counters difference = end;
  difference -= begin;
  return difference;
}

/// Counts the waves of every launch, and takes the counters between the time when all are warm and the time when all
/// are done.
class Meter final : public timing::Observer {
 public:
  Meter(std::vector<std::uint64_t> waves, const CoRunOptions& options) : options_(options) {
    for (const std::uint64_t ctas : waves) launches_.push_back({.wave = ctas});
  }

  void OnCtaStart(Cycle, const timing::CtaPlace&) override {}
  void OnKernelEnd(Cycle, std::uint32_t) override {}
  void OnCtaEnd(Cycle at, const timing::CtaPlace& place) override {
    Launch& launch = launches_[place.launch];
    if (++launch.ended % launch.wave != 0) return;
    const std::uint64_t waves = launch.ended / launch.wave;
    if (waves == options_.warmup_waves) launch.begin = at;
    launch.end = at;
  }
  void OnWindow(const timing::Engine& engine, Cycle) override {
    if (done_) return;
    if (!warm_ && AllHave(options_.warmup_waves)) warm_ = Mark::At(engine);
    if (warm_ && AllHave(options_.warmup_waves + options_.measured_waves)) return Finish(engine, *warm_);
    if (options_.effort.most == 0 || ++windows_ % kWindowsALook != 0) return;
    const std::uint64_t simulated = engine.counters_now().sm.warp_instructions;
    if (!third_ && simulated >= options_.effort.most / 3) {
      third_ = Mark::At(engine);
    } else if (third_ && simulated >= options_.effort.most) {
      cut_ = true;
      Finish(engine, *third_);
    }
  }

  bool done() const { return done_; }
  bool cut() const { return cut_; }  ///< waves are missing: only cycles() and counters() say something
  Cycle cycles() const { return cycles_; }
  const timing::Counters& counters() const { return counters_; }
  double CtasPerCycle(std::size_t number) const {
    const Launch& launch = launches_[number];
    const std::uint64_t ctas = launch.ended / launch.wave * launch.wave - options_.warmup_waves * launch.wave;
    return static_cast<double>(ctas) / static_cast<double>(std::max<Cycle>(launch.end - launch.begin, 1));
  }

 private:
  struct Launch {
    std::uint64_t wave = 0, ended = 0;
    Cycle begin = 0, end = 0;  // of the last block of the last warm-up wave, and of the last whole wave
  };
  struct Mark {
    Cycle at = 0;
    timing::Counters counters;
    static Mark At(const timing::Engine& engine) { return {.at = engine.now(), .counters = engine.counters_now()}; }
  };
  static constexpr std::uint64_t kWindowsALook = 16;  // counters are sums over the device
  bool AllHave(std::uint64_t waves) const {
    return std::ranges::all_of(launches_, [&](const Launch& launch) { return launch.ended >= waves * launch.wave; });
  }
  void Finish(const timing::Engine& engine, const Mark& begin) {
    done_ = true;
    cycles_ = engine.now() - begin.at;
    counters_ = Difference(engine.counters_now(), begin.counters);
  }

  const CoRunOptions options_;
  std::vector<Launch> launches_;
  std::optional<Mark> warm_, third_;
  std::uint64_t windows_ = 0;
  bool done_ = false, cut_ = false;
  Cycle cycles_ = 0;
  timing::Counters counters_;
};

/// When so many blocks had ended.
class EndOf final : public timing::Observer {
 public:
  explicit EndOf(std::uint64_t ctas) : left_(ctas) {}
  void OnCtaStart(Cycle, const timing::CtaPlace&) override {}
  void OnKernelEnd(Cycle, std::uint32_t) override {}
  void OnWindow(const timing::Engine&, Cycle) override {}
  void OnCtaEnd(Cycle at, const timing::CtaPlace&) override {
    if (left_ == 0) return;
    at_ = std::max(at_, at);
    --left_;
  }
  Cycle at() const { return at_; }

 private:
  std::uint64_t left_;
  Cycle at_ = 0;
};

/// When the last work ended. The latency of the first launch is the host's and left out.
Cycle LastEnd(const timing::Engine& engine) {
  Cycle end = 0;
  for (const timing::WorkResult& result : engine.results()) end = std::max(end, result.ended);
  return end - engine.parameters().timing().launch.kernel_cycles;
}

/// Whether an SM has room for all blocks asked for.
Status CheckRoom(const sim::DeviceSpec& device, std::span<const CoRunPart> parts) {
  policy::SmView room = timing::EmptySm(device);
  for (const CoRunPart& part : parts) {
    GL_TRY(needs, timing::NeedsOf(part.kernel->shape, device));
    for (std::uint32_t i = 0; i < part.ctas_per_sm; ++i) {
      if (!room.Fits(needs))
        return Error{device.id + ": no room for " + std::to_string(part.ctas_per_sm) + " blocks of " +
                     part.kernel->name};
      --room.free_ctas;
      room.free_warps -= needs.warps;
      room.free_registers -= needs.registers;
      room.free_shared_bytes -= needs.shared_bytes;
    }
    if (part.ctas_per_sm == 0) return Error{"no blocks of " + part.kernel->name + " asked for"};
  }
  return {};
}

}  // namespace

Result<CoRunRates> MeasureCoRun(const sim::DeviceSpec& device, std::span<const CoRunPart> parts,
                                const CoRunOptions& options) {
  GL_TRY_STATUS(CheckRoom(device, parts));
  if (options.effort.most != 0 && parts.size() != 1) return Error{"only measurements of one kernel can be bounded"};
  std::vector<std::uint32_t> quotas;
  std::vector<std::uint64_t> waves;
  for (const CoRunPart& part : parts) {
    quotas.push_back(part.ctas_per_sm);
    waves.push_back(std::uint64_t{part.ctas_per_sm} * device.sm.count);
  }
  Quotas policy(std::move(quotas));
  Meter meter(std::move(waves), options);
  timing::EngineOptions engine_options;
  engine_options.observer = &meter;
  engine_options.layout = options.layout;
  GL_TRY(hardware_parts, hardware::Build(device));
  engine_options.parts = std::move(hardware_parts);
  GL_TRY(engine, timing::Engine::Create(device, policy, engine_options));
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    timing::KernelWork work;
    work.order.stream = i;
    work.source = BlocksOf(parts[i].kernel, 0, kEndless);
    work.address_space = parts[i].kernel->process;
    GL_TRY(id, engine->Add(std::move(work)));
    static_cast<void>(id);  // it is i
  }
  GL_TRY_STATUS(engine->RunUntil(timing::kNever, [&] { return meter.done(); }));
  if (!meter.done()) return Error{device.id + ": the device stands still"};
  if (options.effort.simulated != nullptr) *options.effort.simulated += engine->counters().sm.warp_instructions;
  CoRunRates rates;
  rates.cycles = meter.cycles();
  rates.counters = meter.counters();
  if (meter.cut()) {
    const double ipc =
        static_cast<double>(rates.counters.sm.warp_instructions) / static_cast<double>(rates.cycles * device.sm.count);
    rates.parts.push_back(
        {.ctas_per_cycle = ipc * device.sm.count / parts[0].kernel->instructions_per_cta, .ipc = ipc});
    return rates;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double ctas = meter.CtasPerCycle(i);
    rates.parts.push_back(
        {.ctas_per_cycle = ctas, .ipc = ctas * parts[i].kernel->instructions_per_cta / device.sm.count});
  }
  return rates;
}

Result<Cycle> MeasureSliced(const sim::DeviceSpec& device, const std::shared_ptr<const TracedKernel>& kernel,
                            const SlicedRun& run) {
  const std::uint64_t slice = run.slice == 0 ? run.ctas : run.slice;
  policy::Leftover policy;
  EndOf skipped(run.skip);
  timing::EngineOptions options;
  options.observer = &skipped;
  options.layout = run.layout;
  GL_TRY(parts, hardware::Build(device));
  options.parts = std::move(parts);
  GL_TRY(engine, timing::Engine::Create(device, policy, options));
  std::uint32_t number = 0;
  for (std::uint64_t first = 0; first < run.ctas; first += slice, ++number) {
    timing::KernelWork work;
    work.order.stream = number % kSliceStreams;
    work.order.submitted = number * run.launch_interval;
    work.source = BlocksOf(kernel, first, std::min(slice, run.ctas - first));
    work.address_space = kernel->process;
    GL_TRY(id, engine->Add(std::move(work)));
    static_cast<void>(id);
  }
  GL_TRY_STATUS(engine->Run());
  if (run.simulated != nullptr) *run.simulated += engine->counters().sm.warp_instructions;
  if (run.skip == 0) return LastEnd(*engine);
  return LastEnd(*engine) + engine->parameters().timing().launch.kernel_cycles - skipped.at();
}

SlicedRun SlicingRun(const sim::DeviceSpec& device, std::uint64_t full, std::uint64_t ctas_per_sm,
                     Cycle launch_interval, std::uint64_t* simulated) {
  constexpr std::uint64_t kSkippedLoads = 2, kLoads = 6;  // of the device
  const std::uint64_t load = full * device.sm.count;
  return {.ctas = kLoads * load,
          .slice = ctas_per_sm * device.sm.count,
          .launch_interval = launch_interval,
          .skip = kSkippedLoads * load,
          .simulated = simulated};
}

Result<Cycle> MeasureTogether(const sim::DeviceSpec& device,
                              std::span<const std::shared_ptr<const TracedKernel>> kernels, policy::Policy& policy,
                              std::uint64_t layout) {
  timing::EngineOptions options;
  options.layout = layout;
  GL_TRY(parts, hardware::Build(device));
  options.parts = std::move(parts);
  GL_TRY(engine, timing::Engine::Create(device, policy, options));
  for (std::uint32_t i = 0; i < kernels.size(); ++i) {
    timing::KernelWork work;
    work.order.stream = i;
    work.profile = i + 1;
    work.source = BlocksOf(kernels[i], 0, kernels[i]->ctas.size());
    work.address_space = kernels[i]->process;
    GL_TRY(id, engine->Add(std::move(work)));
    static_cast<void>(id);
  }
  GL_TRY_STATUS(engine->Run());
  return LastEnd(*engine);
}

}  // namespace gridloom::study
