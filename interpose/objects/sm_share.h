// Shares of a device's SMs: what green contexts divide it into.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "interpose/api/newer_types.h"

namespace gridloom::session {

class Device;
class Process;

/// A part of a device's SMs or of a green context's: what a CUdevResource stands for. It is written into the resource,
/// whose fields the program must not change; what it changes all the same is found out where it names SMs that there
/// are not.
struct SmShare {
  int device = 0;
  cuda::CUgreenCtx of = nullptr;       ///< whose SMs are counted; null: the device's
  std::uint32_t first = 0, count = 0;  ///< from the how manieth of them on, how many
  /// The smallest part that it can be divided into, and what a part is a multiple of.
  std::uint32_t smallest = 0, multiple = 0;
  std::uint64_t split = 0;  ///< number of the call that made it; 0: it is of a device or a context
  unsigned flags = 0;       ///< CU_DEV_SM_RESOURCE_GROUP_*

  static SmShare Of(const Device& device);
};

void Write(const SmShare& share, cuda::CUdevResource* resource);
/// Nothing for what Write never wrote in this process.
std::optional<SmShare> Read(const Process& process, const cuda::CUdevResource& resource);

/// The numbers of its SMs, as %smid has them.
std::vector<std::uint32_t> SmsOf(const Process& process, const SmShare& share);

/// How cuDevSmResourceSplitByCount divides: groups of one size, and what is left.
struct EqualSplit {
  std::uint32_t size = 0, groups = 0;
};
/// `ignore_coscheduling`: SMs one by one, as far as the hardware lets them.
EqualSplit SplitByCount(const SmShare& share, std::uint32_t at_least, bool ignore_coscheduling);

/// How cuDevSmResourceSplit divides. Fills in the sizes that are asked for as 0. The status names what is wrong with
/// the wishes.
cuda::CUresult SplitByWishes(const SmShare& share, std::vector<cuda::CU_DEV_SM_RESOURCE_GROUP_PARAMS>& wishes,
                             bool may_be_empty);

/// A number that no split had.
std::uint64_t NextSplit();

}  // namespace gridloom::session
