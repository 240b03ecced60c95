#include "sim/trace/capture.h"

namespace gridloom::trace {

exec::RecordStream& Capture::Open() {
  auto stream =
      std::make_unique<CtaStream>(table_, shape_.warps_per_cta(), [this](std::uint64_t cta, LoadedCta trace, std::uint64_t dropped) {
        const std::lock_guard lock(mutex_);
        dropped_ += dropped;
        take_(cta, std::move(trace));
      });
  const std::lock_guard lock(mutex_);
  streams_.push_back(std::move(stream));
  return *streams_.back();
}

std::uint64_t Capture::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace gridloom::trace
