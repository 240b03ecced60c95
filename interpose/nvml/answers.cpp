// What NVML tells of the virtual GPU. There is one, whatever CUDA_VISIBLE_DEVICES says: NVML does not look at it.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "interpose/base/settings.h"
#include "interpose/nvml/broker_view.h"
#include "interpose/nvml/nvml.h"
#include "interpose/nvml/processes.h"
#include "interpose/objects/process.h"

namespace gridloom::nvml {
namespace {

using Handle = void*;  // nvmlDevice_t

/// Structures of nvml.h.
struct PciInfo {  // nvmlPciInfo_t of version 3; the earlier ones end before, or with reserved words in place of bus_id
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct Memory {
  std::uint64_t total, free, used;
};
struct MemoryV2 {
  unsigned version;
  std::uint64_t total, reserved, free, used;
};
struct Utilization {
  unsigned gpu, memory;  ///< percent
};
struct FieldValue {
  unsigned field, scope;
  std::int64_t timestamp_us, latency_us;
  int type;  ///< of the value
  int status;
  std::uint64_t value;
};
constexpr unsigned kMemoryV2 = 0x02000000 | sizeof(MemoryV2);
constexpr std::size_t kPciInfoV1Bytes = 32, kPciInfoV2Bytes = 52;

std::atomic<int> g_users{0};
char g_device = 0;  // its address is the handle

Handle TheHandle() { return &g_device; }

/// Never destroyed: threads may ask while the process ends.
BrokerView& TheBroker() {
  static auto* const view = new BrokerView;
  return *view;
}

/// Facts of the GPU; empty answers are refused before.
std::optional<session::VisibleDevice> Look() { return session::Process::Get().LookAtDevice(); }

Return Check(Handle device, const void* result) {
  if (g_users.load() == 0) return kUninitialized;
  return device == TheHandle() && result != nullptr ? kSuccess : kInvalidArgument;
}

/// Calls `answer` with the facts of the device, when the arguments are good.
template <typename Answer>
int With(Handle device, const void* result, Answer answer) {
  if (const Return status = Check(device, result); status != kSuccess) return status;
  const auto facts = Look();
  return facts ? answer(*facts) : kUnknown;
}

int CopyText(const std::string& text, char* buffer, unsigned length) {
  if (text.size() + 1 > length) return kInsufficientSize;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return kSuccess;
}

int Store(unsigned* to, unsigned value) {
  *to = value;
  return kSuccess;
}

// ---- The library

/// Asks the broker which device it is that it shares, if there is a broker; work is counted from then on.
int Init() {
  const auto shared = TheBroker().Ask();
  if (!session::Process::Get().LookAtDevice(shared ? shared->device : "")) return kDriverNotLoaded;
  ++g_users;
  return kSuccess;
}

int InitWithFlags(unsigned) { return Init(); }

int Shutdown() {
  int users = g_users.load();
  while (users > 0 && !g_users.compare_exchange_weak(users, users - 1)) {
  }
  return users > 0 ? kSuccess : kUninitialized;
}

const char* ErrorString(int status) {
  switch (status) {
    case kSuccess: return "Success";
    case kUninitialized: return "Uninitialized";
    case kInvalidArgument: return "Invalid Argument";
    case kNotSupported: return "Not Supported";
    case kNotFound: return "Not Found";
    case kInsufficientSize: return "Insufficient Size";
    case kDriverNotLoaded: return "Driver Not Loaded";
    case kFunctionNotFound: return "Function Not Found";
    case kArgumentVersionMismatch: return "Argument Version Mismatch";
    default: return "Unknown Error";
  }
}

/// The first driver that came with a CUDA version (NVIDIA's release notes, "CUDA Toolkit and Corresponding Driver
/// Versions").
const char* DriverRelease() {
  static constexpr struct {
    int cuda;
    const char* release;
  } kReleases[] = {{13000, "580.65.06"}, {12090, "575.51.03"}, {12080, "570.26"},    {12060, "560.28.03"},
                   {12050, "555.42.02"}, {12040, "550.54.14"}, {12030, "545.23.06"}, {12020, "535.54.03"},
                   {12010, "530.30.02"}, {12000, "525.60.13"}};
  for (const auto& row : kReleases) {
    if (session::DriverVersion() >= row.cuda) return row.release;
  }
  return "520.61.05";  // 11.8
}

int SystemGetDriverVersion(char* text, unsigned length) {
  if (g_users.load() == 0) return kUninitialized;
  return text == nullptr ? kInvalidArgument : CopyText(DriverRelease(), text, length);
}

int SystemGetNvmlVersion(char* text, unsigned length) {
  if (text == nullptr) return kInvalidArgument;
  return CopyText(std::to_string(session::DriverVersion() / 1000) + "." + DriverRelease(), text, length);
}

int SystemGetCudaDriverVersion(int* version) {
  if (version == nullptr) return kInvalidArgument;
  *version = session::DriverVersion();
  return kSuccess;
}

// ---- Finding the device

std::string BusId(const char* format) {
  char text[32];
  std::snprintf(text, sizeof(text), format, session::Device::kPciDomain, session::Device::PciBus(0),
                session::Device::kPciDevice);
  return text;
}

std::string Uuid(const session::VisibleDevice& facts) {
  std::string text = "GPU-";
  const auto uuid = session::Device::UuidOf(facts.spec, 0);
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    char digits[4];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += digits;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

int GetCount(unsigned* count) {
  if (g_users.load() == 0) return kUninitialized;
  return count == nullptr ? kInvalidArgument : Store(count, 1);
}

int FoundIf(bool found, Handle* device) {
  if (found) *device = TheHandle();
  return found ? kSuccess : kNotFound;
}

int GetHandleByIndex(unsigned index, Handle* device) {
  if (g_users.load() == 0) return kUninitialized;
  if (device == nullptr || index != 0) return kInvalidArgument;
  return FoundIf(true, device);
}

int GetHandleByUuid(const char* uuid, Handle* device) {
  return With(TheHandle(), device, [&](const auto& facts) {
    return uuid == nullptr ? static_cast<int>(kInvalidArgument) : FoundIf(Uuid(facts) == uuid, device);
  });
}

int GetHandleByPciBusId(const char* id, Handle* device) {
  if (const Return status = Check(TheHandle(), device); status != kSuccess) return status;
  unsigned domain = 0, bus = 0, slot = 0;
  if (id == nullptr ||
      (std::sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3 && std::sscanf(id, "%x:%x", &bus, &slot) != 2))
    return kInvalidArgument;
  return FoundIf(domain == session::Device::kPciDomain && bus == static_cast<unsigned>(session::Device::PciBus(0)) &&
                     slot == session::Device::kPciDevice,
                 device);
}

// ---- What the device is

int GetName(Handle device, char* text, unsigned length) {
  return With(device, text, [&](const auto& facts) { return CopyText(facts.spec.name, text, length); });
}

int GetUuid(Handle device, char* text, unsigned length) {
  return With(device, text, [&](const auto& facts) { return CopyText(Uuid(facts), text, length); });
}

int GetZero(Handle device, unsigned* value) {
  const Return status = Check(device, value);
  return status == kSuccess ? Store(value, 0) : status;
}

int GetPciInfo(Handle device, void* info, std::size_t bytes) {
  if (const Return status = Check(device, info); status != kSuccess) return status;
  PciInfo facts{};
  facts.domain = session::Device::kPciDomain;
  facts.bus = static_cast<unsigned>(session::Device::PciBus(0));
  facts.device = session::Device::kPciDevice;
  facts.pci_device_id = 0x10DE;  // NVIDIA's number as vendor in the low half; of the device itself there is none
  BusId("%04x:%02x:%02x.0").copy(facts.bus_id_legacy, sizeof(facts.bus_id_legacy) - 1);
  if (bytes == sizeof(facts)) BusId("%08X:%02X:%02X.0").copy(facts.bus_id, sizeof(facts.bus_id) - 1);
  std::memcpy(info, &facts, bytes);
  return kSuccess;
}

int GetPciInfoV1(Handle device, void* info) { return GetPciInfo(device, info, kPciInfoV1Bytes); }
int GetPciInfoV2(Handle device, void* info) { return GetPciInfo(device, info, kPciInfoV2Bytes); }
int GetPciInfoV3(Handle device, void* info) { return GetPciInfo(device, info, sizeof(PciInfo)); }

int GetMemoryInfo(Handle device, Memory* memory) {
  return With(device, memory, [&](const auto& facts) {
    const DeviceUse use = UseOf(facts, TheBroker().Ask());
    *memory = {use.memory_bytes, use.free_bytes(), use.used_bytes};
    return static_cast<int>(kSuccess);
  });
}

int GetMemoryInfoV2(Handle device, MemoryV2* memory) {
  return With(device, memory, [&](const auto& facts) {
    if (memory->version != kMemoryV2) return static_cast<int>(kArgumentVersionMismatch);
    const DeviceUse use = UseOf(facts, TheBroker().Ask());
    *memory = {kMemoryV2, use.memory_bytes, 0, use.free_bytes(), use.used_bytes};
    return static_cast<int>(kSuccess);
  });
}

int GetCudaComputeCapability(Handle device, int* major, int* minor) {
  return With(device, major != nullptr ? minor : nullptr, [&](const auto& facts) {
    *major = static_cast<int>(facts.spec.compute_capability.major);
    *minor = static_cast<int>(facts.spec.compute_capability.minor);
    return static_cast<int>(kSuccess);
  });
}

/// NVML_DEVICE_ARCH_*: 2 Kepler, 3 Maxwell, 4 Pascal, 5 Volta, 6 Turing, 7 Ampere, 8 Ada, 9 Hopper, 10 Blackwell.
int GetArchitecture(Handle device, unsigned* architecture) {
  return With(device, architecture, [&](const auto& facts) {
    const unsigned sm = static_cast<unsigned>(facts.spec.compute_capability.sm());
    static constexpr struct {
      unsigned from_sm, value;
    } kRows[] = {{100, 10}, {90, 9}, {89, 8}, {80, 7}, {75, 6}, {70, 5}, {60, 4}, {50, 3}, {30, 2}};
    for (const auto& row : kRows) {
      if (sm >= row.from_sm) return Store(architecture, row.value);
    }
    return Store(architecture, 0xFFFFFFFF);  // Fermi: before the list begins
  });
}

int GetMemoryBusWidth(Handle device, unsigned* bits) {
  return With(device, bits, [&](const auto& facts) { return Store(bits, facts.spec.memory.bus_bits); });
}

/// NVML_CLOCK_GRAPHICS, SM, MEM, VIDEO.
int GetClock(Handle device, int type, unsigned* mhz) {
  return With(device, mhz, [&](const auto& facts) {
    if (type < 0 || type > 3) return static_cast<int>(kInvalidArgument);
    return Store(mhz, type == 2 ? facts.spec.memory.clock_mhz : facts.spec.sm.clock_mhz);
  });
}

/// The generation that gives sixteen lanes about the bandwidth that the device file has for copies.
int GetPcieGeneration(Handle device, unsigned* generation) {
  return With(device, generation, [&](const auto& facts) {
    static constexpr std::uint32_t kFromMbS[] = {40000, 20000, 10000, 5000};  // generations 5 to 2
    unsigned value = 5;
    for (const std::uint32_t bound : kFromMbS) {
      if (facts.spec.timing.pcie.to_device_mb_s >= bound) break;
      --value;
    }
    return Store(generation, value);
  });
}

int GetPcieWidth(Handle device, unsigned* lanes) {
  const Return status = Check(device, lanes);
  return status == kSuccess ? Store(lanes, 16) : status;
}

/// What two GPUs reach of each other's memory; there is one, which reaches all of its own. NCCL asks even when it has
/// one rank.
int GetP2PStatus(Handle first, Handle second, int capability, int* status) {
  enum : int { kRead, kWrite, kNvLink, kAtomics, kPci, kUnknownCapability };  // nvmlGpuP2PCapsIndex_t
  enum : int { kOk = 0, kPairNotSupported = 5 };                              // nvmlGpuP2PStatus_t
  if (const Return known = Check(first, status); known != kSuccess) return known;
  if (second != TheHandle() || capability < kRead || capability >= kUnknownCapability) return kInvalidArgument;
  *status = capability == kNvLink ? kPairNotSupported : kOk;
  return kSuccess;
}

/// Values by number; each has a status of its own. The one that is known is the number of NVLinks: there are none (XLA
/// asks for it).
int GetFieldValues(Handle device, int count, FieldValue* values) {
  constexpr unsigned kNvLinkCount = 91;  // NVML_FI_DEV_NVLINK_LINK_COUNT
  constexpr int kUnsignedInt = 1;        // NVML_VALUE_TYPE_UNSIGNED_INT
  if (const Return status = Check(device, values); status != kSuccess) return status;
  if (count <= 0) return kInvalidArgument;
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  for (FieldValue& value : std::span(values, static_cast<std::size_t>(count))) {
    const unsigned field = value.field, scope = value.scope;
    value = {field, scope, now, 0, kUnsignedInt, field == kNvLinkCount ? kSuccess : kNotSupported, 0};
  }
  return kSuccess;
}

// ---- Who uses it

/// Only a broker knows; without one the device is idle for whoever looks. What the device's memory did nobody counts.
int GetUtilization(Handle device, Utilization* utilization) {
  const Return status = Check(device, utilization);
  if (status != kSuccess) return status;
  const auto work = TheBroker().AskForWork();
  *utilization = {work ? Percent(work->busy) : 0, 0};
  return kSuccess;
}

template <typename Entry>
int GetComputeProcesses(Handle device, unsigned* count, Entry* processes) {
  return With(device, count,
              [&](const auto& facts) { return List(UseOf(facts, TheBroker().Ask()), count, processes); });
}

/// Processes of kinds that a virtual GPU has none of: for graphics, and of MPS.
int GetNoProcesses(Handle device, unsigned* count, void*) { return GetZero(device, count); }

int GetProcessDetails(Handle device, ProcessDetailList* list) {
  constexpr unsigned kCompute = 0, kMps = 2;
  return With(device, list, [&](const auto& facts) {
    if (list->version != kProcessDetailList) return kArgumentVersionMismatch;
    if (list->mode > kMps) return kInvalidArgument;
    return List(list->mode == kCompute ? UseOf(facts, TheBroker().Ask()) : DeviceUse{}, &list->count, list->processes);
  });
}

int GetProcessUtilization(Handle device, ProcessSample* processes, unsigned* count, unsigned long long last_seen_us) {
  const Return status = Check(device, count);
  if (status != kSuccess) return status;
  return List(TheBroker().AskForWork().value_or(BrokerView::Work{}), last_seen_us, count, processes);
}

int GetProcessesUtilization(Handle device, ProcessWorkList* list) {
  const Return status = Check(device, list);
  if (status != kSuccess) return status;
  if (list->version != kProcessWorkList) return kArgumentVersionMismatch;
  return List(TheBroker().AskForWork().value_or(BrokerView::Work{}), list->last_seen_us, &list->count, list->processes);
}

/// A process of another container's has no name here but the one that the broker knows.
std::string NameOfAny(pid_t pid) {
  std::string name = NameOf(pid);
  if (!name.empty()) return name;
  const auto state = TheBroker().Ask();
  if (!state) return {};
  const auto found = std::ranges::find(state->processes, pid, &BrokerView::Process::pid);
  return found != state->processes.end() ? found->program : std::string();
}

/// A name that is too long is cut.
int SystemGetProcessName(unsigned pid, char* text, unsigned length) {
  if (g_users.load() == 0) return kUninitialized;
  if (text == nullptr || length == 0) return kInvalidArgument;
  const std::string name = NameOfAny(static_cast<pid_t>(pid));
  return name.empty() ? static_cast<int>(kNotFound) : CopyText(name.substr(0, length - 1), text, length);
}

}  // namespace

std::span<const hooks::Answer> Answers() {
  const auto of = [](auto* function) { return reinterpret_cast<void*>(function); };
  static const hooks::Answer kAnswers[] = {
      {"nvmlInit", of(&Init)},
      {"nvmlInit_v2", of(&Init)},
      {"nvmlInitWithFlags", of(&InitWithFlags)},
      {"nvmlShutdown", of(&Shutdown)},
      {"nvmlErrorString", of(&ErrorString)},
      {"nvmlSystemGetDriverVersion", of(&SystemGetDriverVersion)},
      {"nvmlSystemGetNVMLVersion", of(&SystemGetNvmlVersion)},
      {"nvmlSystemGetCudaDriverVersion", of(&SystemGetCudaDriverVersion)},
      {"nvmlSystemGetCudaDriverVersion_v2", of(&SystemGetCudaDriverVersion)},
      {"nvmlDeviceGetCount", of(&GetCount)},
      {"nvmlDeviceGetCount_v2", of(&GetCount)},
      {"nvmlDeviceGetHandleByIndex", of(&GetHandleByIndex)},
      {"nvmlDeviceGetHandleByIndex_v2", of(&GetHandleByIndex)},
      {"nvmlDeviceGetHandleByUUID", of(&GetHandleByUuid)},
      {"nvmlDeviceGetHandleByPciBusId", of(&GetHandleByPciBusId)},
      {"nvmlDeviceGetHandleByPciBusId_v2", of(&GetHandleByPciBusId)},
      {"nvmlDeviceGetName", of(&GetName)},
      {"nvmlDeviceGetUUID", of(&GetUuid)},
      {"nvmlDeviceGetIndex", of(&GetZero)},
      {"nvmlDeviceGetMinorNumber", of(&GetZero)},
      {"nvmlDeviceGetMultiGpuBoard", of(&GetZero)},
      {"nvmlDeviceGetComputeMode", of(&GetZero)},      // NVML_COMPUTEMODE_DEFAULT
      {"nvmlDeviceGetPersistenceMode", of(&GetZero)},  // NVML_FEATURE_DISABLED
      {"nvmlDeviceGetPciInfo", of(&GetPciInfoV1)},
      {"nvmlDeviceGetPciInfo_v2", of(&GetPciInfoV2)},
      {"nvmlDeviceGetPciInfo_v3", of(&GetPciInfoV3)},
      {"nvmlDeviceGetMemoryInfo", of(&GetMemoryInfo)},
      {"nvmlDeviceGetMemoryInfo_v2", of(&GetMemoryInfoV2)},
      {"nvmlDeviceGetCudaComputeCapability", of(&GetCudaComputeCapability)},
      {"nvmlDeviceGetArchitecture", of(&GetArchitecture)},
      {"nvmlDeviceGetMemoryBusWidth", of(&GetMemoryBusWidth)},
      {"nvmlDeviceGetClockInfo", of(&GetClock)},
      {"nvmlDeviceGetMaxClockInfo", of(&GetClock)},
      {"nvmlDeviceGetCurrPcieLinkGeneration", of(&GetPcieGeneration)},
      {"nvmlDeviceGetMaxPcieLinkGeneration", of(&GetPcieGeneration)},
      {"nvmlDeviceGetCurrPcieLinkWidth", of(&GetPcieWidth)},
      {"nvmlDeviceGetMaxPcieLinkWidth", of(&GetPcieWidth)},
      {"nvmlDeviceGetP2PStatus", of(&GetP2PStatus)},
      {"nvmlDeviceGetFieldValues", of(&GetFieldValues)},
      {"nvmlDeviceGetUtilizationRates", of(&GetUtilization)},
      {"nvmlDeviceGetComputeRunningProcesses", of(&GetComputeProcesses<ProcessInfoV1>)},
      {"nvmlDeviceGetComputeRunningProcesses_v2", of(&GetComputeProcesses<ProcessInfo>)},
      {"nvmlDeviceGetComputeRunningProcesses_v3", of(&GetComputeProcesses<ProcessInfo>)},
      {"nvmlDeviceGetGraphicsRunningProcesses", of(&GetNoProcesses)},
      {"nvmlDeviceGetGraphicsRunningProcesses_v2", of(&GetNoProcesses)},
      {"nvmlDeviceGetGraphicsRunningProcesses_v3", of(&GetNoProcesses)},
      {"nvmlDeviceGetMPSComputeRunningProcesses", of(&GetNoProcesses)},
      {"nvmlDeviceGetMPSComputeRunningProcesses_v2", of(&GetNoProcesses)},
      {"nvmlDeviceGetMPSComputeRunningProcesses_v3", of(&GetNoProcesses)},
      {"nvmlDeviceGetRunningProcessDetailList", of(&GetProcessDetails)},
      {"nvmlDeviceGetProcessUtilization", of(&GetProcessUtilization)},
      {"nvmlDeviceGetProcessesUtilizationInfo", of(&GetProcessesUtilization)},
      {"nvmlSystemGetProcessName", of(&SystemGetProcessName)},
  };
  return kAnswers;
}

}  // namespace gridloom::nvml
