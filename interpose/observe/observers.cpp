#include "interpose/observe/observers.h"

#include <memory>

#include "interpose/observe/broker_link.h"
#include "interpose/observe/fill_order.h"
#include "interpose/observe/host_timeline.h"
#include "interpose/observe/memcheck.h"
#include "interpose/observe/range_capture.h"
#include "interpose/observe/range_checking.h"
#include "interpose/observe/tracing.h"

namespace gridloom::session {

Status Observers::JoinBroker() {
  if (broker() != nullptr) return {};
  GL_TRY(link, BrokerLink::Join(process_));
  broker_.store(link.release(), std::memory_order_release);
  return {};
}

void Observers::AbandonBroker() {
  if (BrokerLink* const link = broker_.exchange(nullptr)) link->AbandonAfterFork();
}

MemcheckLog& Observers::memcheck() {
  return *memcheck_.Get([this] { return std::make_unique<MemcheckLog>(process_); });
}

Tracing* Observers::tracing() {
  Tracing* const tracing = tracing_.Get([] { return Tracing::Make(); });
  return tracing != nullptr && tracing->of_this_process() ? tracing : nullptr;
}

FillOrder* Observers::fill_order() {
  FillOrder* const order = fill_order_.Get([] { return FillOrder::Make(); });
  return order != nullptr && order->of_this_process() ? order : nullptr;
}

RangeChecks* Observers::range_checks() {
  return range_checks_.Get([] { return RangeChecks::Make(); });
}

RangeCapture* Observers::range_capture() {
  return range_capture_.Get([this] { return RangeCapture::Make(*this); });
}

HostTimeline* Observers::timeline() {
  HostTimeline* const timeline = timeline_.Get([this] { return HostTimeline::Make(*this); });
  return timeline != nullptr && timeline->goes_on() ? timeline : nullptr;
}

}  // namespace gridloom::session
