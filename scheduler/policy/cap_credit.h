// How a cap holds: a tenant earns its part of the time that passes, pays for what it has of the device, and starts
// nothing while it owes. What it does not use it keeps, up to a little.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace gridloom::policy {

class CapCredit {
 public:
  /// `cap`: part of the device, 0 to 1. `burst`: time, in the owner's unit, whose part may be saved up.
  CapCredit() = default;
  CapCredit(double cap, double burst) : cap_(cap), most_(burst * cap), credit_(burst * cap) {}

  double cap() const { return cap_; }
  bool limits() const { return cap_ < 1; }
  void Earn(double passed) { credit_ = std::min(credit_ + passed * cap_, most_); }
  void Pay(double used) { credit_ -= used; }
  bool over() const { return limits() && credit_ <= 0; }
  /// How long until it is not over any more, if it runs nothing; nothing: never.
  std::optional<std::uint64_t> Wait() const {
    const double wait = cap_ > 0 ? -credit_ / cap_ + 1 : kNever;
    if (wait >= kNever) return std::nullopt;
    return static_cast<std::uint64_t>(std::ceil(std::max(wait, 1.0)));
  }

 private:
  static constexpr double kNever = 1e15;
  double cap_ = 1, most_ = 0, credit_ = 0;
};

}  // namespace gridloom::policy
