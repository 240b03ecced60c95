#include "sim/trace/capture.h"

#include <algorithm>
#include <utility>

namespace gridloom::trace {

std::unique_ptr<CtaStream> StreamPool::Take(const CodeTable& table, std::uint32_t warps) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(idle_, [&](const auto& stream) { return stream->IsFor(table, warps); });
  if (found == idle_.end()) return nullptr;
  std::unique_ptr<CtaStream> stream = std::move(*found);
  idle_.erase(found);
  return stream;
}

void StreamPool::Return(std::unique_ptr<CtaStream> stream) {
  const std::lock_guard lock(mutex_);
  idle_.push_front(std::move(stream));
  if (idle_.size() > kMost) idle_.pop_back();
}

Capture::~Capture() {
  for (std::unique_ptr<CtaStream>& stream : streams_) {
    stream->EndLaunch();
    if (pool_ != nullptr) pool_->Return(std::move(stream));
  }
}

exec::RecordStream& Capture::Open() {
  std::unique_ptr<CtaStream> stream = pool_ != nullptr ? pool_->Take(table_, shape_.warps_per_cta()) : nullptr;
  if (!stream) stream = std::make_unique<CtaStream>(table_, shape_.warps_per_cta());
  stream->BeginLaunch([this](std::span<CtaStream::Captured> ctas) {
    const std::lock_guard lock(mutex_);
    for (CtaStream::Captured& captured : ctas) {
      dropped_ += captured.dropped * captured.run.count;
      cut_ += captured.cut ? captured.run.count : 0;
      take_(std::move(captured.run));
    }
  });
  const std::lock_guard lock(mutex_);
  streams_.push_back(std::move(stream));
  return *streams_.back();
}

std::uint64_t Capture::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

std::uint64_t Capture::cut() const {
  const std::lock_guard lock(mutex_);
  return cut_;
}

}  // namespace gridloom::trace
