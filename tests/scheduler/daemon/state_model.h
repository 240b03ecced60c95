// What a broker must hold at every step, whatever tenants and operators do and however its policy decides: a model of
// sessions, launches, grants and limits that knows what may be, not what a policy chooses. It is told what was done and
// shown what came of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace gridloom::broker {

/// The broker did what it must not.
struct Breach : std::logic_error {
  using std::logic_error::logic_error;
};

/// Session, and number of the launch in it.
using LaunchKey = std::pair<std::uint32_t, std::uint64_t>;

struct ModelDevice {
  std::uint32_t sms = 4, ctas_per_sm = 2, warps_per_sm = 64, resident_kernels = 3;
  double burst = 0;     ///< time whose part a tenant with a cap may save up
  bool slices = false;  ///< slices are cut by time: then CTAs that are known to be short need no room of their own
};

struct ModelLaunch {
  std::uint32_t tenant = 0;
  std::uint64_t stream = 0;  ///< 0: of none
  std::uint64_t ctas = 0;
  std::uint32_t warps = 1;
  bool divisible = true;
  std::uint64_t granted = 0, done = 0;
  bool runs() const { return granted > done; }
};

/// What a broker says of a tenant.
struct SeenTenant {
  std::uint32_t in_flight = 0, waiting = 0;
  std::uint64_t launches = 0, faults = 0, slices = 0, ctas = 0, memory = 0;
  double device_time = 0;
};

class StateModel {
 public:
  explicit StateModel(const ModelDevice& device) : device_(device) {}

  // ---- what was done
  void Tenant(std::uint32_t tenant, std::uint32_t in_flight, double cap, std::uint64_t memory);
  void Join(std::uint32_t session, std::uint32_t tenant);
  /// By itself, by an operator, or for what it said: all its launches end, none of them with a fault.
  void Leave(std::uint32_t session);
  void Announce(LaunchKey key, const ModelLaunch& launch);
  void Progress(LaunchKey key, std::uint64_t done);
  void End(LaunchKey key, std::uint64_t done, bool faulted);
  /// Answers what the session may use then.
  std::uint64_t Memory(std::uint32_t session, std::uint64_t bytes);
  void Pass(std::uint64_t time);

  // ---- what came of it, after each step
  void SeeGrant(LaunchKey key, std::uint64_t granted);
  void SeeTenant(std::uint32_t tenant, const SeenTenant& seen);
  /// Of everything together, once all has been shown. `timed`: device times are of the time that passed here alone.
  void SeeAll(bool timed);

  const std::map<LaunchKey, ModelLaunch>& launches() const { return launches_; }
  const std::map<std::uint32_t, std::uint32_t>& sessions() const { return sessions_; }  ///< to their tenants
  std::uint64_t memory_of(std::uint32_t session) const { return memory_.at(session); }

 private:
  struct TenantState {
    std::uint32_t limit = 64;
    double cap = 1;
    std::uint64_t memory_limit = 0;
    SeenTenant counted;              ///< launches, faults, slices, ctas as the model counts them
    std::optional<SeenTenant> seen;  ///< last
    std::uint64_t cap_since = 0;     ///< when the cap was set
    double time_at_cap = 0;          ///< device time it had had then
    bool new_grant = false;          ///< in this step
  };

  bool Eligible(LaunchKey key) const;
  void Forget(LaunchKey key, bool faulted);

  const ModelDevice device_;
  std::map<LaunchKey, ModelLaunch> launches_;
  std::map<std::uint32_t, std::uint32_t> sessions_;
  std::map<std::uint32_t, std::uint64_t> memory_;  ///< by session
  std::map<std::uint32_t, TenantState> tenants_;
  std::uint64_t now_ = 0, busy_ = 0;
};

}  // namespace gridloom::broker
