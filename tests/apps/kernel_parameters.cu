// Kernel parameters of many shapes: scalars of all widths, structs by value (odd sizes), arrays indexed at run time, 4
// KB.
#include "app.h"

struct Odd3 {
  unsigned char b[3];
};
struct Nested {
  char c;
  double d;
  struct {
    short s[3];
    float* p;
  } in;
};
struct Empty {};
struct alignas(16) Vector {
  float x, y, z, w;
};
struct Large {
  int v[1000];
};

__global__ void Many(signed char a, unsigned short b, Odd3 odd, bool flag, long long wide, float f, Nested nested,
                     Empty, double d, Vector v, float* out) {
  out[0] = a, out[1] = b, out[2] = odd.b[0] + odd.b[1] * 256 + odd.b[2] * 65536, out[3] = flag, out[4] = wide,
  out[5] = f;
  out[6] = nested.c, out[7] = nested.d, out[8] = nested.in.s[0] + nested.in.s[1] + nested.in.s[2], *nested.in.p = 77;
  out[10] = d, out[11] = v.x + v.y * 10 + v.z * 100 + v.w * 1000;
}
__global__ void Indexed(Large large, int* out, int stride) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 1000) out[i] = large.v[(i * stride) % 1000];
}
// A parameter whose address is taken and which is changed: a private copy.
__device__ __noinline__ int Consume(Large* p, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += p->v[i]++;
  return sum + p->v[0];
}
__global__ void Changed(Large large, int* out) {
  large.v[0] += threadIdx.x;
  out[threadIdx.x] = Consume(&large, 20);
}

int main() {
  Buffer<float> out(12);
  const Nested nested{'n', 2.5, {{1, -2, 30}, static_cast<float*>(out) + 9}};
  Many<<<1, 1>>>(-5, 60000, Odd3{{1, 2, 3}}, true, 1LL << 40, 0.125f, nested, Empty{}, -1e10, Vector{1, 2, 3, 4}, out);
  CU_LAUNCHED();
  const auto got = out.Read();
  const float want[12] = {-5, 60000, 1 + 512 + 196608, 1, float(1LL << 40), 0.125f, 'n', 2.5f, 29, 77, -1e10f, 4321};
  for (int i = 0; i < 12; ++i) Same("many", i, got[i], want[i]);

  Large large;
  for (int i = 0; i < 1000; ++i) large.v[i] = i * i;
  Buffer<int> values(1000);
  Indexed<<<8, 128>>>(large, values, 7);
  CU_LAUNCHED();
  const auto v = values.Read();
  for (int i = 0; i < 1000; ++i) Same("indexed", i, v[i], large.v[i * 7 % 1000]);

  Changed<<<1, 40>>>(large, values);
  CU_LAUNCHED();
  const auto c = values.Read();
  int sum = 0;
  for (int i = 0; i < 20; ++i) sum += large.v[i];
  for (int t = 0; t < 40; ++t) Same("changed", t, c[t], sum + t + (0 + t + 1));

  // The same launch through cudaLaunchKernel and an array of pointers.
  int stride = 3;
  int* pointer = values;
  void* arguments[] = {&large, &pointer, &stride};
  CU(cudaLaunchKernel(reinterpret_cast<const void*>(&Indexed), dim3(8), dim3(128), arguments, 0, nullptr));
  CU_LAUNCHED();
  const auto w = values.Read();
  for (int i = 0; i < 1000; ++i) Same("pointers", i, w[i], large.v[i * 3 % 1000]);
  return Verdict();
}
