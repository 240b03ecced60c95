// suld, sust and sured: lane by lane, as each has an address of its own. What they do there is in
// sim/exec/image/surface.h.
#include <cstdio>
#include <cstring>

#include "sim/exec/image/surface.h"
#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/image_access.h"

namespace gridloom::exec {
namespace {

constexpr unsigned kMostValues = 4;

struct SurfaceOperands {
  const std::uint64_t* surfaces = nullptr;
  const std::uint32_t* layer = nullptr;
  const std::int32_t* coordinate[3] = {nullptr, nullptr, nullptr};
  std::uint8_t* value[kMostValues] = {};  ///< arrays of `bytes` per lane
};

void ReadPoint(const SurfaceImm& imm, Arguments& next, SurfaceOperands& operands) {
  operands.surfaces = next.Take<const std::uint64_t>();
  if (IsLayered(imm.geometry)) operands.layer = next.Take<const std::uint32_t>();
  for (unsigned axis = 0; axis < CoordinateCount(imm.geometry); ++axis)
    operands.coordinate[axis] = next.Take<const std::int32_t>();
}

SurfaceOperands ReadOperands(const SurfaceImm& imm, bool load, void* const* args) {
  Arguments next(args);
  SurfaceOperands operands;
  const auto take_values = [&] {
    for (unsigned i = 0; i < imm.count; ++i) operands.value[i] = next.Take<std::uint8_t>();
  };
  if (load) take_values();
  ReadPoint(imm, next, operands);
  if (!load) take_values();
  return operands;
}

SurfacePoint PointOf(const SurfaceOperands& operands, std::uint32_t lane) {
  const auto at = [&](unsigned axis) { return operands.coordinate[axis] ? operands.coordinate[axis][lane] : 0; };
  return {.layer = operands.layer ? operands.layer[lane] : 0, .x = at(0), .y = at(1), .z = at(2)};
}

[[noreturn]] void RaiseOutside(Warp& warp, std::uint32_t lane, std::uint32_t line, const ImageResource& image,
                               const SurfacePoint& point) {
  const ImageLevel& level = image.levels[0];
  char text[160];
  std::snprintf(text, sizeof text,
                "surface access out of bounds: coordinates (%d, %d, %d), layer %u; the surface has %u x %u x %u texels "
                "of %u bytes",
                point.x, point.y, point.z, point.layer, level.width, level.height, level.depth, image.texel_bytes());
  RaiseFault(warp, FaultKind::kTrap, lane, 0, line, text);
}

/// Calls access(lane, image, address) for every lane; the address is null where the mode for coordinates out of range
/// says that nothing is accessed.
template <typename F>
void ForEachPoint(Warp& warp, const SurfaceImm& imm, const SurfaceOperands& operands, std::uint32_t mask,
                  std::uint32_t line, F&& visit) {
  LaneAccess access(warp, line);
  ForEachLane(mask, [&](std::uint32_t lane) {
    access.At(lane);
    const ImageResource& image = SurfaceOf(warp, lane, line, operands.surfaces[lane]).image;
    const SurfacePoint point = PointOf(operands, lane);
    const SurfacePlace place = LocateSurface(image, imm, point);
    if (place.access == SurfaceAccess::kOutside) RaiseOutside(warp, lane, line, image, point);
    if (place.access == SurfaceAccess::kMisaligned) {
      RaiseFault(warp, FaultKind::kMisalignedAddress, lane, reinterpret_cast<std::uint64_t>(place.at), line,
                 "misaligned surface access to");
    }
    visit(lane, image, place.at);
  });
}

}  // namespace

void Helper_kSurfaceLoad(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  const auto instruction = UnpackImm<SurfaceImm>(imm);
  const SurfaceOperands operands = ReadOperands(instruction, true, args);
  const unsigned bytes = instruction.bytes;
  ForEachPoint(WarpOf(ctx), instruction, operands, mask, line,
               [&](std::uint32_t lane, const ImageResource& image, const std::uint8_t* from) {
                 std::uint8_t loaded[kMostValues * 8] = {};
                 if (from != nullptr && instruction.formatted) {
                   LoadFormatted(image, from, instruction.count, reinterpret_cast<std::uint32_t*>(loaded));
                 } else if (from != nullptr) {
                   std::memcpy(loaded, from, std::size_t{bytes} * instruction.count);
                 }
                 for (unsigned i = 0; i < instruction.count; ++i)
                   std::memcpy(operands.value[i] + std::size_t{lane} * bytes, loaded + i * bytes, bytes);
               });
}

void Helper_kSurfaceStore(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  const auto instruction = UnpackImm<SurfaceImm>(imm);
  const SurfaceOperands operands = ReadOperands(instruction, false, args);
  const unsigned bytes = instruction.bytes;
  ForEachPoint(WarpOf(ctx), instruction, operands, mask, line,
               [&](std::uint32_t lane, const ImageResource& image, std::uint8_t* to) {
                 if (to == nullptr) return;
                 alignas(8) std::uint8_t values[kMostValues * 8];
                 for (unsigned i = 0; i < instruction.count; ++i)
                   std::memcpy(values + i * bytes, operands.value[i] + std::size_t{lane} * bytes, bytes);
                 if (instruction.formatted) {
                   StoreFormatted(image, to, instruction.count, reinterpret_cast<const std::uint32_t*>(values));
                 } else {
                   std::memcpy(to, values, std::size_t{bytes} * instruction.count);
                 }
               });
}

void Helper_kSurfaceReduce(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  const auto instruction = UnpackImm<SurfaceImm>(imm);
  const SurfaceOperands operands = ReadOperands(instruction, false, args);
  ForEachPoint(WarpOf(ctx), instruction, operands, mask, line,
               [&](std::uint32_t lane, const ImageResource& image, std::uint8_t* at) {
                 if (at == nullptr) return;
                 std::uint64_t value = 0;
                 std::memcpy(&value, operands.value[0] + std::size_t{lane} * instruction.bytes, instruction.bytes);
                 ReduceSurface(image, instruction, at, value);
               });
}

void Helper_kSurfaceAddress(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm,
                            void* const* args) {
  auto instruction = UnpackImm<SurfaceImm>(imm);
  Arguments next(args);
  auto* const out = next.Take<std::uint64_t>();
  SurfaceOperands operands;
  ReadPoint(instruction, next, operands);
  ForEachPoint(WarpOf(ctx), instruction, operands, mask, line,
               [&](std::uint32_t lane, const ImageResource& image, const std::uint8_t* at) {
                 out[lane] = at != nullptr ? reinterpret_cast<std::uint64_t>(at) : image.levels[0].base;
               });
}

}  // namespace gridloom::exec
