// Sizes that programs pass: what has no place in memory is refused by every entry point, and nothing wraps around.
#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "sim/exec/extent.h"
#include "tests/interpose/fixture.h"

using namespace gridloom;

namespace {

constexpr std::size_t kAll = ~std::size_t{0};
/// Numbers that become small when they are multiplied by 2, 4, 16 or 512, or when a little is added.
constexpr std::size_t kHuge[] = {std::size_t{1} << 63,
                                 (std::size_t{1} << 63) + 4,
                                 std::size_t{1} << 62,
                                 std::size_t{1} << 60,
                                 std::size_t{1} << 55,
                                 kAll,
                                 kAll - 3,
                                 kAll - 511};

struct Memory {
  Memory() {
    CU_OK(cuMemAlloc_v2(&device, kBytes));
    CU_OK(cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL));
    CU_OK(cuMemsetD8_v2(device, 0x5a, kBytes));
  }
  ~Memory() {
    for (const unsigned char byte : Read()) CHECK(byte == 0x5a);
    CU_OK(cuMemFree_v2(device));
    CU_OK(cuMemFree_v2(managed));
  }
  std::vector<unsigned char> Read() const {
    std::vector<unsigned char> bytes(kBytes);
    CU_OK(cuMemcpyDtoH_v2(bytes.data(), device, kBytes));
    return bytes;
  }
  static constexpr std::size_t kBytes = 1 << 16;
  CUdeviceptr device = 0, managed = 0;
};

CUDA_MEMCPY3D Copy(CUmemorytype from, CUdeviceptr src, CUmemorytype to, CUdeviceptr dst) {
  CUDA_MEMCPY3D copy{};
  copy.src_type = from;
  copy.dst_type = to;
  copy.src_host = reinterpret_cast<const void*>(src);
  copy.dst_host = reinterpret_cast<void*>(dst);
  copy.src_device = src;
  copy.dst_device = dst;
  copy.width_bytes = 16;
  copy.height = copy.depth = 1;
  return copy;
}

#define REFUSED(call) CHECK((call) == CUDA_ERROR_INVALID_VALUE)

}  // namespace

TEST_CASE("Extent_DoesNotWrap", "[extents]") {
  using exec::Extent;
  STATIC_REQUIRE((Extent(3) * 4 + 5).value() == 17);
  STATIC_REQUIRE_FALSE((Extent(std::uint64_t{1} << 63) * 2).fits());
  STATIC_REQUIRE_FALSE((Extent(kAll) + 1).fits());
  STATIC_REQUIRE_FALSE((Extent(kAll) + 1 + 1).fits());
  STATIC_REQUIRE((Extent(kAll) * 0 + 7).value() == 7);
  STATIC_REQUIRE(Extent(513).RoundedUp(512).value() == 1024);
  STATIC_REQUIRE(Extent(512).RoundedUp(512).value() == 512);
  STATIC_REQUIRE_FALSE(Extent(kAll).RoundedUp(512).fits());
  STATIC_REQUIRE(exec::Box{4, 3, 2, 10, 100}.span().value() == 124);
  STATIC_REQUIRE(exec::Box{4, 0, 2, 10, 100}.span().value() == 0);
  STATIC_REQUIRE_FALSE(exec::Box{4, (std::uint64_t{1} << 60) + 1, 1, 16, 0}.span().fits());
  STATIC_REQUIRE(exec::LiesIn(100, 10, 105, 5));
  STATIC_REQUIRE_FALSE(exec::LiesIn(100, 10, 105, 6));
  STATIC_REQUIRE_FALSE(exec::LiesIn(100, 10, 105, kAll - 100));
  STATIC_REQUIRE_FALSE(exec::LiesIn(100, 10, 99, 5));
}

TEST_CASE("Extents_Allocations", "[extents]") {
  const test::Fixture fixture;
  CUdeviceptr pointer = 0;
  std::size_t pitch = 0;
  for (const std::size_t huge : kHuge) {
    INFO(huge);
    REFUSED(cuMemAllocPitch_v2(&pointer, &pitch, huge, 1, 4));
    CHECK(cuMemAlloc_v2(&pointer, huge) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(cuMemAllocManaged(&pointer, huge, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(cuMemAllocAsync(&pointer, huge, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
    void* host = nullptr;
    CHECK(cuMemHostAlloc(&host, huge, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  }
  // 2^64 + 2^30 bytes.
  REFUSED(cuMemAllocPitch_v2(&pointer, &pitch, 512, (std::size_t{1} << 55) + (1 << 21), 4));
  REFUSED(cuMemAllocPitch_v2(&pointer, &pitch, 1 << 20, std::size_t{1} << 44, 4));
}

TEST_CASE("Extents_Fills", "[extents]") {
  const test::Fixture fixture;
  const Memory memory;
  const CUdeviceptr p = memory.device;
  for (const std::size_t huge : kHuge) {
    INFO(huge);
    REFUSED(cuMemsetD8_v2(p, 1, huge));
    REFUSED(cuMemsetD16_v2(p, 1, huge));
    REFUSED(cuMemsetD32_v2(p, 1, huge));
    REFUSED(cuMemsetD32Async(p, 1, huge, nullptr));
    REFUSED(cuMemsetD2D8_v2(p, huge, 1, 16, 2));
    REFUSED(cuMemsetD2D8_v2(p, 16, 1, huge, 1));
    REFUSED(cuMemsetD2D8_v2(p, 16, 1, 16, huge));
    REFUSED(cuMemsetD2D32_v2(p, 64, 1, 16, huge));
    REFUSED(cuMemsetD2D32_v2(p, huge / 4 * 4, 1, 16, huge));
    REFUSED(cuMemsetD2D32Async(p, 64, 1, huge, huge, nullptr));
  }
}

TEST_CASE("Extents_FillsOfGraphs", "[extents]") {
  const test::Fixture fixture;
  const Memory memory;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr, good = nullptr;
  CUgraphExec exec = nullptr;
  CUDA_MEMSET_NODE_PARAMS params{memory.device, 64, 0x5a5a5a5a, 4, 16, 1};
  CU_OK(cuGraphCreate(&graph, 0));
  CU_OK(cuGraphAddMemsetNode(&good, graph, nullptr, 0, &params, fixture.context));
  CU_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (const std::size_t huge : kHuge) {
    INFO(huge);
    for (const auto& wrong : {CUDA_MEMSET_NODE_PARAMS{memory.device, 64, 1, 4, huge, 1},
                              CUDA_MEMSET_NODE_PARAMS{memory.device, 64, 1, 4, 16, huge},
                              CUDA_MEMSET_NODE_PARAMS{memory.device, huge, 1, 4, 16, huge}}) {
      REFUSED(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &wrong, fixture.context));
      REFUSED(cuGraphMemsetNodeSetParams(good, &wrong));
      REFUSED(cuGraphExecMemsetNodeSetParams(exec, good, &wrong, fixture.context));
      CUgraphNodeParams any{};
      any.type = CU_GRAPH_NODE_TYPE_MEMSET;
      any.memset.params = wrong;
      REFUSED(cuGraphAddNode(&node, graph, nullptr, 0, &any));
      REFUSED(cuGraphNodeSetParams(good, &any));
      REFUSED(cuGraphExecNodeSetParams(exec, good, &any));
    }
  }
  CU_OK(cuGraphLaunch(exec, nullptr));
  CU_OK(cuGraphExecDestroy(exec));
  CU_OK(cuGraphDestroy(graph));
}

TEST_CASE("Extents_Copies", "[extents]") {
  const test::Fixture fixture;
  const Memory memory;
  std::vector<unsigned char> host(Memory::kBytes, 0x5a);
  const auto at_host = reinterpret_cast<CUdeviceptr>(host.data());
  for (const std::size_t huge : kHuge) {
    INFO(huge);
    REFUSED(cuMemcpyHtoD_v2(memory.device, host.data(), huge));
    REFUSED(cuMemcpyDtoH_v2(host.data(), memory.device, huge));
    REFUSED(cuMemcpyDtoD_v2(memory.device, memory.device, huge));
    REFUSED(cuMemcpy(memory.device, at_host, huge));
    REFUSED(cuMemcpyHtoDAsync_v2(memory.device, host.data(), huge, nullptr));
    REFUSED(cuMemcpyPeer(memory.device, fixture.context, memory.device, fixture.context, huge));
    CUdeviceptr dst[] = {memory.device}, src[] = {at_host};
    std::size_t sizes[] = {huge}, indices[] = {0};
    CUmemcpyAttributes attributes[1] = {};
    REFUSED(cuMemcpyBatchAsync_v2(dst, src, sizes, 1, attributes, indices, 1, nullptr));

    const CUmemorytype kTypes[] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED};
    for (const CUmemorytype from : kTypes) {
      for (const CUmemorytype to : kTypes) {
        const auto good = Copy(from, from == CU_MEMORYTYPE_DEVICE ? memory.device : at_host, to, memory.device);
        if (to == CU_MEMORYTYPE_HOST) continue;
        CU_OK(cuMemcpy3D_v2(&good));
        const auto refused = [&](auto change) {
          CUDA_MEMCPY3D copy = good;
          change(copy);
          REFUSED(cuMemcpy3D_v2(&copy));
          REFUSED(cuMemcpy3DAsync_v2(&copy, nullptr));
          CUDA_MEMCPY3D_PEER between{};
          static_cast<CUDA_MEMCPY3D&>(between) = copy;
          between.src_context = between.dst_context = fixture.context;
          REFUSED(cuMemcpy3DPeer(&between));
        };
        refused([&](CUDA_MEMCPY3D& c) { c.width_bytes = huge; });
        refused([&](CUDA_MEMCPY3D& c) { c.height = huge; });
        refused([&](CUDA_MEMCPY3D& c) { c.depth = huge; });
        refused([&](CUDA_MEMCPY3D& c) { c.height = c.depth = huge; });
        refused([&](CUDA_MEMCPY3D& c) { c.src_x_bytes = huge; });
        refused([&](CUDA_MEMCPY3D& c) { c.dst_x_bytes = huge; });
        refused([&](CUDA_MEMCPY3D& c) { c.src_y = huge, c.src_pitch = 16; });
        refused([&](CUDA_MEMCPY3D& c) { c.dst_y = huge, c.dst_pitch = 16; });
        refused([&](CUDA_MEMCPY3D& c) { c.src_z = huge, c.src_pitch = 16, c.src_height = 1; });
        refused([&](CUDA_MEMCPY3D& c) { c.dst_z = huge, c.dst_pitch = 16, c.dst_height = 1; });
        refused([&](CUDA_MEMCPY3D& c) { c.src_height = huge, c.src_pitch = 16, c.depth = 2; });
        refused([&](CUDA_MEMCPY3D& c) { c.dst_height = huge, c.dst_pitch = 16, c.depth = 2; });
      }
    }
    CUDA_MEMCPY2D flat{};
    flat.src_type = CU_MEMORYTYPE_HOST;
    flat.src_host = host.data();
    flat.dst_type = CU_MEMORYTYPE_DEVICE;
    flat.dst_device = memory.device;
    flat.src_pitch = flat.dst_pitch = 16;
    flat.width_bytes = 16;
    flat.height = huge;
    REFUSED(cuMemcpy2D_v2(&flat));
    REFUSED(cuMemcpy2DUnaligned_v2(&flat));
    REFUSED(cuMemcpy2DAsync_v2(&flat, nullptr));
    CUDA_MEMCPY3D_BATCH_OP op{};
    op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.pointer.pointer = at_host;
    op.dst.pointer.pointer = memory.device;
    op.width = 16;
    op.height = huge;
    op.depth = 1;
    REFUSED(cuMemcpy3DBatchAsync_v2(1, &op, 0, nullptr));
  }
}

TEST_CASE("Extents_CopiesOfGraphs", "[extents]") {
  const test::Fixture fixture;
  const Memory memory;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr, good = nullptr;
  CUgraphExec exec = nullptr;
  const auto params = Copy(CU_MEMORYTYPE_DEVICE, memory.device, CU_MEMORYTYPE_DEVICE, memory.device + 1024);
  CU_OK(cuGraphCreate(&graph, 0));
  CU_OK(cuGraphAddMemcpyNode(&good, graph, nullptr, 0, &params, fixture.context));
  CU_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (const std::size_t huge : kHuge) {
    INFO(huge);
    CUDA_MEMCPY3D wrong = params;
    wrong.height = huge;
    REFUSED(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &wrong, fixture.context));
    REFUSED(cuGraphMemcpyNodeSetParams(good, &wrong));
    REFUSED(cuGraphExecMemcpyNodeSetParams(exec, good, &wrong, fixture.context));
    CUDA_MEM_ALLOC_NODE_PARAMS alloc{};
    alloc.pool_props.alloc_type = CU_MEM_ALLOCATION_TYPE_PINNED;
    alloc.pool_props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    alloc.bytes = huge;
    CHECK(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &alloc) == CUDA_ERROR_OUT_OF_MEMORY);
  }
  CUstreamBatchMemOpParams item{};
  item.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  item.value.address = memory.device;
  CUDA_BATCH_MEM_OP_NODE_PARAMS batch{fixture.context, 257, &item, 0};
  REFUSED(cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &batch));
  CU_OK(cuGraphExecDestroy(exec));
  CU_OK(cuGraphDestroy(graph));
}

TEST_CASE("Extents_ArraysAndTextures", "[extents]") {
  const test::Fixture fixture;
  const Memory memory;
  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{16, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CU_OK(cuArray3DCreate_v2(&array, &descriptor));
  std::vector<float> host(256);
  for (const std::size_t huge : kHuge) {
    INFO(huge);
    CUarray wrong = nullptr;
    for (const unsigned flags :
         {0u, unsigned{kArray3DLayered}, unsigned{kArray3DCubemap}, unsigned{kArray3DLayered | kArray3DCubemap}}) {
      for (const auto& d : {CUDA_ARRAY3D_DESCRIPTOR{huge, 16, 6, CU_AD_FORMAT_FLOAT, 4, flags},
                            CUDA_ARRAY3D_DESCRIPTOR{16, huge, 6, CU_AD_FORMAT_FLOAT, 4, flags},
                            CUDA_ARRAY3D_DESCRIPTOR{16, 16, huge / 6 * 6, CU_AD_FORMAT_FLOAT, 4, flags}}) {
        REFUSED(cuArray3DCreate_v2(&wrong, &d));
        CUmipmappedArray mipmap = nullptr;
        REFUSED(cuMipmappedArrayCreate(&mipmap, &d, 2));
      }
    }
    REFUSED(cuMemcpyHtoA_v2(array, huge, host.data(), 16));
    REFUSED(cuMemcpyHtoA_v2(array, 0, host.data(), huge));
    REFUSED(cuMemcpyAtoH_v2(host.data(), array, huge, kAll - huge + 5));
    REFUSED(cuMemcpyAtoA_v2(array, huge, array, 0, 16));
    auto copy = Copy(CU_MEMORYTYPE_ARRAY, 0, CU_MEMORYTYPE_DEVICE, memory.device);
    copy.src_array = array;
    copy.src_y = huge;
    REFUSED(cuMemcpy3D_v2(&copy));
    copy.src_y = 0, copy.src_z = huge;
    REFUSED(cuMemcpy3D_v2(&copy));

    CUDA_TEXTURE_DESC texture{};
    CUtexObject object = 0;
    CUDA_RESOURCE_DESC rows{};
    rows.type = CU_RESOURCE_TYPE_PITCH2D;
    rows.pitch2d.pointer = memory.device;
    rows.pitch2d.format = CU_AD_FORMAT_FLOAT;
    rows.pitch2d.num_channels = 1;
    rows.pitch2d.width = 16;
    rows.pitch2d.height = 32;
    rows.pitch2d.pitch_bytes = huge / 512 * 512;
    REFUSED(cuTexObjectCreate(&object, &rows, &texture, nullptr));
    rows.pitch2d.pitch_bytes = 512;
    rows.pitch2d.width = huge;
    REFUSED(cuTexObjectCreate(&object, &rows, &texture, nullptr));
    rows.pitch2d.width = 16;
    rows.pitch2d.height = huge;
    REFUSED(cuTexObjectCreate(&object, &rows, &texture, nullptr));
  }
  // Formats: one that is none is an invalid value, one that is not executed is not supported.
  const CUDA_ARRAY_DESCRIPTOR none{16, 16, static_cast<CUarray_format>(0), 1},
      unknown{16, 16, static_cast<CUarray_format>(77), 1};
  const CUDA_ARRAY_DESCRIPTOR planar{16, 16, CU_AD_FORMAT_NV12, 1}, compressed{16, 16, CU_AD_FORMAT_BC7_UNORM, 4};
  CUarray made = nullptr;
  REFUSED(cuArrayCreate_v2(&made, &none));
  REFUSED(cuArrayCreate_v2(&made, &unknown));
  CHECK(cuArrayCreate_v2(&made, &planar) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuArrayCreate_v2(&made, &compressed) == CUDA_ERROR_NOT_SUPPORTED);
  CU_OK(cuArrayDestroy(array));
}

TEST_CASE("Extents_ManagedRanges", "[extents]") {
  const test::Fixture fixture;
  const Memory memory;
  const CUdeviceptr p = memory.managed;
  int value = 0;
  for (const std::size_t huge : kHuge) {
    INFO(huge);
    REFUSED(cuMemPrefetchAsync(p, huge, 0, nullptr));
    REFUSED(cuMemAdvise(p, huge, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    REFUSED(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, huge));
    REFUSED(cuStreamAttachMemAsync(nullptr, p, huge, CU_MEM_ATTACH_GLOBAL));
    CUdeviceptr pointers[] = {p};
    std::size_t sizes[] = {huge}, indices[] = {0};
    CUmemLocation locations[] = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    REFUSED(cuMemPrefetchBatchAsync(pointers, sizes, 1, locations, indices, 1, 0, nullptr));
    REFUSED(cuMemDiscardBatchAsync(pointers, sizes, 1, 0, nullptr));
  }
  CU_OK(cuMemPrefetchAsync(p, Memory::kBytes, 0, nullptr));
  CU_OK(cuStreamAttachMemAsync(nullptr, p, 0, CU_MEM_ATTACH_GLOBAL));
}

TEST_CASE("Extents_HostMemory", "[extents]") {
  const test::Fixture fixture;
  constexpr std::size_t kPage = 4096;
  auto* const pages =
      static_cast<char*>(mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(pages != MAP_FAILED);
  REQUIRE(munmap(pages + 2 * kPage, 2 * kPage) == 0);
  for (const std::size_t huge : kHuge) REFUSED(cuMemHostRegister_v2(pages, huge, 0));
  REFUSED(cuMemHostRegister_v2(pages, 2 * kPage + 1, 0));
  REFUSED(cuMemHostRegister_v2(pages + 2 * kPage, 10, 0));
  REFUSED(cuMemHostRegister_v2(reinterpret_cast<void*>(0x10), 100, 0));
  CU_OK(cuMemHostRegister_v2(pages + 100, 2 * kPage - 100, 0));
  CU_OK(cuMemHostUnregister(pages + 100));
  // A range around one that is registered.
  CU_OK(cuMemHostRegister_v2(pages + 100, 10, 0));
  CHECK(cuMemHostRegister_v2(pages, 2 * kPage, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CU_OK(cuMemHostUnregister(pages + 100));
  munmap(pages, 2 * kPage);
}

TEST_CASE("Extents_VirtualMemory", "[extents]") {
  const test::Fixture fixture;
  constexpr std::size_t kBytes = 2u << 20;
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle handle = 0, wrong = 0;
  CUdeviceptr range = 0, other = 0;
  CU_OK(cuMemCreate(&handle, kBytes, &prop, 0));
  CU_OK(cuMemAddressReserve(&range, 2 * kBytes, 0, 0, 0));
  CU_OK(cuMemMap(range, kBytes, 0, handle, 0));
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CU_OK(cuMemSetAccess(range, kBytes, &access, 1));
  for (std::size_t huge : kHuge) {
    huge = huge / kBytes * kBytes;
    INFO(huge);
    CHECK(cuMemAddressReserve(&other, huge, 0, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(cuMemCreate(&wrong, huge, &prop, 0) == CUDA_ERROR_OUT_OF_MEMORY);
    REFUSED(cuMemMap(range + kBytes, kBytes, huge, handle, 0));
    REFUSED(cuMemMap(range + kBytes, huge, 0, handle, 0));
    REFUSED(cuMemMap(range + kBytes, huge, kAll / kBytes * kBytes - huge + kBytes, handle, 0));
    REFUSED(cuMemSetAccess(range, huge, &access, 1));
    REFUSED(cuMemUnmap(range, huge));
    REFUSED(cuMemAddressFree(range, huge));
  }
  CHECK(cuMemAddressReserve(&other, kBytes, std::size_t{1} << 63, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  CU_OK(cuMemsetD8_v2(range, 1, kBytes));
  CU_OK(cuMemUnmap(range, kBytes));
  CU_OK(cuMemRelease(handle));
  CU_OK(cuMemAddressFree(range, 2 * kBytes));
}

TEST_CASE("Extents_ParametersOfOldLaunches", "[extents]") {
  const test::Fixture fixture;
  const CUfunction fill = fixture.Function("fill");
  int value = 0;
  REFUSED(cuParamSetSize(fill, ~0u));
  REFUSED(cuParamSetv(fill, 0, &value, ~0u));
  REFUSED(cuParamSetv(fill, 0x7fffffff, &value, 4));
}
