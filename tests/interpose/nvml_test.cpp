// The management library's view of the virtual GPU against the driver's.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/interpose/fixture.h"

extern "C" {
int nvmlInit_v2();
int nvmlShutdown();
const char* nvmlErrorString(int);
int nvmlDeviceGetCount_v2(unsigned*);
int nvmlDeviceGetHandleByIndex_v2(unsigned, void**);
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void**);
int nvmlDeviceGetHandleByUUID(const char*, void**);
int nvmlDeviceGetName(void*, char*, unsigned);
int nvmlDeviceGetUUID(void*, char*, unsigned);
int nvmlDeviceGetMemoryInfo(void*, unsigned long long*);
int nvmlDeviceGetMemoryInfo_v2(void*, void*);
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned*, void*);
int nvmlDeviceGetPciInfo_v3(void*, void*);
int nvmlDeviceGetCudaComputeCapability(void*, int*, int*);
int nvmlDeviceGetTemperature(void*, int, unsigned*);
int nvmlDeviceGetFieldValues(void*, int, void*);
int nvmlDeviceGetP2PStatus(void*, void*, int, int*);
}

namespace {

constexpr int kUninitialized = 1, kInvalidArgument = 2, kNotSupported = 3, kNotFound = 6, kInsufficientSize = 7,
              kVersionMismatch = 25;

/// Initialised, with the handle of the one device.
struct Nvml {
  Nvml() {
    REQUIRE(nvmlInit_v2() == 0);
    REQUIRE(nvmlDeviceGetHandleByIndex_v2(0, &device) == 0);
  }
  ~Nvml() { nvmlShutdown(); }
  void* device = nullptr;
};

}  // namespace

TEST_CASE("Nvml_BeforeInitAndAfterShutdown_IsUninitialized", "[nvml]") {
  unsigned count = 0;
  CHECK(nvmlDeviceGetCount_v2(&count) == kUninitialized);
  {
    const Nvml nvml;
    CHECK(nvmlDeviceGetCount_v2(&count) == 0);
    CHECK(count == 1);
  }
  CHECK(nvmlDeviceGetCount_v2(&count) == kUninitialized);
  CHECK(nvmlShutdown() == kUninitialized);
  CHECK(std::string(nvmlErrorString(kUninitialized)) == "Uninitialized");
}

TEST_CASE("Nvml_Device_IsTheDriversOne", "[nvml]") {
  const gridloom::test::Fixture fixture;
  const Nvml nvml;
  char name[96] = {}, expected[96] = {};
  CHECK(nvmlDeviceGetName(nvml.device, name, sizeof(name)) == 0);
  CU_OK(cuDeviceGetName(expected, sizeof(expected), 0));
  CHECK(std::string(name) == expected);
  CHECK(nvmlDeviceGetName(nvml.device, name, 3) == kInsufficientSize);

  int major = 0, minor = 0, value = 0;
  CHECK(nvmlDeviceGetCudaComputeCapability(nvml.device, &major, &minor) == 0);
  CU_OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  CHECK(major == value);

  char uuid[96] = {};
  CHECK(nvmlDeviceGetUUID(nvml.device, uuid, sizeof(uuid)) == 0);
  CUuuid driver{};
  CU_OK(cuDeviceGetUuid(&driver, 0));
  char first[16];
  std::snprintf(first, sizeof(first), "GPU-%02x%02x", static_cast<unsigned char>(driver.bytes[0]),
                static_cast<unsigned char>(driver.bytes[1]));
  CHECK(std::string(uuid).starts_with(first));
  CHECK(std::string(uuid).size() == 40);
  void* found = nullptr;
  CHECK(nvmlDeviceGetHandleByUUID(uuid, &found) == 0);
  CHECK(found == nvml.device);
  CHECK(nvmlDeviceGetHandleByUUID("GPU-00000000", &found) == kNotFound);
}

TEST_CASE("Nvml_Memory_FollowsAllocations", "[nvml]") {
  const gridloom::test::Fixture fixture;
  const Nvml nvml;
  unsigned long long before[3] = {}, after[3] = {};
  CHECK(nvmlDeviceGetMemoryInfo(nvml.device, before) == 0);
  CUdeviceptr pointer = 0;
  CU_OK(cuMemAlloc_v2(&pointer, 8 << 20));
  CHECK(nvmlDeviceGetMemoryInfo(nvml.device, after) == 0);
  CHECK(after[2] - before[2] == 8 << 20);
  CHECK(after[1] + after[2] == after[0]);
  CU_OK(cuMemFree_v2(pointer));

  struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
  } second{};
  CHECK(nvmlDeviceGetMemoryInfo_v2(nvml.device, &second) == kVersionMismatch);
  second.version = 0x02000028;
  CHECK(nvmlDeviceGetMemoryInfo_v2(nvml.device, &second) == 0);
  CHECK(second.total == after[0]);
}

TEST_CASE("Nvml_ProcessWithMemory_IsListed", "[nvml]") {
  const gridloom::test::Fixture fixture;
  const Nvml nvml;
  CUdeviceptr pointer = 0;
  CU_OK(cuMemAlloc_v2(&pointer, 8 << 20));
  unsigned long long memory[3] = {};
  CHECK(nvmlDeviceGetMemoryInfo(nvml.device, memory) == 0);
  struct {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu, compute;
  } process{};
  unsigned count = 0;
  CHECK(nvmlDeviceGetComputeRunningProcesses_v3(nvml.device, &count, nullptr) == kInsufficientSize);
  CHECK(count == 1);
  CHECK(nvmlDeviceGetComputeRunningProcesses_v3(nvml.device, &count, nullptr) == kInvalidArgument);
  CHECK(nvmlDeviceGetComputeRunningProcesses_v3(nvml.device, &count, &process) == 0);
  CHECK(count == 1);
  CHECK(process.pid == static_cast<unsigned>(getpid()));
  CHECK(process.bytes == memory[2]);
  CHECK(process.gpu == ~0u);
  CHECK(nvmlDeviceGetComputeRunningProcesses_v3(nvml.device, nullptr, nullptr) == kInvalidArgument);
  CU_OK(cuMemFree_v2(pointer));
}

TEST_CASE("Nvml_BusId_IsTheDriversAndFindsTheDevice", "[nvml]") {
  const gridloom::test::Fixture fixture;
  const Nvml nvml;
  struct {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
  } info{};
  CHECK(nvmlDeviceGetPciInfo_v3(nvml.device, &info) == 0);
  char expected[32] = {};
  CU_OK(cuDeviceGetPCIBusId(expected, sizeof(expected), 0));
  CHECK(std::string(info.legacy) == expected);
  CHECK(std::string(info.bus_id) == "0000" + std::string(expected));
  void* found = nullptr;
  CHECK(nvmlDeviceGetHandleByPciBusId_v2(info.bus_id, &found) == 0);
  CHECK(found == nvml.device);
  CHECK(nvmlDeviceGetHandleByPciBusId_v2("0000:07:00.0", &found) == kNotFound);
  CHECK(nvmlDeviceGetHandleByPciBusId_v2("seven", &found) == kInvalidArgument);
}

TEST_CASE("Nvml_PeerAccess_IsToItsOwnMemory", "[nvml]") {
  const Nvml nvml;
  constexpr int kRead = 0, kWrite = 1, kNvLink = 2, kUnknown = 5, kOk = 0, kPairNotSupported = 5;
  int status = -1;
  for (const int capability : {kRead, kWrite}) {
    CHECK(nvmlDeviceGetP2PStatus(nvml.device, nvml.device, capability, &status) == 0);
    CHECK(status == kOk);
  }
  CHECK(nvmlDeviceGetP2PStatus(nvml.device, nvml.device, kNvLink, &status) == 0);
  CHECK(status == kPairNotSupported);
  CHECK(nvmlDeviceGetP2PStatus(nvml.device, nvml.device, kUnknown, &status) == kInvalidArgument);
  CHECK(nvmlDeviceGetP2PStatus(nvml.device, nullptr, kRead, &status) == kInvalidArgument);
  CHECK(nvmlDeviceGetP2PStatus(nvml.device, nvml.device, kRead, nullptr) == kInvalidArgument);
}

TEST_CASE("Nvml_FieldValues_HaveEachTheirOwnStatus", "[nvml]") {
  const Nvml nvml;
  struct {
    unsigned field, scope;
    long long timestamp, latency;
    int type, status;
    unsigned long long value;
  } values[2] = {{91, 0, 0, 0, 7, 7, 7}, {82, 3, 0, 0, 7, 7, 7}};  // number of NVLinks, temperature of the memory
  CHECK(nvmlDeviceGetFieldValues(nvml.device, 2, values) == 0);
  CHECK(values[0].status == 0);
  CHECK(values[0].value == 0);
  CHECK(values[0].type == 1);
  CHECK(values[0].timestamp > 0);
  CHECK(values[1].status == kNotSupported);
  CHECK(values[1].field == 82);
  CHECK(values[1].scope == 3);
  CHECK(nvmlDeviceGetFieldValues(nvml.device, 0, values) == kInvalidArgument);
  CHECK(nvmlDeviceGetFieldValues(nvml.device, 1, nullptr) == kInvalidArgument);
}

TEST_CASE("Nvml_WhatTheGpuLacks_IsNotSupported", "[nvml]") {
  const Nvml nvml;
  unsigned value = 0;
  CHECK(nvmlDeviceGetTemperature(nvml.device, 0, &value) == kNotSupported);
  CHECK(nvmlDeviceGetName(nullptr, nullptr, 0) == kInvalidArgument);
}

TEST_CASE("DeviceFiles_ExistForThoseWhoAsk", "[nvml]") {
  for (const char* file : {"/dev/nvidia0", "/dev/nvidiactl"}) {
    struct stat status {};
    CHECK(stat(file, &status) == 0);
    CHECK(S_ISCHR(status.st_mode));
    CHECK(access(file, F_OK) == 0);
  }
  CHECK_FALSE(std::filesystem::exists("/dev/nvidia7"));
  CHECK(std::filesystem::exists("/dev/null"));
  CHECK_FALSE(std::filesystem::exists("/dev/nothing"));
}
