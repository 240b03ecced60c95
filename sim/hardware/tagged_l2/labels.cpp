#include "sim/hardware/tagged_l2/labels.h"

#include <algorithm>

namespace gridloom::hardware {
namespace {

using timing::Cycle;

/// Stores of a kernel may come to L2 after its end, no later than that.
constexpr Cycle kLate = Cycle{1} << 22;

}  // namespace

Labels::Labels(Naming naming, unsigned kernel_bits, unsigned stream_bits, unsigned reach)
    : naming_(naming),
      kernel_bits_(kernel_bits),
      stream_bits_(stream_bits),
      reach_(reach),
      uses_(std::size_t{1} << (kernel_bits + stream_bits)) {}

std::uint64_t Labels::NumberOf(std::string_view kernel) {
  const auto known = kernels_.find(kernel);
  return known != kernels_.end() ? known->second : kernels_.emplace(kernel, kernels_.size()).first->second;
}

void Labels::Give(std::uint32_t launch, std::uint32_t stream, std::string_view kernel, Cycle at) {
  Stream& own =
      streams_.try_emplace(stream, Stream{.number = static_cast<std::uint32_t>(streams_.size()), .position = 0})
          .first->second;
  const std::uint64_t number = naming_ == Naming::kPosition ? own.position : NumberOf(kernel);
  const std::uint64_t kernels = std::uint64_t{1} << kernel_bits_, streams = std::uint64_t{1} << stream_bits_;
  Launch& made = launches_[launch];
  made = {.label = static_cast<Label>(number % kernels * streams + own.number % streams), .stream = stream};
  Reuse(made.label, at);
  if (!own.recent.empty()) {
    made.before = own.recent.back();
    made.producer = Of(*made.before);
    uses_[made.producer].push_back({.producer = *made.before, .known = at});
    if (own.recent.size() == reach_) {
      made.releases = own.recent.front();
      own.recent.pop_front();
    }
  }
  ++own.position;
  own.recent.push_back(launch);
}

/// Lines with the label are no longer those that earlier launches wrote.
void Labels::Reuse(Label label, Cycle at) {
  bool any = false;
  for (Use& use : uses_[label]) {
    if (use.reused != timing::kNever) continue;
    use.reused = at;
    any = true;
  }
  if (any) closed_.push_back({.at = at, .label = label});
}

Labels::Use* Labels::UseOf(std::uint32_t producer) {
  const Label label = Of(producer);
  if (label == kNoLabel) return nullptr;
  const auto use = std::ranges::find(uses_[label], producer, &Use::producer);
  return use != uses_[label].end() ? &*use : nullptr;
}

void Labels::Begin(std::uint32_t launch, Cycle at) {
  const auto known = launches_.find(launch);
  if (known == launches_.end() || !known->second.before) return;
  Use* const use = UseOf(*known->second.before);
  if (use != nullptr) use->running = std::min(use->running, at);
}

std::optional<Label> Labels::End(std::uint32_t launch, Cycle at) {
  const auto known = launches_.find(launch);
  if (known == launches_.end()) return std::nullopt;
  ended_.push_back({.at = at, .launch = launch});
  if (!known->second.releases) return std::nullopt;
  Use* const use = UseOf(*known->second.releases);
  if (use == nullptr) return std::nullopt;
  use->ended = at;
  return Of(*known->second.releases);
}

void Labels::Forget(Cycle before) {
  for (; !closed_.empty() && closed_.front().at < before; closed_.pop_front()) {
    std::erase_if(uses_[closed_.front().label],
                  [&](const Use& use) { return use.ended < before && use.reused < before; });
  }
  while (!ended_.empty() && ended_.front().at + kLate < before) {
    const auto launch = launches_.find(ended_.front().launch);
    std::erase(streams_.at(launch->second.stream).recent, launch->first);
    launches_.erase(launch);
    ended_.pop_front();
  }
}

Label Labels::Of(std::uint32_t launch) const {
  const auto known = launches_.find(launch);
  return known != launches_.end() ? known->second.label : kNoLabel;
}

Label Labels::ProducerOf(std::uint32_t launch) const {
  const auto known = launches_.find(launch);
  return known != launches_.end() ? known->second.producer : kNoLabel;
}

bool Labels::Dead(Label label, Cycle at) const {
  bool dead = false;
  for (const Use& use : uses_[label]) {
    if (use.known <= at && at < use.ended) return false;
    dead |= use.ended <= at && at < use.reused;
  }
  return dead;
}

bool Labels::Lies(Cycle at, Label label, Cycle Use::*from) const {
  return std::ranges::any_of(uses_[label], [&](const Use& use) { return use.*from <= at && at < use.ended; });
}

}  // namespace gridloom::hardware
