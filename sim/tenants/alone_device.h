// A device that one tenant has to itself: what its programs give the shared one is simulated there, too, so that it is
// known what they would take alone (docs/broker.md, "Slowdown").
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sim/device/device_spec.h"
#include "sim/tenants/sharing_record.h"
#include "sim/tenants/tenant_account.h"
#include "sim/tenants/tenant_source.h"
#include "sim/timing/live/live_timeline.h"

namespace gridloom::tenants {

class AloneProgram;

/// Simulated on threads of its own, below the others' priority, and at its own pace: nobody waits for it. It lives on
/// what is left of its tenant's memory, and is given up where that is too little.
///
/// What a program gives is made here in the order in which it gave it. Where the program waited on the shared device,
/// and was told that what it waited for has ended, it waits here for the same works before it goes on. So times follow
/// from the calls alone.
class AloneDevice : public std::enable_shared_from_this<AloneDevice> {
 public:
  struct Options {
    std::shared_ptr<TenantAccount> account;
    std::function<void(const std::string& why)> given_up{};  ///< told once, on any thread
    std::function<void()> changed{};                         ///< idle() may have changed; on any thread
  };
  /// Fails when the tenant's memory is too little for it, or the device's parts cannot be made.
  static Result<std::shared_ptr<AloneDevice>> Create(const sim::DeviceSpec& device, Options options);
  ~AloneDevice();

  /// A program of the tenant's that begins now.
  std::shared_ptr<AloneProgram> AddProgram(std::shared_ptr<SharingTotals> totals, timing::Cycle shared_begin);
  /// Nothing more is simulated, and nothing counted. From any thread, also that of the simulation.
  void GiveUp(const std::string& why);
  /// Where the simulation has failed it is given up.
  void Check();
  /// No program is there any more, and all that they gave has ended, or is given up.
  bool idle() const;

 private:
  friend class AloneProgram;
  using Call = std::function<void(timing::HostId host)>;
  struct Program {
    std::shared_ptr<SharingRecord> record;
    std::shared_ptr<Charge> charge;  ///< for its works, until they have ended
    std::deque<Call> calls;
    bool waits = false;    ///< for the answer that its next call comes after
    bool dropped = false;  ///< its next call is its last, whatever it waits for
  };
  explicit AloneDevice(Options options);
  void Main();
  void Post(timing::HostId host, Call call);
  void Wait(timing::HostId host, std::vector<timing::NodeId> nodes);
  void WaitForAll(timing::HostId host);
  void Answered(timing::HostId host);
  void Abandon(timing::HostId host);
  void Drop(timing::HostId host);
  void Ended(timing::NodeId node, timing::Cycle end);
  void Left();
  std::shared_ptr<TenantSource> SourceOf(std::shared_ptr<const trace::KernelCode> code,
                                         const trace::LaunchShape& shape);
  bool given_up() const { return given_up_.load(std::memory_order_acquire); }

  const Options options_;
  Charge engine_;
  std::unique_ptr<timing::LiveTimeline> timeline_;

  /// Guards what follows; the timeline's lock may be held when it is taken, never the other way round.
  mutable std::mutex mutex_;
  std::condition_variable called_;
  std::map<timing::HostId, Program> programs_;
  std::vector<std::weak_ptr<TenantSource>> sources_;  ///< that the timeline may have
  std::size_t most_sources_ = 64;                     ///< more are looked through for those that it has not
  std::size_t attached_ = 0;                          ///< programs whose sessions are there
  bool stop_ = false;
  std::atomic<bool> given_up_{false};

  std::thread makes_calls_;
};

/// One program on it, as the session's channel tells of it; on the channel's thread but for SetAway. Places and works
/// are those of the shared device.
class AloneProgram {
 public:
  AloneProgram(std::shared_ptr<AloneDevice> device, timing::HostId host, std::shared_ptr<SharingRecord> record,
               std::shared_ptr<Charge> charge)
      : device_(std::move(device)), host_(host), record_(std::move(record)), charge_(std::move(charge)) {}
  ~AloneProgram();
  AloneProgram(const AloneProgram&) = delete;

  const std::shared_ptr<SharingRecord>& record() const { return record_; }

  /// What CTAs of the launch are pushed into; null where nothing comes of it.
  std::shared_ptr<TenantSource> AddKernel(timing::Place place, std::shared_ptr<const trace::KernelCode> code,
                                          const trace::LaunchShape& shape, bool opens);
  void AddCopy(timing::Place place, timing::CopyDirection direction, std::uint64_t bytes);
  void AddMarker(timing::Place place);
  void OpenGroup(timing::Place place);
  void CloseGroup(timing::NodeId group);
  /// A CTA of one of its launches, which the shared device has got, too.
  void Push(TenantSource& source, std::uint64_t cta, trace::LoadedCta trace);
  /// The program was told that these have ended, and goes on.
  void Waited(std::vector<timing::NodeId> nodes);
  /// `shared`: when it is back, on the shared device.
  void SetAway(bool away, timing::Cycle shared);
  /// The program gives nothing more, and all that it gave has ended on the shared device. Here its works go on until
  /// they have ended.
  void Finish();

 private:
  bool Pay(const timing::Place& place);
  timing::NodeId Own(timing::NodeId node) const { return timing::NodeOf(host_, node & 0xffffffffu); }
  timing::Place Own(timing::Place place) const;

  const std::shared_ptr<AloneDevice> device_;
  const timing::HostId host_;
  const std::shared_ptr<SharingRecord> record_;
  const std::shared_ptr<Charge> charge_;
  std::atomic<std::uint64_t> works_{0};  ///< given so far
  bool finished_ = false;
};

}  // namespace gridloom::tenants
