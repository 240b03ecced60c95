// cuFFT by its own headers and library, in whose place the shim answers. Lengths with factors of two, of small primes,
// and prime ones (another algorithm); real and complex, float and double, in batches, with strides, and in two and
// three dimensions. Each against a transform by its definition.
#include <cufft.h>

#include <complex>

#include "app.h"

#define FFT(call)                                                                        \
  do {                                                                                   \
    const cufftResult fft_status = (call);                                               \
    if (fft_status != CUFFT_SUCCESS) {                                                   \
      std::printf("FAIL %s:%d: %s: status %d\n", __FILE__, __LINE__, #call, fft_status); \
      std::exit(1);                                                                      \
    }                                                                                    \
  } while (0)

using Complex = std::complex<double>;
using Signal = std::vector<Complex>;

constexpr double kTurn = 6.283185307179586;

Signal MakeSignal(std::size_t count) {
  Signal signal(count);
  for (std::size_t i = 0; i < count; ++i)
    signal[i] = {static_cast<double>(i * 37 % 101) / 50 - 1, static_cast<double>(i * 53 % 89) / 44 - 1};
  return signal;
}

/// By definition, along the axis of that length whose elements are `stride` apart.
void TransformAxis(Signal& signal, std::size_t length, std::size_t stride, int sign) {
  Signal line(length), roots(length);
  for (std::size_t k = 0; k < length; ++k)
    roots[k] = std::polar(1.0, sign * kTurn * static_cast<double>(k) / static_cast<double>(length));
  for (std::size_t first = 0; first < signal.size(); ++first) {
    if (first / stride % length != 0) continue;
    for (std::size_t k = 0; k < length; ++k) {
      line[k] = 0;
      for (std::size_t i = 0; i < length; ++i) line[k] += signal[first + i * stride] * roots[i * k % length];
    }
    for (std::size_t k = 0; k < length; ++k) signal[first + k * stride] = line[k];
  }
}

template <class T>
std::vector<T> ToDevice(const Signal& signal) {
  std::vector<T> values(signal.size());
  for (std::size_t i = 0; i < signal.size(); ++i) {
    values[i].x = static_cast<decltype(values[i].x)>(signal[i].real());
    values[i].y = static_cast<decltype(values[i].y)>(signal[i].imag());
  }
  return values;
}
template <class T>
void Compare(const char* what, const std::vector<T>& got, const Signal& want, double tolerance) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    Near(what, static_cast<long>(i), got[i].x, want[i].real(), 0, tolerance);
    Near(what, static_cast<long>(i), got[i].y, want[i].imag(), 0, tolerance);
  }
}

void ComplexBatch(int length, int batch) {
  Signal want = MakeSignal(static_cast<std::size_t>(length) * batch);
  Buffer<cufftComplex> data(ToDevice<cufftComplex>(want));
  cufftHandle plan;
  FFT(cufftPlan1d(&plan, length, CUFFT_C2C, batch));
  FFT(cufftExecC2C(plan, data, data, CUFFT_FORWARD));
  TransformAxis(want, length, 1, -1);
  Compare("C2C", data.Read(), want, 2e-5 * length);
  FFT(cufftExecC2C(plan, data, data, CUFFT_INVERSE));
  TransformAxis(want, length, 1, 1);
  Compare("C2C inverse", data.Read(), want, 4e-5 * length * length);
  FFT(cufftDestroy(plan));
}

void DoubleStrided(int length, int stride) {
  Signal want = MakeSignal(static_cast<std::size_t>(length) * stride);
  Buffer<cufftDoubleComplex> data(ToDevice<cufftDoubleComplex>(want));
  cufftHandle plan;
  int lengths[] = {length};
  FFT(cufftPlanMany(&plan, 1, lengths, lengths, stride, 1, lengths, stride, 1, CUFFT_Z2Z, stride));
  FFT(cufftExecZ2Z(plan, data, data, CUFFT_FORWARD));
  TransformAxis(want, length, stride, -1);
  Compare("Z2Z strided", data.Read(), want, 1e-10 * length);
  FFT(cufftDestroy(plan));
}

/// A real signal forth and back, rows by columns.
void RealPlane(int rows, int columns) {
  const std::size_t half = columns / 2 + 1;
  std::vector<float> input(static_cast<std::size_t>(rows) * columns);
  Signal whole(input.size());
  for (std::size_t i = 0; i < input.size(); ++i) whole[i] = input[i] = static_cast<float>(i * 29 % 97) / 48 - 1;
  TransformAxis(whole, columns, 1, -1);
  TransformAxis(whole, rows, columns, -1);
  Signal want;
  for (int row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < half; ++column)
      want.push_back(whole[row * static_cast<std::size_t>(columns) + column]);
  Buffer<float> real(input);
  Buffer<cufftComplex> spectrum(rows * half);
  cufftHandle forth, back;
  FFT(cufftPlan2d(&forth, rows, columns, CUFFT_R2C));
  FFT(cufftPlan2d(&back, rows, columns, CUFFT_C2R));
  FFT(cufftExecR2C(forth, real, spectrum));
  Compare("R2C", spectrum.Read(), want, 1e-3);
  FFT(cufftExecC2R(back, spectrum, real));
  const auto got = real.Read();
  for (std::size_t i = 0; i < input.size(); ++i)
    Near("C2R", static_cast<long>(i), got[i] / (rows * columns), input[i], 0, 1e-5);
  FFT(cufftDestroy(forth));
  FFT(cufftDestroy(back));
}

void Cube(int depth, int rows, int columns) {
  Signal want = MakeSignal(static_cast<std::size_t>(depth) * rows * columns);
  Buffer<cufftComplex> data(ToDevice<cufftComplex>(want));
  cufftHandle plan;
  FFT(cufftPlan3d(&plan, depth, rows, columns, CUFFT_C2C));
  FFT(cufftExecC2C(plan, data, data, CUFFT_FORWARD));
  TransformAxis(want, columns, 1, -1);
  TransformAxis(want, rows, columns, -1);
  TransformAxis(want, depth, static_cast<std::size_t>(rows) * columns, -1);
  Compare("C2C cube", data.Read(), want, 2e-3);
  FFT(cufftDestroy(plan));
}

int main() {
  ComplexBatch(64, 3);
  ComplexBatch(1024, 1);
  ComplexBatch(360, 2);
  ComplexBatch(211, 1);
  DoubleStrided(48, 5);
  RealPlane(32, 30);
  Cube(8, 6, 10);
  return Verdict();
}
