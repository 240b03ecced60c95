// The other half of separate_compilation.cu.
__device__ int g_shared_counter = 1000;
__constant__ float kShared[4];

static __device__ float Local(float x) { return x - 1; }
__device__ float Curve(float x) { return x * x; }
static __device__ float Triple(float x) { return x * 3; }
__device__ float (*g_picked)(float) = Triple;

struct Base {
  __device__ virtual float Value(float x) const = 0;
};
struct Other : Base {
  float scale;
  __device__ explicit Other(float s) : scale(s) {}
  __device__ float Value(float x) const override { return scale * x; }
};
__device__ Base* MakeOther(float scale) { return new Other(scale); }

__global__ void OtherKernel(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = Local(i) + kShared[3];
  atomicAdd(&g_shared_counter, 1);
}
void LaunchOther(float* out, int n) { OtherKernel<<<3, 128>>>(out, n); }
