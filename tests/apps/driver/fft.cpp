// cuFFT's transforms against the host: types, sizes, ranks, batches, layouts, in place and not, streams, graphs,
// errors.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "cufft_signal.h"

namespace {

struct Verdict {
  long bad = 0, checks = 0;
  void Expect(const char* what, int got, int wanted) {
    ++checks;
    if (got == wanted) return;
    std::fprintf(stderr, "%s: status %d, not %d\n", what, got, wanted);
    ++bad;
  }
};
Verdict verdict;
std::mt19937 random_bits(7);

enum class Way { kComplex, kToSpectrum, kToReal };

struct Case {
  Real real;
  Way way;
  int direction;
  int rank;
  Sizes n;
  Wide batch = 1;
  bool in_place = false;
  Wide stride = 0;  ///< 0: packed; otherwise numbers are so many apart, rows and transforms further
};

Sizes HalfOf(Sizes n, int rank) {
  n[rank - 1] = n[rank - 1] / 2 + 1;
  return n;
}
Layout PackedOf(const Case& test, Sizes n, bool padded) {
  if (padded) n[test.rank - 1] = 2 * (n[test.rank - 1] / 2 + 1);
  Layout layout{n, 1, 1};
  for (int d = 0; d < test.rank; ++d) layout.dist *= n[d];
  return layout;
}
Layout StridedOf(const Case& test, Sizes n, Wide more) {
  Layout layout{n, test.stride, test.stride};
  for (int d = 0; d < test.rank; ++d) {
    layout.embed[d] += more;
    layout.dist *= layout.embed[d];
  }
  layout.dist += more;
  return layout;
}
Places PlacesOf(const Case& test, bool real, bool input) {
  const Sizes n = real || test.way == Way::kComplex ? test.n : HalfOf(test.n, test.rank);
  const bool padded = real && test.in_place;
  return {test.rank, n, test.batch,
          test.stride == 0 ? PackedOf(test, n, padded) : StridedOf(test, n, input || test.in_place ? 1 : 2)};
}

/// Numbers that every type has exactly.
Signal RandomSignal(Wide count, bool real) {
  Signal signal(count);
  const auto number = [] { return static_cast<int>(random_bits() % 33) / 16.0 - 1; };
  for (Number& value : signal) {
    const double re = number();
    value = {re, real ? 0 : number()};
  }
  return signal;
}

/// What lies on one side, and what is not to be touched there.
std::vector<char> Lay(const Signal& signal, const Places& places, Real type, bool real, std::size_t bytes) {
  std::vector<char> data(bytes, 0x35);
  const std::size_t parts = real ? 1 : 2, size = SizeOf(type);
  for (Wide i = 0; i < static_cast<Wide>(signal.size()); ++i) {
    char* const at = data.data() + static_cast<std::size_t>(places.At(i)) * parts * size;
    StoreReal(at, signal[i].real(), type);
    if (!real) StoreReal(at + size, signal[i].imag(), type);
  }
  return data;
}
std::size_t Bytes(const Places& places, Real type, bool real) {
  return static_cast<std::size_t>(places.Extent()) * (real ? 1 : 2) * SizeOf(type);
}

double Tolerance(Real real) { return real == kF64 ? 1e-13 : real == kF32 ? 2e-6 : real == kF16 ? 6e-3 : 5e-2; }

void Compare(const char* what, const std::vector<char>& got, const Signal& want, const Places& places, Real type,
             bool real) {
  double power = 0, worst = 0;
  for (const Number& value : want) power += std::norm(value);
  const double scale = std::sqrt(power / static_cast<double>(want.size())) + 1e-300;
  const std::size_t parts = real ? 1 : 2, size = SizeOf(type);
  std::vector<bool> written(got.size() / (parts * size));
  long bad = 0;
  for (Wide i = 0; i < static_cast<Wide>(want.size()); ++i) {
    const auto place = static_cast<std::size_t>(places.At(i));
    const char* const at = got.data() + place * parts * size;
    written[place] = true;
    const double error = std::abs(Number(LoadReal(at, type), real ? 0 : LoadReal(at + size, type)) - want[i]) / scale;
    worst = std::max(worst, error);
    if (!(error <= 4 * Tolerance(type))) ++bad;
  }
  for (std::size_t place = 0; place < written.size(); ++place) {  // what lies between
    if (written[place] || places.layout.stride == 1) continue;
    for (std::size_t b = place * parts * size; b < (place + 1) * parts * size; ++b) bad += got[b] != 0x35;
  }
  verdict.checks += static_cast<long>(want.size());
  verdict.bad += bad;
  if (bad != 0) std::fprintf(stderr, "%s: %ld values differ, by up to %g\n", what, bad, worst);
}

int MakePlan(const Case& test, const Places& in, const Places& out, bool real_in, bool real_out) {
  int plan = 0;
  std::size_t size = 0;
  Sizes n = test.n, in_embed = in.layout.embed, out_embed = out.layout.embed;
  verdict.Expect("create", cufftCreate(&plan), 0);
  const int complex = ComplexType(test.real);
  verdict.Expect(
      "plan",
      cufftXtMakePlanMany(plan, test.rank, n.data(), test.stride == 0 ? nullptr : in_embed.data(), in.layout.stride,
                          in.layout.dist, real_in ? test.real : complex, test.stride == 0 ? nullptr : out_embed.data(),
                          out.layout.stride, out.layout.dist, real_out ? test.real : complex, test.batch, &size,
                          real_in ? test.real : complex),  // either names the precision
      0);
  return plan;
}

/// The input of a transform, and its result. Imaginary parts of a real signal's first and middle frequency are to be
/// ignored.
void Expected(const Case& test, Signal* in, Signal* out) {
  const Places whole{test.rank, test.n, test.batch, PackedOf(test, test.n, false)};
  *in = RandomSignal(whole.Count(), test.way != Way::kComplex);
  *out = *in;
  Transform(out, test.rank, test.n, test.way == Way::kComplex ? test.direction : kForward);
  if (test.way == Way::kComplex) return;
  const Wide last = test.n[test.rank - 1], half = last / 2 + 1;
  Signal spectrum;
  for (std::size_t i = 0; i < out->size(); ++i) {
    if (static_cast<Wide>(i) % last < half) spectrum.push_back((*out)[i]);
  }
  *out = spectrum;
  if (test.way == Way::kToSpectrum) return;
  std::swap(*in, *out);
  double count = 1;
  for (int d = 0; d < test.rank; ++d) count *= static_cast<double>(test.n[d]);
  for (Number& value : *out) value *= count;
  if (test.rank == 1) (*in)[0] += Number(0, 3);
  if (test.rank == 1 && last % 2 == 0) (*in)[half - 1] -= Number(0, 5);
}

void Test(const Case& test) {
  const bool real_in = test.way == Way::kToSpectrum, real_out = test.way == Way::kToReal;
  const Places in = PlacesOf(test, real_in, true), out = PlacesOf(test, real_out, false);
  Signal given, want;
  Expected(test, &given, &want);
  const std::size_t in_bytes = Bytes(in, test.real, real_in), out_bytes = Bytes(out, test.real, real_out);
  const std::vector<char> laid =
      Lay(given, in, test.real, real_in, test.in_place ? std::max(in_bytes, out_bytes) : in_bytes);
  const driver::Buffer<char> source(laid), target(std::vector<char>(out_bytes, 0x35));
  const auto pointer = [](const driver::Buffer<char>& buffer) { return reinterpret_cast<void*>(buffer.get()); };
  const int plan = MakePlan(test, in, out, real_in, real_out);
  char what[128];
  std::snprintf(what, sizeof what, "type %d way %d direction %d, %lld x %lld x %lld, batch %lld, stride %lld%s",
                test.real, static_cast<int>(test.way), test.direction, test.n[0], test.n[1], test.n[2], test.batch,
                test.stride, test.in_place ? ", in place" : "");
  verdict.Expect(what, cufftXtExec(plan, pointer(source), pointer(test.in_place ? source : target), test.direction), 0);
  driver::Call("cuCtxSynchronize");
  Compare(what, (test.in_place ? source : target).Read(), want, out, test.real, real_out);
  if (!test.in_place) verdict.Expect("the input is left as it was", source.Read() == laid, 1);
  verdict.Expect("destroy", cufftDestroy(plan), 0);
}

void TestAllWays(Real real, int rank, const Sizes& n, Wide batch, bool in_place, Wide stride) {
  Test({real, Way::kComplex, kForward, rank, n, batch, in_place, stride});
  Test({real, Way::kComplex, kInverse, rank, n, batch, in_place, stride});
  if (in_place && stride > 1) return;  // real and complex numbers in place are neighbours
  Test({real, Way::kToSpectrum, kForward, rank, n, batch, in_place, stride});
  Test({real, Way::kToReal, kInverse, rank, n, batch, in_place, stride});
}

void TestSizes() {
  for (const Wide n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 16, 30, 61, 64, 67, 97, 134, 210, 243, 256, 1000, 1009, 2018}) {
    TestAllWays(kF32, 1, {n, 1, 1}, 3, false, 0);
    TestAllWays(kF64, 1, {n, 1, 1}, 2, n % 2 == 0, 0);
  }
  TestAllWays(kF32, 1, {4096, 1, 1}, 1, false, 0);
  TestAllWays(kF64, 1, {2310, 1, 1}, 2, true, 0);
  TestAllWays(kF64, 1, {1511, 1, 1}, 1, false, 0);
}

/// In steps through work memory; these have a test of their own, since all the ways in which the others run would take
/// minutes.
void TestLargeSizes() {
  for (const Wide n : {3072, 6561, 10007, 20000, 65536}) {
    TestAllWays(kF32, 1, {n, 1, 1}, 1, false, 0);
    TestAllWays(kF64, 1, {n, 1, 1}, n < 10000 ? 2 : 1, n % 2 == 0, 0);
  }
  Test({kF64, Way::kToSpectrum, kForward, 1, {20014, 1, 1}});
  TestAllWays(kF32, 2, {7, 4500, 1}, 1, false, 0);
  TestAllWays(kF64, 2, {2048, 6, 1}, 2, true, 0);
  Test({kF32, Way::kComplex, kForward, 1, {1 << 20, 1, 1}});
  Test({kF32, Way::kToReal, kInverse, 1, {1 << 20, 1, 1}});
  Test({kF64, Way::kToSpectrum, kForward, 1, {1 << 20, 1, 1}});
}

void TestLayouts() {
  for (const Wide stride : {0, 1, 3}) {
    for (const bool in_place : {false, true}) {
      TestAllWays(kF32, 1, {60, 1, 1}, 7, in_place, stride);
      TestAllWays(kF32, 2, {12, 35, 1}, 2, in_place, stride);
      TestAllWays(kF64, 2, {67, 16, 1}, 2, in_place, stride);
      TestAllWays(kF32, 3, {6, 10, 9}, 3, in_place, stride);
      TestAllWays(kF64, 3, {1, 5, 8}, 1, in_place, stride);
    }
  }
  for (const Real real : {kF16, kBf16}) {
    TestAllWays(real, 1, {64, 1, 1}, 3, false, 0);
    TestAllWays(real, 2, {16, 32, 1}, 1, true, 0);
    TestAllWays(real, 1, {45, 1, 1}, 2, false, 2);
  }
}

/// The older functions, a stream, a work area of the program's own.
void TestCalls() {
  const Wide n = 4096;
  Signal signal = RandomSignal(2 * n, false), want = signal;
  const Places places{1, {n, 1, 1}, 2, {{n, 1, 1}, 1, n}};
  const driver::Buffer<char> data(Lay(signal, places, kF32, false, 2 * 8 * n));
  void* const pointer = reinterpret_cast<void*>(data.get());
  Transform(&want, 1, {n, 1, 1}, kForward);
  int plan = 0, version = 0;
  std::size_t size = 0, told = 0;
  verdict.Expect("create", cufftCreate(&plan), 0);
  verdict.Expect("no work area", cufftSetAutoAllocation(plan, 0), 0);
  verdict.Expect("plan", cufftMakePlan1d(plan, n, kC2C, 2, &size), 0);
  verdict.Expect("size", cufftGetSize(plan, &told) + static_cast<int>(told != size), 0);
  verdict.Expect("without a work area", cufftExecC2C(plan, pointer, pointer, kForward), size == 0 ? 0 : kNoWorkspace);
  const driver::Buffer<char> work(size + 1);
  verdict.Expect("work area", cufftSetWorkArea(plan, reinterpret_cast<void*>(work.get())), 0);
  const driver::Stream stream;
  verdict.Expect("stream", cufftSetStream(plan, stream.get()), 0);
  verdict.Expect("transform", cufftExecC2C(plan, pointer, pointer, kForward), 0);
  driver::Call("cuStreamSynchronize", stream.get());
  Compare("a stream and a work area", data.Read(), want, places, kF32, false);
  verdict.Expect("destroy", cufftDestroy(plan), 0);
  verdict.Expect("version", cufftGetVersion(&version) + static_cast<int>(version < 10000), 0);
}

/// A captured transform runs as often as its graph is launched.
void TestGraph() {
  const Wide n = 6000;
  Signal want = RandomSignal(n, false);
  const Places places{1, {n, 1, 1}, 1, {{n, 1, 1}, 1, n}};
  const driver::Buffer<char> data(Lay(want, places, kF64, false, 16 * n));
  void* const pointer = reinterpret_cast<void*>(data.get());
  int plan = 0;
  verdict.Expect("plan", cufftPlan1d(&plan, n, kZ2Z, 1), 0);
  const driver::Stream stream;
  driver::Handle graph = nullptr, executable = nullptr;
  verdict.Expect("stream", cufftSetStream(plan, stream.get()), 0);
  driver::Call("cuStreamBeginCapture_v2", stream.get(), 1);
  verdict.Expect("captured transform", cufftXtExec(plan, pointer, pointer, kForward), 0);
  driver::Call("cuStreamEndCapture", stream.get(), &graph);
  driver::Call("cuGraphInstantiateWithFlags", &executable, graph, 0ULL);
  for (int i = 0; i < 2; ++i) {
    driver::Call("cuGraphLaunch", executable, stream.get());
    Transform(&want, 1, {n, 1, 1}, kForward);
  }
  driver::Call("cuStreamSynchronize", stream.get());
  Compare("a graph", data.Read(), want, places, kF64, false);
  verdict.Expect("destroy", cufftDestroy(plan), 0);
}

void TestErrors() {
  int plan = 0, n[] = {8, 8, 8}, zero[] = {8, 0, 8};
  Wide wide[] = {8};
  std::size_t size = 0;
  const driver::Buffer<char> data(4096);
  void* const pointer = reinterpret_cast<void*>(data.get());
  verdict.Expect("no handle", cufftPlan1d(nullptr, 8, kC2C, 1), kInvalidValue);
  verdict.Expect("size 0", cufftPlan1d(&plan, 0, kC2C, 1), kInvalidSize);
  verdict.Expect("size 0 of 2", cufftPlan2d(&plan, 8, 0, kC2C), kInvalidSize);
  verdict.Expect("negative size", cufftPlan3d(&plan, 8, 8, -1, kC2C), kInvalidSize);
  verdict.Expect("batch 0", cufftPlan1d(&plan, 8, kC2C, 0), kInvalidSize);
  verdict.Expect("type", cufftPlan1d(&plan, 8, 5, 1), kInvalidType);
  verdict.Expect("rank 0", cufftPlanMany(&plan, 0, n, nullptr, 1, 1, nullptr, 1, 1, kC2C, 1), kInvalidValue);
  verdict.Expect("rank 4", cufftPlanMany(&plan, 4, n, nullptr, 1, 1, nullptr, 1, 1, kC2C, 1), kInvalidValue);
  verdict.Expect("no sizes", cufftPlanMany(&plan, 1, nullptr, nullptr, 1, 1, nullptr, 1, 1, kC2C, 1), kInvalidValue);
  verdict.Expect("stride 0", cufftPlanMany(&plan, 1, n, n, 0, 8, n, 1, 8, kC2C, 1), kInvalidValue);
  verdict.Expect("one embedding", cufftPlanMany(&plan, 1, n, n, 1, 8, nullptr, 1, 8, kC2C, 1), kInvalidValue);
  verdict.Expect("embedding 0", cufftPlanMany(&plan, 2, n, zero, 1, 64, zero, 1, 64, kC2C, 1), kInvalidSize);
  verdict.Expect("unknown plan", cufftExecC2C(4711, pointer, pointer, kForward), kInvalidPlan);
  verdict.Expect("CUFFT_PLAN_NULL", cufftDestroy(-1), 0);
  verdict.Expect("create", cufftCreate(&plan), 0);
  verdict.Expect("not made", cufftExecC2C(plan, pointer, pointer, kForward), kInvalidPlan);
  verdict.Expect("mixed types", cufftXtMakePlanMany(plan, 1, wide, nullptr, 1, 1, 4, nullptr, 1, 1, 5, 1, &size, 4),
                 kInvalidType);
  verdict.Expect("no place for the size", cufftMakePlan1d(plan, 8, kC2C, 1, nullptr), kInvalidValue);
  verdict.Expect("make", cufftMakePlan1d(plan, 8, kC2C, 1, &size), 0);
  verdict.Expect("make again", cufftMakePlan1d(plan, 8, kC2C, 1, &size), kInvalidPlan);
  verdict.Expect("direction", cufftExecC2C(plan, pointer, pointer, 0), kInvalidValue);
  verdict.Expect("no data", cufftExecC2C(plan, nullptr, pointer, kForward), kInvalidValue);
  verdict.Expect("destroy", cufftDestroy(plan), 0);
  verdict.Expect("destroy again", cufftDestroy(plan), kInvalidPlan);
  verdict.Expect("real", cufftPlan1d(&plan, 8, kR2C, 1), 0);
  verdict.Expect("the other way", cufftExecC2R(plan, pointer, pointer), kInvalidValue);
  verdict.Expect("callback", cufftXtSetCallback(plan, nullptr, 0, nullptr), kNotImplemented);
  verdict.Expect("GPUs", cufftXtSetGPUs(plan, 2, n), kNotSupported);
  verdict.Expect("estimate", cufftEstimate1d(1 << 20, kC2C, 1, &size) + static_cast<int>(size == 0), 0);
  verdict.Expect("destroy", cufftDestroy(plan), 0);
}

/// Who looks a function up by its name gets the same one (in builds for sanitizers, dlsym is theirs).
void TestLookUp() {
#ifndef __SANITIZE_ADDRESS__
  void* const library = dlopen("libcufft.so.12", RTLD_NOW);
  verdict.Expect("dlsym", library != nullptr && dlsym(library, "cufftXtExec") == reinterpret_cast<void*>(&cufftXtExec),
                 1);
  verdict.Expect("dlsym of what is not there", library != nullptr && dlsym(library, "cufftNoSuchFunction") != nullptr,
                 0);
#endif
}

}  // namespace

/// cuFFT is the first that the process calls: the primary context is there afterwards, and current.
void TestFirstCall() {
  int plan = 0;
  driver::Handle context = nullptr;
  verdict.Expect("create", cufftCreate(&plan), 0);
  driver::Call("cuCtxGetCurrent", &context);
  verdict.Expect("context", context != nullptr, 1);
  std::size_t size = 0;
  verdict.Expect("make", cufftMakePlan1d(plan, 8, kC2C, 1, &size), 0);
  verdict.Expect("destroy", cufftDestroy(plan), 0);
}

/// The result of a function of the driver, which may be an error.
template <class... Parameters>
int ResultOf(const char* name, Parameters... parameters) {
  return reinterpret_cast<int (*)(Parameters...)>(dlsym(driver::Library(), name))(parameters...);
}
constexpr int kIllegalAddress = 700;

/// What is never freed: the context ends by a fault.
template <class T, class... Arguments>
T& Kept(Arguments... arguments) {
  return *new T(arguments...);
}

/// The result is too large for its memory: a fault, as that of any kernel.
void TestBeyond() {
  const int n = 1 << 20;
  int plan = 0;
  const auto& in = Kept<driver::Buffer<char>>(std::size_t{8} * n);
  const auto& out = Kept<driver::Buffer<char>>(std::size_t{4096});
  verdict.Expect("plan", cufftPlan1d(&plan, n, kC2C, 1), 0);
  verdict.Expect(
      "transform",
      cufftExecC2C(plan, reinterpret_cast<void*>(in.get()), reinterpret_cast<void*>(out.get() + (1 << 30)), kForward),
      0);
  verdict.Expect("memory that is not there", ResultOf("cuCtxSynchronize"), kIllegalAddress);
}

/// The memory goes between the call and the transform.
void TestGone(driver::Device device) {
  const int n = 1 << 21;
  const std::size_t bytes = std::size_t{8} * n;
  int plan = 0;
  verdict.Expect("plan", cufftPlan1d(&plan, n, kC2C, 1), 0);
  const auto &stream = Kept<driver::Stream>(), &other = Kept<driver::Stream>();
  driver::Pointer data = 0;
  driver::Handle pool = nullptr;
  driver::Call("cuDeviceGetDefaultMemPool", &pool, device);
  driver::Call("cuMemAllocAsync", &data, bytes, other.get());
  driver::Call("cuStreamSynchronize", other.get());
  std::atomic<bool> go{false};
  const auto wait = +[](void* flag) {
    while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
  };
  driver::Call("cuLaunchHostFunc", stream.get(), wait, static_cast<void*>(&go));
  verdict.Expect("stream", cufftSetStream(plan, stream.get()), 0);
  void* const pointer = reinterpret_cast<void*>(data);
  verdict.Expect("transform", cufftExecC2C(plan, pointer, pointer, kForward), 0);
  driver::Call("cuMemFreeAsync", data, other.get());
  driver::Call("cuStreamSynchronize", other.get());
  driver::Call("cuMemPoolTrimTo", pool, std::size_t{0});
  go = true;
  verdict.Expect("memory that is gone", ResultOf("cuStreamSynchronize", stream.get()), kIllegalAddress);
}

int main(int count, char** words) {
  const auto asked = [&](const char* what) { return count > 1 && std::strcmp(words[1], what) == 0; };
  if (asked("first")) {
    TestFirstCall();
    return driver::Verdict("cuFFT as the first call", verdict.bad, verdict.checks);
  }
  driver::Call("cuInit", 0u);
  driver::Device device = 0;
  driver::Call("cuDeviceGet", &device, 0);
  driver::Handle context = nullptr;
  driver::Call("cuDevicePrimaryCtxRetain", &context, device);
  driver::Call("cuCtxSetCurrent", context);
  if (asked("large")) {
    TestLargeSizes();
  } else if (asked("beyond") || asked("gone")) {
    asked("beyond") ? TestBeyond() : TestGone(device);
    const int failed = driver::Verdict("cuFFT's faults", verdict.bad, verdict.checks);
    std::fflush(stdout);
    std::_Exit(failed);  // what would be freed now went with the context
  } else {
    TestErrors();
    TestCalls();
    TestGraph();
    TestLayouts();
    TestSizes();
    TestLookUp();
  }
  return driver::Verdict("cuFFT's transforms", verdict.bad, verdict.checks);
}
