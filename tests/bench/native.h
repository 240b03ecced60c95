// The benchmarks as plain C++ for the host: the same algorithm as the kernels, written the way one writes C++.
// `threads` cores.
#pragma once

#include <cstdint>
#include <vector>

namespace bench::native {

using Floats = std::vector<float>;
using Ints = std::vector<int>;
using Words = std::vector<std::uint32_t>;

void Copy(const Floats& in, Floats& out, int threads);
void VectorAdd(const Floats& a, const Floats& b, Floats& c, int threads);
void FmaLoop(Floats& out, int rounds, int threads);
void Stencil(const Floats& in, Floats& out, int width, int height, int threads);
void MatMul(const Floats& a, const Floats& b, Floats& c, int n, int threads);
void Reduce(const Ints& in, Ints& out, int threads);
void Histogram(const Words& in, Words& out, int threads);
void NBody(const Floats& x, const Floats& y, const Floats& z, const Floats& mass, Floats& ax, Floats& ay, Floats& az,
           int threads);
void BlackScholes(const Floats& price, const Floats& strike, const Floats& years, Floats& call, Floats& put,
                  int threads);
void SpMV(const Ints& starts, const Ints& columns, const Floats& values, const Floats& x, Floats& y, int threads);
void Bfs(const Ints& starts, const Ints& edges, Ints& distance, int threads);
void BitonicSort(const Words& in, Words& keys, int threads);
void Collatz(Words& out, int threads);

}  // namespace bench::native
