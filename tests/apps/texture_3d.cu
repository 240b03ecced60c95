// 3D, layered 2D and cube-map textures.
#include "texture.h"

__global__ void Sample3D(cudaTextureObject_t texture, const float4* at, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex3D<float>(texture, at[i].x, at[i].y, at[i].z);
}
__global__ void Layers(cudaTextureObject_t texture, int* out, int width, int height) {
  const int x = threadIdx.x, y = blockIdx.x, layer = blockIdx.y;
  out[(layer * height + y) * width + x] = tex2DLayered<int>(texture, x, y, layer);
}
__global__ void Cube(cudaTextureObject_t texture, const float4* at, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = texCubemap<float>(texture, at[i].x, at[i].y, at[i].z);
}

int main() {
  const int w = 11, h = 7, d = 5, n = 1500;
  std::vector<float> volume(w * h * d);
  for (std::size_t i = 0; i < volume.size(); ++i) volume[i] = i * 29 % 32;
  const cudaArray_t array = MakeArray(volume, w, h, d);
  Random random(29);
  std::vector<float4> at(n);
  const auto coordinate = [&](int size) {
    return (static_cast<int>(random.Next() % (2 * size * 32)) - size * 16 + 0.5f) / 32;
  };
  for (auto& p : at) p = make_float4(coordinate(w), coordinate(h), coordinate(d), 0);
  Buffer<float4> dat(at);
  Buffer<float> out(n);
  const auto texel = [&](long x, long y, long z) {
    return volume[(Address(z, d, cudaAddressModeClamp) * h + Address(y, h, cudaAddressModeClamp)) * w +
                  Address(x, w, cudaAddressModeClamp)];
  };
  Sample3D<<<12, 128>>>(MakeTexture(array, cudaFilterModePoint, cudaAddressModeClamp, false), dat, out, n);
  CU_LAUNCHED();
  auto got = out.Read();
  for (int i = 0; i < n; ++i)
    Same("point", i, got[i], texel(std::floor(at[i].x), std::floor(at[i].y), std::floor(at[i].z)));
  Sample3D<<<12, 128>>>(MakeTexture(array, cudaFilterModeLinear, cudaAddressModeClamp, false), dat, out, n);
  CU_LAUNCHED();
  got = out.Read();
  for (int i = 0; i < n; ++i) {
    const double x = at[i].x - 0.5, y = at[i].y - 0.5, z = at[i].z - 0.5;
    double want = 0;
    for (int corner = 0; corner < 8; ++corner) {
      const double fx = x - std::floor(x), fy = y - std::floor(y), fz = z - std::floor(z);
      want += (corner & 1 ? fx : 1 - fx) * (corner & 2 ? fy : 1 - fy) * (corner & 4 ? fz : 1 - fz) *
              texel(long(std::floor(x)) + (corner & 1), long(std::floor(y)) + (corner >> 1 & 1),
                    long(std::floor(z)) + (corner >> 2));
    }
    Near("linear", i, got[i], want, 0, 32 * 3.0 / 256);
  }

  const int layers = 4;
  std::vector<int> stack(w * h * layers);
  for (std::size_t i = 0; i < stack.size(); ++i) stack[i] = static_cast<int>(i) * 1001 - 7;
  Buffer<int> picked(stack.size());
  Layers<<<dim3(h, layers), w>>>(
      MakeTexture(MakeArray(stack, w, h, layers, cudaArrayLayered), cudaFilterModePoint, cudaAddressModeClamp, false),
      picked, w, h);
  CU_LAUNCHED();
  const auto p = picked.Read();
  for (std::size_t i = 0; i < stack.size(); ++i) Same("layered", i, p[i], stack[i]);

  // Cube faces hold their number; a direction picks the face of its largest component.
  const int side = 4;
  std::vector<float> faces(side * side * 6);
  for (std::size_t i = 0; i < faces.size(); ++i)
    faces[i] = static_cast<float>(i / (side * side)) * 100 + i % (side * side);
  const cudaArray_t cube = MakeArray(faces, side, side, 6, cudaArrayCubemap);
  for (auto& v : at) v = make_float4(random.Uniform(-1, 1), random.Uniform(-1, 1), random.Uniform(-1, 1), 0);
  Buffer<float4> directions(at);
  Cube<<<12, 128>>>(MakeTexture(cube, cudaFilterModePoint, cudaAddressModeClamp, true), directions, out, n);
  CU_LAUNCHED();
  got = out.Read();
  for (int i = 0; i < n; ++i) {
    const float x = at[i].x, y = at[i].y, z = at[i].z, ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
    const float m = std::fmax(ax, std::fmax(ay, az));
    int face;
    float s, t;
    if (m == ax) face = x > 0 ? 0 : 1, s = x > 0 ? -z : z, t = -y;
    else if (m == ay) face = y > 0 ? 2 : 3, s = x, t = y > 0 ? z : -z;
    else face = z > 0 ? 4 : 5, s = z > 0 ? x : -x, t = -y;
    const float u = (s / m + 1) / 2 * side, v = (t / m + 1) / 2 * side;
    if (std::fabs(u - std::rint(u)) < 1e-3f || std::fabs(v - std::rint(v)) < 1e-3f) continue;  // on a texel border
    Same("cube", i, got[i], faces[(face * side + static_cast<int>(v)) * side + static_cast<int>(u)]);
  }
  return Verdict();
}
