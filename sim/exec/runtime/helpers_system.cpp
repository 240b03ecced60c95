// The device's system calls: printf, assert, malloc, free, trap.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "sim/exec/runtime/device_heap.h"
#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/runtime/memcheck/checker.h"
#include "sim/exec/runtime/printf_format.h"
#include "sim/exec/runtime/printf_output.h"

namespace gridloom::exec {
namespace {

constexpr std::size_t kMaxStringBytes = 1u << 20;

/// Bytes of device memory that can be read from `address` on, up to the end of its allocation.
std::uint64_t Readable(const DeviceMemory& memory, std::uint64_t address) {
  const auto allocation = memory.Find(address);
  if (!allocation || allocation->kind == MemoryKind::kReserved) return 0;
  return allocation->base + allocation->bytes - address;
}

/// A zero-terminated string in device memory; what cannot be read ends it. `found` is false when nothing can.
std::string ReadString(const DeviceMemory& memory, std::uint64_t address, bool* found = nullptr) {
  const std::uint64_t readable = std::min<std::uint64_t>(Readable(memory, address), kMaxStringBytes);
  if (found) *found = readable != 0;
  const char* const text = reinterpret_cast<const char*>(address);
  return readable == 0 ? std::string() : std::string(text, strnlen(text, readable));
}

/// Prints one lane's text. False when the format cannot be read.
bool PrintLane(Warp& warp, std::uint64_t format_address, std::uint64_t block, std::int32_t& result) {
  const DeviceMemory& memory = *ServicesOf(warp).memory;
  if (format_address == 0) {
    result = -1;
    return true;
  }
  bool found = false;
  const std::string format = ReadString(memory, format_address, &found);
  if (!found) return false;
  const std::uint64_t readable = Readable(memory, block);
  const PrintfArguments arguments{
      .read =
          [&](std::uint64_t offset, void* to, std::size_t bytes) {
            if (offset > readable || bytes > readable - offset) return false;
            std::memcpy(to, reinterpret_cast<const void*>(block + offset), bytes);
            return true;
          },
      .string =
          [&](std::uint64_t address) { return address == 0 ? std::string("(null)") : ReadString(memory, address); }};
  PrintfText text = FormatPrintf(format, arguments);
  result = text.arguments;
  ServicesOf(warp).output->Append(LaunchOf(warp).serial, CtaNumber(warp), std::move(text.text));
  return true;
}

/// The line the driver prints for a failed assertion.
void PrintAssertion(Warp& warp, std::uint32_t lane, std::uint64_t message, std::uint64_t file,
                    std::uint32_t source_line, std::uint64_t function) {
  const DeviceMemory& memory = *ServicesOf(warp).memory;
  const Dim3 cta = PlaceInGrid(*warp.cta);
  const auto& tid = warp.ctx.tid;
  std::fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
               ReadString(memory, file).c_str(), source_line, ReadString(memory, function).c_str(), cta.x, cta.y, cta.z,
               tid[0][lane], tid[1][lane], tid[2][lane], ReadString(memory, message).c_str());
}

}  // namespace

void Helper_kVprintf(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  auto* const out = static_cast<std::int32_t*>(args[0]);
  const auto* const formats = static_cast<const std::uint64_t*>(args[1]);
  const auto* const blocks = static_cast<const std::uint64_t*>(args[2]);
  ForEachLane(mask, [&](std::uint32_t lane) {
    std::int32_t result = 0;
    if (!PrintLane(warp, formats[lane], blocks[lane], result))
      RaiseFault(warp, FaultKind::kIllegalAddress, lane, formats[lane], line, "printf's format string:");
    out[lane] = result;
  });
}

void Helper_kAssertFail(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  const auto* const messages = static_cast<const std::uint64_t*>(args[0]);
  const auto* const files = static_cast<const std::uint64_t*>(args[1]);
  const auto* const lines = static_cast<const std::uint32_t*>(args[2]);
  const auto* const functions = static_cast<const std::uint64_t*>(args[3]);
  ForEachLane(mask, [&](std::uint32_t lane) {
    PrintAssertion(warp, lane, messages[lane], files[lane], lines[lane], functions[lane]);
  });
  RaiseFault(warp, FaultKind::kAssert, static_cast<std::uint32_t>(std::countr_zero(mask)) % kWarpSize, 0, line,
             "assertion failed");
}

void Helper_kTrap(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  RaiseFault(WarpOf(ctx), FaultKind::kTrap, static_cast<std::uint32_t>(std::countr_zero(mask)) % kWarpSize, 0, line,
             "trap");
}

void Helper_kInvalidCall(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask)) % kWarpSize;
  const std::uint64_t target = args && args[0] ? static_cast<const std::uint64_t*>(args[0])[lane] : 0;
  RaiseFault(WarpOf(ctx), FaultKind::kInvalidPc, lane, target, line,
             "call through a pointer that is no function's address");
}

void Helper_kMalloc(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  DeviceHeap& heap = *ServicesOf(WarpOf(ctx)).heap;
  auto* const out = static_cast<std::uint64_t*>(args[0]);
  const auto* const sizes = static_cast<const std::uint64_t*>(args[1]);
  ForEachLane(mask, [&](std::uint32_t lane) { out[lane] = heap.Allocate(sizes[lane]); });
}

void Helper_kFree(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  DeviceHeap& heap = *ServicesOf(warp).heap;
  const auto* const addresses = static_cast<const std::uint64_t*>(args[0]);
  ForEachLane(mask, [&](std::uint32_t lane) {
    if (addresses[lane] == 0 || heap.Free(addresses[lane])) return;
    if (Memcheck* const memcheck = ServicesOf(warp).memcheck)
      return memcheck->InvalidFree(warp, lane, line, addresses[lane]);
    RaiseFault(warp, FaultKind::kIllegalAddress, lane, addresses[lane], line,
               "free of a pointer that malloc did not give:");
  });
  EndOfAccesses(warp, mask);
}

}  // namespace gridloom::exec
