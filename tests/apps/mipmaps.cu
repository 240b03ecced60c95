// Mipmapped arrays: levels of their own, point and linear filtering between levels, tex2DLod.
#include "texture.h"

__global__ void Sample(cudaTextureObject_t texture, const float* lod, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex2DLod<float>(texture, 0.3f, 0.7f, lod[i]);
}

__global__ void FillLevel(cudaSurfaceObject_t level, int side) {
  const int x = threadIdx.x, y = threadIdx.y;
  if (x < side && y < side) surf2Dwrite(100.0f + y * side + x, level, x * 4, y);
}

/// A level takes surface writes although the mipmap was made without cudaArraySurfaceLoadStore.
static void WriteThroughSurface(cudaMipmappedArray_t mipmap, int number, int side) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  CU(cudaGetMipmappedArrayLevel(&resource.res.array.array, mipmap, number));
  cudaSurfaceObject_t surface = 0;
  CU(cudaCreateSurfaceObject(&surface, &resource));
  FillLevel<<<1, dim3(16, 16)>>>(surface, side);
  CU_LAUNCHED();
  std::vector<float> got(side * side);
  CU(cudaMemcpy2DFromArray(got.data(), side * 4, resource.res.array.array, 0, 0, side * 4, side,
                           cudaMemcpyDeviceToHost));
  for (int i = 0; i < side * side; ++i) Same("surface on a level", i, got[i], 100.0f + i);
}

int main() {
  const int levels = 5, side = 16;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaMipmappedArray_t mipmap = nullptr;
  CU(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(side, side, 0), levels));
  for (int level = 0; level < levels; ++level) {
    cudaArray_t array = nullptr;
    CU(cudaGetMipmappedArrayLevel(&array, mipmap, level));
    cudaExtent extent;
    CU(cudaArrayGetInfo(nullptr, &extent, nullptr, array));
    const int size = side >> level;
    True("extent", static_cast<int>(extent.width) == size && static_cast<int>(extent.height) == size);
    const std::vector<float> data(size * size, 10.0f * (level + 1));
    CU(cudaMemcpy2DToArray(array, 0, 0, data.data(), size * 4, size * 4, size, cudaMemcpyHostToDevice));
  }
  const int n = 41;
  std::vector<float> lods(n);
  for (int i = 0; i < n; ++i) lods[i] = i * 0.125f - 0.5f;
  Buffer<float> dl(lods), out(n);
  for (const auto filter : {cudaFilterModePoint, cudaFilterModeLinear}) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = mipmap;
    cudaTextureDesc desc = {};
    desc.filterMode = cudaFilterModePoint, desc.mipmapFilterMode = filter, desc.normalizedCoords = 1;
    desc.minMipmapLevelClamp = 0, desc.maxMipmapLevelClamp = levels - 1;
    desc.addressMode[0] = desc.addressMode[1] = cudaAddressModeClamp;
    cudaTextureObject_t texture = 0;
    CU(cudaCreateTextureObject(&texture, &resource, &desc, nullptr));
    Sample<<<1, 64>>>(texture, dl, out, n);
    CU_LAUNCHED();
    const auto got = out.Read();
    for (int i = 0; i < n; ++i) {
      const double lod = lods[i] < 0 ? 0 : lods[i] > levels - 1 ? levels - 1 : lods[i];
      if (filter == cudaFilterModeLinear) Near("linear", i, got[i], 10 * (lod + 1), 1e-6, 10.0 / 256);
      else if (lod - std::floor(lod) != 0.5)
        Same("point", i, got[i], static_cast<float>(10 * (std::floor(lod + 0.5) + 1)));
    }
  }
  WriteThroughSurface(mipmap, 1, side / 2);
  return Verdict();
}
