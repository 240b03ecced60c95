// Texture and surface references, the module-scope variables of programs before CUDA 12. Kernels launched after a
// change see it (objects/texture.h).
#include <algorithm>

#include "hooks/support.h"
#include "interpose/objects/texture.h"

namespace gridloom::hooks {

using session::TextureReference;

namespace {

CUresult FindReference(Process& process, CUtexref handle, std::shared_ptr<TextureReference>* reference) {
  *reference = process.handles.texrefs.Find(handle);
  return *reference != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/// Changes a reference under its lock, for launches to come.
template <typename Change>
CUresult Alter(Process& process, CUtexref handle, Change change) {
  std::shared_ptr<TextureReference> reference;
  GL_CU_TRY(FindReference(process, handle, &reference));
  const std::lock_guard lock(reference->mutex);
  GL_CU_TRY(change(*reference));
  reference->Changed();
  return CUDA_SUCCESS;
}
/// Names the memory behind a reference; nothing changes when no texture can be made of it.
CUresult Attach(Process& process, TextureReference* r, const CUDA_RESOURCE_DESC& resource, bool bound) {
  if (bound) GL_CU_TRY(session::CheckResource(process.handles, resource));
  r->resource = resource;
  r->bound = bound;
  return CUDA_SUCCESS;
}
/// Reads a reference under its lock.
template <typename Read>
CUresult Query(Process& process, CUtexref handle, Read read) {
  std::shared_ptr<TextureReference> reference;
  GL_CU_TRY(FindReference(process, handle, &reference));
  const std::lock_guard lock(reference->mutex);
  return read(*reference);
}

}  // namespace

CUresult cuTexRefCreate(Process& process, CUtexref* handle) {
  GL_CU_REQUIRE(handle != nullptr);
  *handle = process.handles.texrefs.Add(std::make_shared<TextureReference>());
  return CUDA_SUCCESS;
}
CUresult cuTexRefDestroy(Process& process, CUtexref handle) {
  return process.handles.texrefs.Remove(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// The array's own format is taken with and without the flag; the runtime of CUDA 11.8 passes none.
CUresult cuTexRefSetArray(Process& process, CUtexref handle, CUarray array, unsigned flags) {
  GL_CU_REQUIRE((flags & ~kTexRefOverrideFormat) == 0);
  return Alter(process, handle, [&process, array](TextureReference& r) {
    const auto found = process.handles.arrays.Find(array);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    CUDA_RESOURCE_DESC resource{};
    resource.type = CU_RESOURCE_TYPE_ARRAY;
    resource.array = array;
    GL_CU_TRY(Attach(process, &r, resource, true));
    r.format = found->descriptor().format;
    r.channels = found->descriptor().num_channels;
    return CUDA_SUCCESS;
  });
}
CUresult cuTexRefSetMipmappedArray(Process& process, CUtexref handle, CUmipmappedArray mipmap, unsigned flags) {
  GL_CU_REQUIRE((flags & ~kTexRefOverrideFormat) == 0);
  return Alter(process, handle, [&process, mipmap](TextureReference& r) {
    CUDA_RESOURCE_DESC resource{};
    resource.type = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    resource.mipmap = mipmap;
    return Attach(process, &r, resource, true);
  });
}
CUresult cuTexRefSetAddress_v2(Process& process, std::size_t* offset, CUtexref handle, CUdeviceptr pointer,
                               std::size_t bytes) {
  Store(offset, 0);
  return Alter(process, handle, [&process, pointer, bytes](TextureReference& r) {
    CUDA_RESOURCE_DESC linear{};
    linear.type = CU_RESOURCE_TYPE_LINEAR;
    linear.linear.pointer = pointer;
    linear.linear.format = r.format;
    linear.linear.num_channels = r.channels;
    linear.linear.bytes = bytes;
    return Attach(process, &r, linear, pointer != 0);
  });
}
CUresult cuTexRefSetAddress2D_v3(Process& process, CUtexref handle, const CUDA_ARRAY_DESCRIPTOR* descriptor,
                                 CUdeviceptr pointer, std::size_t pitch) {
  GL_CU_REQUIRE(descriptor != nullptr);
  return Alter(process, handle, [&](TextureReference& r) {
    CUDA_RESOURCE_DESC rows{};
    rows.type = CU_RESOURCE_TYPE_PITCH2D;
    rows.pitch2d.pointer = pointer;
    rows.pitch2d.format = descriptor->format;
    rows.pitch2d.num_channels = descriptor->num_channels;
    rows.pitch2d.width = descriptor->width;
    rows.pitch2d.height = descriptor->height;
    rows.pitch2d.pitch_bytes = pitch;
    GL_CU_TRY(Attach(process, &r, rows, true));
    r.format = descriptor->format;
    r.channels = descriptor->num_channels;
    return CUDA_SUCCESS;
  });
}
CUresult cuTexRefSetFormat(Process& process, CUtexref handle, CUarray_format format, int channels) {
  GL_CU_REQUIRE(session::FormatOf(format) && (channels == 1 || channels == 2 || channels == 4));
  return Alter(process, handle, [=](TextureReference& r) {
    r.format = format;
    r.channels = static_cast<unsigned>(channels);
    return CUDA_SUCCESS;
  });
}
CUresult cuTexRefSetAddressMode(Process& process, CUtexref handle, int dim, CUaddress_mode mode) {
  GL_CU_REQUIRE(dim >= 0 && dim < 3 && mode >= CU_TR_ADDRESS_MODE_WRAP && mode <= CU_TR_ADDRESS_MODE_BORDER);
  return Alter(process, handle, [=](TextureReference& r) {
    r.texture.address_mode[dim] = mode;
    return CUDA_SUCCESS;
  });
}

// Setters and getters of single fields.
#define GL_TEXREF_SET(name, type, field)                                      \
  CUresult cuTexRefSet##name(Process& process, CUtexref handle, type value) { \
    return Alter(process, handle, [value](TextureReference& r) {              \
      r.texture.field = value;                                                \
      return CUDA_SUCCESS;                                                    \
    });                                                                       \
  }
#define GL_TEXREF_GET(name, type, field)                                       \
  CUresult cuTexRefGet##name(Process& process, type* value, CUtexref handle) { \
    GL_CU_REQUIRE(value != nullptr);                                           \
    return Query(process, handle, [value](TextureReference& r) {               \
      *value = static_cast<type>(r.texture.field);                             \
      return CUDA_SUCCESS;                                                     \
    });                                                                        \
  }
GL_TEXREF_SET(FilterMode, CUfilter_mode, filter_mode)
GL_TEXREF_SET(MipmapFilterMode, CUfilter_mode, mipmap_filter_mode)
GL_TEXREF_SET(MipmapLevelBias, float, mipmap_level_bias)
GL_TEXREF_SET(MaxAnisotropy, unsigned, max_anisotropy)
GL_TEXREF_SET(Flags, unsigned, flags)
GL_TEXREF_GET(FilterMode, CUfilter_mode, filter_mode)
GL_TEXREF_GET(MipmapFilterMode, CUfilter_mode, mipmap_filter_mode)
GL_TEXREF_GET(MipmapLevelBias, float, mipmap_level_bias)
GL_TEXREF_GET(MaxAnisotropy, int, max_anisotropy)
GL_TEXREF_GET(Flags, unsigned, flags)
#undef GL_TEXREF_SET
#undef GL_TEXREF_GET

CUresult cuTexRefSetMipmapLevelClamp(Process& process, CUtexref handle, float least, float most) {
  return Alter(process, handle, [=](TextureReference& r) {
    r.texture.min_mipmap_level_clamp = least;
    r.texture.max_mipmap_level_clamp = most;
    return CUDA_SUCCESS;
  });
}
CUresult cuTexRefSetBorderColor(Process& process, CUtexref handle, float* colour) {
  GL_CU_REQUIRE(colour != nullptr);
  return Alter(process, handle, [colour](TextureReference& r) {
    std::copy_n(colour, 4, r.texture.border_color);
    return CUDA_SUCCESS;
  });
}
CUresult cuTexRefGetMipmapLevelClamp(Process& process, float* least, float* most, CUtexref handle) {
  return Query(process, handle, [=](TextureReference& r) {
    Store(least, r.texture.min_mipmap_level_clamp);
    Store(most, r.texture.max_mipmap_level_clamp);
    return CUDA_SUCCESS;
  });
}
CUresult cuTexRefGetBorderColor(Process& process, float* colour, CUtexref handle) {
  GL_CU_REQUIRE(colour != nullptr);
  return Query(process, handle, [colour](TextureReference& r) {
    std::copy_n(r.texture.border_color, 4, colour);
    return CUDA_SUCCESS;
  });
}
CUresult cuTexRefGetAddressMode(Process& process, CUaddress_mode* mode, CUtexref handle, int dim) {
  GL_CU_REQUIRE(mode != nullptr && dim >= 0 && dim < 3);
  return Query(process, handle, [=](TextureReference& r) {
    *mode = r.texture.address_mode[dim];
    return CUDA_SUCCESS;
  });
}
CUresult cuTexRefGetFormat(Process& process, CUarray_format* format, int* channels, CUtexref handle) {
  return Query(process, handle, [=](TextureReference& r) {
    Store(format, r.format);
    Store(channels, r.channels);
    return CUDA_SUCCESS;
  });
}
CUresult cuTexRefGetAddress_v2(Process& process, CUdeviceptr* pointer, CUtexref handle) {
  GL_CU_REQUIRE(pointer != nullptr);
  return Query(process, handle, [pointer](TextureReference& r) {
    if (!r.bound || r.resource.type < CU_RESOURCE_TYPE_LINEAR) return CUDA_ERROR_INVALID_VALUE;
    *pointer = r.resource.type == CU_RESOURCE_TYPE_LINEAR ? r.resource.linear.pointer : r.resource.pitch2d.pointer;
    return CUDA_SUCCESS;
  });
}
CUresult cuTexRefGetArray(Process& process, CUarray* array, CUtexref handle) {
  GL_CU_REQUIRE(array != nullptr);
  return Query(process, handle, [array](TextureReference& r) {
    if (!r.bound || r.resource.type != CU_RESOURCE_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
    *array = r.resource.array;
    return CUDA_SUCCESS;
  });
}
CUresult cuTexRefGetMipmappedArray(Process& process, CUmipmappedArray* mipmap, CUtexref handle) {
  GL_CU_REQUIRE(mipmap != nullptr);
  return Query(process, handle, [mipmap](TextureReference& r) {
    if (!r.bound || r.resource.type != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) return CUDA_ERROR_INVALID_VALUE;
    *mipmap = r.resource.mipmap;
    return CUDA_SUCCESS;
  });
}
// The texture unit an argument names lost its meaning with CUDA 3.2; the reference itself carries all that matters.
CUresult cuParamSetTexRef(Process& process, CUfunction, int, CUtexref handle) {
  std::shared_ptr<TextureReference> reference;
  return FindReference(process, handle, &reference);
}

CUresult cuSurfRefSetArray(Process& process, CUsurfref handle, CUarray array, unsigned flags) {
  GL_CU_REQUIRE(flags == 0);
  return Alter(process, reinterpret_cast<CUtexref>(handle), [&process, array](TextureReference& r) {
    const auto found = process.handles.arrays.Find(array);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!found->surface_access()) return CUDA_ERROR_INVALID_VALUE;
    CUDA_RESOURCE_DESC resource{};
    resource.type = CU_RESOURCE_TYPE_ARRAY;
    resource.array = array;
    r.surface = true;
    return Attach(process, &r, resource, true);
  });
}
CUresult cuSurfRefGetArray(Process& process, CUarray* array, CUsurfref handle) {
  return cuTexRefGetArray(process, array, reinterpret_cast<CUtexref>(handle));
}

}  // namespace gridloom::hooks
