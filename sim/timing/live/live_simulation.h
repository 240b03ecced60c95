// The simulation of a live timeline: the device, and the thread that simulates it.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "sim/timing/engine.h"
#include "sim/timing/kernel_table.h"
#include "sim/timing/live/device_feed.h"

namespace gridloom::timing {

class LiveSimulation {
 public:
  LiveSimulation(std::mutex& mutex, const LiveOptions& options, SimulationSignals& signals, LiveHosts& hosts,
                 LiveQuestions& questions)
      : mutex_(mutex), options_(options), signals_(signals), hosts_(hosts), questions_(questions) {}
  ~LiveSimulation();
  LiveSimulation(const LiveSimulation&) = delete;
  LiveSimulation& operator=(const LiveSimulation&) = delete;

  /// Makes the device and begins. Fails when the device's latencies contradict each other.
  Status Start(const sim::DeviceSpec& device, std::unique_ptr<policy::Policy> policy);

  // ---- without the lock
  const Engine& engine() const { return *engine_; }
  /// Why the device does not run the kernel.
  Status CheckKernel(const trace::CtaSource& source) const;
  /// The source, of which it is told when the simulation waits for a CTA of it.
  std::shared_ptr<trace::CtaSource> Watched(std::shared_ptr<trace::CtaSource> source, HostId host);

  // ---- with the lock held
  PendingNodes& nodes() { return nodes_; }
  /// Drops what the device has not got of a host's, and ends what runs there.
  void Drop(HostId host);
  /// Everything that was given has ended.
  bool idle() const { return nodes_.empty() && works_.empty(); }
  const KernelTable& table() const { return table_; }
  std::size_t works_kept() const { return works_kept_; }
  std::size_t streams() const { return streams_.size(); }

 private:
  void Main();
  bool Step(SimulationSignals::Lock& lock);
  void DropNode(NodeId id);
  void CancelDropped();
  void Prepare();
  bool Collect();
  void Fail(const std::string& why);

  std::mutex& mutex_;
  const LiveOptions& options_;
  SimulationSignals& signals_;
  LiveHosts& hosts_;
  LiveQuestions& questions_;
  std::unique_ptr<policy::Policy> policy_;
  ProfilingPolicy* profiling_ = nullptr;  ///< it, where there is a profiler
  std::unique_ptr<Engine> engine_;
  PendingNodes nodes_;
  LiveStreams streams_;
  GivenWorks works_;
  StopConditions stops_;
  std::optional<DeviceFeed> feed_;
  std::vector<HostId> dropped_;  ///< whose works still run on the device
  KernelTable table_;
  std::size_t works_kept_ = 0;                                      ///< that the engine kept when it last stopped
  std::vector<std::tuple<WorkId, WorkResult, Counters>> finished_;  ///< since then; of the simulation's thread
  std::thread thread_;
};

}  // namespace gridloom::timing
