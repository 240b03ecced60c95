// Products of cuBLAS with triangles: those that update one, and those with a factor of which one is stored.
#include "cublas_matrix.h"

namespace {

/// C = alpha op(A) op(B)^T (and the like) + beta C in one triangle.
template <typename Run>
void TestTriangle(Verdict* verdict, const char* name, Data type, int op, bool hermitian, bool both, bool same,
                  Number alpha, Number beta, int fill, std::mt19937* random, Run run) {
  const int n = 45, k = 21;
  const Matrix a = Operand(type, op, n, k, random), b = Operand(type, op, n, k, random), c(type, n, n, 1, random);
  Check(verdict, name, run(fill, n, k, a, same ? a : b, c));
  const auto half = [&](const Matrix& x, const Matrix& y, int i, int j) {
    Number sum = 0;
    for (int l = 0; l < k; ++l)
      sum += x.Under(op, i, l) * (hermitian ? std::conj(y.Under(op, j, l)) : y.Under(op, j, l));
    return sum;
  };
  const auto expected = [&](int i, int j, int, Number* value) {
    if (fill == 0 ? i < j : i > j) return false;
    Number result = beta * *value + alpha * half(a, same ? a : b, i, j);
    if (both) result += (hermitian ? std::conj(alpha) : alpha) * half(b, a, i, j);
    *value = hermitian && i == j ? Number(result.real()) : result;
    return true;
  };
  Compare(verdict, name, c, expected, type);
}

/// A factor of which a triangle is stored, as the numbers it stands for.
struct Factor {
  const Matrix& a;
  int fill, op;
  bool hermitian, zero, unit;
  Number operator()(int i, int j) const {
    if (op != kN) std::swap(i, j);
    Number value = a.At(i, j);
    if (i == j && unit) value = 1;
    if (i == j && hermitian) value = value.real();
    if (fill == 0 ? i < j : i > j) value = zero ? Number(0) : hermitian ? std::conj(a.At(j, i)) : a.At(j, i);
    return op == kC ? std::conj(value) : value;
  }
};

/// Element (i, j) of the factor times b, or of b times the factor.
template <typename Element>
Number Times(const Factor& factor, int side, const Element& b, int order, int i, int j) {
  Number sum = 0;
  for (int l = 0; l < order; ++l) sum += side == 0 ? factor(i, l) * b(l, j) : b(i, l) * factor(l, j);
  return sum;
}

/// run(side, fill, m, n, a, b, c): C = alpha A B + beta C.
template <typename Run>
void TestSymmetric(Verdict* verdict, const char* name, Data type, bool hermitian, Number alpha, Number beta,
                   std::mt19937* random, Run run) {
  for (const int side : {0, 1}) {
    for (const int fill : {0, 1}) {
      const int m = 40, n = 35, order = side == 0 ? m : n;
      const Matrix a(type, order, order, 2, random), b(type, m, n, 1, random), c(type, m, n, 3, random);
      Check(verdict, name, run(side, fill, m, n, a, b, c));
      const Factor factor{a, fill, kN, hermitian, false, false};
      const auto expected = [&](int i, int j, int, Number* value) {
        *value = beta * *value + alpha * Times(
                                             factor, side, [&](int r, int q) { return b.At(r, q); }, order, i, j);
        return true;
      };
      Compare(verdict, name, c, expected, type);
    }
  }
}

/// cublasDtrmm beside its factor and in its place.
void TestTriangular(Handle handle, Verdict* verdict, int side, int fill, int op, bool unit, std::mt19937* random) {
  const int m = 70, n = 37, order = side == 0 ? m : n;
  const double alpha = 1.5;
  const Matrix a(kF64, order, order, 2, random), b(kF64, m, n, 1, random), c(kF64, m, n, 1, random);
  const Factor factor{a, fill, op, false, true, unit};
  const auto product = [&](int i, int j, int, Number* value) {
    *value = alpha * Times(
                         factor, side, [&](int r, int q) { return b.At(r, q); }, order, i, j);
    return true;
  };
  Check(verdict, "Dtrmm",
        cublasDtrmm_v2(handle, side, fill, op, unit, m, n, &alpha, a.get(), a.ld, b.get(), b.ld, c.get(), c.ld));
  Compare(verdict, "Dtrmm", c, product, kF64);
  Check(verdict, "Dtrmm in place",
        cublasDtrmm_v2(handle, side, fill, op, unit, m, n, &alpha, a.get(), a.ld, b.get(), b.ld, b.get(), b.ld));
  Compare(verdict, "Dtrmm in place", b, product, kF64);
}

using TrsmFunction = int(Handle, int, int, int, int, int, int, In, In, int, Out, int);

/// cublas?trsm: what it found, multiplied by the factor, must be what was given.
template <typename Value>
void TestSolve(Handle handle, Verdict* verdict, const char* name, TrsmFunction* solve, Data type, int side, int fill,
               int op, bool unit, Number alpha, std::mt19937* random) {
  const int m = 130, n = 70, order = side == 0 ? m : n;
  Matrix a(type, order, order, 2, random);
  const Matrix b(type, m, n, 1, random);
  for (int j = 0; j < order; ++j) {  // a strong diagonal, so that errors do not grow
    for (int i = 0; i < order; ++i) {
      char* const at = a.host.data() + (i + static_cast<std::size_t>(j) * a.ld) * SizeOf(type);
      Put(at, i == j ? Value(4) : Get<Value>(at) / Value(200));
    }
  }
  driver::Call("cuMemcpyHtoD_v2", a.device.get(), static_cast<In>(a.host.data()), a.host.size());
  const FactorBytes factor_bytes(alpha, type);
  Check(verdict, name, solve(handle, side, fill, op, unit, m, n, factor_bytes.bytes, a.get(), a.ld, b.get(), b.ld));
  const auto solution = b.device.Read();
  const Factor factor{a, fill, op, false, true, unit};
  const auto found = [&](int i, int j) { return Load(solution.data(), i + static_cast<std::size_t>(j) * b.ld, type); };
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; ++i, ++verdict->checks) {
      const Number wanted = alpha * b.At(i, j), got = Times(factor, side, found, order, i, j);
      const double limit = (type == kF32 ? 2e-5 : 1e-12) * (std::abs(wanted) + 1);
      if (!(std::abs(got - wanted) <= limit) && ++verdict->bad < 8)
        std::fprintf(stderr, "%s: side %d fill %d op %d, (%d, %d): %g, expected %g\n", name, side, fill, op, i, j,
                     got.real(), wanted.real());
    }
  }
}

}  // namespace

void TestUpdates(Handle handle, Verdict* verdict, std::mt19937* random) {
  const FactorBytes two(2, kF32), half(0.5, kF32), two_double(2, kF64), half_double(0.5, kF64);
  const Number alpha(1, -2);
  const FactorBytes x(alpha, kC64);
  for (const int fill : {0, 1}) {
    for (const int op : {kN, kT}) {
      TestTriangle(verdict, "Ssyrk", kF32, op, false, false, true, 2, 0.5, fill, random,
                   [&](int f, int n, int k, auto& a, auto&, auto& c) {
                     return cublasSsyrk_v2(handle, f, op, n, k, two.bytes, a.get(), a.ld, half.bytes, c.get(), c.ld);
                   });
      TestTriangle(verdict, "Ssyrkx", kF32, op, false, false, false, 2, 0.5, fill, random,
                   [&](int f, int n, int k, auto& a, auto& b, auto& c) {
                     return cublasSsyrkx(handle, f, op, n, k, two.bytes, a.get(), a.ld, b.get(), b.ld, half.bytes,
                                         c.get(), c.ld);
                   });
      TestTriangle(verdict, "Dsyr2k", kF64, op, false, true, false, 2, 0.5, fill, random,
                   [&](int f, int n, int k, auto& a, auto& b, auto& c) {
                     return cublasDsyr2k_v2(handle, f, op, n, k, two_double.bytes, a.get(), a.ld, b.get(), b.ld,
                                            half_double.bytes, c.get(), c.ld);
                   });
      const int adjoint = op == kN ? kN : kC;
      TestTriangle(verdict, "Cherk", kC32, adjoint, true, false, true, 2, 0.5, fill, random,
                   [&](int f, int n, int k, auto& a, auto&, auto& c) {
                     return cublasCherk_v2(handle, f, adjoint, n, k, two.bytes, a.get(), a.ld, half.bytes, c.get(),
                                           c.ld);
                   });
      TestTriangle(verdict, "Zher2k", kC64, adjoint, true, true, false, alpha, 0.5, fill, random,
                   [&](int f, int n, int k, auto& a, auto& b, auto& c) {
                     return cublasZher2k_v2(handle, f, adjoint, n, k, x.bytes, a.get(), a.ld, b.get(), b.ld,
                                            half_double.bytes, c.get(), c.ld);
                   });
    }
  }
}

void TestFactors(Handle handle, Verdict* verdict, std::mt19937* random) {
  const FactorBytes two(2, kF32), half(0.5, kF32), x(Number(1, -2), kC64), y(Number(0, 1), kC64);
  TestSymmetric(verdict, "Ssymm", kF32, false, 2, 0.5, random,
                [&](int side, int fill, int m, int n, auto& a, auto& b, auto& c) {
                  return cublasSsymm_v2(handle, side, fill, m, n, two.bytes, a.get(), a.ld, b.get(), b.ld, half.bytes,
                                        c.get(), c.ld);
                });
  TestSymmetric(verdict, "Zhemm", kC64, true, Number(1, -2), Number(0, 1), random,
                [&](int side, int fill, int m, int n, auto& a, auto& b, auto& c) {
                  return cublasZhemm_v2(handle, side, fill, m, n, x.bytes, a.get(), a.ld, b.get(), b.ld, y.bytes,
                                        c.get(), c.ld);
                });
  for (int i = 0; i < 16; ++i) {
    const int side = i & 1, fill = i >> 1 & 1, op = (i >> 2 & 1) != 0 ? kT : kN;
    const bool unit = i >> 3 != 0;
    TestTriangular(handle, verdict, side, fill, op, unit, random);
    TestSolve<double>(handle, verdict, "Dtrsm", &cublasDtrsm_v2, kF64, side, fill, op, unit, 1.5, random);
    if (i < 8)
      TestSolve<Number>(handle, verdict, "Ztrsm", &cublasZtrsm_v2, kC64, side, fill, op == kT ? kC : kN, false,
                        Number(1, 1), random);
    if (i < 2) TestSolve<float>(handle, verdict, "Strsm", &cublasStrsm_v2, kF32, side, fill, op, unit, 2, random);
  }
}
