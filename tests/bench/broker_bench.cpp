// build/broker_bench [--launches N]: what the broker costs a launch, in percentiles and by part (docs/broker.md has
// figures). Times are not asserted: they depend on the machine.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "scheduler/cli/ask.h"
#include "scheduler/daemon/broker.h"
#include "scheduler/policy/builtin.h"
#include "scheduler/protocol/client.h"
#include "scheduler/protocol/wait.h"
#include "tests/bench/broker_launch.h"
#include "tests/bench/options.h"
#include "tests/scheduler/policy/no_pairs.h"

namespace gridloom {
namespace {

using protocol::NowNs;

constexpr std::uint32_t kSms = 132;
constexpr policy::SmView kSm{.free_ctas = 32, .free_warps = 64, .free_registers = 65536, .free_shared_bytes = 233472};

struct Samples {
  std::vector<double> us;
  void Add(std::uint64_t begin, std::uint64_t end) { us.push_back(static_cast<double>(end - begin) / 1000); }
  void Print(const char* what) {
    if (us.empty()) return;
    std::ranges::sort(us);
    const auto at = [&](double part) {
      return us[static_cast<std::size_t>(part * static_cast<double>(us.size() - 1))];
    };
    std::printf("%-44s %9.2f %9.2f %9.2f %9.2f %9.2f\n", what, at(0.5), at(0.9), at(0.99), at(0.999), us.back());
    std::fflush(stdout);
  }
};

protocol::LaunchRecord Launch(std::uint64_t ctas) {
  return {.kernel = 1,
          .ctas = ctas,
          .threads_per_cta = 128,
          .registers_per_thread = 32,
          .divisible = false,
          .name = "bench"};
}

std::unique_ptr<protocol::Client> Join(const std::string& socket) {
  auto client = protocol::Client::Connect(
      {.socket = socket, .tenant = "", .token = "", .program = "bench", .reconnect = false, .log = {}});
  if (!client.ok()) {
    std::fprintf(stderr, "%s\n", client.error().message.c_str());
    std::exit(1);
  }
  return std::move(client).value();
}

/// What a launch passes on its way, while the broker spins (`pause_us` 0) or has gone to sleep. Answers with
/// enqueueing's median.
double RoundTrips(const std::string& socket, int count, unsigned pause_us) {
  const auto client = Join(socket);
  Samples enqueue, wait, end, whole;
  for (int i = 0; i < count; ++i) {
    if (pause_us != 0) usleep(pause_us);
    protocol::Client::Ticket ticket;
    std::uint64_t granted = 0;
    const std::uint64_t t0 = NowNs();
    client->Announce(Launch(1), &ticket);
    const std::uint64_t t1 = NowNs();
    client->Wait(ticket, 0, &granted);
    const std::uint64_t t2 = NowNs();
    client->End(ticket, 1, false);
    const std::uint64_t t3 = NowNs();
    enqueue.Add(t0, t1);
    wait.Add(t1, t2);
    end.Add(t2, t3);
    whole.Add(t0, t2);
  }
  const bool spinning = pause_us == 0;
  enqueue.Print(spinning ? "enqueue (Announce)" : "asleep: enqueue, doorbell");
  wait.Print(spinning ? "  decide and grant (Wait)" : "asleep: decide and grant");
  whole.Print(spinning ? "  round trip, announced to granted" : "asleep: round trip");
  end.Print(spinning ? "  end" : "asleep: end");
  return enqueue.us[enqueue.us.size() / 2];
}

/// Time that the broker has spent deciding, and how often, so far.
std::pair<double, double> Deciding(const std::string& socket) {
  const auto state = broker::Ask(socket, protocol::Request());  // ps
  if (!state.ok()) return {};
  return {(*state)["pump_seconds"].get<double>(), (*state)["pumps"].get<double>()};
}

/// An empty kernel through the driver library, and where its time goes.
bool Launches(const std::string& socket, int count, double enqueue_us) {
  const auto median = [](std::vector<double> us) {
    std::ranges::nth_element(us, us.begin() + static_cast<std::ptrdiff_t>(us.size() / 2));
    return us[us.size() / 2];
  };
  const bench::LaunchCosts alone = bench::MeasureLaunches("", count);
  const auto before = Deciding(socket);
  const bench::LaunchCosts shared = bench::MeasureLaunches(socket, count);
  const auto after = Deciding(socket);
  if (alone.whole_us.empty() || shared.whole_us.empty() || after.second <= before.second) return false;
  Samples{alone.hook_us}.Print("alone: hook (cuLaunchKernel returns)");
  Samples{alone.whole_us}.Print("alone: launched and known to have run");
  Samples{shared.hook_us}.Print("brokered: hook");
  Samples{shared.whole_us}.Print("brokered: launched and known to have run");
  // Alone, an idle stream's kernel runs before cuLaunchKernel returns.
  const double hook = median(shared.hook_us), launch = median(alone.whole_us) - hook;
  const double decide = (after.first - before.first) / (after.second - before.second) * 1e6;
  std::printf(
      "  by part, measured one by one: hook %.2f, enqueue %.2f, decide %.2f (mean), launch %.2f; together %.2f of "
      "%.2f\n",
      hook, enqueue_us, decide, launch, hook + enqueue_us + decide + launch, median(shared.whole_us));
  return true;
}

struct Instant final : sched::Engine {
  std::uint64_t time = 0;
  std::map<sched::LaunchId, std::uint64_t> granted;
  std::uint64_t now() override { return time += 1000; }
  void Grant(sched::LaunchId launch, std::uint64_t end) override { granted[launch] = end; }
};

/// One slice ends, one decision: with so many tenants that have a launch ready each.
void Decisions(std::string_view name, std::uint32_t tenants, int count) {
  Instant engine;
  sched::Scheduler scheduler({.sms = kSms, .empty_sm = kSm, .quantum = 5'000'000}, engine,
                             policy::MakePolicy(name, policy::NoPairs()).value());
  for (std::uint32_t t = 1; t <= tenants; ++t) {
    scheduler.SetTenant(t, {.weight = 1.0 + t % 7});
    scheduler.Submit({.tenant = t,
                      .owner = t,
                      .kernel = t,
                      .ctas = std::uint64_t{1} << 40,
                      .needs = {.warps = 4, .registers = 4096},
                      .divisible = true,
                      .name = "k"});
  }
  scheduler.Pump();
  Samples decision;
  for (int i = 0; i < count; ++i) {
    for (const auto& [id, end] : std::exchange(engine.granted, {})) static_cast<void>(scheduler.Progress(id, end).ok());
    const std::uint64_t before = scheduler.decisions();
    const std::uint64_t begin = NowNs();
    scheduler.Pump();
    const std::uint64_t took = NowNs() - begin, taken = std::max<std::uint64_t>(scheduler.decisions() - before, 1);
    decision.us.push_back(static_cast<double>(took) / 1000 / static_cast<double>(taken));
  }
  decision.Print(("decision, " + std::string(name) + ", " + std::to_string(tenants) + " tenants").c_str());
}

std::uint64_t CpuNs(clockid_t clock) {
  timespec used{};
  clock_gettime(clock, &used);
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(used.tv_nsec);
}

/// Processes that start together: how long each needs from its first line to a place at the broker, and what of it is
/// work: its own and the broker's. More processes than cores wait for each other; the work is what must not grow.
void StartUp(const std::string& socket, pid_t broker, int processes) {
  int results[2], go[2];
  if (pipe(results) != 0 || pipe(go) != 0) return;
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    if (const pid_t child = fork(); child != 0) {
      children.push_back(child);
      continue;
    }
    char byte = 0;
    close(go[1]);
    static_cast<void>(!read(go[0], &byte, 1));  // until all are there
    const std::uint64_t begin = NowNs(), used = CpuNs(CLOCK_PROCESS_CPUTIME_ID);
    const auto client = Join(socket);
    const std::uint64_t took[2] = {NowNs() - begin, CpuNs(CLOCK_PROCESS_CPUTIME_ID) - used};
    static_cast<void>(!write(results[1], took, sizeof took));
    _exit(0);
  }
  clockid_t broker_clock{};
  clock_getcpuclockid(broker, &broker_clock);
  const std::uint64_t before = CpuNs(broker_clock);
  close(go[0]);
  close(go[1]);
  close(results[1]);
  Samples waited, worked;
  std::uint64_t took[2];
  while (read(results[0], took, sizeof took) == sizeof took) {
    waited.Add(0, took[0]);
    worked.Add(0, took[1]);
  }
  const double of_broker = static_cast<double>(CpuNs(broker_clock) - before) / 1000 / processes;
  close(results[0]);
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  waited.Print(("join, " + std::to_string(processes) + " processes at once").c_str());
  worked.Print("  work of a process for it");
  std::printf("%-44s %9.2f\n", "  work of the broker, joins and leaves (mean)", of_broker);
}

int Main(int count) {
  char name[] = "/tmp/gridloom-bench-XXXXXX";
  const std::string folder = mkdtemp(name);
  const std::string socket = folder + "/socket";
  // The broker is a process of its own, as in life.
  const pid_t child = fork();
  if (child == 0) {
    broker::DaemonConfig config;
    config.socket = socket;
    broker::DeviceFacts device{
        .id = "bench", .sms = kSms, .empty_sm = kSm, .resident_kernels = 128, .memory_bytes = 1u << 30, .facts = {}};
    device.facts = [](const protocol::LaunchRecord&) {
      return broker::LaunchFacts{.needs = {.warps = 4, .registers = 4096}};
    };
    auto made = broker::Broker::Create(config, device, [](const std::string&) {});
    if (made.ok()) static_cast<void>((*made)->Run().ok());
    _exit(0);
  }
  while (!protocol::Connect(socket).ok()) usleep(1000);
  std::printf("%-44s %9s %9s %9s %9s %9s\n", "microseconds", "median", "90 %", "99 %", "99.9 %", "most");
  Samples clock;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t begin = NowNs();
    clock.Add(begin, NowNs());
  }
  clock.Print("the clock itself (in every figure)");
  const double enqueue_us = RoundTrips(socket, count, 0);
  RoundTrips(socket, std::max(count / 100, 10), 1000);
  const bool launched = Launches(socket, std::max(count / 10, 100), enqueue_us);
  for (const std::string_view policy : policy::PolicyNames()) Decisions(policy, 64, count / 10 + 1);
  for (const int processes : {1, 8, 64}) StartUp(socket, child, processes);
  kill(child, SIGTERM);
  waitpid(child, nullptr, 0);
  std::filesystem::remove_all(folder);
  return launched ? 0 : 1;
}

}  // namespace
}  // namespace gridloom

int main(int argc, char** argv) {
  unsigned launches = 100'000;
  const bench::Option options[] = {{"--launches", &launches}};
  bench::ParseOptions(argc, argv, options);
  if (launches == 0 || launches > 100'000'000) {
    std::fprintf(stderr, "%s: --launches wants 1 to 100000000\n", argv[0]);
    return 1;
  }
  return gridloom::Main(static_cast<int>(launches));
}
