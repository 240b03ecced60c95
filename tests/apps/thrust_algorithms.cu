// Thrust: sort, scan, reduce, transform, unique, reduce by key, stable sort of pairs, on odd sizes.
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

#include <algorithm>
#include <numeric>

#include "app.h"

struct Square {
  __host__ __device__ double operator()(int v) const { return static_cast<double>(v) * v; }
};

int main() {
  const int n = 50'021;
  std::vector<int> keys(n), values(n);
  Random random(51);
  for (int i = 0; i < n; ++i) keys[i] = static_cast<int>(random.Next() % 9999) - 5000, values[i] = i;
  thrust::device_vector<int> dk(keys.begin(), keys.end()), dv(n);
  thrust::sequence(dv.begin(), dv.end());
  Same("reduce", 0, thrust::reduce(dk.begin(), dk.end()), std::accumulate(keys.begin(), keys.end(), 0));
  const double squares = thrust::transform_reduce(dk.begin(), dk.end(), Square(), 0.0, thrust::plus<double>());
  double want = 0;
  for (int k : keys) want += static_cast<double>(k) * k;
  Same("transform_reduce", 0, squares, want);
  thrust::device_vector<int> scanned(n);
  thrust::exclusive_scan(dk.begin(), dk.end(), scanned.begin(), 3);
  std::vector<int> got(n), order(n);
  thrust::copy(scanned.begin(), scanned.end(), got.begin());
  for (int i = 0, sum = 3; i < n; sum += keys[i++]) Same("scan", i, got[i], sum);

  thrust::stable_sort_by_key(dk.begin(), dk.end(), dv.begin());
  std::stable_sort(values.begin(), values.end(), [&](int a, int b) { return keys[a] < keys[b]; });
  thrust::copy(dv.begin(), dv.end(), got.begin());
  for (int i = 0; i < n; ++i) Same("stable sort", i, got[i], values[i]);

  thrust::device_vector<int> unique_keys(n), counts(n), ones(n, 1);
  const auto ends = thrust::reduce_by_key(dk.begin(), dk.end(), ones.begin(), unique_keys.begin(), counts.begin());
  std::vector<int> sorted = keys;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  Same("groups", 0, static_cast<long>(ends.first - unique_keys.begin()), static_cast<long>(sorted.size()));
  Same("counted", 0, thrust::reduce(counts.begin(), ends.second), n);
  const auto end = thrust::unique(dk.begin(), dk.end());
  Same("unique", 0, static_cast<long>(end - dk.begin()), static_cast<long>(sorted.size()));

  thrust::device_vector<float> floats(1111);
  std::vector<float> host(1111);
  for (auto& f : host) f = random.Uniform(-5, 5);
  floats = host;
  thrust::sort(floats.begin(), floats.end(), thrust::greater<float>());
  std::sort(host.begin(), host.end(), std::greater<float>());
  for (std::size_t i = 0; i < host.size(); ++i) Same("float sort", i, static_cast<float>(floats[i]), host[i]);
  return Verdict();
}
