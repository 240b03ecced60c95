// Textures over linear and pitched memory, 1D arrays, formats, fetch outside the range, layered 1D, properties.
#include <chrono>
#include <thread>

#include "texture.h"

__global__ void Fetch(cudaTextureObject_t texture, const int* index, float2* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1Dfetch<float2>(texture, index[i]);
}
__global__ void Sample1D(cudaTextureObject_t texture, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1D<float>(texture, i * 0.25f + 0.125f);
}
__global__ void Pitched(cudaTextureObject_t texture, short* out, int width) {
  out[blockIdx.x * width + threadIdx.x] = tex2D<short>(texture, width - 1 - threadIdx.x, blockIdx.x);
}
__global__ void Layered(cudaTextureObject_t texture, float* out, int width) {
  out[blockIdx.x * width + threadIdx.x] = tex1DLayered<float>(texture, threadIdx.x + 0.5f, blockIdx.x);
}

int main() {
  const int n = 1000;
  std::vector<float2> pairs(n);
  std::vector<int> index(n);
  for (int i = 0; i < n; ++i) pairs[i] = make_float2(i, -i * 0.5f), index[i] = i * 7 % n;
  index[3] = -1, index[4] = n;  // outside: zeros
  Buffer<float2> data(pairs), fetched(n);
  Buffer<int> dindex(index);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = data;
  resource.res.linear.desc = cudaCreateChannelDesc<float2>();
  resource.res.linear.sizeInBytes = n * sizeof(float2);
  cudaTextureDesc desc = {};
  desc.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture = 0;
  CU(cudaCreateTextureObject(&texture, &resource, &desc, nullptr));
  Fetch<<<8, 128>>>(texture, dindex, fetched, n);
  CU_LAUNCHED();
  const auto f = fetched.Read();
  for (int i = 0; i < n; ++i) {
    const bool inside = index[i] >= 0 && index[i] < n;
    Same("fetch x", i, f[i].x, inside ? pairs[index[i]].x : 0.0f),
        Same("fetch y", i, f[i].y, inside ? pairs[index[i]].y : 0.0f);
  }
  cudaResourceDesc again = {};
  CU(cudaGetTextureObjectResourceDesc(&again, texture));
  True("resource", again.resType == cudaResourceTypeLinear && again.res.linear.devPtr == resource.res.linear.devPtr);
  CU(cudaDestroyTextureObject(texture));

  // A range that is longer than the memory: what is there can be read.
  resource.res.linear.sizeInBytes = (n + 100000) * sizeof(float2);
  CU(cudaCreateTextureObject(&texture, &resource, &desc, nullptr));
  Fetch<<<8, 128>>>(texture, dindex, fetched, n);
  CU_LAUNCHED();
  const auto longer = fetched.Read();
  for (int i = 0; i < n; ++i)
    if (index[i] >= 0 && index[i] < n) Same("longer than its memory", i, longer[i].x, pairs[index[i]].x);
  CU(cudaDestroyTextureObject(texture));

  std::vector<float> line(40);
  for (int i = 0; i < 40; ++i) line[i] = i * i % 50;
  const cudaArray_t array = MakeArray(line, 40, 0, 0);
  const auto linear = MakeTexture(array, cudaFilterModeLinear, cudaAddressModeClamp, false);
  Buffer<float> sampled(180);
  Sample1D<<<2, 90>>>(linear, sampled, 180);
  CU_LAUNCHED();
  const auto s = sampled.Read();
  for (int i = 0; i < 180; ++i) {
    const double x = i * 0.25 + 0.125 - 0.5, w = Weight(x - std::floor(x));
    const auto at = [&](double k) { return line[Address(static_cast<long>(k), 40, cudaAddressModeClamp)]; };
    Near("1D", i, s[i], (1 - w) * at(std::floor(x)) + w * at(std::floor(x) + 1), 1e-6, 0.4);
  }

  const int width = 50, height = 6;
  short* pitched = nullptr;
  std::size_t pitch = 0;
  CU(cudaMallocPitch(&pitched, &pitch, width * sizeof(short), height));
  std::vector<short> rows(width * height);
  for (int i = 0; i < width * height; ++i) rows[i] = static_cast<short>(i * 131);
  CU(cudaMemcpy2D(pitched, pitch, rows.data(), width * sizeof(short), width * sizeof(short), height,
                  cudaMemcpyHostToDevice));
  cudaResourceDesc resource2 = {};
  resource2.resType = cudaResourceTypePitch2D;
  resource2.res.pitch2D.devPtr = pitched, resource2.res.pitch2D.desc = cudaCreateChannelDesc<short>();
  resource2.res.pitch2D.width = width, resource2.res.pitch2D.height = height,
  resource2.res.pitch2D.pitchInBytes = pitch;
  desc.addressMode[0] = desc.addressMode[1] = cudaAddressModeClamp;
  CU(cudaCreateTextureObject(&texture, &resource2, &desc, nullptr));
  Buffer<short> reversed(width * height);
  Pitched<<<height, width>>>(texture, reversed, width);
  CU_LAUNCHED();
  const auto r = reversed.Read();
  for (int i = 0; i < width * height; ++i) Same("pitched", i, r[i], rows[i / width * width + width - 1 - i % width]);

  // Destroyed while the kernel that reads it waits in the stream.
  Buffer<short> later(width * height);
  cudaStream_t stream;
  CU(cudaStreamCreate(&stream));
  CU(cudaLaunchHostFunc(
      stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }, nullptr));
  Pitched<<<height, width, 0, stream>>>(texture, later, width);
  CU(cudaDestroyTextureObject(texture));
  CU(cudaDestroyTextureObject(0));
  CU(cudaDestroySurfaceObject(0));
  CU(cudaStreamSynchronize(stream));
  const auto l = later.Read();
  for (int i = 0; i < width * height; ++i) Same("destroyed", i, l[i], r[i]);

  std::vector<float> layers(20 * 5);
  for (int i = 0; i < 100; ++i) layers[i] = i * 1.5f;
  const cudaArray_t stack = MakeArray(layers, 20, 0, 5, cudaArrayLayered);
  Buffer<float> picked(100);
  Layered<<<5, 20>>>(MakeTexture(stack, cudaFilterModePoint, cudaAddressModeClamp, false), picked, 20);
  CU_LAUNCHED();
  const auto p = picked.Read();
  for (int i = 0; i < 100; ++i) Same("layered", i, p[i], layers[i]);
  cudaChannelFormatDesc format;
  cudaExtent extent;
  unsigned flags = 0;
  CU(cudaArrayGetInfo(&format, &extent, &flags, stack));
  True("array info", format.x == 32 && format.f == cudaChannelFormatKindFloat && extent.width == 20 &&
                         extent.depth == 5 && (flags & cudaArrayLayered));
  return Verdict();
}
