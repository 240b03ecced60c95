#include "tests/rewriter/passes/range_watcher.h"

#include <stdexcept>

namespace gridloom::test {
namespace {

constexpr std::uint64_t kRead = 1, kWrite = 2;

bool Holds(const RangeCallWords& call, std::uint64_t byte, std::uint64_t flags) {
  const auto& [array, base, stride, count, width, of] = call;
  if ((flags & ~of) != 0 || count == 0 || width == 0 || byte < base) return false;
  const std::uint64_t piece = stride == 0 ? 0 : std::min((byte - base) / stride, count - 1);
  return byte - base - piece * stride < width;
}

}  // namespace

void RangeWatcher::Begin() {
  accesses_.clear();
  sets_.clear();
  releases_.clear();
  late_ = false;
}

void RangeWatcher::OnAccess(std::uint64_t address, unsigned bytes, bool reads, bool writes) {
  const Access access{address, bytes, (reads ? kRead : 0) | (writes ? kWrite : 0)};
  if (accesses_.empty() || accesses_.back() != access) accesses_.push_back(access);
  late_ = late_ || (!releases_.empty() && writes);  // release code may load what indices are made of
}

void RangeWatcher::OnCall(std::string_view function, std::span<const std::uint64_t> a) {
  const bool set = function.starts_with("gridloom_set"), strided = function.ends_with("strided");
  if (!function.starts_with("gridloom_") || a.size() != (strided ? 6u : 4u))
    throw std::runtime_error("call of " + std::string(function));
  RangeCallWords call{};
  if (strided) std::ranges::copy(a, call.begin());
  else call = {a[0], a[1], 0, 1, a[2] > a[1] ? a[2] - a[1] : 0, a[3]};
  (set ? sets_ : releases_).push_back(call);
}

std::string RangeWatcher::Check(const std::vector<RangeCallWords>& calls,
                                const std::vector<std::pair<std::uint64_t, std::uint64_t>>& allocations) const {
  if (late_) return "memory is written after a release";
  std::vector<Access> accesses = accesses_;
  std::ranges::sort(accesses);
  accesses.erase(std::ranges::unique(accesses).begin(), accesses.end());
  for (const Access& access : accesses) {
    const auto in =
        std::ranges::find_if(allocations, [&](const auto& one) { return access.address - one.first < one.second; });
    if (in == allocations.end()) return "an access lies in no allocation";
    for (std::uint64_t byte = access.address; byte < access.address + access.bytes; ++byte) {
      const bool found = std::ranges::any_of(calls, [&](const RangeCallWords& call) {
        return call[0] - in->first < in->second && Holds(call, byte, access.flags);
      });
      if (!found) {
        return "byte " + std::to_string(byte - in->first) + " of allocation " +
               std::to_string(in - allocations.begin()) + ", flags " + std::to_string(access.flags) +
               ", is in no range";
      }
    }
  }
  return "";
}

}  // namespace gridloom::test
