// Contexts, modules and libraries, device facts, settings, the runtime's tables.
#include <cstring>
#include <thread>

#include "interpose/base/settings.h"
#include "interpose/session/runtime_tables.h"
#include "tests/interpose/fixture.h"

using namespace gridloom;

TEST_CASE("ContextStack_PushesPopsAndSurvivesDestruction", "[context]") {
  const test::Fixture fixture;
  CUcontext a, b, current;
  CU_OK(cuCtxCreate_v2(&a, 0, 0));
  CU_OK(cuCtxCreate_v2(&b, 0, 0));
  CU_OK(cuCtxGetCurrent(&current));
  CHECK(current == b);
  CU_OK(cuCtxPopCurrent_v2(&current));
  CHECK(current == b);
  CU_OK(cuCtxPushCurrent_v2(fixture.context));
  CU_OK(cuCtxPopCurrent_v2(nullptr));
  for (int i = 0; i < 40; ++i) CU_OK(cuCtxPushCurrent_v2(b));  // deeper than the inline stack
  for (int i = 0; i < 40; ++i) CU_OK(cuCtxPopCurrent_v2(nullptr));
  CU_OK(cuCtxGetCurrent(&current));
  CHECK(current == a);
  CUdeviceptr memory = 0;
  CU_OK(cuMemAlloc_v2(&memory, 64));
  std::thread([a] {
    CU_OK(cuCtxSetCurrent(a));
    std::thread([a] { CU_OK(cuCtxDestroy_v2(a)); }).join();
    CUdeviceptr pointer = 0;
    CHECK(cuMemAlloc_v2(&pointer, 64) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }).join();
  CHECK(cuCtxDestroy_v2(a) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CU_OK(cuCtxDestroy_v2(b));
  CU_OK(cuCtxPopCurrent_v2(nullptr));
  CHECK(cuCtxPushCurrent_v2(a) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(cuCtxDestroy_v2(fixture.context) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("PrimaryContext_CountsReferences", "[context]") {
  const test::Fixture fixture;
  unsigned flags = 0;
  int active = 0;
  CU_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  CHECK(active == 1);
  CUcontext again;
  CU_OK(cuDevicePrimaryCtxRetain(&again, 0));
  CHECK(again == fixture.context);
  CU_OK(cuDevicePrimaryCtxRelease(0));
  std::size_t value = 0;
  CU_OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 20));
  CU_OK(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
  CHECK(value == 1 << 20);
  CHECK(cuCtxGetLimit(&value, CU_LIMIT_SHMEM_SIZE) == CUDA_ERROR_UNSUPPORTED_LIMIT);
  CU_OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 100'001));
  CHECK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 513 << 10) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, ~std::size_t{0}) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
  CHECK(value == 100'016);
  CU_OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
}

TEST_CASE("Library_KernelsAreFunctionsAndGlobalsAreShared", "[context]") {
  const test::Fixture fixture;
  CUlibrary library;
  CU_OK(cuLibraryLoadData(&library, test::kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel;
  CU_OK(cuLibraryGetKernel(&kernel, library, "fill"));
  CUfunction function;
  CU_OK(cuKernelGetFunction(&function, kernel));
  CHECK(reinterpret_cast<void*>(function) == reinterpret_cast<void*>(kernel));
  CHECK(cuLibraryGetKernel(&kernel, library, "missing") == CUDA_ERROR_NOT_FOUND);
  std::size_t offset = 0, size = 0;
  CU_OK(cuFuncGetParamInfo(function, 1, &offset, &size));
  CHECK(offset == 8);
  CHECK(size == 4);
  CHECK(cuFuncGetParamInfo(function, 3, &offset, &size) == CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr managed = 0, from_library = 0, from_module = 0;
  CU_OK(cuLibraryGetManaged(&managed, &size, library, "counter"));
  CHECK(size == 4);
  CHECK(*reinterpret_cast<unsigned*>(managed) == 7);
  CHECK(cuLibraryGetManaged(&managed, &size, library, "table") == CUDA_ERROR_NOT_FOUND);
  CU_OK(cuLibraryGetGlobal(&from_library, nullptr, library, "table"));
  CUmodule module;
  CU_OK(cuLibraryGetModule(&module, library));
  CU_OK(cuModuleGetGlobal_v2(&from_module, nullptr, module, "table"));
  CHECK(from_library == from_module);
  unsigned count = 0;
  CU_OK(cuLibraryGetKernelCount(&count, library));
  CHECK(count == 4);
  const char* name = nullptr;
  CU_OK(cuFuncGetName(&name, function));
  CHECK(std::string(name) == "fill");
  CU_OK(cuLibraryUnload(library));
  CHECK(cuLibraryUnload(library) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("Library_HasItsOwnGlobalsInEveryContext", "[context]") {
  const test::Fixture fixture;
  CUlibrary library;
  CU_OK(cuLibraryLoadData(&library, test::kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUdeviceptr here = 0, there = 0;
  CU_OK(cuLibraryGetGlobal(&here, nullptr, library, "table"));
  CUcontext other;
  CU_OK(cuCtxCreate_v2(&other, 0, 0));
  CU_OK(cuLibraryGetGlobal(&there, nullptr, library, "table"));
  CHECK(here != there);
  CU_OK(cuCtxDestroy_v2(other));
  CU_OK(cuLibraryUnload(library));
}

TEST_CASE("Device_TellsItsFacts", "[context]") {
  const test::Fixture fixture;
  char name[64];
  CU_OK(cuDeviceGetName(name, sizeof name, 0));
  CHECK(std::string(name) == "NVIDIA H200");
  int value = -1;
  CU_OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  CHECK(value == 132);
  for (int id = 1; id <= 161; ++id)
    CU_OK(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(id), 0));  // those of CUDA 13.5
  CHECK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1) == CUDA_ERROR_INVALID_DEVICE);
  char bus[32];
  CU_OK(cuDeviceGetPCIBusId(bus, sizeof bus, 0));
  CUdevice device = -1;
  CU_OK(cuDeviceGetByPCIBusId(&device, bus));
  CHECK(device == 0);
  CUuuid a, b;
  CU_OK(cuDeviceGetUuid(&a, 0));
  CU_OK(cuDeviceGetUuid_v2(&b, 0));
  CHECK(std::memcmp(&a, &b, sizeof a) == 0);
}

TEST_CASE("Occupancy_FollowsTheEngine", "[context]") {
  const test::Fixture fixture;
  int blocks = 0, grid = 0, block = 0;
  CU_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fixture.Function("nothing"), 256, 0));
  CHECK(blocks == 8);
  CU_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fixture.Function("bounded"), 256, 0));
  CHECK(blocks == 0);
  CU_OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, fixture.Function("bounded"), nullptr, 0, 0));
  CHECK(block == 64);
  CHECK(grid == 32 * 132);
}

TEST_CASE("ContextStorage_RunsDestructorsOnReset", "[context]") {
  const test::Fixture fixture;
  constexpr CUuuid kStorage = {
      {0xC6, 0x93, 0x33, 0x6E, 0x11, 0x21, 0xDF, 0x11, 0xA8, 0xC3, 0x68, 0xF3, 0x55, 0xD8, 0x95, 0x93}};
  const void* address = nullptr;
  CU_OK(cuGetExportTable(&address, &kStorage));
  const auto* const table = static_cast<void* const*>(address);
  using Destructor = void (*)(CUcontext, void*, void*);
  const auto put = reinterpret_cast<CUresult (*)(CUcontext, void*, void*, Destructor)>(table[0]);
  const auto remove = reinterpret_cast<CUresult (*)(CUcontext, void*)>(table[1]);
  const auto get = reinterpret_cast<CUresult (*)(void**, CUcontext, void*)>(table[2]);
  static int destroyed = 0;
  destroyed = 0;
  int key = 0, other = 0;
  void* value = nullptr;
  CHECK(get(&value, nullptr, &key) == CUDA_ERROR_INVALID_HANDLE);
  CU_OK(put(nullptr, &key, &other, [](CUcontext, void*, void* v) { destroyed += v != nullptr; }));
  CU_OK(put(fixture.context, &other, &key, nullptr));
  CU_OK(get(&value, fixture.context, &key));
  CHECK(value == &other);
  CU_OK(remove(nullptr, &other));
  CHECK(get(&value, nullptr, &other) == CUDA_ERROR_INVALID_HANDLE);
  CU_OK(cuDevicePrimaryCtxReset(0));
  CHECK(destroyed == 1);
  CHECK(get(&value, nullptr, &key) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("ExportTables_UnknownOnesAreRefused", "[context]") {
  constexpr CUuuid kUnknown = {{0xF8, 0xCF, 0xF9, 0x51}};
  const void* table = nullptr;
  CHECK(cuGetExportTable(&table, &kUnknown) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("SettingTable_NamesEveryVariableOnce", "[settings]") {
  std::vector<std::string> names;
  for (const auto& row : session::SettingTable()) names.emplace_back(row.variable);
  CHECK(std::find(names.begin(), names.end(), "GRIDLOOM_DEVICE") != names.end());
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

#ifdef GRIDLOOM_RUNTIME_HANDSHAKE
TEST_CASE("Md2_MatchesTheRfc", "[handshake]") {
  const auto hex = [](std::string_view text) {
    std::uint8_t digest[16];
    session::Md2(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()), digest);
    std::string out;
    char two[3];
    for (const std::uint8_t byte : digest) out += (std::snprintf(two, sizeof two, "%02x", byte), two);
    return out;
  };
  CHECK(hex("") == "8350e5a3e24c153df2275c9f80692773");  // RFC 1319, A.5
  CHECK(hex("abc") == "da853b0d3f88d99b30283a69e6ded6bb");
  CHECK(hex("message digest") == "ab4f496bfb2a530b219ff33031fe06b0");
  CHECK(hex("12345678901234567890123456789012345678901234567890123456789012345678901234567890") ==
        "d5976f79d83d3a0dc9806c3c66f3efd8");
}
#endif
