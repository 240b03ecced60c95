// cublas*syrk, herk, syr2k, her2k, syrkx, herkx: updates of one triangle of a symmetric or Hermitian matrix.
#include "interpose/blas/functions.h"
#include "interpose/blas/matrices.h"

namespace gridloom::blas {
namespace {

struct Update {
  int fill, op;
  Index n, k;
  const void* a;
  Index lda;
  const void* b;
  Index ldb;
  void* c;
  Index ldc;
  bool hermitian;
};

bool Valid(const Update& u) {
  return (u.fill == 0 || u.fill == 1) && KnownOp(u.op) && !(u.hermitian && u.op == kOpT) && u.n >= 0 && u.k >= 0 &&
         GoodLd(u.op, u.n, u.k, u.lda) && GoodLd(u.op, u.n, u.k, u.ldb) && u.ldc >= std::max<Index>(1, u.n);
}

/// op(x) * op(y)^T, or ^H, into the triangle.
Product Half(const Update& u, Types t, const void* x, Index ldx, const void* y, Index ldy) {
  Matrix left = UnderOp(x, t.matrix, u.op, ldx), right = Transposed(UnderOp(y, t.matrix, u.op, ldy));
  if (u.hermitian) right = Conjugated(right);
  Product product = Of(left, right, UnderOp(u.c, t.result, kOpN, u.ldc), u.n, u.n, u.k);
  product.triangle = u.fill == 0 ? Triangle::kLower : Triangle::kUpper;
  product.real_diagonal = u.hermitian;
  return product;
}

Status Run(const Call& call, Types t, const Update& u, const void* alpha, Element alpha_element, const void* beta,
           Element beta_element, bool both) {
  Settings settings{};
  if (const Status status = ReadSettings(call, &settings); status != kSuccess) return status;
  if (!Valid(u)) return kInvalidValue;
  if (u.n == 0) return kSuccess;
  if (alpha == nullptr || beta == nullptr) return kInvalidValue;
  Product product = Half(u, t, u.a, u.lda, u.b, u.ldb);
  product.alpha = FactorAt(alpha, alpha_element, settings.device_factors);
  product.beta = FactorAt(beta, beta_element, settings.device_factors);
  if (const Status status = Launch(call.name, product, settings.stream); status != kSuccess || !both) return status;
  // The other half: alpha op(b) op(a)^T, or conj(alpha) op(b) op(a)^H, on top.
  Product other = Half(u, t, u.b, u.ldb, u.a, u.lda);
  other.alpha = product.alpha;
  other.alpha.conjugate = u.hermitian;
  other.beta = One();
  return Launch(call.name, other, settings.stream);
}

}  // namespace

Status Syrk(const Call& call, Types t, int fill, int op, Index n, Index k, In alpha, In a, Index lda, In beta, Out c,
            Index ldc) {
  return Run(call, t, {fill, op, n, k, a, lda, a, lda, c, ldc, false}, alpha, t.factor, beta, t.factor, false);
}
Status Herk(const Call& call, Types t, int fill, int op, Index n, Index k, In alpha, In a, Index lda, In beta, Out c,
            Index ldc) {
  const Element real = RealOf(t.factor);
  return Run(call, t, {fill, op, n, k, a, lda, a, lda, c, ldc, true}, alpha, real, beta, real, false);
}
Status Syr2k(const Call& call, Types t, int fill, int op, Index n, Index k, In alpha, In a, Index lda, In b, Index ldb,
             In beta, Out c, Index ldc) {
  return Run(call, t, {fill, op, n, k, a, lda, b, ldb, c, ldc, false}, alpha, t.factor, beta, t.factor, true);
}
Status Her2k(const Call& call, Types t, int fill, int op, Index n, Index k, In alpha, In a, Index lda, In b, Index ldb,
             In beta, Out c, Index ldc) {
  return Run(call, t, {fill, op, n, k, a, lda, b, ldb, c, ldc, true}, alpha, t.factor, beta, RealOf(t.factor), true);
}
Status Syrkx(const Call& call, Types t, int fill, int op, Index n, Index k, In alpha, In a, Index lda, In b, Index ldb,
             In beta, Out c, Index ldc) {
  return Run(call, t, {fill, op, n, k, a, lda, b, ldb, c, ldc, false}, alpha, t.factor, beta, t.factor, false);
}
Status Herkx(const Call& call, Types t, int fill, int op, Index n, Index k, In alpha, In a, Index lda, In b, Index ldb,
             In beta, Out c, Index ldc) {
  return Run(call, t, {fill, op, n, k, a, lda, b, ldb, c, ldc, true}, alpha, t.factor, beta, RealOf(t.factor), false);
}

}  // namespace gridloom::blas
