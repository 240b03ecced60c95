// Types of the driver functions that CUDA 12.4 and later ones added, apart from cuda_types.h, which nearly everything
// includes. Layouts are ABI facts, compared with cuda.h in tests/interpose/cuda_header_test.cpp where a toolkit is
// present.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/api/cuda_types.h"

namespace gridloom::cuda {

// ---- resources of a device

inline constexpr CUdevResourceType CU_DEV_RESOURCE_TYPE_INVALID{0}, CU_DEV_RESOURCE_TYPE_SM{1};

struct CUdevSmResource {
  unsigned sm_count;  ///< SMs of the resource
  unsigned min_partition,
      coscheduled;  ///< smallest part, and what its size is a multiple of, in SMs; drivers before 13.1: unused
  unsigned flags, locality_domain;  ///< drivers before 13.1: unused
};
struct CUdevResource {
  CUdevResourceType type;
  unsigned char padding[92];
  union {
    CUdevSmResource sm;
    unsigned char oversize[40];
  };
  CUdevResource* next;  ///< before 13.1: the last bytes of the union
};
/// CUdevSmResourceGroup_flags, in CU_DEV_SM_RESOURCE_GROUP_PARAMS::flags.
inline constexpr unsigned CU_DEV_SM_RESOURCE_GROUP_BACKFILL = 1, CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID = 2,
                          CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS = 4,
                          CU_DEV_SM_RESOURCE_GROUP_KNOWN = 7;
struct CU_DEV_SM_RESOURCE_GROUP_PARAMS {
  unsigned sm_count;  ///< 0: as many as there are
  unsigned coscheduled, preferred_coscheduled;
  unsigned flags, locality_domain;
  unsigned reserved[11];
};
inline constexpr unsigned CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING = 1,
                          CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE = 2;
inline constexpr unsigned CU_GREEN_CTX_DEFAULT_STREAM = 1;

// ---- tensor maps, core dumps

enum CUtensorMapAllocClass : int {
  CU_TENSOR_MAP_ALLOC_CLASS_AUTO = 0,
  CU_TENSOR_MAP_ALLOC_CLASS_SMALL = 1,
  CU_TENSOR_MAP_ALLOC_CLASS_LARGE = 2
};
using CUcoredumpCallbackHandle = struct CUcoredumpCallbackEntry_st*;
using CUcoredumpStatusCallback = void (*)(void* user_data, int pid, CUdevice device);

// ---- graphs that are captured anew

enum CUgraphRecaptureStatus : int {
  CU_GRAPH_RECAPTURE_ELIGIBLE_FOR_UPDATE = 0,
  CU_GRAPH_RECAPTURE_INELIGIBLE_FOR_UPDATE = 1,
  CU_GRAPH_RECAPTURE_ERROR = 2
};
using CUgraphRecaptureCallback = CUresult (*)(void* data, CUgraphNode node, const CUgraphNodeParams* original,
                                              const CUgraphNodeParams* recaptured, CUgraphRecaptureStatus status);

// ---- only passed to functions that are refused

using CUlogicalEndpointId = std::uint32_t;
enum CUlogicalEndpointIpcHandleType : int {};
struct CUlogicalEndpointProp;
struct CUcliqueInfo;
struct CUDA_FABRIC_COPY_BATCH_OP;
struct CUstreamCigCaptureParams;
using CUcheckpointOperationHandle = struct CUIcheckpointOperation_st*;

}  // namespace gridloom::cuda
