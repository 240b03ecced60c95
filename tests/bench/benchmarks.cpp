#include "tests/bench/benchmarks.h"

#include <algorithm>
#include <cmath>

#include "tests/bench/native.h"

namespace bench {
namespace {

using native::Floats;
using native::Ints;
using native::Words;
using Pointer = Device::Pointer;

unsigned Hash(unsigned v) {
  v = (v ^ 61) ^ (v >> 16);
  v *= 9;
  v ^= v >> 4;
  v *= 0x27d4eb2d;
  return v ^ (v >> 15);
}
Floats RandomFloats(int n, float low, float high, unsigned seed) {
  Floats v(n);
  for (int i = 0; i < n; ++i)
    v[i] = low + (high - low) * static_cast<float>(Hash(i * 2 + seed * 7919) & 0xffffff) / 0x1000000;
  return v;
}
unsigned Blocks(int n, int block) { return static_cast<unsigned>((n + block - 1) / block); }
int Scaled(double scale, int n, int multiple) {
  return std::max(multiple, static_cast<int>(n * scale) / multiple * multiple);
}

/// Device memory, input and output of one benchmark; shared by its functions.
template <class T>
struct State {
  std::vector<std::uint64_t> memory;
  std::vector<T> out, scratch;
};
template <class T>
std::vector<double> Doubles(const std::vector<T>& v) {
  return {v.begin(), v.end()};
}
template <class T>
std::vector<double> Download(Device& device, std::uint64_t memory, std::size_t count) {
  std::vector<T> host(count);
  device.Read(host.data(), memory, count * sizeof(T));
  return Doubles(host);
}

Benchmark Copy(double scale) {
  const int n = Scaled(scale, 1 << 22, 256);
  auto in = std::make_shared<Floats>(RandomFloats(n, -1, 1, 1));
  auto s = std::make_shared<State<float>>();
  s->out.resize(n);
  return {"copy",
          std::to_string(n) + " floats",
          0,
          [=](Device& d) {
            s->memory = {d.Upload(*in), d.Allocate(n * 4)};
          },
          [=](Device& d) {
            d.Launch("Copy", {Blocks(n, 256)}, {256}, {Pointer{s->memory[0]}, Pointer{s->memory[1]}, n});
          },
          [=](Device& d) { return Download<float>(d, s->memory[1], n); },
          [=](int threads) { native::Copy(*in, s->out, threads); },
          [=] { return Doubles(s->out); }};
}

Benchmark VectorAdd(double scale) {
  const int n = Scaled(scale, 1 << 20, 256);
  auto a = std::make_shared<Floats>(RandomFloats(n, -1, 1, 1)), b = std::make_shared<Floats>(RandomFloats(n, -1, 1, 2));
  auto s = std::make_shared<State<float>>();
  s->out.resize(n);
  return {"vectoradd",
          std::to_string(n) + " floats",
          0,
          [=](Device& d) {
            s->memory = {d.Upload(*a), d.Upload(*b), d.Allocate(n * 4)};
          },
          [=](Device& d) {
            d.Launch("VectorAdd", {Blocks(n, 256)}, {256},
                     {Pointer{s->memory[0]}, Pointer{s->memory[1]}, Pointer{s->memory[2]}, n});
          },
          [=](Device& d) { return Download<float>(d, s->memory[2], n); },
          [=](int threads) { native::VectorAdd(*a, *b, s->out, threads); },
          [=] { return Doubles(s->out); }};
}

Benchmark FmaLoop(double scale) {
  const int n = Scaled(scale, 160 * 256, 256), rounds = 256;
  auto s = std::make_shared<State<float>>();
  s->out.resize(n);
  return {"fmaloop",
          std::to_string(n) + " threads, " + std::to_string(rounds) + " x 4 fma",
          1e-6,
          [=](Device& d) { s->memory = {d.Allocate(n * 4)}; },
          [=](Device& d) {
            d.Launch("FmaLoop", {Blocks(n, 256)}, {256}, {Pointer{s->memory[0]}, rounds});
          },
          [=](Device& d) { return Download<float>(d, s->memory[0], n); },
          [=](int threads) { native::FmaLoop(s->out, rounds, threads); },
          [=] { return Doubles(s->out); }};
}

Benchmark Stencil(double scale) {
  const int width = 1024, height = Scaled(scale, 1024, 8), steps = 8;
  auto in = std::make_shared<Floats>(RandomFloats(width * height, 0, 1, 3));
  auto s = std::make_shared<State<float>>();
  return {"stencil",
          std::to_string(width) + " x " + std::to_string(height) + ", " + std::to_string(steps) + " steps",
          1e-5,
          [=](Device& d) {
            s->memory = {d.Upload(*in), d.Upload(*in), d.Upload(*in)};
          },
          [=](Device& d) {
            // The first step reads the input, so that every repetition computes the same.
            for (int step = 0; step < steps; ++step)
              d.Launch(
                  "Stencil", {width / 32, Blocks(height, 8)}, {32, 8},
                  {Pointer{s->memory[step == 0 ? 2 : step % 2]}, Pointer{s->memory[(step + 1) % 2]}, width, height});
          },
          [=](Device& d) { return Download<float>(d, s->memory[steps % 2], static_cast<std::size_t>(width) * height); },
          [=](int threads) {
            if (s->out.empty()) s->out = *in, s->scratch = *in;
            for (int step = 0; step < steps; ++step) {
              native::Stencil(step == 0  ? *in
                              : step % 2 ? s->scratch
                                         : s->out,
                              step % 2 ? s->out : s->scratch, width, height, threads);
            }
          },
          [=] { return Doubles(steps % 2 ? s->scratch : s->out); }};
}

Benchmark MatMul(double scale, const char* name, const char* kernel) {
  const int n = Scaled(std::cbrt(scale), 256, 16);
  auto a = std::make_shared<Floats>(RandomFloats(n * n, -1, 1, 4)),
       b = std::make_shared<Floats>(RandomFloats(n * n, -1, 1, 5));
  auto s = std::make_shared<State<float>>();
  s->out.resize(n * n);
  return {name,
          std::to_string(n) + " x " + std::to_string(n),
          1e-4,
          [=](Device& d) {
            s->memory = {d.Upload(*a), d.Upload(*b), d.Allocate(n * n * 4)};
          },
          [=](Device& d) {
            d.Launch(kernel, {n / 16u, n / 16u}, {16, 16},
                     {Pointer{s->memory[0]}, Pointer{s->memory[1]}, Pointer{s->memory[2]}, n});
          },
          [=](Device& d) { return Download<float>(d, s->memory[2], static_cast<std::size_t>(n) * n); },
          [=](int threads) { native::MatMul(*a, *b, s->out, n, threads); },
          [=] { return Doubles(s->out); }};
}

Benchmark Reduce(double scale) {
  const int n = Scaled(scale, 1 << 20, 512);
  auto in = std::make_shared<Ints>(n);
  for (int i = 0; i < n; ++i) (*in)[i] = static_cast<int>(Hash(i) % 2001) - 1000;
  auto s = std::make_shared<State<int>>();
  s->out.resize(1);
  return {"reduce",
          std::to_string(n) + " ints",
          0,
          [=](Device& d) {
            s->memory = {d.Upload(*in), d.Allocate(4)};
          },
          [=](Device& d) {
            d.Clear(s->memory[1], 4);
            d.Launch("Reduce", {Blocks(n, 512)}, {256}, {Pointer{s->memory[0]}, Pointer{s->memory[1]}, n});
          },
          [=](Device& d) { return Download<int>(d, s->memory[1], 1); },
          [=](int threads) { native::Reduce(*in, s->out, threads); },
          [=] { return Doubles(s->out); }};
}

Benchmark Histogram(double scale) {
  const int n = Scaled(scale, 1 << 19, 256);
  auto in = std::make_shared<Words>(n);
  for (int i = 0; i < n; ++i) (*in)[i] = Hash(i);
  auto s = std::make_shared<State<std::uint32_t>>();
  s->out.resize(256);
  return {"histogram",
          std::to_string(n) + " words, 256 bins",
          0,
          [=](Device& d) {
            s->memory = {d.Upload(*in), d.Allocate(1024)};
          },
          [=](Device& d) {
            d.Clear(s->memory[1], 1024);
            d.Launch("Histogram", {160}, {256}, {Pointer{s->memory[0]}, Pointer{s->memory[1]}, n});
          },
          [=](Device& d) { return Download<std::uint32_t>(d, s->memory[1], 256); },
          [=](int threads) { native::Histogram(*in, s->out, threads); },
          [=] { return Doubles(s->out); }};
}

Benchmark NBody(double scale) {
  const int n = Scaled(std::sqrt(scale), 2048, 256);
  auto in = std::make_shared<std::vector<Floats>>();
  for (unsigned k = 0; k < 4; ++k) in->push_back(RandomFloats(n, k == 3 ? 0.1f : -5, k == 3 ? 1 : 5, 10 + k));
  auto s = std::make_shared<State<float>>();
  auto out = std::make_shared<std::vector<Floats>>(3, Floats(n));
  return {"nbody",
          std::to_string(n) + " bodies",
          2e-3,
          [=](Device& d) {
            s->memory.clear();
            for (const Floats& v : *in) s->memory.push_back(d.Upload(v));
            for (int k = 0; k < 3; ++k) s->memory.push_back(d.Allocate(n * 4));
          },
          [=](Device& d) {
            std::vector<Device::Argument> arguments;
            for (const auto memory : s->memory) arguments.push_back(Pointer{memory});
            arguments.push_back(n);
            d.Launch("NBody", {n / 256u}, {256}, arguments);
          },
          [=](Device& d) { return Download<float>(d, s->memory[4], n); },
          [=](int threads) {
            native::NBody((*in)[0], (*in)[1], (*in)[2], (*in)[3], (*out)[0], (*out)[1], (*out)[2], threads);
          },
          [=] { return Doubles((*out)[0]); }};
}

Benchmark BlackScholes(double scale) {
  const int n = Scaled(scale, 1 << 20, 256);
  auto price = std::make_shared<Floats>(RandomFloats(n, 5, 30, 20)),
       strike = std::make_shared<Floats>(RandomFloats(n, 1, 100, 21)),
       years = std::make_shared<Floats>(RandomFloats(n, 0.25f, 10, 22));
  auto s = std::make_shared<State<float>>();
  s->out.resize(n), s->scratch.resize(n);
  return {"blackscholes",
          std::to_string(n) + " options",
          1e-3,
          [=](Device& d) {
            s->memory = {d.Upload(*price), d.Upload(*strike), d.Upload(*years), d.Allocate(n * 4), d.Allocate(n * 4)};
          },
          [=](Device& d) {
            std::vector<Device::Argument> arguments;
            for (const auto memory : s->memory) arguments.push_back(Pointer{memory});
            arguments.push_back(n);
            d.Launch("BlackScholes", {Blocks(n, 128)}, {128}, arguments);
          },
          [=](Device& d) { return Download<float>(d, s->memory[3], n); },
          [=](int threads) { native::BlackScholes(*price, *strike, *years, s->out, s->scratch, threads); },
          [=] { return Doubles(s->out); }};
}

/// A graph or sparse matrix: 2 to 30 neighbours a row, half of them near, half anywhere.
struct Sparse {
  Ints starts{0}, columns;
};
std::shared_ptr<Sparse> MakeSparse(int rows) {
  auto m = std::make_shared<Sparse>();
  for (int row = 0; row < rows; ++row) {
    const int count = 2 + static_cast<int>(Hash(row) % 29);
    for (int k = 0; k < count; ++k) {
      const unsigned h = Hash(row * 31 + k);
      m->columns.push_back(static_cast<int>(k % 2 ? h % rows : (row + h % 64) % rows));
    }
    m->starts.push_back(static_cast<int>(m->columns.size()));
  }
  return m;
}

Benchmark SpMV(double scale) {
  const int rows = Scaled(scale, 1 << 17, 128);
  auto m = MakeSparse(rows);
  auto values = std::make_shared<Floats>(RandomFloats(static_cast<int>(m->columns.size()), -1, 1, 30));
  auto x = std::make_shared<Floats>(RandomFloats(rows, -1, 1, 31));
  auto s = std::make_shared<State<float>>();
  s->out.resize(rows);
  return {
      "spmv",
      std::to_string(rows) + " rows, " + std::to_string(m->columns.size()) + " values",
      1e-4,
      [=](Device& d) {
        s->memory = {d.Upload(m->starts), d.Upload(m->columns), d.Upload(*values), d.Upload(*x), d.Allocate(rows * 4)};
      },
      [=](Device& d) {
        std::vector<Device::Argument> arguments;
        for (const auto memory : s->memory) arguments.push_back(Pointer{memory});
        arguments.push_back(rows);
        d.Launch("SpMV", {Blocks(rows, 128)}, {128}, arguments);
      },
      [=](Device& d) { return Download<float>(d, s->memory[4], rows); },
      [=](int threads) { native::SpMV(m->starts, m->columns, *values, *x, s->out, threads); },
      [=] { return Doubles(s->out); }};
}

Benchmark Bfs(double scale) {
  const int n = Scaled(scale, 1 << 17, 256);
  auto m = MakeSparse(n);
  auto s = std::make_shared<State<int>>();
  s->out.resize(n);
  return {"bfs",
          std::to_string(n) + " vertices, " + std::to_string(m->columns.size()) + " edges",
          0,
          [=](Device& d) {
            s->memory = {d.Upload(m->starts), d.Upload(m->columns), d.Allocate(n * 4), d.Allocate(4)};
          },
          [=](Device& d) {
            d.Launch("BfsInit", {Blocks(n, 256)}, {256}, {Pointer{s->memory[2]}, n});
            int changed = 1;
            for (int level = 0; changed; ++level) {
              d.Clear(s->memory[3], 4);
              d.Launch("BfsLevel", {Blocks(n, 256)}, {256},
                       {Pointer{s->memory[0]}, Pointer{s->memory[1]}, Pointer{s->memory[2]}, Pointer{s->memory[3]},
                        level, n});
              d.Read(&changed, s->memory[3], 4);
            }
          },
          [=](Device& d) { return Download<int>(d, s->memory[2], n); },
          [=](int threads) { native::Bfs(m->starts, m->columns, s->out, threads); },
          [=] { return Doubles(s->out); }};
}

Benchmark Bitonic(double scale) {
  int n = 1 << 17;
  while (n > 1024 && n > (1 << 17) * scale) n /= 2;
  auto in = std::make_shared<Words>(n);
  for (int i = 0; i < n; ++i) (*in)[i] = Hash(i);
  auto s = std::make_shared<State<std::uint32_t>>();
  return {"bitonic",
          std::to_string(n) + " keys",
          0,
          [=](Device& d) {
            s->memory = {d.Upload(*in), d.Allocate(n * 4)};
          },
          [=](Device& d) {
            d.Launch("CopyKeys", {Blocks(n, 256)}, {256}, {Pointer{s->memory[0]}, Pointer{s->memory[1]}, n});
            for (int size = 2; size <= n; size *= 2)
              for (int stride = size / 2; stride > 0; stride /= 2)
                d.Launch("BitonicStep", {Blocks(n / 2, 256)}, {256}, {Pointer{s->memory[1]}, size, stride});
          },
          [=](Device& d) { return Download<std::uint32_t>(d, s->memory[1], n); },
          [=](int threads) { native::BitonicSort(*in, s->out, threads); },
          [=] { return Doubles(s->out); }};
}

Benchmark Collatz(double scale) {
  const int n = Scaled(scale, 1 << 14, 256);
  auto s = std::make_shared<State<std::uint32_t>>();
  s->out.resize(n);
  return {"collatz",
          std::to_string(n) + " threads",
          0,
          [=](Device& d) { s->memory = {d.Allocate(n * 4)}; },
          [=](Device& d) {
            d.Launch("Collatz", {Blocks(n, 256)}, {256}, {Pointer{s->memory[0]}, n});
          },
          [=](Device& d) { return Download<std::uint32_t>(d, s->memory[0], n); },
          [=](int threads) { native::Collatz(s->out, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace

std::vector<Benchmark> AllBenchmarks(double scale) {
  return {Copy(scale),
          VectorAdd(scale),
          FmaLoop(scale),
          Stencil(scale),
          MatMul(scale, "matmul_naive", "MatMulNaive"),
          MatMul(scale, "matmul_tiled", "MatMulTiled"),
          Reduce(scale),
          Histogram(scale),
          NBody(scale),
          BlackScholes(scale),
          SpMV(scale),
          Bfs(scale),
          Bitonic(scale),
          Collatz(scale)};
}

long Differences(const std::vector<double>& got, const std::vector<double>& want, double tolerance) {
  if (got.size() != want.size()) return -1;
  double largest = 0;
  for (const double v : want) largest = std::max(largest, std::fabs(v));
  long bad = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    bad += !(std::fabs(got[i] - want[i]) <= tolerance * (std::fabs(want[i]) + 1e-2 * largest));
  return bad;
}

}  // namespace bench
