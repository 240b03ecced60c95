// MT (CUDA samples, MersenneTwister): normally distributed numbers: each thread is a generator of whole numbers, then
// the Box-Muller transform makes pairs of normal ones of them. The generator is not the sample's: it is TT800, the
// twister by Matsumoto and Kurita that came before theirs, with 25 words of state, in registers. Few CTAs, which
// compute; what the second kernel reads fits into L2.
#include "pipeline/program.h"

constexpr int kThreads = 128;
constexpr int kWords = 25, kMiddle = 7;  ///< of the state; x[n] depends on x[n - 25] and x[n - 18]

/// Puts the next kWords numbers into the state.
__device__ inline void Twist(unsigned (&state)[kWords]) {
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    state[i] = state[(i + kMiddle) % kWords] ^ (state[i] >> 1) ^ (state[i] % 2 != 0 ? 0x8EBFD028u : 0);
  }
}

__device__ inline unsigned Temper(unsigned x) {
  x ^= (x << 7) & 0x2B5B2500u;
  x ^= (x << 15) & 0xDB8B0000u;
  return x ^ (x >> 16);
}

/// Generator g writes numbers[k * generators + g]. A simple generator fills its state; its first `skip` numbers, which
/// show that, are dropped. 40 registers hold the state and some more.
__global__ void __maxnreg__(40) Generate(const unsigned* seeds, unsigned* numbers, int each, int skip) {
  const int generator = blockIdx.x * kThreads + threadIdx.x, generators = gridDim.x * kThreads;
  unsigned state[kWords], seed = seeds[generator];
#pragma unroll
  for (int i = 0; i < kWords; ++i) state[i] = seed = seed * 69069u + 1;
#pragma unroll 1
  for (int k = 0; k < skip; k += kWords) Twist(state);
#pragma unroll 1
  for (int k = 0; k < each; k += kWords) {
    Twist(state);
#pragma unroll
    for (int i = 0; i < kWords; ++i) numbers[(k + i) * generators + generator] = Temper(state[i]);
  }
}

/// A whole number as one between 0 and 1, neither of which it becomes: 24 bits, exact.
__host__ __device__ inline float Fraction(unsigned number) {
  return (static_cast<float>(number >> 9) + 0.5f) * 0x1p-23f;
}

__global__ void __launch_bounds__(kThreads) BoxMuller(const uint2* numbers, float2* normals, int pairs) {
#pragma unroll 1
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < pairs; i += gridDim.x * kThreads) {
    const uint2 pair = numbers[i];
    const float radius = sqrtf(-2 * logf(Fraction(pair.x)));
    float sine, cosine;
    sincospif(2 * Fraction(pair.y), &sine, &cosine);
    normals[i] = {radius * cosine, radius * sine};
  }
}

std::vector<unsigned> Seeds(int count, int index) {
  Random random(400 + index);
  std::vector<unsigned> seeds(count);
  for (unsigned& seed : seeds) seed = random.Next();
  return seeds;
}

struct Set {
  Set(const Options& options, int index)
      : seeds(Seeds(options["ctas"] * kThreads, index)),
        numbers(seeds.host.size() * options["each"]),
        normals(seeds.host.size() * options["each"]) {}
  const Input<unsigned> seeds;
  const DeviceArray<unsigned> numbers;
  const DeviceArray<float> normals;
};

/// A generator as its recurrence is written down: one number after the other, all of them kept.
std::vector<unsigned> NumbersOf(unsigned seed, int count) {
  std::vector<unsigned> x(kWords + count), tempered;
  for (int i = 0; i < kWords; ++i) x[i] = seed = seed * 69069u + 1;
  for (int i = kWords; i < kWords + count; ++i) {
    const unsigned oldest = x[i - kWords];
    x[i] = x[i - kWords + kMiddle] ^ oldest / 2 ^ oldest % 2 * 0x8EBFD028u;
    unsigned y = x[i];
    y ^= y << 7 & 0x2B5B2500u;
    y ^= y << 15 & 0xDB8B0000u;
    tempered.push_back(y ^ y >> 16);
  }
  return tempered;
}

int main(int argc, char** argv) {
  const Options options(
      "mt", argc, argv,
      {{"ctas", 8, 32, 1, 1024}, {"each", 25, 25, kWords, 10'000, kWords}, {"skip", 25, 100, 0, 10'000, kWords}});
  const int ctas = options["ctas"], each = options["each"], skip = options["skip"], generators = ctas * kThreads;
  const int pairs = generators * each / 2;
  Pipeline<Set> pipeline(options);
  pipeline.Stage("generate", Generate, ctas, kThreads,
                 [=](const Set& set, auto launch) { launch(set.seeds, set.numbers, each, skip); });
  pipeline.Stage("box-muller", BoxMuller, ctas, kThreads, [=](const Set& set, auto launch) {
    launch(reinterpret_cast<const uint2*>(static_cast<unsigned*>(set.numbers)),
           reinterpret_cast<float2*>(static_cast<float*>(set.normals)), pairs);
  });
  pipeline.Run();

  for (const Set& set : pipeline.sets()) {
    const std::vector<unsigned> numbers = pipeline.Result(set.numbers);
    const std::vector<float> normals = pipeline.Result(set.normals);
    for (int generator = 0; generator < generators; ++generator) {
      const std::vector<unsigned> want = NumbersOf(set.seeds.host[generator], skip + each);
      for (int k = 0; k < each; ++k) Same("number", generator, numbers[k * generators + generator], want[skip + k]);
    }
    // Radii go up to 5.7; a float has 24 bits.
    for (int i = 0; i < pairs; ++i) {
      const double radius = std::sqrt(-2 * std::log(static_cast<double>(Fraction(numbers[2 * i]))));
      const double angle = 2 * std::acos(-1.0) * Fraction(numbers[2 * i + 1]);
      Near("normal", 2 * i, normals[2 * i], radius * std::cos(angle), 0, 1e-5);
      Near("normal", 2 * i + 1, normals[2 * i + 1], radius * std::sin(angle), 0, 1e-5);
    }
  }
  return pipeline.Finish();
}
