// What pointers into memory of every kind are, as libraries that move data between processes ask (UCX, NCCL, MPI).
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "tests/interpose/fixture.h"

using namespace gridloom;

namespace {

template <typename T>
std::optional<T> Ask(CUpointer_attribute attribute, CUdeviceptr pointer) {
  T value{};
  const CUresult status = cuPointerGetAttribute(&value, attribute, pointer);
  if (status == CUDA_SUCCESS) return value;
  CHECK(status == CUDA_ERROR_INVALID_VALUE);
  return std::nullopt;
}

struct Facts {
  CUcontext context = nullptr;
  CUmemorytype type = CU_MEMORYTYPE_DEVICE;
  bool managed = false;
  bool can_synchronise = true;
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
};

void CheckPointer(const char* what, CUdeviceptr pointer, const Facts& want) {
  INFO(what);
  CHECK(Ask<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, pointer) == want.context);
  CHECK(Ask<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer) == want.type);
  CHECK(Ask<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer) == unsigned{want.managed});
  CHECK(Ask<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) == 0);
  CHECK(Ask<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, pointer) == want.base);
  CHECK(Ask<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, pointer) == want.bytes);
  CHECK(Ask<bool>(CU_POINTER_ATTRIBUTE_MAPPED, pointer) == true);
  CHECK(Ask<std::uint64_t>(CU_POINTER_ATTRIBUTE_BUFFER_ID, pointer).value_or(0) != 0);
  CHECK(Ask<std::uint64_t>(CU_POINTER_ATTRIBUTE_BUFFER_ID, pointer) ==
        Ask<std::uint64_t>(CU_POINTER_ATTRIBUTE_BUFFER_ID, pointer + 1));

  CHECK(Ask<unsigned>(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer) == 0u);
  for (const unsigned on : {1u, 0u}) {
    const CUresult set = cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer);
    CHECK(set == (want.can_synchronise ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE));
    CHECK(Ask<unsigned>(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer) == (want.can_synchronise ? on : 0u));
  }
}

void CheckNothing(const char* what, CUdeviceptr pointer) {
  INFO(what);
  for (int attribute = CU_POINTER_ATTRIBUTE_CONTEXT; attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
       ++attribute) {
    INFO(attribute);
    std::uint64_t value[2] = {};
    CHECK(cuPointerGetAttribute(value, static_cast<CUpointer_attribute>(attribute), pointer) ==
          CUDA_ERROR_INVALID_VALUE);
  }
  const unsigned on = 1;
  CHECK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer) == CUDA_ERROR_INVALID_VALUE);
  CUcontext context = reinterpret_cast<CUcontext>(&context);
  unsigned type = 9, managed = 9, sync = 9;
  int ordinal = 9;
  CUpointer_attribute ids[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                               CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                               CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* data[] = {&context, &type, &managed, &sync, &ordinal};
  CU_OK(cuPointerGetAttributes(5, ids, data, pointer));
  CHECK(context == nullptr);
  CHECK((type == 0 && managed == 0 && sync == 0 && ordinal == kDeviceInvalid));
}

}  // namespace

TEST_CASE("PointerAttributes_OfAllocations", "[pointer]") {
  const test::Fixture fixture;
  CUdeviceptr device = 0, managed = 0;
  void* pinned = nullptr;
  alignas(4096) static char buffer[4096];
  CU_OK(cuMemAlloc_v2(&device, 1000));
  CU_OK(cuMemAllocManaged(&managed, 1000, CU_MEM_ATTACH_GLOBAL));
  CU_OK(cuMemAllocHost_v2(&pinned, 1000));
  CU_OK(cuMemHostRegister_v2(buffer, sizeof buffer, 0));
  const auto host = reinterpret_cast<CUdeviceptr>(pinned), registered = reinterpret_cast<CUdeviceptr>(buffer);
  CheckPointer("device", device + 10, {fixture.context, CU_MEMORYTYPE_DEVICE, false, true, device, 1000});
  CheckPointer("managed", managed + 10, {fixture.context, CU_MEMORYTYPE_DEVICE, true, true, managed, 1000});
  CheckPointer("pinned", host + 10, {fixture.context, CU_MEMORYTYPE_HOST, false, true, host, 1000});
  CheckPointer("registered", registered + 10, {fixture.context, CU_MEMORYTYPE_HOST, false, true, registered, 4096});
  CU_OK(cuMemFree_v2(device));
  CU_OK(cuMemFree_v2(managed));
  CU_OK(cuMemFreeHost(pinned));
  CU_OK(cuMemHostUnregister(buffer));
  CheckNothing("freed", device + 10);
  CheckNothing("managed, freed", managed);
  CheckNothing("pinned, freed", host);
  CheckNothing("unregistered", registered);
  int stranger = 0;
  CheckNothing("of the host", reinterpret_cast<CUdeviceptr>(&stranger));
  CheckNothing("null", 0);
  CheckNothing("not canonical", ~CUdeviceptr{0});
}

TEST_CASE("PointerAttributes_OfAnotherContext", "[pointer]") {
  const test::Fixture fixture;
  CUcontext other = nullptr, popped = nullptr;
  CUdeviceptr device = 0;
  CU_OK(cuCtxCreate_v2(&other, 0, 0));
  CU_OK(cuMemAlloc_v2(&device, 1000));
  CU_OK(cuCtxPopCurrent_v2(&popped));
  CheckPointer("of another context", device, {other, CU_MEMORYTYPE_DEVICE, false, true, device, 1000});
  CU_OK(cuCtxDestroy_v2(other));
  CheckNothing("of a destroyed context", device);
}

TEST_CASE("PointerAttributes_OfVariables", "[pointer]") {
  const test::Fixture fixture;
  CUdeviceptr table = 0, counter = 0, base = 0;
  std::size_t bytes = 0;
  CU_OK(cuModuleGetGlobal_v2(&table, nullptr, fixture.module, "table"));
  CU_OK(cuModuleGetGlobal_v2(&counter, nullptr, fixture.module, "counter"));
  CU_OK(cuMemGetAddressRange_v2(&base, &bytes, table));
  CheckPointer("variable", table, {fixture.context, CU_MEMORYTYPE_DEVICE, false, true, base, bytes});
  CU_OK(cuMemGetAddressRange_v2(&base, &bytes, counter));
  CheckPointer("managed variable", counter, {fixture.context, CU_MEMORYTYPE_DEVICE, true, true, base, bytes});
  // What is a context's only, when it is asked of a variable.
  unsigned flags = 0;
  CHECK(cuMemHostGetFlags(&flags, reinterpret_cast<void*>(table)) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree_v2(table) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemHostUnregister(reinterpret_cast<void*>(table)) != CUDA_SUCCESS);
  CHECK(cuMemAdvise(table, 4, CU_MEM_ADVISE_SET_READ_MOSTLY, 0) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemAdvise(counter, 4, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));

  // The same code in a second context has variables of its own.
  CUcontext other = nullptr, popped = nullptr;
  CUmodule module = nullptr;
  CUdeviceptr others = 0;
  CU_OK(cuCtxCreate_v2(&other, 0, 0));
  CU_OK(cuModuleLoadData(&module, test::kPtx));
  CU_OK(cuModuleGetGlobal_v2(&others, nullptr, module, "table"));
  CU_OK(cuCtxPopCurrent_v2(&popped));
  CHECK(Ask<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, others) == other);
  CHECK(Ask<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, table) == fixture.context);
  CU_OK(cuCtxDestroy_v2(other));
  CheckNothing("variable of a destroyed context", others);

  CUlibrary library = nullptr;
  CUdeviceptr of_library = 0;
  CU_OK(cuLibraryLoadData(&library, test::kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CU_OK(cuLibraryGetGlobal(&of_library, nullptr, library, "table"));
  CHECK(Ask<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, of_library) == fixture.context);
  CU_OK(cuLibraryUnload(library));
  CheckNothing("variable of an unloaded library", of_library);
}

TEST_CASE("PointerAttributes_OfStreamOrderedMemory", "[pointer]") {
  const test::Fixture fixture;
  CUstream stream = nullptr;
  CUdeviceptr block = 0;
  CU_OK(cuStreamCreate(&stream, 0));
  CU_OK(cuMemAllocAsync(&block, 1024, stream));
  CheckPointer("pool", block + 1, {nullptr, CU_MEMORYTYPE_DEVICE, false, false, block, 1024});
  CUmemoryPool pool = nullptr, standard = nullptr;
  CU_OK(cuDeviceGetDefaultMemPool(&standard, 0));
  CU_OK(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block));
  CHECK(pool == standard);
  CU_OK(cuMemFreeAsync(block, stream));
  CU_OK(cuStreamSynchronize(stream));
  CheckNothing("block that its pool keeps", block);

  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.pool_props.alloc_type = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.pool_props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytes = 2048;
  CU_OK(cuGraphCreate(&graph, 0));
  CU_OK(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
  CUdeviceptr base = 0;
  std::size_t bytes = 0;  // of a block that another graph has given back, maybe a larger one
  CU_OK(cuMemGetAddressRange_v2(&base, &bytes, params.pointer));
  CHECK(bytes >= 2048);
  CheckPointer("graph", params.pointer, {nullptr, CU_MEMORYTYPE_DEVICE, false, false, params.pointer, bytes});
  CHECK(Ask<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, params.pointer) == nullptr);
  CU_OK(cuGraphDestroy(graph));
  CheckNothing("of a destroyed graph", params.pointer);
  CU_OK(cuStreamDestroy_v2(stream));
}

TEST_CASE("PointerAttributes_OfMappings", "[pointer]") {
  const test::Fixture fixture;
  constexpr std::size_t kBytes = 2u << 20;
  for (const CUmemLocationType place : {CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST}) {
    const bool at_host = place == CU_MEM_LOCATION_TYPE_HOST;
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {place, 0};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr range = 0;
    CU_OK(cuMemCreate(&handle, kBytes, &prop, 0));
    CU_OK(cuMemAddressReserve(&range, 2 * kBytes, 0, 0, 0));
    CU_OK(cuMemMap(range, kBytes, 0, handle, 0));
    const Facts want{nullptr, at_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE, false, false, range, 2 * kBytes};
    CheckPointer("mapping", range + 5, want);
    CHECK(Ask<CUdeviceptr>(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, range + 5) == range);
    CHECK(Ask<std::size_t>(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, range + 5) == kBytes);
    const auto buffer = Ask<std::uint64_t>(CU_POINTER_ATTRIBUTE_BUFFER_ID, range);
    const auto block = Ask<std::uint64_t>(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, range);
    // Nothing is mapped in the second half.
    CHECK(Ask<bool>(CU_POINTER_ATTRIBUTE_MAPPED, range + kBytes) == false);
    CHECK(Ask<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, range + kBytes) == range);
    CHECK(Ask<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, range + kBytes) == std::nullopt);
    CHECK(Ask<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, range + kBytes) == std::nullopt);
    // The same memory, mapped anew, is another buffer.
    CU_OK(cuMemUnmap(range, kBytes));
    CU_OK(cuMemMap(range, kBytes, 0, handle, 0));
    CHECK(Ask<std::uint64_t>(CU_POINTER_ATTRIBUTE_BUFFER_ID, range) != buffer);
    CHECK(Ask<std::uint64_t>(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, range) == block);
    CU_OK(cuMemUnmap(range, kBytes));
    CU_OK(cuMemRelease(handle));
    CU_OK(cuMemAddressFree(range, 2 * kBytes));
    CheckNothing("range that was given back", range);
  }
}

TEST_CASE("SyncMemops_FillsAreWaitedFor", "[pointer]") {
  const test::Fixture fixture;
  CUdeviceptr memory = 0;
  CU_OK(cuMemAlloc_v2(&memory, 4u << 20));
  void* flag = nullptr;
  CU_OK(cuMemHostAlloc(&flag, 4, 0));
  std::memset(flag, 0, 4);
  const unsigned on = 1;
  CU_OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory + 100));
  CU_OK(cuStreamWaitValue32_v2(nullptr, reinterpret_cast<CUdeviceptr>(flag), 1, CU_STREAM_WAIT_VALUE_EQ));
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    static_cast<std::atomic<unsigned>*>(flag)->store(1);
  });
  CU_OK(cuMemsetD8_v2(memory, 7, 4u << 20));
  CHECK(*reinterpret_cast<const volatile unsigned char*>(memory + (4u << 20) - 1) == 7);
  later.join();
  CU_OK(cuMemFree_v2(memory));
  CU_OK(cuMemFreeHost(flag));
}

TEST_CASE("HostLocatedMemory_IsNotChargedToTheDevice", "[pointer]") {
  const test::Fixture fixture;
  std::size_t before = 0, after = 0, total = 0;
  CU_OK(cuMemGetInfo_v2(&before, &total));
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.requested_handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  prop.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
  CUmemGenericAllocationHandle handle = 0, same = 0, device = 0;
  CU_OK(cuMemCreate(&handle, 64u << 20, &prop, 0));
  int descriptor = -1;
  CU_OK(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  CU_OK(cuMemImportFromShareableHandle(&same, reinterpret_cast<void*>(static_cast<std::uintptr_t>(descriptor)),
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  CUmemAllocationProp told{};
  CU_OK(cuMemGetAllocationPropertiesFromHandle(&told, same));
  CHECK(told.location.type == CU_MEM_LOCATION_TYPE_HOST);
  CU_OK(cuMemGetInfo_v2(&after, nullptr));
  CHECK(after == before);
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CU_OK(cuMemCreate(&device, 64u << 20, &prop, 0));
  CU_OK(cuMemGetInfo_v2(&after, nullptr));
  CHECK(after == before - (64u << 20));
  for (const auto one : {handle, same, device}) CU_OK(cuMemRelease(one));
  CU_OK(cuMemGetInfo_v2(&after, nullptr));
  CHECK(after == before);
  // No more than the machine has.
  prop.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
  CHECK(cuMemCreate(&handle, std::size_t{1} << 50, &prop, 0) == CUDA_ERROR_OUT_OF_MEMORY);
}
