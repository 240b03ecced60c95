#include "interpose/objects/texture.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "interpose/base/log.h"
#include "interpose/base/task.h"
#include "interpose/base/thread_state.h"
#include "interpose/objects/current_context.h"
#include "interpose/objects/errors.h"
#include "interpose/objects/process.h"
#include "sim/exec/extent.h"

namespace gridloom::session {

using namespace cuda;

namespace {

/// A destroyed object that kernels submitted before may still read. Programs destroy objects right after a launch.
struct Retired {
  std::vector<TaskPtr> readers;  ///< what was submitted before
  std::uint64_t object;
  bool texture;
  TextureRecord record;  ///< keeps its array
};

struct Records {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, TextureRecord> textures, surfaces;
  std::vector<Retired> retired;
  std::size_t sweep_at = 0;  ///< so many retired ones are looked through; see SweepRetired
};

Records& TheRecords() {
  static Records* const records = new Records;
  return *records;
}

/// Removes the retired objects that nothing reads any more. Few are looked through each time, many when there are twice
/// as many as the last time left. The caller holds the records' mutex.
void SweepRetired(Records& records) {
  constexpr std::size_t kFew = 64;
  if (records.retired.size() > kFew && records.retired.size() < records.sweep_at) return;
  std::erase_if(records.retired, [](const Retired& retired) {
    if (!std::ranges::all_of(retired.readers, [](const TaskPtr& task) { return task->done(); })) return false;
    exec::ImageTable& table = exec::ImageTable::Get();
    retired.texture ? table.RemoveTexture(retired.object) : table.RemoveSurface(retired.object);
    return true;
  });
  records.sweep_at = 2 * records.retired.size();
}

CUresult Retire(std::unordered_map<std::uint64_t, TextureRecord>& objects, std::uint64_t object, bool texture) {
  if (object == 0) return CUDA_SUCCESS;  // as free does; programs clean up what they never made
  Records& records = TheRecords();
  const auto found = objects.find(object);
  if (found == objects.end()) return CUDA_ERROR_INVALID_VALUE;
  Context* const context = CurrentContext();
  std::vector<TaskPtr> readers =
      context != nullptr && !context->destroyed() ? context->Unfinished() : std::vector<TaskPtr>();
  records.retired.push_back({std::move(readers), object, texture, std::move(found->second)});
  objects.erase(found);
  SweepRetired(records);
  return CUDA_SUCCESS;
}

std::size_t CountOfProgram(const std::unordered_map<std::uint64_t, TextureRecord>& objects) {
  return static_cast<std::size_t>(
      std::ranges::count_if(objects, [](const auto& entry) { return !entry.second.of_reference; }));
}

/// From the address to the end of the allocation it is in; 0 when it is in none.
std::uint64_t BytesFrom(const exec::DeviceMemory& memory, std::uint64_t address) {
  const auto allocation = memory.Find(address);
  return allocation ? allocation->base + allocation->bytes - address : 0;
}

/// The memory behind a resource description.
CUresult ResourceOf(const ProgramHandles& handles, const CUDA_RESOURCE_DESC& desc, exec::ImageResource* image,
                    TextureRecord* record, bool* normalized) {
  const auto describe = [&](CUarray_format format, unsigned channels) -> CUresult {
    const auto known = FormatOf(format);
    if (!known) return IsFormat(format) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    if (channels != 1 && channels != 2 && channels != 4) return CUDA_ERROR_INVALID_VALUE;
    image->type = known->type;
    image->channels = static_cast<std::uint8_t>(channels);
    *normalized = known->normalized;
    return CUDA_SUCCESS;
  };
  switch (desc.type) {
    case CU_RESOURCE_TYPE_ARRAY:
      record->array = handles.arrays.Find(desc.array);
      if (record->array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
      *image = record->array->Resource();
      *normalized = FormatOf(record->array->descriptor().format)->normalized;
      return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      record->mipmap = handles.mipmaps.Find(desc.mipmap);
      if (record->mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
      *image = record->mipmap->Resource();
      *normalized = FormatOf(record->mipmap->levels().front()->descriptor().format)->normalized;
      return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_LINEAR: {
      if (const auto status = describe(desc.linear.format, desc.linear.num_channels); status != CUDA_SUCCESS)
        return status;
      Device& device = ThisContext().device();
      if (desc.linear.pointer == 0 || desc.linear.bytes / image->texel_bytes() > device.spec().texture.max_1d_linear)
        return CUDA_ERROR_INVALID_VALUE;
      // A driver does not mind a range that is longer than the memory; what is not there reads as what is outside of
      // the texture does.
      const std::uint64_t bytes =
          std::min<std::uint64_t>(desc.linear.bytes, BytesFrom(device.memory(), desc.linear.pointer));
      const std::uint64_t texels = bytes / image->texel_bytes();
      if (texels == 0) return CUDA_ERROR_INVALID_VALUE;
      image->kind = exec::ImageResource::Kind::kLinear;
      image->dims = 1;
      image->levels[0] = {desc.linear.pointer, static_cast<std::uint32_t>(texels), 1, 1, bytes, bytes};
      break;
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      if (const auto status = describe(desc.pitch2d.format, desc.pitch2d.num_channels); status != CUDA_SUCCESS)
        return status;
      const Device& device = ThisContext().device();
      const auto& p = desc.pitch2d;
      const exec::Extent row = exec::Extent(p.width) * image->texel_bytes(),
                         all = exec::Extent(p.pitch_bytes) * p.height;
      if (p.pointer == 0 || p.width == 0 || p.height == 0 || p.pitch_bytes < row || !all.fits() ||
          p.width > device.spec().texture.max_2d_linear_width ||
          p.height > device.spec().texture.max_2d_linear_height ||
          (p.height > 1 && p.pitch_bytes % device.spec().texture.pitch_alignment_bytes != 0)) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      image->kind = exec::ImageResource::Kind::kPitch2D;
      image->dims = 2;
      image->levels[0] = {
          p.pointer,  static_cast<std::uint32_t>(p.width), static_cast<std::uint32_t>(p.height), 1, p.pitch_bytes,
          all.value()};
      break;
    }
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  const exec::ImageLevel& level = image->levels[0];
  if (!ThisContext().device().memory().Accessible(level.base, level.slice_bytes, false))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

exec::AddressMode ModeOf(CUaddress_mode mode) {
  switch (mode) {
    case CU_TR_ADDRESS_MODE_WRAP: return exec::AddressMode::kWrap;
    case CU_TR_ADDRESS_MODE_MIRROR: return exec::AddressMode::kMirror;
    case CU_TR_ADDRESS_MODE_BORDER: return exec::AddressMode::kBorder;
    default: return exec::AddressMode::kClamp;
  }
}

/// Reads a cut of the image, and its texels as another format of the same size.
CUresult ApplyView(const CUDA_RESOURCE_VIEW_DESC& view, exec::ImageResource* image) {
  if (view.format == CU_RES_VIEW_FORMAT_NONE) return CUDA_SUCCESS;
  if (view.format >= CU_RES_VIEW_FORMAT_UNSIGNED_BC1) return CUDA_ERROR_NOT_SUPPORTED;
  using exec::ChannelType;
  constexpr ChannelType kTypes[] = {ChannelType::kUnsigned8, ChannelType::kSigned8,    ChannelType::kUnsigned16,
                                    ChannelType::kSigned16,  ChannelType::kUnsigned32, ChannelType::kSigned32,
                                    ChannelType::kHalf,      ChannelType::kFloat};
  const unsigned index = static_cast<unsigned>(view.format) - 1;  // three channel counts per type
  const std::uint32_t before = image->texel_bytes();
  image->type = kTypes[index / 3];
  image->channels = static_cast<std::uint8_t>(1u << (index % 3));
  if (image->texel_bytes() != before) return CUDA_ERROR_INVALID_VALUE;
  if (view.last_mipmap_level >= image->level_count || view.first_mipmap_level > view.last_mipmap_level)
    return CUDA_ERROR_INVALID_VALUE;
  std::copy(image->levels + view.first_mipmap_level, image->levels + view.last_mipmap_level + 1, image->levels);
  image->level_count = static_cast<std::uint8_t>(view.last_mipmap_level - view.first_mipmap_level + 1);
  if (image->layered || image->cubemap) {
    if (view.first_layer > view.last_layer || view.last_layer >= image->levels[0].depth)
      return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < image->level_count; ++i) {
      image->levels[i].base += view.first_layer * image->levels[i].slice_bytes;
      image->levels[i].depth = view.last_layer - view.first_layer + 1;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CreateTexture(const ProgramHandles& handles, const CUDA_RESOURCE_DESC& resource,
                       const CUDA_TEXTURE_DESC& texture, const CUDA_RESOURCE_VIEW_DESC* view, std::uint64_t* object) {
  TextureRecord record{resource,        texture, view != nullptr ? *view : CUDA_RESOURCE_VIEW_DESC{},
                       view != nullptr, nullptr, nullptr};
  exec::TextureObject made;
  bool normalized = false;
  if (const auto status = ResourceOf(handles, resource, &made.image, &record, &normalized); status != CUDA_SUCCESS)
    return status;
  if (view != nullptr) {
    if (const auto status = ApplyView(*view, &made.image); status != CUDA_SUCCESS) return status;
  }
  for (int i = 0; i < 3; ++i) made.address[i] = ModeOf(texture.address_mode[i]);
  made.filter = texture.filter_mode == CU_TR_FILTER_MODE_LINEAR ? exec::FilterMode::kLinear : exec::FilterMode::kPoint;
  made.mip_filter =
      texture.mipmap_filter_mode == CU_TR_FILTER_MODE_LINEAR ? exec::FilterMode::kLinear : exec::FilterMode::kPoint;
  made.read_as_integer = (texture.flags & kTexReadAsInteger) != 0 && !normalized;
  made.normalized_coordinates = (texture.flags & kTexNormalizedCoordinates) != 0;
  made.srgb = (texture.flags & kTexSrgb) != 0;
  made.seamless_cubemap = (texture.flags & kTexSeamlessCubemap) != 0;
  made.lod_bias = texture.mipmap_level_bias;
  made.min_lod = texture.min_mipmap_level_clamp;
  made.max_lod = texture.max_mipmap_level_clamp;
  made.max_anisotropy = texture.max_anisotropy;
  std::copy(texture.border_color, texture.border_color + 4, made.border);
  // Also integers that arrive as such are filtered: ffmpeg scales pictures so. Those of 32 bits do not arrive as
  // anything else.
  const bool words =
      made.image.type == exec::ChannelType::kUnsigned32 || made.image.type == exec::ChannelType::kSigned32;
  if (made.filter == exec::FilterMode::kLinear && words && !made.read_as_integer) return CUDA_ERROR_INVALID_VALUE;
  *object = exec::ImageTable::Get().Add(made);
  if (*object == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(TheRecords().mutex);
  TheRecords().textures[*object] = std::move(record);
  SweepRetired(TheRecords());
  return CUDA_SUCCESS;
}

CUresult DestroyTexture(std::uint64_t object) {
  const std::lock_guard lock(TheRecords().mutex);
  return Retire(TheRecords().textures, object, true);
}

std::size_t LiveTextures() {
  const std::lock_guard lock(TheRecords().mutex);
  return CountOfProgram(TheRecords().textures);
}

std::size_t LiveSurfaces() {
  const std::lock_guard lock(TheRecords().mutex);
  return CountOfProgram(TheRecords().surfaces);
}

CUresult FindTexture(std::uint64_t object, TextureRecord* record) {
  const std::lock_guard lock(TheRecords().mutex);
  const auto found = TheRecords().textures.find(object);
  if (found == TheRecords().textures.end()) return CUDA_ERROR_INVALID_VALUE;
  *record = found->second;
  return CUDA_SUCCESS;
}

CUresult CreateSurface(const ProgramHandles& handles, const CUDA_RESOURCE_DESC& resource, std::uint64_t* object) {
  if (resource.type != CU_RESOURCE_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
  TextureRecord record{resource, {}, {}, false, nullptr, nullptr};
  exec::SurfaceObject made;
  bool normalized = false;
  if (const auto status = ResourceOf(handles, resource, &made.image, &record, &normalized); status != CUDA_SUCCESS)
    return status;
  *object = exec::ImageTable::Get().Add(made);
  if (*object == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(TheRecords().mutex);
  TheRecords().surfaces[*object] = std::move(record);
  SweepRetired(TheRecords());
  return CUDA_SUCCESS;
}

CUresult DestroySurface(std::uint64_t object) {
  const std::lock_guard lock(TheRecords().mutex);
  return Retire(TheRecords().surfaces, object, false);
}

CUresult FindSurface(std::uint64_t object, TextureRecord* record) {
  const std::lock_guard lock(TheRecords().mutex);
  const auto found = TheRecords().surfaces.find(object);
  if (found == TheRecords().surfaces.end()) return CUDA_ERROR_INVALID_VALUE;
  *record = found->second;
  return CUDA_SUCCESS;
}

CUresult CheckResource(const ProgramHandles& handles, const CUDA_RESOURCE_DESC& resource) {
  TextureRecord record;
  exec::ImageResource image;
  bool normalized = false;
  return ResourceOf(handles, resource, &image, &record, &normalized);
}

// ---- references

namespace {

/// References changed since the last launch.
struct ChangedReferences {
  std::atomic<bool> any{false};  ///< what a launch looks at without the mutex
  std::mutex mutex;
  std::vector<std::weak_ptr<TextureReference>> list;
};

ChangedReferences& TheChanged() {
  static ChangedReferences* const changed = new ChangedReferences;
  return *changed;
}

}  // namespace

void TextureReference::Changed() {
  if (address == 0) return;  // of no module: no kernel reads it
  ChangedReferences& changed = TheChanged();
  const std::lock_guard lock(changed.mutex);
  const std::weak_ptr<TextureReference> self = weak_from_this();
  const auto same = [&](const auto& other) { return !other.owner_before(self) && !self.owner_before(other); };
  if (std::none_of(changed.list.begin(), changed.list.end(), same)) changed.list.push_back(self);
  changed.any.store(true, std::memory_order_release);
}

CUresult TextureReference::Publish(const ProgramHandles& handles) {
  if (!bound) return CUDA_SUCCESS;
  std::uint64_t made = 0;
  if (resource.type == CU_RESOURCE_TYPE_LINEAR) {
    resource.linear.format = format;
    resource.linear.num_channels = channels;
  }
  const auto status =
      surface ? CreateSurface(handles, resource, &made) : CreateTexture(handles, resource, texture, nullptr, &made);
  if (status != CUDA_SUCCESS) return status;
  surface ? DestroySurface(object_) : DestroyTexture(object_);
  {
    Records& records = TheRecords();
    const std::lock_guard lock(records.mutex);
    (surface ? records.surfaces : records.textures)[made].of_reference = true;
  }
  object_ = made;
  std::memcpy(reinterpret_cast<void*>(address), &object_, sizeof(object_));
  return CUDA_SUCCESS;
}

void PublishTextureReferences(Context& context) {
  ChangedReferences& changed = TheChanged();
  if (!changed.any.load(std::memory_order_acquire)) return;
  std::vector<std::weak_ptr<TextureReference>> list;
  {
    const std::lock_guard lock(changed.mutex);
    list.swap(changed.list);
    changed.any.store(false, std::memory_order_relaxed);
  }
  bool waited = false;
  for (const auto& weak : list) {
    const std::shared_ptr<TextureReference> reference = weak.lock();
    if (reference == nullptr) continue;
    const std::lock_guard lock(reference->mutex);
    if (reference->published() && !std::exchange(waited, true)) context.WaitAll();
    if (const auto status = reference->Publish(context.process().handles);
        status != CUDA_SUCCESS) {  // memory freed since; a kernel that reads it fails
      GL_LOG(kWarn, "a texture reference cannot be bound (%s); it keeps what it had before", NameOf(status));
    }
  }
}

}  // namespace gridloom::session
