// Streams and events: the order of asynchronous operations.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "interpose/base/task.h"

namespace gridloom::session {

class Context;
class Capture;
class GraphNode;
class GreenContext;

/// Launches of one stream that nothing else has come between: one task of the stream runs all of them.
class StreamBatch {
 public:
  virtual ~StreamBatch() = default;
  virtual void Run(Context& context) = 0;
};

/// A queue of operations. Blocking streams, each thread's own default stream among them, and the legacy stream wait for
/// each other: an operation of the legacy stream waits for all earlier ones of blocking streams, and the other way
/// round.
class Stream {
 public:
  enum class Kind : std::uint8_t { kLegacy, kPerThread, kBlocking, kNonBlocking };
  Stream(Context& context, Kind kind, int priority, std::shared_ptr<GreenContext> green = nullptr);

  Context& context() const { return context_; }
  Kind kind() const { return kind_; }
  /// Whose SMs its kernels run on; null: the device's, or those of the green context that is current.
  GreenContext* green() const { return green_.get(); }
  /// The stream's green context is no more: all that can be done with the stream is to destroy it.
  bool detached() const;
  bool blocking() const { return kind_ != Kind::kNonBlocking; }
  int priority() const { return priority_.load(std::memory_order_relaxed); }
  void set_priority(int priority) { priority_.store(priority, std::memory_order_relaxed); }
  std::uint64_t id() const { return id_; }
  /// What cuStreamGetId's caller and handles see.
  cuda::CUstream handle() const;

  std::atomic<cuda::CUsynchronizationPolicy> sync_policy{cuda::CU_SYNC_POLICY_AUTO};
  cuda::CUaccessPolicyWindow access_policy_window{};  ///< kept for cuStreamGetAttribute only

  // ---- capture: guarded by CaptureMutex() ----
  std::shared_ptr<Capture> capture;      ///< null when not capturing
  std::vector<GraphNode*> capture_tail;  ///< what the next captured operation depends on

 private:
  friend class Context;
  Context& context_;
  const Kind kind_;
  const std::shared_ptr<GreenContext> green_;
  std::atomic<int> priority_;
  const std::uint64_t id_;

  // Guarded by the context's queue mutex.
  TaskPtr tail_;                       ///< last operation
  std::uint64_t unmarked_ = 0;         ///< operations since the last mark that the host did not wait for
  TaskPtr marks_[2];                   ///< the last two operations that filled half the queue each
  std::shared_ptr<StreamBatch> open_;  ///< launches behind `tail_` that wait for more of them; null: none
};

using StreamPtr = std::shared_ptr<Stream>;

class Event {
 public:
  Event(Context& context, unsigned flags) : context_(context), flags_(flags) {}
  Context& context() const { return context_; }
  unsigned flags() const { return flags_; }
  bool timed() const { return (flags_ & cuda::CU_EVENT_DISABLE_TIMING) == 0; }

  /// The marker of the last record; null when never recorded.
  TaskPtr marker() const {
    const std::lock_guard lock(mutex_);
    return marker_;
  }
  void set_marker(TaskPtr marker) {
    const std::lock_guard lock(mutex_);
    marker_ = std::move(marker);
  }

  /// Number of the last record in the program's timeline; 0 when never recorded or nobody keeps one.
  std::uint64_t work() const { return work_.load(std::memory_order_acquire); }
  void set_work(std::uint64_t work) { work_.store(work, std::memory_order_release); }

  // ---- capture: guarded by CaptureMutex() ----
  std::weak_ptr<Capture> capture;         ///< the capture it was last recorded in
  std::vector<GraphNode*> capture_nodes;  ///< nodes a waiter depends on

 private:
  Context& context_;
  const unsigned flags_;
  mutable std::mutex mutex_;
  TaskPtr marker_;
  std::atomic<std::uint64_t> work_{0};
};

using EventPtr = std::shared_ptr<Event>;

}  // namespace gridloom::session
