// Many tenants at one daemon for a while, some of them hostile.
#pragma once

#include <cstdint>
#include <string>

namespace gridloom::hostile {

struct SoakOptions {
  double seconds = 0;
  unsigned tenants = 64, hostile = 8;
  std::uint64_t seed = 1;
  std::string json;
};

/// 0: all held.
int Soak(const SoakOptions& options);

/// A process that attacks at random until the time is over; 0: as it should.
int HostileTenant(const std::string& socket, const std::string& tenant, std::uint64_t seed, double seconds);

}  // namespace gridloom::hostile
