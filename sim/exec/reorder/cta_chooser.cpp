#include "sim/exec/reorder/cta_chooser.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace gridloom::exec {
namespace {

/// Most CTAs that are chosen at a time: few, so that kernels mix, and more of large grids, since each choice is a
/// launch.
std::uint64_t MostOf(std::uint32_t ctas) {
  constexpr std::uint32_t kMost = 32, kMostChoices = 512;
  return std::max(kMost, ctas / kMostChoices);
}

}  // namespace

std::uint64_t Lots::Next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

CtaChooser::CtaChooser(std::uint64_t seed) : lots_(seed) {
  constexpr std::uint64_t kInEight[] = {0, 4, 7};
  newest_in_eight_ = kInEight[lots_.Below(std::size(kInEight))];
  if (lots_.Below(4) != 0) common_order_ = DrawOrder();
}

CtaChooser::Order CtaChooser::DrawOrder() {
  constexpr Order kOrders[] = {Order::kScattered, Order::kRising, Order::kFalling};
  return kOrders[lots_.Below(std::size(kOrders))];
}

std::uint64_t CtaChooser::Kernel::RankOf(std::uint32_t cta) const {
  switch (order) {
    case Order::kRising: return cta;
    case Order::kFalling: return ~std::uint64_t{cta};
    case Order::kScattered: break;
  }
  return Lots(scatter ^ cta).Next();
}

void CtaChooser::AddKernel(std::uint32_t ctas, bool in_turn) {
  Kernel& kernel = kernels_.emplace_back();
  kernel.ctas = ctas;
  kernel.in_turn = in_turn;
  kernel.order = in_turn ? Order::kRising : common_order_ ? *common_order_ : DrawOrder();
  kernel.scatter = lots_.Next();
}

void CtaChooser::AddReady(std::uint32_t kernel, std::uint32_t cta) {
  std::vector<Ready>& ready = kernels_[kernel].ready;
  ready.push_back({kernels_[kernel].RankOf(cta), cta});
  std::ranges::push_heap(ready, std::ranges::greater());
}

std::optional<ChosenCtas> CtaChooser::Choose() {
  std::vector<std::uint32_t> candidates;
  for (std::uint32_t k = 0; k < kernels_.size(); ++k) {
    if (kernels_[k].HasReady()) candidates.push_back(k);
  }
  if (candidates.empty()) return std::nullopt;
  ChosenCtas chosen;
  chosen.kernel = lots_.Below(8) < newest_in_eight_ ? candidates.back() : candidates[lots_.Below(candidates.size())];
  Kernel& kernel = kernels_[chosen.kernel];
  for (std::uint64_t left = 1 + lots_.Below(MostOf(kernel.ctas)); left != 0 && kernel.HasReady(); --left) {
    chosen.ctas.push_back(kernel.ready.front().cta);
    std::ranges::pop_heap(kernel.ready, std::ranges::greater());
    kernel.ready.pop_back();
    ++kernel.next;
  }
  return chosen;
}

}  // namespace gridloom::exec
