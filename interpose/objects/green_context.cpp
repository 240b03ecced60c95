#include "interpose/objects/green_context.h"

#include "interpose/base/thread_state.h"
#include "interpose/objects/current_context.h"
#include "interpose/objects/device.h"

namespace gridloom::session {

bool Stream::detached() const { return green_ != nullptr && green_->destroyed(); }

void GreenContext::Hold() {
  const std::lock_guard lock(places_mutex_);
  if (places_++ == 0) self_ = shared_from_this();
}

void GreenContext::LetGo() {
  std::shared_ptr<GreenContext> last;  // goes when the mutex is free
  const std::lock_guard lock(places_mutex_);
  if (--places_ == 0) last = std::move(self_);
}

GreenPtr CurrentGreenPtr() {
  GreenContext* const green = CurrentGreen();
  return green != nullptr ? green->shared_from_this() : nullptr;
}

GreenContext* GreenOf(const Stream& stream) {
  if (stream.green() != nullptr) return stream.green();
  const bool own = stream.kind() != Stream::Kind::kLegacy && stream.kind() != Stream::Kind::kPerThread;
  return own ? nullptr : CurrentGreen();
}

std::vector<StreamPtr> StreamsOf(Context& context, const GreenContext* green) {
  std::vector<StreamPtr> streams = context.Streams(green);
  if (green != nullptr && green == CurrentGreen()) streams.push_back(context.FindStream(nullptr));
  return streams;
}

std::uint32_t SmCount(const Context& context, const GreenContext* green) {
  return green != nullptr ? static_cast<std::uint32_t>(green->sms().size()) : context.device().spec().sm.count;
}

}  // namespace gridloom::session
