// For clang without CUDA headers: what its NVPTX back-end writes.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __noinline__ __attribute__((noinline))
typedef float float4 __attribute__((ext_vector_type(4)));
__device__ int counter = 3;
__constant__ float weights[4] = {1, 2, 3.5f, -4};
__device__ const char* names[2] = {"zero", "one"};
__device__ __noinline__ int Twice(int x) { return x * 2; }
__device__ __noinline__ int Square(int x) { return x * x; }
__device__ int (*table[2])(int) = {Twice, Square};
struct Pair {
  long long a;
  double b;
};
__device__ __noinline__ Pair Swap(Pair in, float x) {
  return {static_cast<long long>(in.b), static_cast<double>(in.a) + x};
}
struct Base {
  __device__ virtual int Value(int x) { return x; }
};
struct Derived : Base {
  __device__ int Value(int x) override { return x + 1; }
};
extern "C" __global__ void Kernel(float4* out, const float4* in, int n, Pair pair, Base* object, bool flag,
                                  short half) {
  __shared__ float tile[256];
  const int i = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
  tile[i & 255] = in[i].x * weights[i & 3];
  __syncthreads();
  float4 v = in[i] * in[i + 1] + tile[255 - (i & 255)];
  switch (n) {
    case 0: v.x += 1; break;
    case 1: v.y *= names[1][n]; break;
    case 2: v.z -= counter; break;
    case 3: v.w = v.x * 3; break;
    case 4: v.w = v.x / v.y; break;
    case 5: v = v.wzyx; break;
  }
  pair = Swap(pair, v.x);
  v.x +=
      static_cast<float>(pair.a) + static_cast<float>(pair.b) + table[n & 1](n) + object->Value(n) + (flag ? half : 2);
  __nvvm_atom_add_gen_i(&counter, 1);
  volatile char local[32];
  for (int k = 0; k < n; ++k) local[k] = k;
  out[i] = v + local[n & 31];
  Derived derived;
  out[i + 1] = derived.Value(n);
}
