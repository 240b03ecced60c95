// Compiled with -O3 -march=native; cores are shared out with OpenMP.
#include "tests/bench/native.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace bench::native {

void Copy(const Floats& in, Floats& out, int threads) {
  const int n = static_cast<int>(in.size());
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int i = 0; i < n; ++i) out[i] = in[i];
}

void VectorAdd(const Floats& a, const Floats& b, Floats& c, int threads) {
  const int n = static_cast<int>(a.size());
#pragma omp parallel for simd num_threads(threads) schedule(static)
  for (int i = 0; i < n; ++i) c[i] = a[i] + b[i];
}

void FmaLoop(Floats& out, int rounds, int threads) {
  const int n = static_cast<int>(out.size());
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int i = 0; i < n; ++i) {
    float a = i * 1e-6f, b = a + 1, c = a + 2, d = a + 3;
    for (int k = 0; k < rounds; ++k) {
      a = std::fma(a, 0.999f, 0.5f);
      b = std::fma(b, 0.998f, 0.25f);
      c = std::fma(c, 0.997f, 0.125f);
      d = std::fma(d, 0.996f, 0.0625f);
    }
    out[i] = a + b + c + d;
  }
}

void Stencil(const Floats& in, Floats& out, int width, int height, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int y = 1; y < height - 1; ++y) {
    const float* __restrict row = &in[static_cast<std::size_t>(y) * width];
    float* __restrict to = &out[static_cast<std::size_t>(y) * width];
    for (int x = 1; x < width - 1; ++x)
      to[x] = 0.5f * row[x] + 0.125f * (row[x - 1] + row[x + 1] + row[x - width] + row[x + width]);
  }
}

void MatMul(const Floats& a, const Floats& b, Floats& c, int n, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int y = 0; y < n; ++y) {
    float* __restrict row = &c[static_cast<std::size_t>(y) * n];
    std::memset(row, 0, n * sizeof(float));
    for (int k = 0; k < n; ++k) {
      const float left = a[static_cast<std::size_t>(y) * n + k];
      const float* __restrict right = &b[static_cast<std::size_t>(k) * n];
      for (int x = 0; x < n; ++x) row[x] = std::fma(left, right[x], row[x]);
    }
  }
}

void Reduce(const Ints& in, Ints& out, int threads) {
  const int n = static_cast<int>(in.size());
  const int* const values = in.data();  // through the vector gcc gathers, ten times as slowly
  int sum = 0;
#pragma omp parallel for simd num_threads(threads) schedule(static) reduction(+ : sum)
  for (int i = 0; i < n; ++i) sum += values[i];
  out[0] = sum;
}

void Histogram(const Words& in, Words& out, int threads) {
  const int n = static_cast<int>(in.size());
  std::fill(out.begin(), out.end(), 0);
#pragma omp parallel num_threads(threads)
  {
    std::uint32_t bins[256] = {};
#pragma omp for schedule(static)
    for (int i = 0; i < n; ++i) ++bins[in[i] & 255];
#pragma omp critical
    for (int k = 0; k < 256; ++k) out[k] += bins[k];
  }
}

void NBody(const Floats& px, const Floats& py, const Floats& pz, const Floats& mass, Floats& ax, Floats& ay, Floats& az,
           int threads) {
  const int n = static_cast<int>(px.size());
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int i = 0; i < n; ++i) {
    const float x = px[i], y = py[i], z = pz[i];
    float fx = 0, fy = 0, fz = 0;
#pragma omp simd reduction(+ : fx, fy, fz)
    for (int k = 0; k < n; ++k) {
      const float dx = px[k] - x, dy = py[k] - y, dz = pz[k] - z;
      const float distance2 = dx * dx + dy * dy + dz * dz + 0.01f;
      const float inverse = 1.0f / std::sqrt(distance2), factor = mass[k] * inverse * inverse * inverse;
      fx += dx * factor, fy += dy * factor, fz += dz * factor;
    }
    ax[i] = fx, ay[i] = fy, az[i] = fz;
  }
}

namespace {
float Normal(float d) {
  const float k = 1.0f / (1.0f + 0.2316419f * std::fabs(d));
  const float tail =
      0.39894228f * std::exp(-0.5f * d * d) *
      (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
  return d > 0 ? 1.0f - tail : tail;
}
}  // namespace

void BlackScholes(const Floats& price, const Floats& strike, const Floats& years, Floats& call, Floats& put,
                  int threads) {
  const int n = static_cast<int>(price.size());
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int i = 0; i < n; ++i) {
    const float rate = 0.02f, volatility = 0.3f, s = price[i], x = strike[i], t = years[i], root = std::sqrt(t);
    const float d1 = (std::log(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root),
                d2 = d1 - volatility * root;
    const float n1 = Normal(d1), n2 = Normal(d2), discount = x * std::exp(-rate * t);
    call[i] = s * n1 - discount * n2;
    put[i] = discount * (1.0f - n2) - s * (1.0f - n1);
  }
}

void SpMV(const Ints& starts, const Ints& columns, const Floats& values, const Floats& x, Floats& y, int threads) {
  const int rows = static_cast<int>(y.size());
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int row = 0; row < rows; ++row) {
    float sum = 0;
    for (int k = starts[row]; k < starts[row + 1]; ++k) sum = std::fma(values[k], x[columns[k]], sum);
    y[row] = sum;
  }
}

void Bfs(const Ints& starts, const Ints& edges, Ints& distance, int threads) {
  const int n = static_cast<int>(distance.size());
  std::fill(distance.begin(), distance.end(), -1);
  distance[0] = 0;
  int changed = 1;
  for (int level = 0; changed; ++level) {
    changed = 0;
    // Threads may find the same vertex; both store the same value.
#pragma omp parallel for num_threads(threads) schedule(static) reduction(| : changed)
    for (int v = 0; v < n; ++v) {
      if (__atomic_load_n(&distance[v], __ATOMIC_RELAXED) != level) continue;
      for (int k = starts[v]; k < starts[v + 1]; ++k) {
        int* to = &distance[edges[k]];
        if (__atomic_load_n(to, __ATOMIC_RELAXED) < 0) {
          __atomic_store_n(to, level + 1, __ATOMIC_RELAXED);
          changed = 1;
        }
      }
    }
  }
}

void BitonicSort(const Words& in, Words& keys, int threads) {
  const int n = static_cast<int>(in.size());
  keys = in;
  std::uint32_t* data = keys.data();
  for (int size = 2; size <= n; size *= 2)
    for (int stride = size / 2; stride > 0; stride /= 2) {
#pragma omp parallel for num_threads(threads) schedule(static)
      for (int t = 0; t < n / 2; ++t) {
        const int i = 2 * t - (t & (stride - 1)), j = i + stride;
        const std::uint32_t a = data[i], b = data[j];
        const bool swap = (a > b) == ((i & size) == 0);
        data[i] = swap ? b : a, data[j] = swap ? a : b;
      }
    }
}

void Collatz(Words& out, int threads) {
  const int n = static_cast<int>(out.size());
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int i = 0; i < n; ++i) {
    std::uint32_t v = (static_cast<std::uint32_t>(i) * 2654435761u >> 12) + 1, steps = 0;
    while (v != 1 && steps < 1000) v = v & 1 ? 3 * v + 1 : v / 2, ++steps;
    out[i] = steps;
  }
}

}  // namespace bench::native
