// Green contexts: a share of a device's SMs, with streams whose kernels run on them. All else they have of the device's
// primary context.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "interpose/objects/context.h"
#include "interpose/objects/sm_share.h"
#include "interpose/objects/stream.h"

namespace gridloom::session {

/// What cuDevResourceGenerateDesc makes: parts of one split.
struct ResourceDescription {
  int device = 0;
  std::vector<std::uint32_t> sms;            ///< ascending
  std::uint32_t smallest = 0, multiple = 0;  ///< as SmShare
  bool operator==(const ResourceDescription&) const = default;
};

/// A destroyed one is freed when nothing has it any more: no stream, no operation, no thread's stack, and not the list
/// of those that the program may still name (Process::ShelveGreen).
class GreenContext : public std::enable_shared_from_this<GreenContext> {
 public:
  GreenContext(Context& primary, ResourceDescription description)
      : primary_(primary), id_(NextContextId()), description_(std::move(description)) {}

  Context& primary() const { return primary_; }
  std::uint64_t id() const { return id_; }
  /// Numbers of its SMs, ascending.
  std::span<const std::uint32_t> sms() const { return description_.sms; }
  /// All of them.
  SmShare share() {
    return {.device = description_.device,
            .of = handle(),
            .count = static_cast<std::uint32_t>(sms().size()),
            .smallest = description_.smallest,
            .multiple = description_.multiple};
  }

  cuda::CUgreenCtx handle() { return reinterpret_cast<cuda::CUgreenCtx>(this); }
  /// What cuCtxFromGreenCtx gives out. It has the same value: the runtime of 13.5 destroys an execution context by it.
  cuda::CUcontext context_handle() { return reinterpret_cast<cuda::CUcontext>(this); }

  bool destroyed() const { return destroyed_.load(std::memory_order_acquire); }
  /// False when it was before.
  bool Destroy() { return !destroyed_.exchange(true, std::memory_order_acq_rel); }

  /// A place of a thread's stack has it until it calls LetGo, which may free it.
  void Hold();
  void LetGo();

 private:
  Context& primary_;
  const std::uint64_t id_;
  const ResourceDescription description_;
  std::atomic<bool> destroyed_{false};
  std::mutex places_mutex_;
  std::uint32_t places_ = 0;            ///< how many of threads' stacks have it
  std::shared_ptr<GreenContext> self_;  ///< while some do
};

using GreenPtr = std::shared_ptr<GreenContext>;

/// The one that is current (current_context.h), held; null: none is.
GreenPtr CurrentGreenPtr();
/// Whose SMs work has that is put into the stream now: the stream's own, or for default streams the current one. Null:
/// all of the device's.
GreenContext* GreenOf(const Stream& stream);
/// The streams that work of `green` may be in: its own, and the default one where it is current. Null: all of the
/// context's.
std::vector<StreamPtr> StreamsOf(Context& context, const GreenContext* green);
/// SMs that kernels of `green` run on, or, if that is null, those of the device.
std::uint32_t SmCount(const Context& context, const GreenContext* green);

}  // namespace gridloom::session
