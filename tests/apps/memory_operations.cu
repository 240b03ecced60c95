// Loads and stores of all widths and vectors, caching hints, volatile, unaligned structures by bytes, address spaces.
#include "app.h"

struct Out {
  float4 f4;
  double2 d2;
  short4 s4;
  uchar2 b2;
  longlong2 l2;
  unsigned hints[8];
};

__global__ void Kernel(const float4* f4, const double2* d2, const short4* s4, const uchar2* b2, const longlong2* l2,
                       const unsigned* u, Out* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Out o;
  const float4 f = f4[i];
  o.f4 = make_float4(f.w, f.z, f.y, f.x);
  const double2 d = d2[n - 1 - i];
  o.d2 = make_double2(d.y, d.x);
  o.s4 = s4[i ^ (i + 1 < n ? 1 : 0) ? i : 0];
  o.b2 = b2[i / 3];
  o.l2 = l2[i];
  o.hints[0] = __ldg(u + i), o.hints[1] = __ldcg(u + i), o.hints[2] = __ldca(u + i), o.hints[3] = __ldcs(u + i);
  o.hints[4] = __ldlu(u + i), o.hints[5] = __ldcv(u + i);
  asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(o.hints[6]) : "l"(u + i));
  asm volatile("prefetch.global.L2 [%0];" ::"l"(u + i));
  o.hints[7] = 0;
  __stcs(&out[i].hints[7], 5u);
  out[i] = o;
  __stwt(&out[i].hints[7], o.hints[0] + 1), __threadfence();
}
__device__ int g_global;
__constant__ int kConstant = 4;
__global__ void Spaces(unsigned* out) {
  __shared__ int shared[2];
  int local[2] = {1, static_cast<int>(threadIdx.x)};
  int* generic = threadIdx.x % 3 == 0 ? shared : threadIdx.x % 3 == 1 ? local : &g_global;
  out[threadIdx.x] = (__isShared(generic) ? 1 : 0) | (__isLocal(generic) ? 2 : 0) | (__isGlobal(generic) ? 4 : 0) |
                     (__isConstant(&kConstant) ? 8 : 0);
  // A store through a generic pointer of a different space per thread.
  shared[0] = 0;
  __syncthreads();
  if (threadIdx.x < 3) *generic = 40 + threadIdx.x;
  __syncthreads();
  out[threadIdx.x] |= shared[0] << 8 | local[0] << 16;
  if (static_cast<unsigned*>(__cvta_shared_to_generic(__cvta_generic_to_shared(shared))) !=
      reinterpret_cast<unsigned*>(shared))
    out[threadIdx.x] = 0;
}

int main() {
  const int n = 517;
  std::vector<float4> f4(n);
  std::vector<double2> d2(n);
  std::vector<short4> s4(n);
  std::vector<uchar2> b2(n);
  std::vector<longlong2> l2(n);
  std::vector<unsigned> u(n);
  for (int i = 0; i < n; ++i) {
    f4[i] = make_float4(i, i + 0.1f, i + 0.2f, i + 0.3f), d2[i] = make_double2(i * 3.5, -i),
    s4[i] = make_short4(i, -i, i * 2, 7);
    b2[i] = make_uchar2(i, i * 3), l2[i] = make_longlong2(i * 1000000007LL, -i), u[i] = i * 2654435761u;
  }
  Buffer<float4> df(f4);
  Buffer<double2> dd(d2);
  Buffer<short4> ds(s4);
  Buffer<uchar2> db(b2);
  Buffer<longlong2> dl(l2);
  Buffer<unsigned> du(u), dspaces(64);
  Buffer<Out> out(n);
  Kernel<<<(n + 63) / 64, 64>>>(df, dd, ds, db, dl, du, out, n);
  Spaces<<<1, 64>>>(dspaces);
  CU_LAUNCHED();
  const auto got = out.Read();
  for (int i = 0; i < n; ++i) {
    const Out& o = got[i];
    True("float4", o.f4.x == f4[i].w && o.f4.y == f4[i].z && o.f4.z == f4[i].y && o.f4.w == f4[i].x);
    True("double2", o.d2.x == d2[n - 1 - i].y && o.d2.y == d2[n - 1 - i].x);
    const short4 s = s4[i ^ (i + 1 < n ? 1 : 0) ? i : 0];
    True("short4", o.s4.x == s.x && o.s4.y == s.y && o.s4.z == s.z && o.s4.w == s.w);
    True("uchar2", o.b2.x == b2[i / 3].x && o.b2.y == b2[i / 3].y);
    True("longlong2", o.l2.x == l2[i].x && o.l2.y == l2[i].y);
    for (int k = 0; k < 8; ++k) Same("hints", i * 8 + k, o.hints[k], u[i] + (k == 7));
  }
  const auto spaces = dspaces.Read();
  for (unsigned t = 0; t < 64; ++t) {
    const unsigned kind = t % 3 == 0 ? 1 : t % 3 == 1 ? 2 : 4, shared = 40, local = t == 1 ? 41 : 1;
    Same("spaces", t, spaces[t], kind | 8 | shared << 8 | local << 16);
  }
  return Verdict();
}
