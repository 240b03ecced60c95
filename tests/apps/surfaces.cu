// Surfaces: reads and writes of 1D, 2D, 3D and layered arrays, boundary modes, a texture reading what a surface wrote.
#include "texture.h"

cudaSurfaceObject_t MakeSurface(cudaArray_t array) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface = 0;
  CU(cudaCreateSurfaceObject(&surface, &resource));
  return surface;
}
__global__ void Flip(cudaSurfaceObject_t in, cudaSurfaceObject_t out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  uchar4 v;
  surf2Dread(&v, in, x * 4, y);
  surf2Dwrite(make_uchar4(v.w, v.z, v.y, v.x), out, (width - 1 - x) * 4, y);
}
__global__ void Edges(cudaSurfaceObject_t surface, int* out, int width) {
  const int x = static_cast<int>(threadIdx.x) - 4;
  out[threadIdx.x] = surf1Dread<int>(surface, x * 4, cudaBoundaryModeClamp);
  out[threadIdx.x + 64] = surf1Dread<int>(surface, x * 4, cudaBoundaryModeZero);
  if (x >= width) surf1Dwrite(-1, surface, x * 4, cudaBoundaryModeZero);  // dropped
}
__global__ void Volume(cudaSurfaceObject_t surface, int w, int h) {
  const int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
  surf3Dwrite(float(x + 10 * y + 100 * z), surface, x * 4, y, z);
}
__global__ void Layer(cudaSurfaceObject_t surface) {
  float2 v;
  surf2DLayeredread(&v, surface, threadIdx.x * 8, blockIdx.x, blockIdx.y);
  surf2DLayeredwrite(make_float2(v.y * 2, v.x), surface, threadIdx.x * 8, blockIdx.x, blockIdx.y);
}
__global__ void ReadBack(cudaTextureObject_t texture, float* out, int w, int h) {
  out[(blockIdx.y * h + blockIdx.x) * w + threadIdx.x] = tex3D<float>(texture, threadIdx.x, blockIdx.x, blockIdx.y);
}
template <class T>
std::vector<T> ReadArray(cudaArray_t array, int width, int height, int depth) {
  std::vector<T> data(width * height * depth);
  cudaMemcpy3DParms copy = {};
  copy.srcArray = array;
  copy.dstPtr = make_cudaPitchedPtr(data.data(), width * sizeof(T), width, height);
  copy.extent = make_cudaExtent(width, height, depth);
  copy.kind = cudaMemcpyDeviceToHost;
  CU(cudaMemcpy3D(&copy));
  return data;
}

int main() {
  const int w = 37, h = 21;
  std::vector<uchar4> image(w * h);
  for (int i = 0; i < w * h; ++i) image[i] = make_uchar4(i, i >> 3, i * 5, 255 - i);
  const cudaArray_t in = MakeArray(image, w, h, 0, cudaArraySurfaceLoadStore),
                    out = MakeArray(image, w, h, 0, cudaArraySurfaceLoadStore);
  Flip<<<dim3(3, 3), dim3(16, 8)>>>(MakeSurface(in), MakeSurface(out), w, h);
  CU_LAUNCHED();
  const auto flipped = ReadArray<uchar4>(out, w, h, 1);
  for (int i = 0; i < w * h; ++i) {
    const uchar4 a = image[i], b = flipped[i / w * w + w - 1 - i % w];
    True("flip", a.x == b.w && a.y == b.z && a.z == b.y && a.w == b.x);
  }

  std::vector<int> line(48);
  for (int i = 0; i < 48; ++i) line[i] = i + 100;
  const cudaArray_t row = MakeArray(line, 48, 0, 0, cudaArraySurfaceLoadStore);
  Buffer<int> edges(128);
  Edges<<<1, 64>>>(MakeSurface(row), edges, 48);
  CU_LAUNCHED();
  const auto e = edges.Read();
  for (int t = 0; t < 64; ++t) {
    const int x = t - 4, clamped = x < 0 ? 0 : x > 47 ? 47 : x;
    Same("clamp", t, e[t], line[clamped]), Same("zero", t, e[64 + t], x == clamped ? line[x] : 0);
  }

  const std::vector<float> zeros(8 * 6 * 5);
  const cudaArray_t volume = MakeArray(zeros, 8, 6, 5, cudaArraySurfaceLoadStore);
  Volume<<<dim3(6, 5), 8>>>(MakeSurface(volume), 8, 6);
  Buffer<float> through(8 * 6 * 5);
  ReadBack<<<dim3(6, 5), 8>>>(MakeTexture(volume, cudaFilterModePoint, cudaAddressModeClamp, false), through, 8, 6);
  CU_LAUNCHED();
  const auto v = ReadArray<float>(volume, 8, 6, 5), t = through.Read();
  for (int i = 0; i < 240; ++i)
    Same("volume", i, v[i], float(i % 8 + 10 * (i / 8 % 6) + 100 * (i / 48))), Same("texture", i, t[i], v[i]);

  std::vector<float2> pairs(9 * 4 * 3);
  for (int i = 0; i < 108; ++i) pairs[i] = make_float2(i, i * 0.5f);
  const cudaArray_t layered = MakeArray(pairs, 9, 4, 3, cudaArrayLayered | cudaArraySurfaceLoadStore);
  Layer<<<dim3(4, 3), 9>>>(MakeSurface(layered));
  CU_LAUNCHED();
  const auto l = ReadArray<float2>(layered, 9, 4, 3);
  for (int i = 0; i < 108; ++i) Same("layer x", i, l[i].x, float(i)), Same("layer y", i, l[i].y, float(i));
  return Verdict();
}
