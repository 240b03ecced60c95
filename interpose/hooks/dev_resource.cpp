// Resources of devices as green contexts divide them: what there is, and its parts. SMs are the only ones; there are no
// work queues to speak of.
#include <algorithm>
#include <mutex>

#include "hooks/support.h"
#include "interpose/api/newer_types.h"
#include "interpose/objects/sm_share.h"

namespace gridloom::hooks {
namespace {

using session::SmShare;

/// `share` as a resource of that type.
CUresult Describe(const SmShare& share, CUdevResourceType type, CUdevResource* resource) {
  GL_CU_REQUIRE(resource != nullptr);
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  session::Write(share, resource);
  return CUDA_SUCCESS;
}

SmShare ShareOf(const Context& context, session::GreenContext* green) {
  return green != nullptr ? green->share() : SmShare::Of(context.device());
}

/// What a program hands in to be divided: all that a device, a context or a green context has, or, with `parts`, what a
/// split left.
CUresult ReadInput(Process& process, const CUdevResource* input, bool parts, SmShare* share) {
  GL_CU_REQUIRE(input != nullptr);
  if (input->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  const auto read = session::Read(process, *input);
  GL_CU_REQUIRE(read.has_value());
  if (read->split != 0 && !parts) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  *share = *read;
  return CUDA_SUCCESS;
}

/// Cuts `size` SMs off the front of `left`, as part of a split.
SmShare CutOff(SmShare& left, std::uint32_t size, std::uint64_t split) {
  SmShare part = left;
  part.count = size;
  part.split = split;
  left.first += size;
  left.count -= size;
  return part;
}

void WriteRest(SmShare rest, std::uint64_t split, CUdevResource* remainder) {
  if (remainder == nullptr) return;
  *remainder = {};
  rest.split = split;
  if (rest.count != 0) session::Write(rest, remainder);
}

/// No call gives a description back, so that equal ones are one.
CUdevResourceDesc HandleOf(Process& process, std::shared_ptr<session::ResourceDescription> made) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  CUdevResourceDesc known = nullptr;
  process.handles.resource_descriptions.ForEach([&](const std::shared_ptr<session::ResourceDescription>& one) {
    if (*one == *made) known = reinterpret_cast<CUdevResourceDesc>(one.get());
  });
  return known != nullptr ? known : process.handles.resource_descriptions.Add(std::move(made));
}

}  // namespace

CUresult cuDeviceGetDevResource(Process& process, CUdevice ordinal, CUdevResource* resource, CUdevResourceType type) {
  Device* device = nullptr;
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  return Describe(SmShare::Of(*device), type, resource);
}

CUresult cuCtxGetDevResource(Process& process, CUcontext handle, CUdevResource* resource, CUdevResourceType type) {
  Context* context = nullptr;
  session::GreenPtr green;
  GL_CU_TRY(FindContext(process, handle, &context, &green));
  return Describe(ShareOf(*context, green.get()), type, resource);
}

CUresult cuGreenCtxGetDevResource(Process& process, CUgreenCtx handle, CUdevResource* resource,
                                  CUdevResourceType type) {
  session::GreenPtr green;
  GL_CU_TRY(FindGreen(process, handle, &green));
  return Describe(green->share(), type, resource);
}

CUresult cuStreamGetDevResource(Process& process, CUstream handle, CUdevResource* resource, CUdevResourceType type) {
  session::StreamPtr stream;
  GL_CU_TRY(FindStream(handle, &stream));
  return Describe(ShareOf(stream->context(), session::GreenOf(*stream)), type, resource);
}

CUresult cuDevSmResourceSplitByCount(Process& process, CUdevResource* result, unsigned* nb_groups,
                                     const CUdevResource* input, CUdevResource* remaining, unsigned use_flags,
                                     unsigned min_count) {
  constexpr unsigned kKnown =
      CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING | CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
  GL_CU_REQUIRE(nb_groups != nullptr && (use_flags & ~kKnown) == 0 && (result == nullptr || *nb_groups != 0));
  SmShare share;
  GL_CU_TRY(ReadInput(process, input, false, &share));
  GL_CU_REQUIRE(min_count <= share.count);
  // Any of an SM's clusters may be as large as the device allows, so the other flag changes nothing where there are
  // clusters.
  const bool has_clusters = process.FindDevice(share.device)->compute_capability().major >= 9;
  GL_CU_REQUIRE(has_clusters || (use_flags & CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE) == 0);
  const bool one_by_one = (use_flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0;
  const session::EqualSplit split = session::SplitByCount(share, min_count, one_by_one);
  if (result == nullptr) {
    *nb_groups = split.groups;
    return CUDA_SUCCESS;
  }
  if (split.groups == 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  *nb_groups = std::min(*nb_groups, split.groups);
  if (one_by_one) share.smallest = share.multiple = session::SplitByCount(share, 0, true).size;
  const std::uint64_t number = session::NextSplit();
  for (unsigned i = 0; i < *nb_groups; ++i) session::Write(CutOff(share, split.size, number), &result[i]);
  WriteRest(share, number, remaining);
  return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplit(Process& process, CUdevResource* result, unsigned nb_groups, const CUdevResource* input,
                              CUdevResource* remainder, unsigned flags, CU_DEV_SM_RESOURCE_GROUP_PARAMS* group_params) {
  GL_CU_REQUIRE(nb_groups != 0 && group_params != nullptr && flags == 0);
  SmShare share;
  GL_CU_TRY(ReadInput(process, input, true, &share));
  GL_CU_REQUIRE(nb_groups <= share.count);
  std::vector<CU_DEV_SM_RESOURCE_GROUP_PARAMS> wishes(group_params, group_params + nb_groups);
  GL_CU_TRY(session::SplitByWishes(share, wishes, result == nullptr));
  const std::uint64_t number = session::NextSplit();
  for (unsigned i = 0; i < nb_groups; ++i) {
    group_params[i].sm_count = wishes[i].sm_count;
    SmShare part = CutOff(share, wishes[i].sm_count, number);
    if (wishes[i].coscheduled != 0) part.multiple = wishes[i].coscheduled;
    part.smallest = std::min(part.smallest, part.multiple);
    part.flags = wishes[i].flags;
    if (result != nullptr) session::Write(part, &result[i]);
  }
  WriteRest(share, number, remainder);
  return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(Process& process, CUdevResourceDesc* desc, CUdevResource* resources,
                                   unsigned nb_resources) {
  GL_CU_REQUIRE(desc != nullptr && resources != nullptr && nb_resources != 0);
  SmShare first;
  GL_CU_TRY(ReadInput(process, &resources[0], true, &first));
  auto made = std::make_shared<session::ResourceDescription>();
  made->device = first.device;
  made->smallest = first.smallest;
  made->multiple = first.multiple;
  for (unsigned i = 0; i < nb_resources; ++i) {
    SmShare part;
    GL_CU_TRY(ReadInput(process, &resources[i], true, &part));
    // Several have to be parts of one split.
    const bool together = part.device == first.device && part.split == first.split && part.multiple == first.multiple;
    if (nb_resources > 1 && (!together || part.split == 0)) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    const std::vector<std::uint32_t> sms = session::SmsOf(process, part);
    made->sms.insert(made->sms.end(), sms.begin(), sms.end());
  }
  std::ranges::sort(made->sms);
  if (std::ranges::adjacent_find(made->sms) != made->sms.end()) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  *desc = HandleOf(process, std::move(made));
  return CUDA_SUCCESS;
}

}  // namespace gridloom::hooks
