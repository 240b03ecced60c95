// Resources of devices as green contexts divide them: what there is, asked of a device, a context or a stream. There are no green
// contexts, so each of them has all SMs.
#include "hooks/support.h"
#include "interpose/api/newer_types.h"

namespace gridloom::hooks {
namespace {

/// How a device's SMs can be divided; source: the guide of green contexts in the CUDA driver API's documentation, 13.0.
struct Partition {
  unsigned smallest, multiple;  ///< SMs
};

Partition PartitionOf(const ComputeCapability& capability) {
  if (capability.major >= 9) return {8, 8};
  if (capability.major == 8) return {4, 2};
  return {2, 2};
}

/// The resource of a device. INVALID_RESOURCE_TYPE for types other than SMs: there are no work queues to speak of.
CUresult Describe(const Device& device, CUdevResourceType type, CUdevResource* resource) {
  GL_CU_REQUIRE(resource != nullptr);
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  const Partition partition = PartitionOf(device.compute_capability());
  *resource = {};
  resource->type = type;
  resource->sm = {device.spec().sm.count, partition.smallest, partition.multiple, 0, 0};
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuDeviceGetDevResource(CUdevice ordinal, CUdevResource* resource, CUdevResourceType type) {
  Device* device = nullptr;
  GL_CU_TRY(FindDevice(ordinal, &device));
  return Describe(*device, type, resource);
}

CUresult cuCtxGetDevResource(CUcontext handle, CUdevResource* resource, CUdevResourceType type) {
  Context* context = nullptr;
  GL_CU_TRY(FindContext(handle, &context));
  return Describe(context->device(), type, resource);
}

CUresult cuStreamGetDevResource(CUstream handle, CUdevResource* resource, CUdevResourceType type) {
  session::StreamPtr stream;
  GL_CU_TRY(FindStream(handle, &stream));
  return Describe(stream->context().device(), type, resource);
}

}  // namespace gridloom::hooks
