#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

void NativeNBody(const Floats& px, const Floats& py, const Floats& pz, const Floats& mass, Floats& ax, Floats& ay,
                 Floats& az, int threads) {
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

}  // namespace

GL_BENCHMARK(nbody) {
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
            NativeNBody((*in)[0], (*in)[1], (*in)[2], (*in)[3], (*out)[0], (*out)[1], (*out)[2], threads);
          },
          [=] { return Doubles((*out)[0]); }};
}

}  // namespace bench
