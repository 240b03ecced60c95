#include "scheduler/daemon/daemon.h"

#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "rewriter/support/log.h"
#include "rewriter/support/printable.h"
#include "scheduler/daemon/broker.h"
#include "scheduler/daemon/config.h"
#include "scheduler/daemon/web.h"
#include "scheduler/model/kernelet_setup.h"
#include "scheduler/protocol/message.h"
#include "scheduler/protocol/secret.h"
#include "sim/device/device_files.h"
#include "sim/hardware/catalog.h"
#include "sim/tenants/timing_service.h"
#include "sim/timing/sm/occupancy.h"

namespace gridloom::broker {
namespace {

constexpr int kExitFailed = 125;

Broker* g_broker = nullptr;  // for the signal handler alone

void OnSignal(int) { g_broker->Stop(); }

/// Says on standard error what is wrong with the command line.
int Refuse(const std::string& message) {
  std::fprintf(stderr, "gridloom: %s\n", PrintableText(message).c_str());
  return kExitFailed;
}

/// A session takes four descriptors; the usual limit of 1024 is for programs that use select.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::string DefaultState() {
  if (const char* folder = std::getenv("STATE_DIRECTORY"); folder != nullptr && *folder == '/')
    return folder;  // systemd's
  if (const char* folder = std::getenv("XDG_STATE_HOME"); folder != nullptr && *folder == '/')
    return std::string(folder) + "/gridloom";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return std::string(home) + "/.local/state/gridloom";
  return {};
}

/// Takes what the operator should know, on any thread.
using Tell = std::function<void(const std::string& sentence)>;

/// One line for each sentence, whatever tenants call themselves and their kernels.
Tell Warnings(const Logger& log) {
  return [&log](const std::string& sentence) { log.Write(LogLevel::kWarn, Printable(sentence)); };
}

/// Profiles by KernelHash, since a record has no room for long names, and warps of a block.
class KernelProfiles {
 public:
  KernelProfiles() = default;
  /// `path`: of the file. `tell` hears of kernels that it lacks, where it is set.
  KernelProfiles(std::string path, const model::ProfileFile& file, const model::ProfileTable& table, Tell tell)
      : path_(std::move(path)), tell_(std::move(tell)) {
    for (const model::KernelProfile& kernel : file.kernels) {
      const std::uint32_t warps = kernel.needs.warps;
      profiles_[{protocol::KernelHash(kernel.kernel), warps}] = table.Find(kernel.kernel, warps);
    }
  }
  /// 0: none describes such a launch. Where there are profiles of others the operator hears of it, once for each
  /// kernel.
  std::uint64_t Find(const protocol::LaunchRecord& launch, std::uint32_t warps) {
    if (const auto found = profiles_.find({launch.kernel, warps}); found != profiles_.end()) return found->second;
    // What tenants call their kernels does not fill memory or the log.
    if (tell_ && told_.size() < kMostTold && told_.insert(launch.kernel).second) {
      if (told_.size() == kMostTold) tell_("further kernels without a profile are not named");
      else
        tell_("kernel " + launch.name + " has no profile, and is scheduled without one: " + path_ +
              " has none of it with blocks of " + std::to_string(warps) + (warps == 1 ? " warp" : " warps"));
    }
    return 0;
  }

 private:
  static constexpr std::size_t kMostTold = 256;
  std::string path_;
  Tell tell_;
  std::set<std::uint64_t> told_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> profiles_;
};

/// What programs are told to look for.
Result<std::string> SourceOf(const std::string& name, const sim::DeviceSpec& device) {
  if (device.id == name) return name;
  std::error_code error;
  const std::string path = std::filesystem::canonical(name, error).string();
  if (error) return Error{name + ": " + error.message()};
  if (path.size() > protocol::kMostDeviceName)
    return Error{path + ": programs cannot be told of a path of more than " +
                 std::to_string(protocol::kMostDeviceName) + " bytes"};
  return path;
}

/// `tell`, where it is set, hears of kernels without a profile; where time is simulated the simulation does.
Result<DeviceFacts> FactsOf(const std::string& name, const std::string& profile_file, const Tell& tell) {
  GL_TRY(device, sim::LoadDevice(name));
  DeviceFacts facts;
  facts.id = device.id;
  GL_TRY(source, SourceOf(name, device));
  facts.source = std::move(source);
  facts.sms = device.sm.count;
  facts.empty_sm = timing::EmptySm(device);
  facts.resident_kernels = device.grid.max_resident;
  facts.memory_bytes = device.memory.size_bytes;
  KernelProfiles profiles;
  if (!profile_file.empty()) {
    GL_TRY(file, model::LoadProfiles(profile_file));
    GL_TRY(setup, model::SetUpKernelet(file, {}, true));
    facts.plan = [planner = setup.planner] { return planner->Advance(); };
    profiles = KernelProfiles(profile_file, file, *setup.profiles, tell);
    facts.policy_inputs = setup.inputs;
  }
  facts.facts = [device, profiles](const protocol::LaunchRecord& launch) mutable {
    trace::LaunchShape shape;
    shape.ctas = launch.ctas;
    shape.threads_per_cta = launch.threads_per_cta;
    shape.registers_per_thread = launch.registers_per_thread;
    shape.shared_bytes = launch.shared_bytes;
    // What a program believes it runs on may be larger than what is shared: then a CTA takes a multiprocessor whole.
    const policy::SmView sm = timing::EmptySm(device);
    auto needs = timing::NeedsOf(shape, device);
    if (!needs.ok()) needs = policy::CtaNeeds{sm.free_warps, sm.free_registers, sm.free_shared_bytes};
    return Result<LaunchFacts>(LaunchFacts{*needs, profiles.Find(launch, shape.warps_per_cta())});
  };
  return facts;
}

/// The timing model, when the configuration wants one; else nothing.
Result<std::unique_ptr<tenants::TimingService>> MakeTiming(const DaemonConfig& config, const Tell& tell) {
  if (!config.timing) return std::unique_ptr<tenants::TimingService>();
  GL_TRY(device, sim::LoadDevice(config.device));
  GL_TRY_STATUS(hardware::Equip(config.hardware, "", device));
  tenants::TimingService::Options options;
  options.policy = config.policy;
  options.threads = config.timing_threads;
  options.wait_for = config.timing_wait_for;
  options.patience_ms = config.timing_patience_ms;
  options.tenant = {.bytes = config.timing_memory, .disk_bytes = config.timing_disk};
  options.launch_seconds = config.timing_launch_s;
  options.alone = config.timing_alone;
  options.profiles = config.profiles;
  options.tell = tell;
  return tenants::TimingService::Create(std::move(device), std::move(options));
}

/// What the command line sets; it wins over the file.
struct Arguments {
  std::string config, socket, device, policy, profiles, hardware, state;
  std::uint32_t http_port = 0;
  std::string http_token_file;
  std::string log, log_file;
  bool timing = false, quiet = false;
  std::uint32_t timing_threads = 0, timing_wait_for = 0, timing_alone = 0;

  void Describe(CLI::App& app) {
    app.add_option("--config,-c", config, "YAML file with limits and tenants (docs/broker.md)")->type_name("FILE");
    app.add_option("--socket,-s", socket, "where to listen (default: $XDG_RUNTIME_DIR/gridloom.sock)")
        ->type_name("PATH");
    app.add_option("--device,-d", device, "the virtual GPU that the tenants share (default: h200)")
        ->type_name("NAME|FILE");
    app.add_option("--policy,-p", policy,
                   "how launches are scheduled (default: fair); `gridloom limits --policy` changes it live")
        ->type_name("NAME");
    app.add_option("--profiles", profiles,
                   "profiles of kernels, for policies that need them (docs/kernelet.md); with --timing kernels can be "
                   "profiled as they come")
        ->type_name("FILE");
    app.add_flag("--timing", timing,
                 "simulate the programs' time on the device, all of them together (docs/broker.md)");
    app.add_option("--timing-threads", timing_threads,
                   "--timing: threads that simulate (default: 1); times are the same")
        ->check(CLI::Range(1u, 256u))
        ->type_name("N");
    app.add_option("--hardware", hardware,
                   "--timing, with these proposed parts in place of the device's own (`gridloom hardware` lists them), "
                   "or `none`")
        ->type_name("NAME,...");
    app.add_option("--timing-wait-for", timing_wait_for,
                   "--timing: begin when so many programs are there, all at the same simulated time (default: each "
                   "when it comes)")
        ->type_name("N");
    app.add_option(
           "--timing-alone", timing_alone,
           "--timing: simulate so many tenants at a time alone, too: what the others slow them down by (default: 0)")
        ->check(CLI::Range(1u, 64u))
        ->type_name("N");
    app.add_option("--state", state,
                   "folder of the accounts and the audit log (default: ~/.local/state/gridloom; `off`: keep nothing)")
        ->type_name("FOLDER");
    app.add_option("--http", http_port,
                   "serve metrics and a dashboard on this port of 127.0.0.1; needs --http-token-file")
        ->type_name("PORT");
    app.add_option("--http-token-file", http_token_file, "file with the secret that they ask for")->type_name("FILE");
    app.add_option("--log", log, LogLevelNames() + " (default: info)")->type_name("LEVEL");
    app.add_option("--log-file", log_file,
                   "append the log to a file instead of stderr; of 16 MiB, with three before it")
        ->type_name("FILE");
    app.add_flag("--quiet,-q", quiet, "no messages but errors: --log error");
  }

  Result<Logger> Log() const {
    auto level = quiet ? LogLevel::kError : LogLevel::kInfo;
    if (!log.empty()) {
      const auto known = ParseLogLevel(log);
      if (!known) return Error{"--log " + log + ": expected one of " + LogLevelNames()};
      level = *known;
    }
    if (log_file.empty()) return Logger(level);
    return Logger::ToFile(log_file, level);
  }

  Result<DaemonConfig> Config() const {
    DaemonConfig result;
    result.socket = protocol::DefaultSocketPath();
    result.state = DefaultState();
    if (!config.empty()) GL_TRY_STATUS(LoadConfig(config, &result));
    if (!socket.empty()) result.socket = socket;
    if (!device.empty()) result.device = device;
    if (!policy.empty()) result.policy = policy;
    if (!profiles.empty()) result.profiles = profiles;
    if (!state.empty()) result.state = state;
    if (result.state == "off") result.state.clear();
    if (!hardware.empty()) result.hardware = hardware;
    if (timing_threads != 0) result.timing_threads = timing_threads;
    if (timing_wait_for != 0) result.timing_wait_for = timing_wait_for;
    if (timing_alone != 0) result.timing_alone = timing_alone;
    const bool simulates = timing_threads != 0 || timing_wait_for != 0 || timing_alone != 0 || !hardware.empty();
    result.timing = result.timing || timing || simulates;
    if (http_port != 0) result.http_port = http_port;
    if (!http_token_file.empty()) {
      GL_TRY(token, protocol::ReadSecret(http_token_file, true));
      result.http_token = std::move(token);
    }
    if (result.http_port != 0 && result.http_token.empty())
      return Error{"--http needs a secret: --http-token-file, or http_token_file in the configuration"};
    return result;
  }
};

constexpr const char* kExamples =
    "examples:\n"
    "  gridloom daemon                                   share a virtual H200 among this user's programs\n"
    "  gridloom run --connect -- ./app                   a program that joins it\n"
    "  gridloom daemon --config /etc/gridloom.yaml       limits and tenants from a file\n"
    "  gridloom daemon --policy priority --device a100\n"
    "  gridloom daemon --timing --device c2050           and simulate what their kernels take on a C2050\n"
    "  gridloom daemon --timing --hardware lazy-ctas     and with a proposed part of hardware\n"
    "  gridloom daemon --http 9430 --http-token-file ~/.gridloom-token\n";

/// Each session of the timing model has a thread. With an arena of malloc's for each of them, what one had at its
/// largest would stay.
constexpr int kMallocArenas = 4;

/// Until a signal ends it.
Status Serve(const DaemonConfig& config, const Logger& log) {
  const Tell tell = Warnings(log);
  GL_TRY(facts, FactsOf(config.device, config.profiles, config.timing ? Tell() : tell));
  RaiseDescriptorLimit();
  GL_TRY(timing, MakeTiming(config, tell));
  GL_TRY(broker, Broker::Create(config, std::move(facts), tell, timing.get()));
  g_broker = broker.get();
  struct sigaction action {};
  action.sa_handler = OnSignal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of write(), as on a full disk
  log.Write(LogLevel::kInfo, "sharing " + config.device + " under policy " + config.policy + " on " + config.socket);
  std::unique_ptr<Web> web;
  if (config.http_port != 0) {
    GL_TRY(served, Web::Start(*broker));
    web = std::move(served);
  }
  return broker->Run();
}

}  // namespace

int RunDaemon(int argc, char** argv) {
  mallopt(M_ARENA_MAX, kMallocArenas);
  CLI::App app{"Share one device among many programs.", "gridloom daemon"};
  app.footer(kExamples);
  Arguments arguments;
  arguments.Describe(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    return Refuse(std::string(error.what()) + "\n  `gridloom daemon --help` shows how to use it");
  }
  const auto log = arguments.Log();
  if (!log.ok()) return Refuse(log.error().message);
  const auto config = arguments.Config();
  const Status status = config.ok() ? Serve(*config, *log) : Status(config.error());
  if (status.ok()) return 0;
  log->Write(LogLevel::kError, status.error().message);
  return kExitFailed;
}

}  // namespace gridloom::broker
