#include "scheduler/policy/crcs.h"

#include <algorithm>
#include <utility>

namespace gridloom::policy {
namespace {

/// CrcsReady: of so many SMs one is kept empty for blocks that need not wait, where kernels behind the oldest have
/// such.
constexpr std::size_t kReservedPart = 2;

/// Some of its blocks have not started, and it is no profiler.
bool Waits(const KernelView& kernel) { return !kernel.all_started() && kernel.priority <= 0; }

/// Profilers come first: they are short, and a kernel cannot begin before its own.
const KernelView* Urgent(const Snapshot& snapshot) {
  const KernelView* urgent = nullptr;
  for (const KernelView& kernel : snapshot.kernels) {
    if (kernel.all_started() || kernel.priority <= 0) continue;
    if (urgent == nullptr || kernel.priority > urgent->priority) urgent = &kernel;
  }
  return urgent;
}

std::optional<Slice> InOrder(const Snapshot& snapshot) {
  for (const KernelView& kernel : snapshot.kernels) {
    if (!kernel.all_started()) return Rest(kernel);
  }
  return std::nullopt;
}

bool Holds(const KernelView& kernel, std::uint32_t sm) {
  return kernel.priority <= 0 && !kernel.resident.empty() && kernel.resident[sm] != 0;
}

std::uint32_t SmsOf(const KernelView& kernel) {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(kernel.resident, [](std::uint16_t ctas) { return ctas != 0; }));
}

/// SMs that have no CTA of a kernel; profilers do not count.
std::vector<std::uint32_t> EmptySms(const Snapshot& snapshot) {
  std::vector<std::uint32_t> empty;
  for (std::uint32_t sm = 0; sm < snapshot.sms.size(); ++sm) {
    if (std::ranges::none_of(snapshot.kernels, [&](const KernelView& kernel) { return Holds(kernel, sm); }))
      empty.push_back(sm);
  }
  return empty;
}

/// Shares as fractions would be, without rounding: pages times all SMs, SMs times all pages.
const KernelView* MostAhead(const Snapshot& snapshot) {
  const KernelView* chosen = nullptr;
  std::int64_t most = 0;
  for (const KernelView& kernel : snapshot.kernels) {
    if (!Waits(kernel)) continue;
    const std::uint32_t sms = SmsOf(kernel);
    if (chosen == nullptr && sms == 0) return &kernel;
    const auto pages = static_cast<std::int64_t>(kernel.pages * snapshot.sms.size());
    const std::int64_t ahead = pages - static_cast<std::int64_t>(sms * std::max<std::uint64_t>(snapshot.pages, 1));
    if (chosen != nullptr && ahead <= most) continue;
    chosen = &kernel;
    most = ahead;
  }
  return chosen;
}

}  // namespace

std::optional<Slice> CrcsFifo::Next(const Snapshot& snapshot) {
  if (const KernelView* const urgent = Urgent(snapshot)) return Rest(*urgent);
  return InOrder(snapshot);
}

/// How many kernels there are to choose from while inputs are on their way, also if only their profilers are there yet.
void CrcsPpcs::NoteKernels(const Snapshot& snapshot) {
  if (!snapshot.loading) kernels_ = profilers_ = {};
  for (const KernelView& kernel : snapshot.kernels) {
    Seen& seen = kernel.priority > 0 ? profilers_ : kernels_;
    if (kernel.id < seen.next) continue;
    seen.next = kernel.id + 1;
    ++seen.count;
  }
}

std::optional<Slice> CrcsPpcs::Next(const Snapshot& snapshot) {
  NoteKernels(snapshot);
  if (const KernelView* const urgent = Urgent(snapshot)) return Rest(*urgent);
  if (!snapshot.loading) return InOrder(snapshot);
  const std::vector<std::uint32_t> empty = EmptySms(snapshot);
  // A lone kernel fills one SM after the other, too: those whose data come first will be empty first.
  if (std::max(kernels_.count, profilers_.count) <= 1 && empty.empty()) return InOrder(snapshot);
  const KernelView* const kernel = empty.empty() ? nullptr : MostAhead(snapshot);
  if (kernel == nullptr) return std::nullopt;
  sm_ = empty.front();
  Slice slice = Rest(*kernel);
  // Small grids are spread over their part of the device: two blocks on one SM are slower than on two.
  const auto kernels = static_cast<std::uint64_t>(std::ranges::count_if(snapshot.kernels, Waits));
  slice.ctas = std::min(slice.ctas, (kernel->ctas * kernels + snapshot.sms.size() - 1) / snapshot.sms.size());
  slice.sms = {&sm_, 1};
  return slice;
}

std::optional<Slice> CrcsReady::Next(const Snapshot& snapshot) {
  follow_ &= snapshot.loading;
  if (const KernelView* const urgent = Urgent(snapshot)) return Rest(*urgent);
  const std::vector<std::uint32_t> empty = EmptySms(snapshot);
  /// SMs that have room for one more block of the kernel: its own, and up to so many empty ones.
  const auto room = [&](const KernelView& kernel, std::size_t most_empty) {
    sms_.clear();
    for (std::uint32_t sm = 0; sm < snapshot.sms.size(); ++sm) {
      if (Holds(kernel, sm) && snapshot.sms[sm].Fits(kernel.needs)) sms_.push_back(sm);
    }
    for (std::size_t i = 0; i < std::min(most_empty, empty.size()); ++i) {
      if (snapshot.sms[empty[i]].Fits(kernel.needs)) sms_.push_back(empty[i]);
    }
    std::ranges::sort(sms_);
    return !sms_.empty();
  };
  bool oldest = true;
  for (const KernelView& kernel : snapshot.kernels) {
    if (!Waits(kernel)) continue;
    if (!kernel.announced && room(kernel, empty.size())) return Rest(kernel);
    follow_ |= snapshot.loading && !oldest && kernel.ready != 0;
    oldest = false;
    if (kernel.ready == 0 || !room(kernel, empty.size())) continue;
    return Slice{.kernel = kernel.id, .ctas = kernel.ready, .pick = Pick::kReady, .sms = sms_};
  }
  // Blocks that would wait leave some SMs to those that need not, while inputs come that let blocks of all kernels go
  // on.
  const std::size_t reserve = snapshot.loading ? snapshot.sms.size() / kReservedPart : 0;
  oldest = true;
  for (const KernelView& kernel : snapshot.kernels) {
    if (!Waits(kernel)) continue;
    const bool first = std::exchange(oldest, false);
    const std::size_t kept = !first ? std::max<std::size_t>(reserve, 1) : follow_ && SmsOf(kernel) != 0 ? reserve : 0;
    if (kernel.begun == 0 || empty.size() < kept || !room(kernel, empty.size() - kept)) continue;
    // One at a time: who comes after sees what is left.
    return Slice{.kernel = kernel.id, .ctas = 1, .pick = Pick::kBegun, .sms = sms_};
  }
  return std::nullopt;
}

}  // namespace gridloom::policy
