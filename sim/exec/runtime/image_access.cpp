#include "sim/exec/runtime/image_access.h"

#include <cstdio>

#include "sim/exec/runtime/fault.h"

namespace gridloom::exec {

std::uint64_t ResolveHandle(const Warp& warp, std::uint64_t handle) {
  const DeviceMemory& memory = *ServicesOf(warp).memory;
  if (handle % 8 != 0 || handle - memory.range_base() >= memory.range_bytes()) return handle;
  return *reinterpret_cast<const std::uint64_t*>(handle);
}

void RaiseBadHandle(Warp& warp, std::uint32_t lane, std::uint32_t line, std::uint64_t handle, const char* kind) {
  char text[80];
  std::snprintf(text, sizeof text, "0x%llx is not the handle of a %s object", static_cast<unsigned long long>(handle),
                kind);
  RaiseFault(warp, FaultKind::kTrap, lane, handle, line, text);
}

const TextureObject& TextureOf(Warp& warp, std::uint32_t lane, std::uint32_t line, std::uint64_t handle) {
  const TextureObject* const texture = ImageTable::Get().FindTexture(ResolveHandle(warp, handle));
  if (texture == nullptr) RaiseBadHandle(warp, lane, line, handle, "texture");
  return *texture;
}

const SurfaceObject& SurfaceOf(Warp& warp, std::uint32_t lane, std::uint32_t line, std::uint64_t handle) {
  const SurfaceObject* const surface = ImageTable::Get().FindSurface(ResolveHandle(warp, handle));
  if (surface == nullptr) RaiseBadHandle(warp, lane, line, handle, "surface");
  return *surface;
}

}  // namespace gridloom::exec
