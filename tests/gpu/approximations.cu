// The approximate instructions over inputs of all magnitudes: the largest error against double precision on the host,
// in units of the last place and relative, a digest of all results, and the first results as they are.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "probe.h"

namespace {

constexpr int kInputs = 1 << 20, kShown = 64;

#define APPROXIMATION(name, text)                        \
  __global__ void name(const float* in, float* out) {    \
    const int i = blockIdx.x * blockDim.x + threadIdx.x; \
    asm volatile(text : "=f"(out[i]) : "f"(in[i]));      \
  }
APPROXIMATION(Ex2, "ex2.approx.f32 %0, %1;")
APPROXIMATION(Ex2Ftz, "ex2.approx.ftz.f32 %0, %1;")
APPROXIMATION(Lg2, "lg2.approx.f32 %0, %1;")
APPROXIMATION(Sin, "sin.approx.f32 %0, %1;")
APPROXIMATION(Cos, "cos.approx.f32 %0, %1;")
APPROXIMATION(Tanh, "tanh.approx.f32 %0, %1;")
APPROXIMATION(Rcp, "rcp.approx.f32 %0, %1;")
APPROXIMATION(RcpFtz, "rcp.approx.ftz.f32 %0, %1;")
APPROXIMATION(Rsqrt, "rsqrt.approx.f32 %0, %1;")
APPROXIMATION(Sqrt, "sqrt.approx.f32 %0, %1;")

struct Case {
  const char* name;
  void (*kernel)(const float*, float*);
  double (*exact)(double);
  double least, most;  ///< inputs
  bool logarithmic;    ///< inputs of all magnitudes between them, of both signs where least is negative
};

const Case kCases[] = {
    {"ex2", Ex2, [](double x) { return std::exp2(x); }, -150, 130, false},
    {"ex2.ftz", Ex2Ftz, [](double x) { return std::exp2(x); }, -126, 130, false},
    {"lg2", Lg2, [](double x) { return std::log2(x); }, 1e-44, 3e38, true},
    {"lg2.near_1", Lg2, [](double x) { return std::log2(x); }, 0.5, 2, false},
    {"sin", Sin, [](double x) { return std::sin(x); }, -3.14159274, 3.14159274, false},
    {"cos", Cos, [](double x) { return std::cos(x); }, -3.14159274, 3.14159274, false},
    {"tanh", Tanh, [](double x) { return std::tanh(x); }, -10, 10, false},
    {"rcp", Rcp, [](double x) { return 1 / x; }, 1e-38, 3e38, true},
    {"rcp.ftz", RcpFtz, [](double x) { return 1 / x; }, 1e-37, 8e37, true},
    {"rsqrt", Rsqrt, [](double x) { return 1 / std::sqrt(x); }, 1e-44, 3e38, true},
    {"sqrt", Sqrt, [](double x) { return std::sqrt(x); }, 1e-37, 3e38, true},
};

std::vector<float> Inputs(const Case& c) {
  std::vector<float> in(kInputs);
  std::uint64_t state = 88172645463325252u;
  for (float& x : in) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const double share = static_cast<double>(state >> 11) / 9007199254740992.0;
    x = static_cast<float>(c.logarithmic ? std::exp(std::log(c.least) + share * (std::log(c.most) - std::log(c.least)))
                                         : c.least + share * (c.most - c.least));
  }
  return in;
}

/// The distance of two neighbouring floats at a value.
double Ulp(double value) {
  const float f = static_cast<float>(std::fabs(value));
  return f < 1.17549435e-38f ? 1.401298464e-45 : static_cast<double>(std::nextafterf(f, INFINITY)) - f;
}

void Run(const Case& c) {
  const std::vector<float> in = Inputs(c);
  std::vector<float> out(kInputs);
  float *from, *to;
  PROBE(cudaMalloc(&from, kInputs * sizeof(float)));
  PROBE(cudaMalloc(&to, kInputs * sizeof(float)));
  PROBE(cudaMemcpy(from, in.data(), kInputs * sizeof(float), cudaMemcpyHostToDevice));
  c.kernel<<<kInputs / 256, 256>>>(from, to);
  PROBE(cudaMemcpy(out.data(), to, kInputs * sizeof(float), cudaMemcpyDeviceToHost));
  std::uint64_t digest = 0xCBF29CE484222325u;
  double ulps = 0, absolute = 0, relative = 0;
  for (int i = 0; i < kInputs; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, &out[i], 4);
    digest = (digest ^ bits) * 0x100000001B3u;
    const double exact = c.exact(in[i]);
    if (!std::isfinite(static_cast<float>(exact)) || !std::isfinite(out[i])) continue;
    const double error = std::fabs(out[i] - exact);
    absolute = std::max(absolute, error);
    ulps = std::max(ulps, error / Ulp(exact));
    if (std::fabs(exact) > 1.2e-38) relative = std::max(relative, error / std::fabs(exact));
  }
  std::printf("%s: ulps %.4f absolute %.6g relative %.6g digest %016llx:", c.name, ulps, absolute, relative,
              static_cast<unsigned long long>(digest));
  for (int i = 0; i < kShown; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, &out[i], 4);
    std::printf(" %08x", bits);
  }
  std::printf("\n");
  PROBE(cudaFree(from));
  PROBE(cudaFree(to));
}

}  // namespace

int main() {
  for (const Case& c : kCases) Run(c);
}
