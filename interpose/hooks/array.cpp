// Arrays and mipmapped arrays.
#include "interpose/objects/array.h"

#include "hooks/support.h"
#include "interpose/launch/capture.h"

namespace gridloom::hooks {

using session::Array;
using session::MipmappedArray;

namespace {

CUresult FindArray(Process& process, CUarray handle, std::shared_ptr<Array>* array) {
  *array = process.handles.arrays.Find(handle);
  return *array != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult FindMipmap(Process& process, CUmipmappedArray handle, std::shared_ptr<MipmappedArray>* mipmap) {
  *mipmap = process.handles.mipmaps.Find(handle);
  return *mipmap != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUresult cuArray3DCreate_v2(Process& process, CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  GL_CU_REQUIRE(handle != nullptr && descriptor != nullptr);
  GL_CU_TRY(session::RefuseUnsafeCall());
  std::shared_ptr<Array> array;
  GL_CU_TRY(Array::Create(ThisContext(), *descriptor, &array));
  *handle = process.handles.arrays.Add(std::move(array));
  return CUDA_SUCCESS;
}
CUresult cuArrayCreate_v2(Process& process, CUarray* handle, const CUDA_ARRAY_DESCRIPTOR* d) {
  GL_CU_REQUIRE(d != nullptr);
  const CUDA_ARRAY3D_DESCRIPTOR wide{d->width, d->height, 0, d->format, d->num_channels, 0};
  return cuArray3DCreate_v2(process, handle, &wide);
}

CUresult cuArrayDestroy(Process& process, CUarray handle) {
  std::shared_ptr<Array> array;
  GL_CU_TRY(FindArray(process, handle, &array));
  GL_CU_TRY(session::RefuseUnsafeCall());
  array->context().WaitAll();
  process.handles.arrays.Remove(handle);
  return CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor_v2(Process& process, CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray handle) {
  std::shared_ptr<Array> array;
  GL_CU_REQUIRE(descriptor != nullptr);
  GL_CU_TRY(FindArray(process, handle, &array));
  *descriptor = array->descriptor();
  return CUDA_SUCCESS;
}
CUresult cuArrayGetDescriptor_v2(Process& process, CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray handle) {
  std::shared_ptr<Array> array;
  GL_CU_REQUIRE(descriptor != nullptr);
  GL_CU_TRY(FindArray(process, handle, &array));
  const auto& d = array->descriptor();
  *descriptor = {d.width, d.height, d.format, d.num_channels};
  return CUDA_SUCCESS;
}
CUresult cuArrayGetMemoryRequirements(Process& process, CUDA_ARRAY_MEMORY_REQUIREMENTS* requirements, CUarray handle,
                                      CUdevice) {
  std::shared_ptr<Array> array;
  GL_CU_REQUIRE(requirements != nullptr);
  GL_CU_TRY(FindArray(process, handle, &array));
  *requirements = {static_cast<std::size_t>(array->level().slice_bytes * array->level().depth), 512, {}};
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayCreate(Process& process, CUmipmappedArray* handle, const CUDA_ARRAY3D_DESCRIPTOR* descriptor,
                                unsigned levels) {
  GL_CU_REQUIRE(handle != nullptr && descriptor != nullptr && levels != 0);
  GL_CU_TRY(session::RefuseUnsafeCall());
  std::shared_ptr<MipmappedArray> mipmap;
  GL_CU_TRY(MipmappedArray::Create(ThisContext(), *descriptor, levels, &mipmap));
  *handle = process.handles.mipmaps.Add(std::move(mipmap));
  return CUDA_SUCCESS;
}
CUresult cuMipmappedArrayDestroy(Process& process, CUmipmappedArray handle) {
  std::shared_ptr<MipmappedArray> mipmap;
  GL_CU_TRY(FindMipmap(process, handle, &mipmap));
  GL_CU_TRY(session::RefuseUnsafeCall());
  mipmap->context().WaitAll();
  process.handles.mipmaps.Remove(handle);
  for (const auto& level : mipmap->levels()) process.handles.arrays.Remove(level->handle());
  return CUDA_SUCCESS;
}
CUresult cuMipmappedArrayGetLevel(Process& process, CUarray* handle, CUmipmappedArray mipmap_handle, unsigned level) {
  std::shared_ptr<MipmappedArray> mipmap;
  GL_CU_REQUIRE(handle != nullptr);
  GL_CU_TRY(FindMipmap(process, mipmap_handle, &mipmap));
  GL_CU_REQUIRE(level < mipmap->levels().size());
  const auto& array = mipmap->levels()[level];
  if (process.handles.arrays.Find(array->handle()) == nullptr) process.handles.arrays.Add(array);
  *handle = array->handle();
  return CUDA_SUCCESS;
}

}  // namespace gridloom::hooks
