// For NVRTC, old and new, without headers: what its front end and code generator write.
__constant__ float coefficients[16] = {1, 2, 3};
__device__ int counter = 7;
__device__ int* pointer = &counter;
__device__ const char* const names[] = {"one", "two"};

struct Shape {
  __device__ virtual float Area() const = 0;
};
struct Square : Shape {
  float side;
  __device__ explicit Square(float s) : side(s) {}
  __device__ float Area() const override { return side * side; }
};
__device__ __noinline__ int Fibonacci(int n) { return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2); }
__device__ __noinline__ int Add(int a, int b) { return a + b; }
__device__ __noinline__ int Sub(int a, int b) { return a - b; }
__device__ int (*operations[2])(int, int) = {Add, Sub};

template <typename T>
__global__ void Memory(T* out, const T* __restrict__ in, int n) {
  __shared__ T tile[32][33];
  extern __shared__ float4 dynamic[];
  float local[16];
  for (int i = 0; i < 16; ++i) local[i] = coefficients[(i + n) & 15];
  tile[threadIdx.y][threadIdx.x] = in[n] + static_cast<T>(local[n & 15]);
  dynamic[threadIdx.x] = make_float4(1, 2, 3, 4);
  __syncthreads();
  out[0] = tile[threadIdx.x][threadIdx.y] + static_cast<T>(dynamic[n].x) + static_cast<T>(*pointer) + __ldg(&in[1]);
  out[1] = static_cast<T>(names[n & 1][0]);
  atomicAdd(&counter, 1);
  atomicCAS(&counter, 3, 4);
  __threadfence();
}
template __global__ void Memory<float>(float*, const float*, int);
template __global__ void Memory<long long>(long long*, const long long*, int);

extern "C" __global__ void __launch_bounds__(128, 2) Control(float* out, int n, int kind) {
  Square square(n);
  Shape* volatile shape = &square;
  out[0] = shape->Area();
  switch (n) {
    case 0: out[1] = 3; break;
    case 1: out[2] = sinf(out[1]); break;
    case 2: out[3] = out[1] * 5; break;
    case 3: out[4] = out[3] / out[2]; break;
    case 4: out[5] = sqrtf(out[1]); break;
    case 5: out[6] = __expf(out[5]); break;
    default: asm volatile("trap;");
  }
  for (int i = 0; i < n; ++i) {
    if (i == kind) continue;
    out[i] += Fibonacci(i) + operations[i & 1](i, n);
  }
  out[8] = __int_as_float(__popc(n) + __clz(kind) + __ffs(n) + __brev(n) + __mulhi(n, kind) + n / kind + n % kind);
  printf("%d %f %s\n", n, out[0], "text");
}

extern "C" __global__ void Warp(int* out, int v) {
  out[0] = __shfl_xor_sync(~0u, v, 16) + __shfl_up_sync(~0u, v, 1) + __ballot_sync(~0u, v) + __any_sync(~0u, v) +
           __all_sync(~0u, v);
  out[1] = __syncthreads_count(v) + __syncthreads_and(v) + clock() + warpSize;
  unsigned r;
  asm("{ .reg .pred p; setp.lt.u32 p, %1, 5; @p bra DONE; mov.u32 %0, 7; DONE: mov.u32 %0, 9; }" : "=r"(r) : "r"(v));
  out[2] = r;
}
