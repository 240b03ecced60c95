// Matrix products of cuBLAS against the host: types, operations, odd sizes, leading dimensions, batches, cuBLASLt.
#include <cstdio>

#include "cublas_matrix.h"

namespace {

struct Case {
  const char* name;
  Data in, out, factor;
  int compute;  ///< for cublasGemmEx; 0: `function`
  int (*function)(Handle, int, int, int, int, int, In, In, int, In, int, In, Out, int);
};

void TestGemm(Handle handle, Verdict* verdict, const Case& test, int op_a, int op_b, int m, int n, int k, Number alpha,
              Number beta, std::mt19937* random) {
  const Matrix a = Operand(test.in, op_a, m, k, random), b = Operand(test.in, op_b, k, n, random),
               c(test.out, m, n, 1, random);
  const FactorBytes x(alpha, test.factor), y(beta, test.factor);
  if (test.function != nullptr) {
    Check(verdict, test.name,
          test.function(handle, op_a, op_b, m, n, k, x.bytes, a.get(), a.ld, b.get(), b.ld, y.bytes, c.get(), c.ld));
  } else {
    Check(verdict, test.name,
          cublasGemmEx(handle, op_a, op_b, m, n, k, x.bytes, a.get(), a.type, a.ld, b.get(), b.type, b.ld, y.bytes,
                       c.get(), c.type, c.ld, test.compute, -1));
  }
  char what[128];
  std::snprintf(what, sizeof what, "%s %c%c %d x %d x %d", test.name, "NTC"[op_a], "NTC"[op_b], m, n, k);
  Compare(
      verdict, what, c,
      [&](int i, int j, int, Number* value) {
        *value = beta * *value + alpha * Sum(a, op_a, b, op_b, i, j, k);
        return true;
      },
      test.out);
}

void TestGemms(Handle handle, Verdict* verdict, std::mt19937* random) {
  const Case cases[] = {
      {"Sgemm", kF32, kF32, kF32, 0, &cublasSgemm_v2},     {"Dgemm", kF64, kF64, kF64, 0, &cublasDgemm_v2},
      {"Cgemm", kC32, kC32, kC32, 0, &cublasCgemm_v2},     {"Zgemm", kC64, kC64, kC64, 0, &cublasZgemm_v2},
      {"Hgemm", kF16, kF16, kF16, 0, &cublasHgemm},        {"GemmEx f16 f32", kF16, kF32, kF32, 68, nullptr},
      {"GemmEx f16", kF16, kF16, kF32, 68, nullptr},       {"GemmEx bf16", kBf16, kBf16, kF32, 68, nullptr},
      {"GemmEx bf16 f32", kBf16, kF32, kF32, 68, nullptr}, {"GemmEx i8 i32", kI8, kI32, kI32, 72, nullptr},
      {"GemmEx i8 f32", kI8, kF32, kF32, 68, nullptr}};
  for (const Case& test : cases) {
    const bool complex = IsComplex(test.factor);
    const Number alpha = complex ? Number(1.5, -0.5) : Number(2), beta = complex ? Number(-1, 2) : Number(-3);
    TestGemm(handle, verdict, test, kN, kN, 33, 130, 37, alpha, beta, random);
    TestGemm(handle, verdict, test, kT, kN, 65, 7, 64, alpha, 0, random);
    TestGemm(handle, verdict, test, kN, kT, 5, 40, 3, alpha, 1, random);
    TestGemm(handle, verdict, test, complex ? kC : kT, complex ? kC : kT, 31, 33, 100, 1, beta, random);
    TestGemm(handle, verdict, test, kN, kN, 1, 300, 20, 1, 0, random);
    TestGemm(handle, verdict, test, kT, kN, 40, 1, 70, 1, beta, random);
  }
  TestGemm(handle, verdict, cases[0], kN, kN, 10, 12, 0, 1, 2, random);
  TestGemm(handle, verdict, cases[0], kN, kN, 10, 12, 5, 0, 2, random);
  TestGemm(handle, verdict, cases[0], kN, kN, 0, 12, 5, 1, 2, random);
}

/// Batches by stride, by pointer and in groups; 64-bit integers; factors in device memory; a stream of its own.
void TestForms(Handle handle, Verdict* verdict, std::mt19937* random) {
  const int m = 20, n = 9, k = 17, count = 5;
  const FactorBytes one(1, kF32), two(2, kF32), one_double(1, kF64), two_double(2, kF64);
  const auto expect = [&](const Matrix& a, const Matrix& b) {
    return [&](int i, int j, int index, Number* value) {
      return *value = *value + 2.0 * Sum(a, kN, b, kN, i, j, k, index), true;
    };
  };
  {
    const Matrix a(kBf16, m, k, 0, random, count), b(kBf16, k, n, 1, random, count), c(kF32, m, n, 2, random, count);
    Check(
        verdict, "strided",
        cublasGemmStridedBatchedEx(handle, kN, kN, m, n, k, two.bytes, a.get(), kBf16, a.ld, a.stride(), b.get(), kBf16,
                                   b.ld, b.stride(), one.bytes, c.get(), kF32, c.ld, c.stride(), count, 68, -1));
    Compare(verdict, "strided", c, expect(a, b), kF32);
  }
  const auto pointers = [&](const Matrix& matrix) {
    std::vector<void*> all;
    for (int i = 0; i < matrix.count; ++i) all.push_back(matrix.get(i));
    return driver::Buffer<void*>(all);
  };
  {
    const Matrix a(kF64, m, k, 0, random, count), b(kF64, k, n, 1, random, count), c(kF64, m, n, 2, random, count);
    const auto pa = pointers(a), pb = pointers(b), pc = pointers(c);
    Check(verdict, "batched",
          cublasDgemmBatched(handle, kN, kN, m, n, k, two_double.bytes, reinterpret_cast<In>(pa.get()), a.ld,
                             reinterpret_cast<In>(pb.get()), b.ld, one_double.bytes, reinterpret_cast<Out>(pc.get()),
                             c.ld, count));
    Compare(verdict, "batched", c, expect(a, b), kF64);
  }
  {
    const Matrix a(kF32, m, k, 0, random, count), b(kF32, k, n, 1, random, count), c(kF32, m, n, 2, random, count);
    const auto pa = pointers(a), pb = pointers(b), pc = pointers(c);
    const int ops[] = {kN, kN}, ms[] = {m, m}, ns[] = {n, n}, ks[] = {k, k}, lda[] = {a.ld, a.ld}, ldb[] = {b.ld, b.ld},
              ldc[] = {c.ld, c.ld}, sizes[] = {2, 3};
    const float alphas[] = {2, 2}, betas[] = {1, 1};
    Check(verdict, "grouped",
          cublasSgemmGroupedBatched(handle, ops, ops, ms, ns, ks, alphas, reinterpret_cast<In>(pa.get()), lda,
                                    reinterpret_cast<In>(pb.get()), ldb, betas, reinterpret_cast<In>(pc.get()), ldc, 2,
                                    sizes));
    Compare(verdict, "grouped", c, expect(a, b), kF32);
  }
  {
    const Matrix a(kF32, m, k, 0, random), b(kF32, k, n, 1, random), c(kF32, m, n, 2, random);
    const driver::Buffer<float> factors(std::vector<float>{2, 1});
    void* stream = nullptr;
    driver::Call("cuStreamCreate", &stream, 1u);
    Check(verdict, "stream", cublasSetStream_v2(handle, stream) + cublasSetPointerMode_v2(handle, 1));
    Check(verdict, "64",
          cublasSgemm_v2_64(handle, kN, kN, m, n, k, reinterpret_cast<In>(factors.get()), a.get(), a.ld, b.get(), b.ld,
                            reinterpret_cast<In>(factors.get() + 4), c.get(), c.ld));
    driver::Call("cuStreamSynchronize", stream);
    Compare(verdict, "64", c, expect(a, b), kF32);
    Check(verdict, "stream", cublasSetStream_v2(handle, nullptr) + cublasSetPointerMode_v2(handle, 0));
  }
  const Matrix a(kF32, m, k, 0, random), b(kF32, k, n, 1, random), c(kF32, m, n, 2, random);
  const int status =
      cublasSgemm_v2(handle, kN, kN, m, n, k, two.bytes, a.get(), m - 1, b.get(), b.ld, one.bytes, c.get(), c.ld);
  if (status != 7) Check(verdict, "a leading dimension that is too small", status == 0 ? -1 : status);
}

template <typename Function>
void TestGemv(Handle handle, Verdict* verdict, const char* name, Function function, Data type, int op, int m, int n,
              int incx, int incy, std::mt19937* random) {
  const int in = op == kN ? n : m, out = op == kN ? m : n;
  const Matrix a(type, m, n, 3, random), x(type, std::abs(incx), in, 0, random),
      y(type, std::abs(incy), out, 0, random);
  const Number alpha = IsComplex(type) ? Number(1, 2) : Number(1.5),
               beta = IsComplex(type) ? Number(0, -1) : Number(0.5);
  const FactorBytes f(alpha, type), g(beta, type);
  Check(verdict, name, function(handle, op, m, n, f.bytes, a.get(), a.ld, x.get(), incx, g.bytes, y.get(), incy));
  const auto place = [](int i, int length, int increment) { return increment > 0 ? i : length - 1 - i; };
  Compare(
      verdict, name, y,
      [&](int i, int j, int, Number* value) {
        if (i != 0) return false;
        Number sum = 0;
        for (int l = 0; l < in; ++l) sum += a.Under(op, place(j, out, incy), l) * x.At(0, place(l, in, incx));
        return *value = beta * *value + alpha * sum, true;
      },
      type);
}

void TestVectors(Handle handle, Verdict* verdict, std::mt19937* random) {
  TestGemv(handle, verdict, "Sgemv N", cublasSgemv_v2, kF32, kN, 70, 33, 1, 1, random);
  TestGemv(handle, verdict, "Sgemv T", cublasSgemv_v2, kF32, kT, 70, 33, 2, -3, random);
  TestGemv(handle, verdict, "Zgemv C", cublasZgemv_v2, kC64, kC, 12, 45, -1, 2, random);
  const int m = 19, n = 6, count = 3;
  const Matrix a(kF16, m, n, 0, random, count), x(kF16, n, 1, 0, random, count), y(kF32, m, 1, 0, random, count);
  const FactorBytes one(1, kF32), two(2, kF32);
  Check(verdict, "HSSgemv",
        cublasHSSgemvStridedBatched(handle, kN, m, n, two.bytes, a.get(), a.ld, a.stride(), x.get(), 1, n, one.bytes,
                                    y.get(), 1, m, count));
  Compare(
      verdict, "HSSgemv", y,
      [&](int i, int j, int index, Number* value) { return *value += 2.0 * Sum(a, kN, x, kN, i, j, n, index), true; },
      kF32);
}

/// cublasLtMatmul: bias, activation, scales of 8-bit types. Of these cuBLAS takes what its manual lists: never twice
/// E5M2, sizes that are multiples of 16, for results of 8 bits a C of 16.
void TestLt(Handle handle, Verdict* verdict, Data in, Data in_b, Data out, bool scaled, unsigned epilogue,
            std::mt19937* random) {
  const int m = 48, n = scaled ? 32 : 29, k = 64;
  const Data type_c = out == kE4m3 ? kBf16 : out;
  const Matrix a(in, k, m, 0, random), b(in_b, k, n, 0, random), c(out, m, n, 0, random), bias(out, m, 1, 0, random);
  const Matrix unused(type_c, m, n, 0, random);
  const driver::Buffer<float> scales(std::vector<float>{0.5f, 4.0f});
  Handle product = nullptr, layout_a = nullptr, layout_b = nullptr, layout_c = nullptr, layout_d = nullptr,
         preference = nullptr;
  int status = cublasLtMatmulDescCreate(&product, 68, kF32) + cublasLtMatrixLayoutCreate(&layout_a, in, k, m, a.ld) +
               cublasLtMatrixLayoutCreate(&layout_b, in_b, k, n, b.ld) +
               cublasLtMatrixLayoutCreate(&layout_c, type_c, m, n, c.ld) +
               cublasLtMatrixLayoutCreate(&layout_d, out, m, n, c.ld) + cublasLtMatmulPreferenceCreate(&preference);
  const int op = kT;
  const driver::Pointer places[] = {scales.get(), scales.get() + 4, bias.device.get()};
  status += cublasLtMatmulDescSetAttribute(product, 3, &op, sizeof op) +
            cublasLtMatmulDescSetAttribute(product, 7, &epilogue, sizeof epilogue);
  if ((epilogue & 4) != 0) status += cublasLtMatmulDescSetAttribute(product, 8, &places[2], sizeof places[2]);
  if (scaled) {
    status += cublasLtMatmulDescSetAttribute(product, 17, &places[0], sizeof places[0]) +
              cublasLtMatmulDescSetAttribute(product, 18, &places[1], sizeof places[1]);
  }
  Check(verdict, "descriptors", status);
  char results[4][96];
  int found = 0;
  Check(verdict, "heuristic",
        cublasLtMatmulAlgoGetHeuristic(handle, product, layout_a, layout_b, layout_c, layout_d, preference, 4, results,
                                       &found));
  if (found < 1) Check(verdict, "no algorithm", -1);
  const FactorBytes alpha(0.25, kF32), beta(0, kF32);
  Check(verdict, "LtMatmul",
        cublasLtMatmul(handle, product, alpha.bytes, a.get(), layout_a, b.get(), layout_b, beta.bytes,
                       type_c == out ? c.get() : unused.get(), layout_c, c.get(), layout_d, results[0], nullptr, 0,
                       nullptr));
  char what[64];
  std::snprintf(what, sizeof what, "LtMatmul type %d epilogue %u", in, epilogue);
  Compare(
      verdict, what, c,
      [&](int i, int j, int, Number* value) {
        double sum = (scaled ? 0.5 : 0.25) * Sum(a, kT, b, kN, i, j, k).real();
        if ((epilogue & 4) != 0) sum += bias.At(i, 0).real();
        if ((epilogue & 2) != 0) sum = std::max(sum, 0.0);
        if ((epilogue & 32) != 0)
          sum = 0.5 * sum * (1 + std::tanh(std::sqrt(2 / M_PI) * (sum + 0.044715 * sum * sum * sum)));
        return *value = sum, true;
      },
      out == kF32 ? kF16 : out);
  cublasLtMatmulDescDestroy(product);
  for (Handle layout : {layout_a, layout_b, layout_c, layout_d}) cublasLtMatrixLayoutDestroy(layout);
  cublasLtMatmulPreferenceDestroy(preference);
}

/// cublas.h: letters for operations, factors by value, no handle.
void TestFirstInterface(Verdict* verdict, std::mt19937* random) {
  Check(verdict, "cublasInit", cublasInit());
  const int m = 34, n = 21, k = 19;
  const auto test = [&](const char* name, Data type, int op_a, Number alpha, Number beta, auto run) {
    const Matrix a = Operand(type, op_a, m, k, random), b(type, k, n, 1, random), c(type, m, n, 2, random);
    run(a, b, c);
    const auto expected = [&](int i, int j, int, Number* value) {
      return *value = beta * *value + alpha * Sum(a, op_a, b, kN, i, j, k), true;
    };
    Compare(verdict, name, c, expected, type);
  };
  test("first Sgemm", kF32, kT, 2, -1, [&](auto& a, auto& b, auto& c) {
    cublasSgemm('T', 'n', m, n, k, 2.0f, a.get(), a.ld, b.get(), b.ld, -1.0f, c.get(), c.ld);
  });
  test("first Cgemm", kC32, kN, Number(1, 2), Number(0, -1), [&](auto& a, auto& b, auto& c) {
    cublasCgemm('n', 'N', m, n, k, {1, 2}, a.get(), a.ld, b.get(), b.ld, {0, -1}, c.get(), c.ld);
  });
  test("first Zgemm", kC64, kC, Number(1, 2), Number(0, -1), [&](auto& a, auto& b, auto& c) {
    cublasZgemm('c', 'n', m, n, k, {1, 2}, a.get(), a.ld, b.get(), b.ld, {0, -1}, c.get(), c.ld);
  });
  const Matrix a(kF64, m, m, 1, random), b(kF64, m, n, 1, random);
  cublasDtrmm('L', 'u', 'N', 'U', m, n, 1.5, a.get(), a.ld, b.get(), b.ld);
  const auto expected = [&](int i, int j, int, Number* value) {
    *value = b.At(i, j);
    for (int l = i + 1; l < m; ++l) *value += a.At(i, l) * b.At(l, j);
    return *value *= 1.5, true;
  };
  Compare(verdict, "first Dtrmm", b, expected, kF64);
}

/// Who looks a function up by its name gets the same one (in builds for sanitizers, dlsym is theirs).
void TestLookUp([[maybe_unused]] Verdict* verdict) {
#ifndef __SANITIZE_ADDRESS__
  void* const library = dlopen("libcublas.so.13", RTLD_NOW);
  if (library == nullptr || dlsym(library, "cublasSgemm_v2") != reinterpret_cast<void*>(&cublasSgemm_v2))
    Check(verdict, "dlsym", -1);
  if (library != nullptr && dlsym(library, "cublasNoSuchFunction") != nullptr)
    Check(verdict, "dlsym of what is not there", -1);
#endif
}

}  // namespace

int main() {
  driver::Call("cuInit", 0u);
  driver::Device device = 0;
  driver::Call("cuDeviceGet", &device, 0);
  driver::Handle context = nullptr;
  driver::Call("cuDevicePrimaryCtxRetain", &context, device);
  driver::Call("cuCtxSetCurrent", context);
  Handle handle = nullptr;
  Verdict verdict;
  Check(&verdict, "create", cublasCreate_v2(&handle));
  std::mt19937 random(7);
  TestGemms(handle, &verdict, &random);
  TestForms(handle, &verdict, &random);
  TestVectors(handle, &verdict, &random);
  TestUpdates(handle, &verdict, &random);
  TestFactors(handle, &verdict, &random);
  TestFirstInterface(&verdict, &random);
  TestLookUp(&verdict);
  for (const unsigned epilogue : {1u, 2u, 6u, 32u, 36u})
    TestLt(handle, &verdict, kF32, kF32, kF32, false, epilogue, &random);
  TestLt(handle, &verdict, kF16, kF16, kF16, false, 6, &random);
  TestLt(handle, &verdict, kBf16, kBf16, kBf16, false, 36, &random);
  TestLt(handle, &verdict, kE4m3, kE4m3, kBf16, true, 6, &random);
  TestLt(handle, &verdict, kE5m2, kE4m3, kF32, true, 1, &random);
  TestLt(handle, &verdict, kE4m3, kE4m3, kE4m3, true, 1, &random);
  Check(&verdict, "destroy", cublasDestroy_v2(handle));
  return driver::Verdict("cuBLAS's products", verdict.bad, verdict.checks);
}
