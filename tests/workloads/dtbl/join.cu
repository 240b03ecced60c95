// JOIN (Diamos et al.): inner join of two relations. Three kernels: for each tuple of the right relation, where its key
// begins and ends in the left one, which is in the order of its keys; the places of its pairs in the result, by a scan;
// and the pairs themselves, which are the nested work. The result has one order, whatever the form. Not as there: the
// left relation is searched as a whole, not by partitions; and the right one is in no order, because neighbouring
// threads would have equal keys otherwise, and equal work.
#include "dtbl/program.h"

constexpr int kThreads = 128, kChildThreads = 128, kScanThreads = 256;

struct Pair {
  int left, right;  ///< places in the relations
};

/// Elements of sorted `keys` that are less than `key`.
__device__ inline int Below(const int* keys, int count, int key) {
  int low = 0, high = count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (keys[middle] < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

__global__ void FindBounds(const int* left, int left_count, const int* right, int right_count, int* begins,
                           int* counts) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= right_count) return;
  begins[i] = Below(left, left_count, right[i]);
  counts[i] = Below(left, left_count, right[i] + 1) - begins[i];
}

/// Exclusive sums, and behind the last one the sum of all. One CTA: each thread has a part of its own.
__global__ void Scan(const int* counts, int* sums, int count) {
  __shared__ int parts[kScanThreads];
  const int each = (count + kScanThreads - 1) / kScanThreads;
  const int begin = min(count, static_cast<int>(threadIdx.x) * each), end = min(count, begin + each);
  int sum = 0;
#pragma unroll 1
  for (int i = begin; i < end; ++i) sum += counts[i];
  parts[threadIdx.x] = sum;
  for (int distance = 1; distance < kScanThreads; distance *= 2) {
    __syncthreads();
    const int before = threadIdx.x >= distance ? parts[threadIdx.x - distance] : 0;
    __syncthreads();
    parts[threadIdx.x] += before;
  }
  sum = parts[threadIdx.x] - sum;
#pragma unroll 1
  for (int i = begin; i < end; ++i) {
    sums[i] = sum;
    sum += counts[i];
  }
  if (threadIdx.x == kScanThreads - 1) sums[count] = sum;
}

__global__ void EmitPairs(Pair* pairs, int left, int right, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) pairs[i] = {left + i, right};
}

template <Form kForm>
__global__ void Emit(const int* begins, const int* counts, const int* sums, int right_count, Pair* pairs,
                     Nesting nesting) {
  const int right = blockIdx.x * kThreads + threadIdx.x;
  if (right >= right_count) return;
  const int left = begins[right], count = counts[right];
  if constexpr (kForm == Form::kCdp) {
    if (count >= nesting.threshold) {
      LaunchChild<EmitPairs, kChildThreads>(nesting, count, pairs + sums[right], left, right, count);
      return;
    }
  }
  for (int i = 0; i < count; ++i) pairs[sums[right] + i] = {left + i, right};
}

/// The sum of twelve uniform numbers is normal enough: the deviation is an eighth of the range, so that the most
/// frequent key is hundreds of times as frequent as the least frequent one.
std::vector<int> Keys(int count, int range, bool gaussian, std::uint64_t seed) {
  Random random(seed);
  std::vector<int> keys(count);
  for (int& key : keys) {
    long sum = 0;
    for (int i = 0; i < 12; ++i) sum += random.Next() % 65536;
    const long normal = range / 2 + (sum - 6 * 65536) * range / (8 * 65536);
    key = gaussian ? static_cast<int>(std::clamp(normal, 0l, range - 1l)) : static_cast<int>(random.Next() % range);
  }
  return keys;
}

/// By lists of the places of each key.
std::vector<int> JoinOnHost(const std::vector<int>& left, const std::vector<int>& right, int range, Program& program) {
  std::vector<std::vector<int>> places(range);
  for (std::size_t i = 0; i < left.size(); ++i) places[left[i]].push_back(static_cast<int>(i));
  std::vector<int> flattened;
  for (std::size_t i = 0; i < right.size(); ++i) {
    program.Nested(static_cast<int>(places[right[i]].size()), kChildThreads);
    for (const int place : places[right[i]]) flattened.insert(flattened.end(), {place, static_cast<int>(i)});
  }
  return flattened;
}

int main(int argc, char** argv) {
  Program program(
      "join", "inner join of two relations", argc, argv,
      {{"uniform", 64, "all keys equally frequent"}, {"gaussian", 64, "normally distributed keys"}},
      {{"left", 8192, 204800, 1, 1 << 24}, {"right", 1024, 204800, 1, 1 << 24}, {"keys", 64, 1024, 1, 1 << 20}});
  const int right_count = program["right"], range = program["keys"], ctas = Ctas(right_count, kThreads);
  const bool gaussian = program.input() == "gaussian";
  std::vector<int> host_left = Keys(program["left"], range, gaussian, program.seed());
  std::sort(host_left.begin(), host_left.end());
  const std::vector<int> host_right = Keys(right_count, range, gaussian, program.seed() + 1000);
  const DeviceArray<int> left(host_left), right(host_right), begins(right_count), counts(right_count),
      sums(right_count + 1);
  const Nesting nesting = program.Nest(right_count);

  FindBounds<<<ctas, kThreads>>>(left, program["left"], right, right_count, begins, counts);
  program.Launched();
  Scan<<<1, kScanThreads>>>(counts, sums, right_count);
  program.Launched();
  const int pair_count = sums.Read().back();
  if (pair_count < 0) Refuse("join: more than 2147483647 pairs");
  const DeviceArray<Pair> pairs(pair_count);
  const auto emit = program.flat() ? Emit<Form::kFlat> : Emit<Form::kCdp>;
  emit<<<ctas, kThreads>>>(begins, counts, sums, right_count, pairs, nesting);
  program.Launched();

  std::vector<int> flattened;
  for (const Pair& pair : pairs.Read()) flattened.insert(flattened.end(), {pair.left, pair.right});
  program.Compare("pair", flattened, JoinOnHost(host_left, host_right, range, program));
  program.Say(pair_count, " pairs of ", program["left"], " and ", right_count, " tuples");
  return program.Finish();
}
