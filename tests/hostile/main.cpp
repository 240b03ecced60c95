// hostile: attacks on the broker's daemon, one after the other or all at once (docs/security.md).
#include <signal.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

#include "scheduler/protocol/wait.h"
#include "tests/hostile/attack.h"
#include "tests/hostile/honest.h"
#include "tests/hostile/soak.h"

namespace gridloom::hostile {
namespace {

/// Asks the daemon what there is, again and again.
class Watcher {
 public:
  explicit Watcher(const DaemonProcess& daemon) : daemon_(daemon), thread_([this] { Main(); }) {}
  ~Watcher() { Stop(); }
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  double longest_seconds() const { return longest_; }

 private:
  void Main() {
    while (!stop_) {
      const std::uint64_t began = protocol::NowNs();
      try {
        daemon_.Ps();
        longest_ = std::max(longest_, static_cast<double>(protocol::NowNs() - began) / 1e9);
      } catch (const Failed&) {
        longest_ = std::max(longest_, 1e3);  // no answer is worse than any
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  const DaemonProcess& daemon_;
  std::atomic<bool> stop_{false};
  double longest_ = 0;
  std::thread thread_;
};

void RequireBelow(double value, double most, const std::string& what) {
  Require(value <= most, what + " " + std::to_string(value) + ", more than " + std::to_string(most));
}

/// What the daemon has to be like after an attack, and was like during it. `once_kb`: its memory after the attack's
/// first round.
void CheckUsage(const Attack& attack, DaemonProcess& daemon, const Usage& before, std::uint64_t once_kb) {
  const auto back = [&](std::uint64_t Usage::*what) {
    return Within(10, [&] { return daemon.usage().*what <= before.*what; });
  };
  Require(back(&Usage::descriptors), "descriptors are left: " + std::to_string(daemon.usage().descriptors) +
                                         " where there were " + std::to_string(before.descriptors));
  Require(back(&Usage::threads), "threads are left");
  // A sanitizer's own memory is not the daemon's.
  if (!SanitizerOf(DaemonPath()).empty()) return;
  const auto grown = [](std::uint64_t now, std::uint64_t from) {
    return now > from ? static_cast<double>(now - from) / 1024 : 0;
  };
  RequireBelow(grown(daemon.usage().peak_kb, before.resident_kb), static_cast<double>(attack.peak_mb),
               "MiB that the daemon took at its peak:");
  Within(3, [&] { return grown(daemon.usage().resident_kb, once_kb) <= static_cast<double>(attack.left_mb); });
  RequireBelow(grown(daemon.usage().resident_kb, once_kb), static_cast<double>(attack.left_mb), "MiB that are left:");
}

void RunAttack(const Attack& attack, std::uint64_t seed) {
  DaemonProcess daemon(attack.setup);
  HonestTenant honest(daemon.socket(), "honest", 500);
  Watcher watcher(daemon);
  Require(Within(60, [&] { return honest.launches() >= 20; }), "the honest tenant does not get to work");
  const std::uint64_t launches_before = honest.launches();
  watcher.Stop();
  const Usage before = daemon.usage();
  std::uint64_t once_kb = before.resident_kb;
  daemon.ResetPeak();
  {
    Watcher during(daemon);
    Target target{.socket = daemon.socket(), .random = std::mt19937_64(seed), .daemon = &daemon};
    for (int round = 0; round < attack.rounds; ++round) {
      if (round == 1) {
        daemon.AwaitSessions(1);
        once_kb = daemon.usage().resident_kb;
      }
      attack.run(target);
    }
    Require(daemon.alive(), "the daemon ended: " + daemon.Log());
    during.Stop();
    RequireBelow(during.longest_seconds(), Patience(attack.ps_seconds), "seconds that ps took:");
  }
  daemon.AwaitSessions(1);
  CheckUsage(attack, daemon, before, once_kb);
  Require(Within(10, [&] { return honest.launches() > launches_before + 20; }), "the honest tenant does not get on");
  const double longest = honest.longest_seconds();
  const std::string lost = honest.Stop();
  Require(lost.empty(), "the honest tenant: " + lost);
  RequireBelow(longest, Patience(attack.honest_seconds), "seconds that an honest launch waited:");
  const Usage after = daemon.usage();
  std::printf("%-28s %6llu honest launches, longest %.3f s, daemon %+lld KiB, peak %+lld KiB\n", attack.name,
              static_cast<unsigned long long>(honest.launches()), longest,
              static_cast<long long>(after.resident_kb) - static_cast<long long>(before.resident_kb),
              static_cast<long long>(after.peak_kb) - static_cast<long long>(before.resident_kb));
  std::fflush(stdout);
  daemon.Stop();
}

/// Answers how many failed.
int RunAttacks(const std::vector<std::string>& names, const std::vector<std::string>& without, std::uint64_t seed) {
  const auto among = [](const std::vector<std::string>& list, const char* name) {
    return std::ranges::find(list, name) != list.end();
  };
  int ran = 0, failed = 0;
  for (const AttackGroup& group : kAttackGroups) {
    for (const Attack& attack : group.attacks()) {
      if ((!names.empty() && !among(names, attack.name) && !among(names, group.name)) || among(without, attack.name))
        continue;
      ++ran;
      try {
        RunAttack(attack, seed);
      } catch (const Failed& problem) {
        ++failed;
        std::printf("%-28s FAILED (seed %llu): %s\n", attack.name, static_cast<unsigned long long>(seed),
                    problem.what());
        std::fflush(stdout);
      }
    }
  }
  if (ran == 0) std::printf("there is no such attack; --list shows them\n");
  else std::printf("%d attacks, %d failed\n", ran, failed);
  return ran == 0 ? 1 : failed;
}

void List() {
  for (const AttackGroup& group : kAttackGroups) {
    for (const Attack& attack : group.attacks()) std::printf("%-10s %-28s %s\n", group.name, attack.name, attack.what);
  }
}

int Main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  if (argc == 4 && std::string(argv[1]) == "--victim")
    return Victim(argv[2], static_cast<unsigned>(std::stoul(argv[3])));
  if (argc == 6 && std::string(argv[1]) == "--hostile")
    return HostileTenant(argv[2], argv[3], std::stoull(argv[4]), std::stod(argv[5]));
  CLI::App app{"Attacks on the broker's daemon ($GRIDLOOM_DAEMON, or the one of this build).", "hostile"};
  std::vector<std::string> names, without;
  std::uint64_t seed = 1;
  bool list = false;
  SoakOptions soak;
  app.add_option("attack", names, "attacks, or groups of them; none: all")->type_name("NAME");
  app.add_option("--without", without, "but not these")->type_name("NAME,...")->delimiter(',');
  app.add_option("--seed", seed, "of what is random");
  app.add_flag("--list", list, "what there is");
  app.add_option("--soak", soak.seconds, "many tenants, some of them hostile, for so long")->type_name("SECONDS");
  app.add_option("--tenants", soak.tenants, "--soak: honest and hostile ones together")->capture_default_str();
  app.add_option("--hostile", soak.hostile, "--soak: hostile ones")->capture_default_str();
  app.add_option("--json", soak.json, "--soak: file for the figures")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  if (list) {
    List();
    return 0;
  }
  soak.seed = seed;
  return soak.seconds > 0 ? Soak(soak) : RunAttacks(names, without, seed);
}

}  // namespace
}  // namespace gridloom::hostile

int main(int argc, char** argv) { return gridloom::hostile::Main(argc, argv); }
