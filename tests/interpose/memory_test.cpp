// Memory: allocation, copies, fills, pools, virtual memory, arrays, pointer attributes.
#include <atomic>
#include <cstring>
#include <numeric>

#include "sim/exec/texture.h"
#include "tests/interpose/fixture.h"

using namespace gridloom;

namespace {

std::vector<unsigned char> Ramp(std::size_t n) {
  std::vector<unsigned char> bytes(n);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(0));
  return bytes;
}

}  // namespace

TEST_CASE("Allocate_CopyThere_CopyBack", "[memory]") {
  const test::Fixture fixture;
  const auto in = Ramp(1000);
  std::vector<unsigned char> out(1000);
  CUdeviceptr a = 0, b = 0;
  CU_OK(cuMemAlloc_v2(&a, 1000));
  CU_OK(cuMemAlloc_v2(&b, 1000));
  CHECK(a % 256 == 0);
  CU_OK(cuMemcpyHtoD_v2(a, in.data(), 1000));
  CU_OK(cuMemcpyDtoD_v2(b, a, 1000));
  CU_OK(cuMemcpy(reinterpret_cast<CUdeviceptr>(out.data()), b, 1000));
  CHECK(out == in);
  CU_OK(cuMemsetD16_v2(b, 0x1234, 500));
  CU_OK(cuMemcpyDtoH_v2(out.data(), b, 1000));
  CHECK(out[998] == 0x34);
  CHECK(out[999] == 0x12);
  CHECK(cuMemcpyHtoD_v2(a + 1, in.data(), 1000) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyHtoD_v2(0x10, in.data(), 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemsetD32_v2(a + 2, 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemcpyHtoD_v2(a, in.data(), 0));
  CHECK(cuMemFree_v2(a + 8) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemFree_v2(a));
  CHECK(cuMemFree_v2(a) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemFree_v2(0));
  CU_OK(cuMemFree_v2(b));
}

TEST_CASE("Memory_RunsOutAndComesBack", "[memory]") {
  const test::Fixture fixture;
  std::size_t free = 0, total = 0;
  CU_OK(cuMemGetInfo_v2(&free, &total));
  CHECK(total == std::size_t{1} << 30);
  CUdeviceptr pointer = 0;
  CHECK(cuMemAlloc_v2(&pointer, total * 2) == CUDA_ERROR_OUT_OF_MEMORY);
  CU_OK(cuMemGetInfo_v2(&free, nullptr));  // what pools kept is free now
  CU_OK(cuMemAlloc_v2(&pointer, free / 2));
  std::size_t less = 0;
  CU_OK(cuMemGetInfo_v2(&less, nullptr));
  CHECK(less <= free - free / 2);
  CU_OK(cuMemFree_v2(pointer));
}

TEST_CASE("PitchedAndThreeDimensionalCopies", "[memory]") {
  const test::Fixture fixture;
  CUdeviceptr device = 0;
  std::size_t pitch = 0;
  CU_OK(cuMemAllocPitch_v2(&device, &pitch, 100, 20, 4));
  CHECK(pitch >= 100);
  CHECK(pitch % 512 == 0);
  const auto in = Ramp(100 * 20);
  std::vector<unsigned char> out(100 * 20);
  CUDA_MEMCPY2D copy{};
  copy.src_type = CU_MEMORYTYPE_HOST;
  copy.src_host = in.data();
  copy.src_pitch = 100;
  copy.dst_type = CU_MEMORYTYPE_DEVICE;
  copy.dst_device = device;
  copy.dst_pitch = pitch;
  copy.width_bytes = 100;
  copy.height = 20;
  CU_OK(cuMemcpy2D_v2(&copy));
  CUDA_MEMCPY2D back{};
  back.src_type = CU_MEMORYTYPE_DEVICE;
  back.src_device = device;
  back.src_pitch = pitch;
  back.src_x_bytes = 10;
  back.src_y = 2;
  back.dst_type = CU_MEMORYTYPE_HOST;
  back.dst_host = out.data();
  back.dst_pitch = 50;
  back.width_bytes = 50;
  back.height = 18;
  CU_OK(cuMemcpy2DUnaligned_v2(&back));
  for (int y = 0; y < 18; ++y) CHECK(std::memcmp(&out[y * 50], &in[(y + 2) * 100 + 10], 50) == 0);
  copy.dst_pitch = 50;
  CHECK(cuMemcpy2D_v2(&copy) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemFree_v2(device));
}

TEST_CASE("AsyncCopy_TakesPageableSourcesOverAtOnce", "[memory]") {
  const test::Fixture fixture;
  CUstream stream;
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  void* flag = nullptr;
  CU_OK(cuMemHostAlloc(&flag, 4, 0));
  std::memset(flag, 0, 4);
  CUdeviceptr device = 0;
  CU_OK(cuMemAlloc_v2(&device, 64));
  auto source = Ramp(64);
  CU_OK(cuStreamWaitValue32_v2(stream, reinterpret_cast<CUdeviceptr>(flag), 1, CU_STREAM_WAIT_VALUE_EQ));
  CU_OK(cuMemcpyHtoDAsync_v2(device, source.data(), 64, stream));
  std::fill(source.begin(), source.end(), 0xff);
  static_cast<std::atomic<unsigned>*>(flag)->store(1);
  CU_OK(cuStreamSynchronize(stream));
  std::vector<unsigned char> out(64);
  CU_OK(cuMemcpyDtoH_v2(out.data(), device, 64));
  CHECK(out == Ramp(64));
  CU_OK(cuStreamDestroy_v2(stream));
  CU_OK(cuMemFree_v2(device));
  CU_OK(cuMemFreeHost(flag));
}

TEST_CASE("PointerAttributes_TellMemoryApart", "[memory]") {
  const test::Fixture fixture;
  CUdeviceptr device = 0, managed = 0;
  void* pinned = nullptr;
  int stranger = 0;
  CU_OK(cuMemAlloc_v2(&device, 100));
  CU_OK(cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
  CU_OK(cuMemAllocHost_v2(&pinned, 100));
  const auto type = [](CUdeviceptr pointer) {
    unsigned value = 0;
    CU_OK(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer));
    return value;
  };
  CHECK(type(device + 50) == CU_MEMORYTYPE_DEVICE);
  CHECK(type(managed) == CU_MEMORYTYPE_DEVICE);
  CHECK(type(reinterpret_cast<CUdeviceptr>(pinned)) == CU_MEMORYTYPE_HOST);
  CUpointer_attribute ids[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                               CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_HOST_POINTER};
  unsigned kind = 9, is_managed = 9;
  int ordinal = 9;
  void* host = &host;
  void* data[] = {&kind, &is_managed, &ordinal, &host};
  CU_OK(cuPointerGetAttributes(4, ids, data, reinterpret_cast<CUdeviceptr>(&stranger)));
  CHECK(kind == 0);
  CHECK(ordinal == kDeviceInvalid);
  CHECK(host == nullptr);
  CU_OK(cuPointerGetAttributes(4, ids, data, managed));
  CHECK(is_managed == 1);
  CHECK(ordinal == 0);
  CHECK(cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&stranger)) ==
        CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  CU_OK(cuMemGetAddressRange_v2(&base, &bytes, device + 99));
  CHECK(base == device);
  CHECK(bytes == 100);
  CU_OK(cuMemFree_v2(device));
  CU_OK(cuMemFree_v2(managed));
  CU_OK(cuMemFreeHost(pinned));
}

TEST_CASE("RegisteredHostMemory_IsUsableAndUnique", "[memory]") {
  const test::Fixture fixture;
  alignas(4096) static char buffer[8192];
  CU_OK(cuMemHostRegister_v2(buffer, sizeof buffer, kMemHostRegisterDeviceMap));
  CHECK(cuMemHostRegister_v2(buffer + 100, 10, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CUdeviceptr device = 0;
  CU_OK(cuMemHostGetDevicePointer_v2(&device, buffer + 16, 0));
  CHECK(device == reinterpret_cast<CUdeviceptr>(buffer + 16));
  CU_OK(cuMemsetD8_v2(device, 7, 4));
  CU_OK(cuCtxSynchronize());
  CHECK(buffer[16] == 7);
  CU_OK(cuMemHostUnregister(buffer));
  CHECK(cuMemHostUnregister(buffer) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  CHECK(cuMemsetD8_v2(device, 7, 4) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Pools_ReuseWhatStreamsFreed", "[memory]") {
  const test::Fixture fixture;
  CUstream stream;
  CU_OK(cuStreamCreate(&stream, 0));
  CUmemPoolProps props{};
  props.alloc_type = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool;
  CU_OK(cuMemPoolCreate(&pool, &props));
  CUdeviceptr a = 0, b = 0;
  CU_OK(cuMemAllocFromPoolAsync(&a, 5000, pool, stream));
  CU_OK(cuMemsetD8Async(a, 1, 5000, stream));
  std::uint64_t used = 0;
  CU_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  CHECK(used >= 5000);
  CU_OK(cuMemFreeAsync(a, stream));
  CU_OK(cuStreamSynchronize(stream));
  CU_OK(cuMemAllocFromPoolAsync(&b, 5000, pool, stream));
  CHECK(b == a);
  CUmemoryPool owner = nullptr;
  CU_OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, b));
  CHECK(owner == pool);
  CU_OK(cuMemFree_v2(b));
  CU_OK(cuMemPoolTrimTo(pool, 0));
  CU_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &used));
  CHECK(used == 0);
  CU_OK(cuMemPoolDestroy(pool));
  CHECK(cuMemPoolTrimTo(pool, 0) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuStreamDestroy_v2(stream));
}

TEST_CASE("Pools_BlockLargerThanAsked_CountsWhatIsInUse", "[memory]") {
  const test::Fixture fixture;
  CUstream stream;
  CU_OK(cuStreamCreate(&stream, 0));
  CUmemPoolProps props{};
  props.alloc_type = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool;
  CU_OK(cuMemPoolCreate(&pool, &props));
  const auto attribute = [&](CUmemPool_attribute which) {
    std::uint64_t value = 0;
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuMemPoolGetAttribute(pool, which, &value));
    return value;
  };
  CUdeviceptr first = 0, second = 0;
  CU_OK(cuMemAllocFromPoolAsync(&first, 1024, pool, stream));
  CHECK(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 1024);
  CU_OK(cuMemFreeAsync(first, stream));
  CHECK(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
  CHECK(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 1024);
  CU_OK(cuMemAllocFromPoolAsync(&second, 512, pool, stream));
  CHECK(second == first);
  CHECK(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 512);
  CHECK(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 1024);
  CU_OK(cuMemAllocFromPoolAsync(&first, 100, pool, stream));
  CHECK(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) ==
        612);  // What was asked for, to the byte: tests/gpu/codes.cpp on an H100.
  CHECK(attribute(CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 1024);
  CU_OK(cuMemFreeAsync(second, stream));
  CU_OK(cuMemAllocFromPoolAsync(&second, 1000, pool, stream));
  CHECK(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 1100);
  CU_OK(cuMemFreeAsync(first, stream));
  CU_OK(cuMemFreeAsync(second, stream));
  CHECK(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
  CU_OK(cuMemPoolDestroy(pool));
  CU_OK(cuStreamDestroy_v2(stream));
}

TEST_CASE("VirtualMemory_MapsTwiceAndProtects", "[memory]") {
  const test::Fixture fixture;
  constexpr std::size_t kBytes = 2u << 20;
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle handle = 0;
  CU_OK(cuMemCreate(&handle, kBytes, &prop, 0));
  CUdeviceptr range = 0;
  CU_OK(cuMemAddressReserve(&range, 2 * kBytes, 0, 0, 0));
  CU_OK(cuMemMap(range, kBytes, 0, handle, 0));
  CU_OK(cuMemMap(range + kBytes, kBytes, 0, handle, 0));
  CHECK(cuMemsetD8_v2(range, 1, 16) == CUDA_ERROR_INVALID_VALUE);  // no access yet
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CU_OK(cuMemSetAccess(range, 2 * kBytes, &access, 1));
  const unsigned value = 0xabcd;
  unsigned read = 0;
  CU_OK(cuMemcpyHtoD_v2(range + 64, &value, 4));
  CU_OK(cuMemcpyDtoH_v2(&read, range + kBytes + 64, 4));
  CHECK(read == value);
  CU_OK(cuMemUnmap(range, 2 * kBytes));
  CU_OK(cuMemRelease(handle));
  CU_OK(cuMemAddressFree(range, 2 * kBytes));
}

TEST_CASE("Arrays_HoldTexelsAndBecomeTextures", "[memory]") {
  const test::Fixture fixture;
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{8, 4, 0, CU_AD_FORMAT_FLOAT, 1, kArray3DSurfaceLdst};
  CUarray array;
  CU_OK(cuArray3DCreate_v2(&array, &descriptor));
  std::vector<float> in(32), out(32);
  std::iota(in.begin(), in.end(), 0.0f);
  CUDA_MEMCPY2D copy{};
  copy.src_type = CU_MEMORYTYPE_HOST;
  copy.src_host = in.data();
  copy.dst_type = CU_MEMORYTYPE_ARRAY;
  copy.dst_array = array;
  copy.width_bytes = 32;
  copy.height = 4;
  CU_OK(cuMemcpy2D_v2(&copy));
  copy.height = 5;
  CHECK(cuMemcpy2D_v2(&copy) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemcpyAtoH_v2(out.data(), array, 0, 32));
  CHECK(out[7] == 7.0f);

  CUDA_RESOURCE_DESC resource{};
  resource.type = CU_RESOURCE_TYPE_ARRAY;
  resource.array = array;
  CUDA_TEXTURE_DESC texture{};
  texture.filter_mode = CU_TR_FILTER_MODE_LINEAR;
  texture.address_mode[0] = CU_TR_ADDRESS_MODE_MIRROR;
  texture.flags = kTexNormalizedCoordinates;
  CUtexObject object = 0;
  CU_OK(cuTexObjectCreate(&object, &resource, &texture, nullptr));
  const exec::TextureObject* made = exec::ImageTable::Get().FindTexture(object);
  REQUIRE(made != nullptr);
  CHECK(made->image.dims == 2);
  CHECK(made->image.levels[0].width == 8);
  CHECK(made->address[0] == exec::AddressMode::kMirror);
  CHECK(made->normalized_coordinates);
  CHECK(reinterpret_cast<const float*>(made->image.levels[0].base + made->image.levels[0].row_bytes)[1] == 9.0f);
  CUsurfObject surface = 0;
  CU_OK(cuSurfObjectCreate(&surface, &resource));
  CHECK(exec::ImageTable::Get().FindSurface(surface) != nullptr);
  CHECK(exec::ImageTable::Get().FindSurface(object) == nullptr);
  CU_OK(cuSurfObjectDestroy(surface));
  CU_OK(cuTexObjectDestroy(object));
  CHECK(cuTexObjectDestroy(object) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuArrayDestroy(array));
  for (const CUarray_format format :
       {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32}) {
    const CUDA_ARRAY3D_DESCRIPTOR plain{8, 4, 0, format, 1, 0};  // not made for surfaces
    CU_OK(cuArray3DCreate_v2(&array, &plain));
    resource.array = array;
    texture.flags = kTexReadAsInteger;
    CU_OK(cuTexObjectCreate(&object, &resource, &texture, nullptr));
    CU_OK(cuTexObjectDestroy(object));
    CU_OK(cuSurfObjectCreate(&surface, &resource));
    CU_OK(cuSurfObjectDestroy(surface));
    CU_OK(cuArrayDestroy(array));
  }
  const CUDA_ARRAY3D_DESCRIPTOR odd{8, 4, 0, CU_AD_FORMAT_FLOAT, 3, 0};
  CHECK(cuArray3DCreate_v2(&array, &odd) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("ManagedHints_AreRemembered", "[memory]") {
  const test::Fixture fixture;
  CUdeviceptr managed = 0;
  CU_OK(cuMemAllocManaged(&managed, 8192, CU_MEM_ATTACH_GLOBAL));
  CU_OK(cuMemAdvise(managed, 8192, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
  CU_OK(cuMemAdvise(managed, 8192, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kDeviceCpu));
  CU_OK(cuMemPrefetchAsync(managed, 8192, 0, nullptr));
  int value = 9;
  CU_OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, 8192));
  CHECK(value == 1);
  CU_OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, managed, 8192));
  CHECK(value == kDeviceCpu);
  CU_OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, managed, 8192));
  CHECK(value == 0);
  CUdeviceptr device = 0;
  CU_OK(cuMemAlloc_v2(&device, 64));
  CHECK(cuMemAdvise(device, 64, CU_MEM_ADVISE_SET_READ_MOSTLY, 0) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemFree_v2(device));
  CU_OK(cuMemFree_v2(managed));
}
