#include "interpose/objects/sm_share.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>

#include "interpose/objects/device.h"
#include "interpose/objects/green_context.h"
#include "interpose/objects/process.h"

namespace gridloom::session {
namespace {

using namespace cuda;

/// In the bytes of a resource that are the driver's own.
struct Written {
  static constexpr std::uint64_t kMark = 0x6772'6964'6c6f'6f6d;
  std::uint64_t mark = kMark;
  SmShare share;
};
static_assert(sizeof(Written) <= sizeof(CUdevResource::padding) && std::is_trivially_copyable_v<Written>);

constexpr std::uint32_t kPair = 2;  // SMs that share what no part can be without, on all architectures from 7.0

/// The largest group of SMs that can be asked for to lie together.
std::uint32_t MostCoscheduled(const SmShare& share) {
  constexpr std::uint32_t kMost = 32;  // from 9.0 on, where groups are of eight
  return share.multiple >= 8 ? kMost : kPair;
}

/// Whether the sizes that a wish names can be had of any device like this.
bool IsSound(const CU_DEV_SM_RESOURCE_GROUP_PARAMS& wish, const SmShare& share, std::uint32_t together) {
  if ((wish.flags & ~CU_DEV_SM_RESOURCE_GROUP_KNOWN) != 0) return false;
  if (std::ranges::any_of(wish.reserved, [](unsigned word) { return word != 0; })) return false;
  if (together % kPair != 0 || together > MostCoscheduled(share)) return false;
  const std::uint32_t preferred = wish.preferred_coscheduled;
  if (preferred != 0 && (preferred % together != 0 || preferred > MostCoscheduled(share))) return false;
  const bool backfill = (wish.flags & CU_DEV_SM_RESOURCE_GROUP_BACKFILL) != 0;
  return wish.sm_count % kPair == 0 && (backfill || wish.sm_count % together == 0) && wish.sm_count <= share.count;
}

}  // namespace

/// How SMs can be divided; source: the guide of green contexts in the CUDA driver API's documentation, 13.0.
SmShare SmShare::Of(const Device& device) {
  SmShare share{.device = device.ordinal(), .count = device.spec().sm.count};
  const int major = device.compute_capability().major;
  share.smallest = major >= 9 ? 8 : major == 8 ? 4 : 2;
  share.multiple = major >= 9 ? 8 : 2;
  return share;
}

void Write(const SmShare& share, CUdevResource* resource) {
  *resource = {};
  resource->type = CU_DEV_RESOURCE_TYPE_SM;
  const Written written{.share = share};
  std::memcpy(resource->padding + 4, &written, sizeof written);
  resource->sm = {share.count, share.smallest, share.multiple, share.flags, 0};
}

std::optional<SmShare> Read(const Process& process, const CUdevResource& resource) {
  Written written;
  std::memcpy(&written, resource.padding + 4, sizeof written);
  const SmShare& share = written.share;
  Device* const device = written.mark == Written::kMark ? process.FindDevice(share.device) : nullptr;
  if (device == nullptr || share.count == 0 || share.count != resource.sm.sm_count) return {};
  const auto of = share.of == nullptr ? nullptr : process.handles.greens.Find(share.of);
  if (share.of != nullptr && (of == nullptr || &of->primary().device() != device)) return {};
  const std::uint32_t all = SmCount(device->primary(), of.get());
  if (share.first >= all || share.count > all - share.first) return {};
  const SmShare whole = SmShare::Of(*device);
  if (share.smallest < kPair || share.smallest > whole.smallest || share.multiple < kPair ||
      share.multiple > MostCoscheduled(whole))
    return {};
  return share;
}

std::vector<std::uint32_t> SmsOf(const Process& process, const SmShare& share) {
  std::vector<std::uint32_t> sms(share.count);
  if (share.of == nullptr) {
    std::iota(sms.begin(), sms.end(), share.first);
  } else {
    const auto of = process.handles.greens.Find(share.of);
    std::ranges::copy(of->sms().subspan(share.first, share.count), sms.begin());
  }
  return sms;
}

EqualSplit SplitByCount(const SmShare& share, std::uint32_t at_least, bool ignore_coscheduling) {
  const std::uint32_t smallest = ignore_coscheduling ? kPair : share.smallest,
                      multiple = ignore_coscheduling ? kPair : share.multiple;
  const std::uint32_t size = (std::max(at_least, smallest) + multiple - 1) / multiple * multiple;
  return {.size = size, .groups = share.count / size};
}

CUresult SplitByWishes(const SmShare& share, std::vector<CU_DEV_SM_RESOURCE_GROUP_PARAMS>& wishes, bool may_be_empty) {
  std::uint32_t left = share.count;
  for (CU_DEV_SM_RESOURCE_GROUP_PARAMS& wish : wishes) {
    const std::uint32_t together = wish.coscheduled != 0 ? wish.coscheduled : share.multiple;
    if (!IsSound(wish, share, together)) return CUDA_ERROR_INVALID_VALUE;
    // SMs are in no localities here.
    if ((wish.flags & ~CU_DEV_SM_RESOURCE_GROUP_BACKFILL) != 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    const std::uint32_t multiple = (wish.flags & CU_DEV_SM_RESOURCE_GROUP_BACKFILL) != 0 ? kPair : together;
    if (wish.sm_count == 0) wish.sm_count = left < together ? 0 : left / multiple * multiple;
    if (wish.sm_count > left) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    if (!may_be_empty && wish.sm_count < together) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    left -= wish.sm_count;
  }
  return CUDA_SUCCESS;
}

std::uint64_t NextSplit() {
  static std::atomic<std::uint64_t> g_next{1};
  return g_next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace gridloom::session
