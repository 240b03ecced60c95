#include "interpose/launch/copy.h"

#include <cstring>

#include "interpose/launch/submit.h"
#include "interpose/objects/process.h"
#include "interpose/observe/memcheck.h"
#include "interpose/observe/observers.h"
#include "sim/exec/extent.h"

namespace gridloom::session {

using namespace cuda;
using exec::Box;
using exec::Extent;

namespace {

struct Side {
  std::byte* base = nullptr;
  std::size_t pitch = 0, slice = 0;
  std::shared_ptr<Array> array;
};

bool DeviceRange(Context& context, std::uint64_t address, Extent bytes, bool write) {
  if (bytes == 0 || (bytes.fits() && context.device().memory().Accessible(address, bytes.value(), write))) return true;
  context.process().observers().memcheck().BadRange(context, address, bytes.value(), write);
  return false;
}

/// Whether a copy or fill may use the range: any addresses of the host's, memory that is there of the device's.
bool MayUse(Context& context, bool device, std::uint64_t address, Extent bytes, bool write) {
  if (!exec::IsRange(address, bytes) || (device && !DeviceRange(context, address, bytes, write))) return false;
  context.process().observers().memcheck().CheckRange(context, address, bytes.value(), write);
  return true;
}

struct SideRequest {
  CUmemorytype type;
  std::uint64_t host, device;
  CUarray array;
  std::size_t x, y, z, pitch, height;
};

/// The place of a box in an array.
CUresult ResolveArray(Context& context, const SideRequest& r, std::size_t width, std::size_t height, std::size_t depth,
                      Side* side) {
  side->array = context.process().handles.arrays.Find(r.array);
  if (side->array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const exec::ImageLevel& level = side->array->level();
  if (!exec::LiesIn(0, Extent(level.width) * side->array->texel_bytes(), r.x, width) ||
      !exec::LiesIn(0, level.height, r.y, height) || !exec::LiesIn(0, level.depth, r.z, depth)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  side->pitch = level.row_bytes;
  side->slice = level.slice_bytes;
  side->base = reinterpret_cast<std::byte*>(level.base) + r.z * side->slice + r.y * side->pitch + r.x;
  return CUDA_SUCCESS;
}

CUresult Resolve(Context& context, const SideRequest& r, std::size_t width, std::size_t height, std::size_t depth,
                 bool write, Side* side) {
  if (r.type == CU_MEMORYTYPE_ARRAY) return ResolveArray(context, r, width, height, depth, side);
  if (r.type < CU_MEMORYTYPE_HOST || r.type > CU_MEMORYTYPE_UNIFIED) return CUDA_ERROR_INVALID_VALUE;
  const Extent row = Extent(r.x) + width, rows = Extent(r.y) + height;
  const Extent pitch = r.pitch != 0 ? Extent(r.pitch) : row;
  const Extent slice = pitch * (r.height != 0 ? Extent(r.height) : rows);
  if (pitch < row || (depth > 1 && r.height != 0 && r.height < rows)) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t start = r.type == CU_MEMORYTYPE_HOST ? r.host : r.device;
  const Extent base = Extent(start) + Extent(r.z) * slice + Extent(r.y) * pitch + Extent(r.x);
  if (start == 0 || !pitch.fits() || !base.fits()) return CUDA_ERROR_INVALID_VALUE;
  // A slice that is too large is none when nothing lies behind it.
  if (depth > 1 && !slice.fits()) return CUDA_ERROR_INVALID_VALUE;
  side->pitch = pitch.value();
  side->slice = slice.value();
  side->base = reinterpret_cast<std::byte*>(base.value());
  const bool ours =
      r.type == CU_MEMORYTYPE_DEVICE || (r.type == CU_MEMORYTYPE_UNIFIED && IsOurs(context, base.value()));
  const Box box{width, height, depth, side->pitch, side->slice};
  return MayUse(context, ours, base.value(), box.span(), write) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

bool IsOurs(Context& context, std::uint64_t pointer) { return context.device().memory().Find(pointer).has_value(); }

bool IsPinned(Context& context, std::uint64_t pointer) {
  const auto found = context.device().memory().Find(pointer);
  return found.has_value() &&
         (found->kind == exec::MemoryKind::kPinned || found->kind == exec::MemoryKind::kRegistered);
}

CUresult MakeCopy(Context& context, End dst_end, std::uint64_t dst, End src_end, std::uint64_t src, std::size_t bytes,
                  CopyOp* op) {
  if (bytes != 0) {
    if (dst == 0 || src == 0) return CUDA_ERROR_INVALID_VALUE;
    const auto bad = [&](End end, std::uint64_t pointer, bool write) {
      return !MayUse(context, end == End::kDevice || (end == End::kAny && IsOurs(context, pointer)), pointer, bytes,
                     write);
    };
    if (bad(dst_end, dst, true) || bad(src_end, src, false)) return CUDA_ERROR_INVALID_VALUE;
  }
  op->src = reinterpret_cast<const std::byte*>(src);
  op->dst = reinterpret_cast<std::byte*>(dst);
  op->width = bytes;
  op->src_pitch = op->dst_pitch = op->src_slice = op->dst_slice = bytes;
  CUDA_MEMCPY3D& d = op->described;
  const auto type = [](End end) {
    return end == End::kHost ? CU_MEMORYTYPE_HOST : end == End::kDevice ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED;
  };
  d.src_type = type(src_end);
  d.dst_type = type(dst_end);
  d.src_host = reinterpret_cast<const void*>(src_end == End::kHost ? src : 0);
  d.dst_host = reinterpret_cast<void*>(dst_end == End::kHost ? dst : 0);
  d.src_device = src_end == End::kHost ? 0 : src;
  d.dst_device = dst_end == End::kHost ? 0 : dst;
  d.src_pitch = d.dst_pitch = d.width_bytes = bytes;
  d.src_height = d.dst_height = d.height = d.depth = 1;
  return CUDA_SUCCESS;
}

CUresult MakeCopy(Context& context, const CUDA_MEMCPY3D& c, CopyOp* op) {
  if (c.src_lod != 0 || c.dst_lod != 0) return CUDA_ERROR_INVALID_VALUE;
  op->described = c;
  op->width = c.width_bytes;
  op->height = c.height;
  op->depth = c.depth;
  if (c.width_bytes == 0 || c.height == 0 || c.depth == 0) return CUDA_SUCCESS;
  const auto& memory = context.device().spec().memory;
  if ((c.src_type != CU_MEMORYTYPE_ARRAY && c.src_pitch > memory.max_pitch_bytes) ||
      (c.dst_type != CU_MEMORYTYPE_ARRAY && c.dst_pitch > memory.max_pitch_bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Side src, dst;
  const SideRequest from{c.src_type,    reinterpret_cast<std::uint64_t>(c.src_host),
                         c.src_device,  c.src_array,
                         c.src_x_bytes, c.src_y,
                         c.src_z,       c.src_pitch,
                         c.src_height};
  const SideRequest to{c.dst_type,    reinterpret_cast<std::uint64_t>(c.dst_host),
                       c.dst_device,  c.dst_array,
                       c.dst_x_bytes, c.dst_y,
                       c.dst_z,       c.dst_pitch,
                       c.dst_height};
  if (const auto status = Resolve(context, from, c.width_bytes, c.height, c.depth, false, &src); status != CUDA_SUCCESS)
    return status;
  if (const auto status = Resolve(context, to, c.width_bytes, c.height, c.depth, true, &dst); status != CUDA_SUCCESS)
    return status;
  if (!Box{c.width_bytes, c.height, c.depth}.bytes().fits()) return CUDA_ERROR_INVALID_VALUE;
  op->src = src.base;
  op->dst = dst.base;
  op->src_pitch = src.pitch;
  op->dst_pitch = dst.pitch;
  op->src_slice = src.slice;
  op->dst_slice = dst.slice;
  op->src_array = std::move(src.array);
  op->dst_array = std::move(dst.array);
  return CUDA_SUCCESS;
}

CUDA_MEMCPY3D Widen(const CUDA_MEMCPY2D& c) {
  CUDA_MEMCPY3D wide{};
  wide.src_x_bytes = c.src_x_bytes;
  wide.src_y = c.src_y;
  wide.src_type = c.src_type;
  wide.src_host = c.src_host;
  wide.src_device = c.src_device;
  wide.src_array = c.src_array;
  wide.src_pitch = c.src_pitch;
  wide.dst_x_bytes = c.dst_x_bytes;
  wide.dst_y = c.dst_y;
  wide.dst_type = c.dst_type;
  wide.dst_host = c.dst_host;
  wide.dst_device = c.dst_device;
  wide.dst_array = c.dst_array;
  wide.dst_pitch = c.dst_pitch;
  wide.width_bytes = c.width_bytes;
  wide.height = c.height;
  wide.depth = 1;
  return wide;
}

CUresult MakeArrayCopy(Context& context, CUarray dst_array, std::size_t dst_offset, CUarray src_array,
                       std::size_t src_offset, End linear_end, std::uint64_t linear, std::size_t bytes, CopyOp* op) {
  // Offsets count bytes along the first row, as these calls are meant for one-dimensional arrays.
  CUDA_MEMCPY3D c{};
  c.width_bytes = bytes;
  c.height = c.depth = 1;
  const CUmemorytype type = linear_end == End::kHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  if (src_array != nullptr) {
    c.src_type = CU_MEMORYTYPE_ARRAY;
    c.src_array = src_array;
    c.src_x_bytes = src_offset;
  } else {
    c.src_type = type;
    c.src_host = reinterpret_cast<const void*>(linear);
    c.src_device = linear;
  }
  if (dst_array != nullptr) {
    c.dst_type = CU_MEMORYTYPE_ARRAY;
    c.dst_array = dst_array;
    c.dst_x_bytes = dst_offset;
  } else {
    c.dst_type = type;
    c.dst_host = reinterpret_cast<void*>(linear);
    c.dst_device = linear;
  }
  return MakeCopy(context, c, op);
}

namespace {

// Up to here a copy is cheaper than waking a thread for it.
constexpr std::size_t kInlineBytes = 64u << 10;

enum class Place : std::uint8_t { kPageable, kPinned, kDevice };

Place PlaceOf(Context& context, const std::byte* pointer, const std::shared_ptr<Array>& array) {
  if (array != nullptr) return Place::kDevice;
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  if (!IsOurs(context, address)) return Place::kPageable;
  return IsPinned(context, address) ? Place::kPinned : Place::kDevice;
}

void Stage(CopyOp& op) {
  const std::size_t slice = op.width * op.height;
  op.staged = std::shared_ptr<std::byte[]>(new std::byte[slice * op.depth]);
  for (std::size_t z = 0; z < op.depth; ++z) {
    for (std::size_t y = 0; y < op.height; ++y) {
      std::memcpy(op.staged.get() + z * slice + y * op.width, op.src + z * op.src_slice + y * op.src_pitch, op.width);
    }
  }
  op.src = op.staged.get();
  op.src_pitch = op.width;
  op.src_slice = slice;
}

}  // namespace

CUresult SubmitCopyAsync(Stream& stream, CopyOp op) {
  Context& context = stream.context();
  const std::size_t bytes = op.width * op.height * op.depth;
  if (bytes == 0 || stream.capture != nullptr) return Submit(stream, std::move(op));
  const Place from = PlaceOf(context, op.src, op.src_array), to = PlaceOf(context, op.dst, op.dst_array);
  if (to == Place::kPageable || (to == Place::kPinned && from != Place::kDevice))
    return Submit(stream, std::move(op), Waiting::kYes);
  if (from == Place::kPageable) {
    if (context.Idle(stream)) return Submit(stream, std::move(op), Waiting::kYes);
    Stage(op);
    return Submit(stream, std::move(op));
  }
  return Submit(stream, std::move(op), bytes <= kInlineBytes ? Waiting::kIfIdle : Waiting::kNo);
}

CUresult CheckBatch(Context& context, const CUstreamBatchMemOpParams* items, unsigned count) {
  if (items == nullptr || count == 0 || count > 256) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    std::size_t bytes = 0;
    bool write = false;
    switch (items[i].operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32: bytes = 4; break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_64: bytes = 8; break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        bytes = 4;
        write = true;
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        bytes = 8;
        write = true;
        break;
      case CU_STREAM_MEM_OP_BARRIER: continue;
      case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_ERROR_NOT_SUPPORTED;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
    const std::uint64_t address = items[i].value.address;
    if (address % bytes != 0 || !context.device().memory().Accessible(address, bytes, write))
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult MakeFill(Context& context, const CUDA_MEMSET_NODE_PARAMS& p, FillOp* op) {
  if (p.element_size != 1 && p.element_size != 2 && p.element_size != 4) return CUDA_ERROR_INVALID_VALUE;
  op->params = p;
  if (p.width == 0 || p.height == 0) {
    op->params.height = 0;
    return CUDA_SUCCESS;
  }
  const Extent row = Extent(p.width) * p.element_size;
  if (p.dst == 0 || p.dst % p.element_size != 0 || (p.height > 1 && (p.pitch < row || p.pitch % p.element_size != 0))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Box box{row.value(), p.height, 1, p.pitch, 0};
  return MayUse(context, true, p.dst, box.span(), true) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace gridloom::session
