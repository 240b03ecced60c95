// What a tenant may try against the broker, and against the others. Each attack is a row of a table; a row is a case of
// the tests, run against a daemon of its own while an honest tenant works beside it, and most rows are also what
// hostile tenants of the soak do.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>

#include "tests/hostile/daemon_process.h"

namespace gridloom::hostile {

/// Where an attack is made.
struct Target {
  std::string socket;
  std::string tenant = "hostile";  ///< a name of the attacker's own
  std::mt19937_64 random;
  double seconds = 1;               ///< of those that go on for as long as they are let
  DaemonProcess* daemon = nullptr;  ///< null in the soak
  /// Random, from 0 to below `most`.
  std::uint64_t Below(std::uint64_t most) { return random() % most; }
};

struct Attack {
  const char* name;
  const char* what;
  /// Attacks, checks what is to be seen of it alone, and takes back what it holds. Throws Failed.
  void (*run)(Target& target);
  Setup setup{};
  bool soak = false;  ///< needs no daemon of its own
  /// How often: what is left after the first time is the allocator's, and must be no more after the last.
  int rounds = 1;
  /// What has to hold beyond that: the daemon's memory while it lasts and once it is over, how long an honest launch
  /// waits, how long ps does.
  std::uint64_t peak_mb = 48, left_mb = 8;
  double honest_seconds = 5, ps_seconds = 2;
};

std::span<const Attack> SocketAttacks();    // socket_attacks.cpp: connections and messages
std::span<const Attack> RingAttacks();      // ring_attacks.cpp: records in shared memory, launches
std::span<const Attack> ResourceAttacks();  // resource_attacks.cpp: descriptors, disk, processes, the page
std::span<const Attack> TimingAttacks();    // timing_attacks.cpp: the channel to the timing model

/// A table and its name on the command line.
struct AttackGroup {
  const char* name;
  std::span<const Attack> (*attacks)();
};
inline constexpr AttackGroup kAttackGroups[] = {
    {"socket", SocketAttacks}, {"ring", RingAttacks}, {"resource", ResourceAttacks}, {"timing", TimingAttacks}};

/// This program again, as another process: `hostile --victim SOCKET POINT` (socket_attacks.cpp).
int Victim(const std::string& socket, unsigned point);

}  // namespace gridloom::hostile
