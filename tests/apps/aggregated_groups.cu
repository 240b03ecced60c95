// Aggregated groups (gridloom/agg_group.h): the typed form, the paper's form with a parameter buffer, groups that
// launch groups, errors. Without Gridloom the same program launches grids that are forgotten.
#include "app.h"
#include "gridloom/agg_group.h"

struct Pair {
  char tag;
  double weight;
};

__global__ void Fill(int* p, char tag, double value, Pair pair, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = static_cast<int>(value * pair.weight) + tag + pair.tag;
}
__global__ void Typed(int* p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  // The third argument is converted, as in a call.
  if (i < 64)
    gridloom::LaunchAggGroup(Fill, dim3((n + 31) / 32), dim3(32), 0, p + i * n, static_cast<char>(i), i, Pair{1, 2.0},
                             n);
}

__global__ void Add(int* sum, int value) { atomicAdd(sum, value); }
__global__ void WithBuffer(int* sum, int* status) {
  void* const buffer = cudaGetParameterBuffer(8, sizeof(int*) + sizeof(int));
  *static_cast<int**>(buffer) = sum;
  reinterpret_cast<int*>(static_cast<int**>(buffer) + 1)[0] = static_cast<int>(threadIdx.x);
  *status = cudaLaunchAggGroup(reinterpret_cast<void*>(Add), buffer, dim3(2, 2), dim3(4, 2, 1), 0);
}

__global__ void Shared(int* sum) {
  extern __shared__ int values[];
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned i = 0; i < blockDim.x; ++i) atomicAdd(sum, values[i]);
  }
}
__global__ void WithShared(int* sum) { gridloom::LaunchAggGroup(Shared, dim3(3), dim3(64), 64 * sizeof(int), sum); }

__global__ void Tree(int* count, int depth) {
  atomicAdd(count, 1);
  if (threadIdx.x < 2 && depth > 0) gridloom::LaunchAggGroup(Tree, dim3(1), dim3(2), 0, count, depth - 1);
}

__global__ void Nothing() {}
__global__ void Errors(int* out) {
  out[0] = gridloom::LaunchAggGroup(Nothing, dim3(1), dim3(2000), 0);  // more threads than a block can have
  out[1] = cudaGetLastError();
  out[2] = cudaGetLastError();
  out[3] = cudaLaunchAggGroup(reinterpret_cast<void*>(Nothing), nullptr, dim3(1), dim3(1), 0);
  out[4] = cudaLaunchAggGroup(reinterpret_cast<void*>(Nothing), nullptr, dim3(1), dim3(0), 0);
  out[5] = cudaGetLastError();
}

int main() {
  const int n = 100;
  Buffer<int> p(64 * n), sum(1), out(8);
  Typed<<<2, 32>>>(p, n);
  CU_LAUNCHED();
  const auto filled = p.Read();
  for (int i = 0; i < 64 * n; ++i) Same("typed", i, filled[i], 3 * (i / n) + 1);

  CU(cudaMemset(sum, 0, 4));
  WithBuffer<<<1, 10>>>(sum, out);
  CU_LAUNCHED();
  // NVIDIA's device runtime refuses every launch with a parameter buffer of the first form into a stream that is
  // forgotten.
  const bool refused = out.Read()[0] == cudaErrorInvalidValue;
  if (!refused) Same("with a buffer", 0, sum.Read()[0], 45 * 32);

  CU(cudaMemset(sum, 0, 4));
  WithShared<<<1, 5>>>(sum);
  CU_LAUNCHED();
  Same("shared memory", 0, sum.Read()[0], 5 * 3 * 63 * 64 / 2);

  CU(cudaMemset(sum, 0, 4));
  Tree<<<1, 2>>>(sum, 6);
  Same("tree", 0, sum.Read()[0], (2 << 7) - 2);  // no other synchronisation than the copy

  CU(cudaMemset(out, 0, 32));
  Errors<<<1, 1>>>(out);
  CU_LAUNCHED();
  const auto errors = out.Read();
  const int invalid = static_cast<int>(cudaErrorInvalidConfiguration);
  const int with_buffer = static_cast<int>(cudaErrorInvalidValue);
  const int want[] = {
      invalid, invalid, 0, refused ? with_buffer : 0, refused ? with_buffer : invalid, refused ? with_buffer : invalid};
  for (int i = 0; i < 6; ++i) Same("errors", i, errors[i], want[i]);
  return Verdict();
}
