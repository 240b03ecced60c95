// Helpers of the texture and surface programs: arrays, texture objects, the reference for addressing and filtering.
#pragma once

#include "app.h"

template <class T>
cudaArray_t MakeArray(const std::vector<T>& data, int width, int height, int depth, unsigned flags = 0) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
  const cudaExtent extent = make_cudaExtent(width, height, depth);
  cudaArray_t array = nullptr;
  CU(cudaMalloc3DArray(&array, &format, extent, flags));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(const_cast<T*>(data.data()), width * sizeof(T), width, height ? height : 1);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(width, height ? height : 1, depth ? depth : 1);
  copy.kind = cudaMemcpyHostToDevice;
  CU(cudaMemcpy3D(&copy));
  return array;
}
inline cudaTextureObject_t MakeTexture(cudaArray_t array, cudaTextureFilterMode filter, cudaTextureAddressMode address,
                                       bool normalized, cudaTextureReadMode read = cudaReadModeElementType) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc desc = {};
  for (auto& mode : desc.addressMode) mode = address;
  desc.filterMode = filter;
  desc.readMode = read;
  desc.normalizedCoords = normalized;
  desc.borderColor[0] = 0;
  cudaTextureObject_t texture = 0;
  CU(cudaCreateTextureObject(&texture, &resource, &desc, nullptr));
  return texture;
}

/// Index of a texel after the address mode, or -1 for the border.
inline int Address(long i, int size, cudaTextureAddressMode mode) {
  if (mode == cudaAddressModeWrap) return static_cast<int>(((i % size) + size) % size);
  if (mode == cudaAddressModeMirror) {
    const long period = ((i % (2L * size)) + 2L * size) % (2L * size);
    return static_cast<int>(period < size ? period : 2 * size - 1 - period);
  }
  if (mode == cudaAddressModeBorder) return i < 0 || i >= size ? -1 : static_cast<int>(i);
  return static_cast<int>(i < 0 ? 0 : i >= size ? size - 1 : i);
}
/// Weight of the upper texel as the hardware has it: 8 fractional bits.
inline double Weight(double fraction) { return std::floor(fraction * 256 + 0.5) / 256; }
