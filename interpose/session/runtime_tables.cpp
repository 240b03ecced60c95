// The runtime's private function tables. Layouts are facts observed at the interface; docs/shim.md lists which runtime
// asks for which. A table is an array of eight-byte slots; unless noted, slot 0 holds its size in bytes.
#include "interpose/session/runtime_tables.h"

#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "hooks.h"
#include "interpose/base/large_stack.h"
#include "interpose/base/log.h"
#include "interpose/objects/context.h"
#include "interpose/objects/current_context.h"
#include "interpose/objects/device.h"
#include "interpose/objects/green_context.h"
#include "interpose/objects/process.h"

namespace gridloom::session {

using namespace cuda;

namespace {

using Slot = const void*;
template <auto kFunction>
struct Guarded;
/// The function, but in the child of a fork: what the parent's threads had locked stays locked there, so nothing of it
/// is touched. Functions that return no CUresult return nothing that was found.
template <typename Answer, typename... Args, Answer (*kFunction)(Args...)>
struct Guarded<kFunction> {
  static Answer Call(Args... args) {
    if (Process::child_of_user()) [[unlikely]] {
      if constexpr (std::is_same_v<Answer, CUresult>) return CUDA_ERROR_NOT_INITIALIZED;
      else return Answer();
    }
    if constexpr (std::is_same_v<Answer, CUresult>) {
      if (StackIsShort()) [[unlikely]] {
        CUresult status = CUDA_ERROR_OUT_OF_MEMORY;
        OnLargeStack([&]() noexcept { status = kFunction(args...); });
        return status;
      }
    }
    return kFunction(args...);
  }
};
template <auto kFunction>
Slot Entry() {
  return reinterpret_cast<Slot>(&Guarded<kFunction>::Call);
}
Slot Size(std::size_t bytes) { return reinterpret_cast<Slot>(bytes); }

// ---- the runtime's own interface: modules of 11.x runtimes, identity of primary contexts

/// The handle that cuDevicePrimaryCtxRetain will give, without making it current or counting a reference.
CUresult PrimaryContext(CUcontext* context, CUdevice ordinal) {
  Device* const device = Process::Get().FindDevice(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *context = device->primary().handle();
  return CUDA_SUCCESS;
}
CUresult LoadWrapper(CUmodule* module, const void* wrapper) noexcept {
  try {
    return hooks::cuModuleLoadData(Process::Get(), module, wrapper);
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}
CUresult LoadWrapperLong(CUmodule* module, const void* wrapper, void*, void*, unsigned) {
  return LoadWrapper(module, wrapper);
}
CUresult LoadContainer(const void* container, CUmodule* module, void*, void*, unsigned) {
  return LoadWrapper(module, container);
}
void ForgetWrapper(void*) {}
/// Shared runtimes from 13.1 on call it at start-up and pass on what it returns. Nothing is to be loaded: the virtual
/// GPU compiles kernels when they are launched first.
CUresult LoadCompilers() { return CUDA_SUCCESS; }

Slot g_interface[13];

// ---- tools: flags that say which call-backs a tracing tool wants; none does

// Never written: a set flag would make the runtime report through slots that lead nowhere.
unsigned char g_callback_flags[4096], g_other_flags[64];
void CallbackFlags(void** flags, std::size_t* count) {
  *flags = g_callback_flags;
  *count = sizeof(g_callback_flags) / 4;
}
void OtherFlags(void** flags, std::size_t* count) {
  *flags = g_other_flags;
  *count = 14;
}
CUresult Nothing() { return CUDA_SUCCESS; }

Slot g_hooks[7], g_tools[4];

// ---- values the runtime keeps per context; the hottest of all entries: one look-up per runtime call

Context* FindOwner(CUcontext handle) {
  return handle == nullptr ? CurrentContext() : Process::Get().FindContext(handle);
}
CUresult PutStorage(CUcontext handle, void* key, void* value, Context::StorageDestructor destructor) {
  Context* const context = FindOwner(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  context->PutStorage(key, value, destructor);
  return CUDA_SUCCESS;
}
CUresult DeleteStorage(CUcontext handle, void* key) {
  Context* const context = FindOwner(handle);
  return context != nullptr && context->DeleteStorage(key) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult GetStorage(void** value, CUcontext handle, void* key) {
  Context* const context = FindOwner(handle);
  return context != nullptr && context->GetStorage(key, value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

Slot g_storage[4];  // no size slot

/// Asked by runtimes from 13.1 on before an execution context is destroyed, recorded, or synchronized as a device:
/// whether it is a green one, and, if `device` is given, which context stands for its device (docs/shim.md, how that
/// was seen).
CUresult CheckContext(CUcontext handle, unsigned* is_green, CUcontext* device) {
  const GreenPtr green = handle != nullptr ? Process::Get().FindGreen(handle) : CurrentGreenPtr();
  *is_green = green != nullptr ? 1 : 0;
  if (green != nullptr && device != nullptr) *device = green->primary().handle();
  return CUDA_SUCCESS;
}
unsigned NoChecks() { return 0; }

Slot g_checks[4];

// ---- contexts and streams as the CUDA libraries see them; cuBLAS asks before results that the host reads

CUresult NotKnown() { return CUDA_ERROR_NOT_SUPPORTED; }
/// cuBLAS leaves the first argument undefined: the context is the current one.
CUresult ContextNumber(CUcontext, std::uint64_t* number) {
  if (CurrentContext() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return hooks::cuCtxGetId(Process::Get(), nullptr, number);
}
CUresult StreamIdentity(CUcontext, CUstream handle, const void** identity) {
  Context* const context = CurrentContext();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const StreamPtr stream = context->FindStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *identity = stream.get();
  return CUDA_SUCCESS;
}
/// What is asked of a stream is not known; cuBLAS takes zero for a stream it may use as it is.
CUresult StreamState(CUcontext, const void*, std::uint64_t* state) {
  *state = 0;
  return CUDA_SUCCESS;
}

Slot g_contexts[95];

// ---- the functions of a module; cuFFT, which does not know the name of the one kernel in an image, asks for them

/// Calls `visit` for each kernel of the module and gives their number. What the last argument of the callback means is
/// not known; cuFFT does not look at it.
std::uint64_t VisitFunctions(CUcontext, CUmodule module,
                             void (*visit)(void* data, CUfunction function, const void* owner), void* data) noexcept {
  try {
    unsigned count = 0;
    if (visit == nullptr || hooks::cuModuleGetFunctionCount(Process::Get(), &count, module) != CUDA_SUCCESS) return 0;
    std::vector<CUfunction> functions(count);
    if (hooks::cuModuleEnumerateFunctions(Process::Get(), functions.data(), count, module) != CUDA_SUCCESS) return 0;
    for (const CUfunction function : functions) visit(data, function, module);
    return count;
  } catch (...) {
    return 0;
  }
}
constexpr std::size_t kFunctionSlots = 128;
Slot g_functions[kFunctionSlots];

// ---- what CUPTI of 13.x traces by; it asks for the table before it tells even its version (JAX wants that) and calls
// none of it then --

constexpr std::size_t kTracingSlots = 64;
Slot g_tracing[kTracingSlots];

// ---- slots nobody was seen to call: whoever does is told that it failed, and the user which one it was

constexpr const char kOfFunctions[] = "of kernels", kOfTracing[] = "for tracing tools";
template <std::size_t kSlot, const char* kTable>
CUresult UnknownSlot() noexcept {
  GL_LOG(kWarn, "a library calls function %zu of the driver's private table %s, which the virtual GPU does not have",
         kSlot, kTable);
  return CUDA_ERROR_NOT_SUPPORTED;
}
template <const char* kTable, std::size_t... kSlots>
void FillUnknown(Slot (&table)[sizeof...(kSlots)], std::index_sequence<kSlots...>) {
  ((table[kSlots] = Entry<&UnknownSlot<kSlots, kTable>>()), ...);
  table[0] = Size(sizeof(table));
}

// ---- start-up check

Slot g_handshake[3];
CUresult Handshake(std::uint32_t version, std::uint64_t unix_seconds, std::uint8_t* result) {
  if (AnswerHandshake(version, unix_seconds, g_interface, g_handshake, result)) return CUDA_SUCCESS;
  static std::atomic<bool> told{false};
  if (!told.exchange(true)) {
    Log(LogLevel::kError,
        "this build leaves out the CUDA runtime's start-up check (GRIDLOOM_RUNTIME_HANDSHAKE=OFF), so programs that "
        "use the "
        "runtime cannot start on the virtual GPU; programs of the driver interface can");
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

struct Row {
  unsigned char id[16];
  const void* table;
};

const Row kTables[] = {
    {{0x6B, 0xD5, 0xFB, 0x6C, 0x5B, 0xF4, 0xE7, 0x4A, 0x89, 0x87, 0xD9, 0x39, 0x12, 0xFD, 0x9D, 0xF9}, g_interface},
    {{0xA0, 0x94, 0x79, 0x8C, 0x2E, 0x74, 0x2E, 0x74, 0x93, 0xF2, 0x08, 0x00, 0x20, 0x0C, 0x0A, 0x66}, g_hooks},
    {{0x42, 0xD8, 0x5A, 0x81, 0x23, 0xF6, 0xCB, 0x47, 0x82, 0x98, 0xF6, 0xE7, 0x8A, 0x3A, 0xEC, 0xDC}, g_tools},
    {{0xC6, 0x93, 0x33, 0x6E, 0x11, 0x21, 0xDF, 0x11, 0xA8, 0xC3, 0x68, 0xF3, 0x55, 0xD8, 0x95, 0x93}, g_storage},
    {{0x26, 0x3E, 0x88, 0x60, 0x7C, 0xD2, 0x61, 0x43, 0x92, 0xF6, 0xBB, 0xD5, 0x00, 0x6D, 0xFA, 0x7E}, g_checks},
    {{0x21, 0x31, 0x8C, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8C, 0xA6, 0x41, 0xFF, 0x73, 0x24, 0xC8, 0xF2}, g_contexts},
    {{0x6E, 0x16, 0x3F, 0xBE, 0xB9, 0x58, 0x44, 0x4D, 0x83, 0x5C, 0xE1, 0x82, 0xAF, 0xF1, 0x99, 0x1E}, g_functions},
    {{0x7C, 0xB6, 0x3F, 0x9B, 0x9C, 0xA4, 0x8E, 0x42, 0xA4, 0x84, 0xBE, 0xB6, 0x6E, 0x6A, 0xED, 0x7F}, g_tracing},
    {{0xD4, 0x08, 0x20, 0x55, 0xBD, 0xE6, 0x70, 0x4B, 0x8D, 0x34, 0xBA, 0x12, 0x3C, 0x66, 0xE1, 0xF2}, g_handshake},
};

/// Slots nobody was seen to call lead to a function that does nothing.
void FillTables() {
  for (Slot& slot : g_interface) slot = Entry<&Nothing>();
  g_interface[0] = Size(sizeof(g_interface));
  g_interface[1] = Entry<&LoadWrapper>();
  g_interface[2] = Entry<&PrimaryContext>();
  g_interface[6] = Entry<&LoadWrapperLong>();
  g_interface[7] = Entry<&ForgetWrapper>();
  g_interface[8] = Entry<&LoadContainer>();
  g_interface[12] = Entry<&LoadCompilers>();
  for (Slot& slot : g_hooks) slot = Entry<&Nothing>();
  g_hooks[0] = Size(sizeof(g_hooks));
  g_hooks[2] = Entry<&CallbackFlags>();
  g_hooks[6] = Entry<&OtherFlags>();
  for (Slot& slot : g_tools) slot = Entry<&Nothing>();
  g_tools[0] = Size(sizeof(g_tools));
  g_storage[0] = Entry<&PutStorage>();
  g_storage[1] = Entry<&DeleteStorage>();
  g_storage[2] = Entry<&GetStorage>();
  g_storage[3] = nullptr;
  for (Slot& slot : g_checks) slot = Entry<&Nothing>();
  g_checks[0] = Size(sizeof(g_checks));
  g_checks[2] = Entry<&CheckContext>();
  g_checks[3] = Entry<&NoChecks>();
  for (Slot& slot : g_contexts) slot = Entry<&NotKnown>();
  g_contexts[0] = Size(sizeof(g_contexts));
  g_contexts[4] = Entry<&ContextNumber>();
  g_contexts[39] = Entry<&StreamState>();
  g_contexts[51] = Entry<&StreamIdentity>();
  FillUnknown<kOfFunctions>(g_functions, std::make_index_sequence<kFunctionSlots>());
  g_functions[7] = Entry<&VisitFunctions>();
  FillUnknown<kOfTracing>(g_tracing, std::make_index_sequence<kTracingSlots>());
  g_handshake[0] = Size(sizeof(g_handshake));
  g_handshake[1] = Entry<&Handshake>();
  g_handshake[2] = Entry<&Nothing>();
}

}  // namespace

const void* FindExportTable(const CUuuid& id) {
  static const bool filled = (FillTables(), true);
  static_cast<void>(filled);
  for (const Row& row : kTables) {
    if (std::memcmp(row.id, id.bytes, 16) == 0) return row.table;
  }
  return nullptr;
}

}  // namespace gridloom::session

namespace gridloom::hooks {

CUresult cuGetExportTable(Process&, const void** table, const CUuuid* id) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = session::FindExportTable(*id);
  if (*table != nullptr) return CUDA_SUCCESS;
  std::string text;
  for (const unsigned char byte : id->bytes) text += session::Format("%02X", byte);
  // Every runtime asks for the first one and NVRTC for the second; both do without.
  if (text == "F8CFF95121468B4EB9E2FB469E7C0DD9" || text == "DA9151D33AE6CC41A5C04F26D533E328") {
    GL_LOG(kInfo, "cuGetExportTable: no table %s", text.c_str());
  } else {
    GL_LOG(
        kWarn,
        "a library asks for the driver's private table %s, which the virtual GPU does not have; it may refuse to work",
        text.c_str());
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace gridloom::hooks
