// gridloom replay: traces on the timing model, on several devices and under several policies at once.
#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "interpose/launcher/commands.h"
#include "interpose/launcher/kernel_profiles.h"
#include "interpose/launcher/replay_job.h"
#include "interpose/launcher/terminal.h"
#include "rewriter/support/suggest.h"
#include "scheduler/policy/builtin.h"
#include "sim/exec/memcheck.h"
#include "sim/hardware/device_files.h"

namespace gridloom::launcher {
namespace {

using Json = nlohmann::ordered_json;

struct Job {
  sim::DeviceSpec device;
  std::string policy;
  std::optional<Result<ReplayResult>> result;
};

std::string Number(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

double Ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }

double DramGigabytes(const ReplayResult& result, const sim::DeviceSpec& device) {
  const double bytes = static_cast<double>(result.counters.memory.dram_read_bytes + result.counters.memory.dram_write_bytes);
  return Ratio(bytes, result.SimulatedSeconds(device)) / 1e9;
}

class ReplayCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.add_option("traces", paths_, "traces, as `gridloom run --trace` writes them; several share the device")->type_name("")->required();
    app.add_option("--device,-d", devices_, "devices, or YAML files, separated by commas (default: h200)")
        ->type_name("NAME,...")
        ->delimiter(',')
        ->allow_extra_args(false);
    app.add_option("--policy,-p", policies_, "scheduling policies, separated by commas (default: leftover)")
        ->type_name("NAME,...")
        ->delimiter(',')
        ->allow_extra_args(false);
    app.add_option("--jobs,-j", jobs_, "replays at the same time (default: one per core)")->type_name("N");
    app.add_option("--threads", threads_, "host threads of each replay; the results are the same (default: 1)")->type_name("N");
    app.add_option("--profiles", profiles_path_, "profiles of kernels on the device, for the policy kernelet (default: it makes them)")
        ->type_name("FILE");
    app.add_option("--write-profiles", write_profiles_, "profile the kernels on the device, write FILE and replay nothing")
        ->type_name("FILE");
    app.add_flag("--json", json_, "print JSON, every statistic included");
  }

  int Run() override {
    if (devices_.empty()) devices_.emplace_back(sim::kDefaultDevice);
    if (policies_.empty()) policies_ = {"leftover"};
    for (const std::string& path : paths_) {
      auto file = trace::TraceFile::Open(path);
      if (!file) return Fail(file.error().message);
      if (!(*file)->problem().empty()) std::fprintf(stderr, "gridloom: %s\n", (*file)->problem().c_str());
      traces_.push_back(*std::move(file));
    }
    std::vector<Job> jobs;
    for (const std::string& policy : policies_) {
      const auto names = policy::PolicyNames();
      if (std::ranges::find(names, policy) == names.end()) return UnknownPolicy(policy);
    }
    for (const std::string& name : devices_) {
      auto device = sim::LoadDevice(name);
      if (!device.ok()) return Fail(device.error().message);
      for (const std::string& policy : policies_) jobs.push_back({*device, policy, std::nullopt});
    }
    if (!profiles_path_.empty() || !write_profiles_.empty()) {
      if (devices_.size() != 1) return Fail("profiles are of one device: name one with --device");
    }
    if (!write_profiles_.empty()) return WriteProfiles(jobs.front().device);
    if (!profiles_path_.empty()) {
      auto profiles = model::LoadProfiles(profiles_path_);
      if (!profiles.ok()) return Fail(profiles.error().message);
      profiles_ = *std::move(profiles);
    }
    RunAll(jobs);
    Json json = Json::array();
    int exit_code = kExitOk;
    for (const Job& job : jobs) {
      if (!job.result->ok()) exit_code = Fail(job.device.id + ", " + job.policy + ": " + job.result->error().message);
      else if (json_) json.push_back(ToJson(job, **job.result));
      else PrintText(job, **job.result);
    }
    if (json_) Print(json.dump(2) + "\n");
    return exit_code;
  }

 private:
  static int UnknownPolicy(const std::string& name) {
    std::string all;
    for (const std::string_view policy : policy::PolicyNames()) all += (all.empty() ? "" : ", ") + std::string(policy);
    const std::string_view nearest = NearestName(name, policy::PolicyNames());
    return Fail("no policy '" + name + "'; there are " + all + (nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?"));
  }

  int WriteProfiles(const sim::DeviceSpec& device) const {
    const auto profiles = ProfileTraces(device, traces_);
    if (!profiles.ok()) return Fail(device.id + ": " + profiles.error().message);
    std::ofstream file(write_profiles_);
    file << model::ToJson(*profiles);
    file.close();
    if (!file) return Fail(write_profiles_ + ": cannot be written");
    Print(write_profiles_ + ": profiles of " + std::to_string(profiles->kernels.size()) + " kernels on " + device.id + "\n");
    return kExitOk;
  }

  void RunAll(std::vector<Job>& jobs) const {
    std::atomic<std::size_t> next{0}, done{0};
    std::mutex mutex;
    const auto work = [&] {
      for (std::size_t i = next++; i < jobs.size(); i = next++) {
        jobs[i].result = Replay(jobs[i].device, jobs[i].policy, traces_, threads_, profiles_ ? &*profiles_ : nullptr);
        const std::lock_guard lock(mutex);
        if (jobs.size() > 1) std::fprintf(stderr, "gridloom: %zu of %zu replays done\n", ++done, jobs.size());
      }
    };
    const unsigned wanted = jobs_ != 0 ? jobs_ : std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < std::min<std::size_t>(wanted, jobs.size()); ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
  }

  void PrintText(const Job& job, const ReplayResult& result) const {
    const double seconds = result.SimulatedSeconds(job.device);
    Print(Coloured(Colour::kBold, job.device.id) + ", policy " + job.policy + ": " + exec::WithCommas(result.cycles) + " cycles, " +
          Number("%.3f ms", seconds * 1e3) + "\n\n");
    Table table({">launches", ">CTAs", ">cycles", ">time us", ">IPC", "kernel"});
    for (const KernelTimes& kernel : result.kernels) {
      table.Add({exec::WithCommas(kernel.launches), exec::WithCommas(kernel.ctas), exec::WithCommas(kernel.cycles),
                 Number("%.1f", static_cast<double>(kernel.cycles) / job.device.timing.clock.sm_mhz),
                 Number("%.2f", Ratio(static_cast<double>(kernel.warp_instructions), static_cast<double>(kernel.cycles))),
                 exec::DemangledName(kernel.name)});
    }
    Print(table.Text(2));
    const timing::SmCounters& sm = result.counters.sm;
    const timing::MemoryCounters& memory = result.counters.memory;
    const double l1 = static_cast<double>(sm.l1_hits + sm.l1_misses);
    Print(
        "\n  warp instructions " + exec::WithCommas(sm.warp_instructions) + ", IPC " +
        Number("%.2f", Ratio(static_cast<double>(sm.warp_instructions), static_cast<double>(result.cycles))) + ", bound by " +
        BoundBy(result, job.device) + "\n  L1 hits " + Number("%.1f %%", 100 * Ratio(static_cast<double>(sm.l1_hits), l1)) + ", L2 hits " +
        Number("%.1f %%", 100 * (1 - Ratio(static_cast<double>(memory.l2_sector_misses), static_cast<double>(memory.l2_sector_accesses)))) +
        ", DRAM " + Number("%.1f GB/s", DramGigabytes(result, job.device)) + "\n  simulated in " + Number("%.2f s", result.host_seconds) +
        ", " + Number("%.2f million", Ratio(static_cast<double>(sm.warp_instructions), result.host_seconds) / 1e6) +
        " warp instructions per second\n\n");
  }

  static Json ToJson(const Job& job, const ReplayResult& result) {
    Json json{{"device", job.device.id},
              {"policy", job.policy},
              {"cycles", result.cycles},
              {"seconds", result.SimulatedSeconds(job.device)},
              {"bound_by", BoundBy(result, job.device)},
              {"dram_gigabytes_per_second", DramGigabytes(result, job.device)},
              {"host_seconds", result.host_seconds}};
    json["kernels"] = Json::array();
    for (const KernelTimes& kernel : result.kernels) {
      json["kernels"].push_back({{"name", exec::DemangledName(kernel.name)},
                                 {"symbol", kernel.name},
                                 {"launches", kernel.launches},
                                 {"ctas", kernel.ctas},
                                 {"cycles", kernel.cycles},
                                 {"warp_instructions", kernel.warp_instructions},
                                 {"thread_instructions", kernel.thread_instructions}});
    }
    for (const timing::CounterInfo& counter : timing::CounterTable())
      json["counters"][std::string(counter.name)] = counter.value(result.counters);
    return json;
  }

  std::vector<std::string> paths_, devices_, policies_;
  std::string profiles_path_, write_profiles_;
  std::optional<model::ProfileFile> profiles_;
  std::vector<std::shared_ptr<trace::TraceFile>> traces_;
  unsigned jobs_ = 0, threads_ = 1;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeReplay() { return std::make_unique<ReplayCommand>(); }

}  // namespace gridloom::launcher
