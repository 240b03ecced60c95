// cublas*gemv*: y = alpha op(A) x + beta y, a product with one column.
#include "interpose/blas/functions.h"
#include "interpose/blas/matrices.h"

namespace gridloom::blas {
namespace {

struct Vector {
  const void* address;
  Element element;
  Index length, increment;
  Index stride = 0;
};

/// A vector as a column. With a negative increment its first element is the last in memory.
Matrix Column(const Vector& v) {
  Matrix matrix{};
  matrix.address = reinterpret_cast<std::uintptr_t>(v.address);
  matrix.start = v.increment < 0 ? (1 - v.length) * v.increment : 0;
  matrix.element = v.element;
  matrix.row_stride = v.increment;
  matrix.column_stride = 1;
  matrix.batch_stride = v.stride;
  return matrix;
}

Status Run(const Call& call, Types t, int op, Index m, Index n, const void* alpha, const Matrix& a, Index lda, Vector x,
           const void* beta, Vector y, Index batches, bool by_pointer) {
  Settings settings{};
  if (const Status status = ReadSettings(call, &settings); status != kSuccess) return status;
  if (!KnownOp(op) || m < 0 || n < 0 || lda < std::max<Index>(1, m) || x.increment == 0 || y.increment == 0 ||
      batches < 0)
    return kInvalidValue;
  if (m == 0 || n == 0 || batches == 0) return kSuccess;
  if (alpha == nullptr || beta == nullptr) return kInvalidValue;
  x.length = op == kOpN ? n : m;
  y.length = op == kOpN ? m : n;
  Product product = Of(a, Column(x), Column(y), y.length, 1, x.length);
  product.batches = batches;
  product.a.by_pointer = product.b.by_pointer = product.c.by_pointer = product.d.by_pointer = by_pointer;
  product.alpha = FactorAt(alpha, t.factor, settings.device_factors);
  product.beta = FactorAt(beta, t.factor, settings.device_factors);
  return Launch(call.name, product, settings.stream);
}

}  // namespace

Status Gemv(const Call& call, Types t, int op, Index m, Index n, In alpha, In a, Index lda, In x, Index incx, In beta,
            Out y, Index incy) {
  return Run(call, t, op, m, n, alpha, UnderOp(a, t.matrix, op, lda), lda, {x, t.matrix, 0, incx}, beta,
             {y, t.result, 0, incy}, 1, false);
}

Status GemvBatched(const Call& call, Types t, int op, Index m, Index n, In alpha, In a, Index lda, In x, Index incx,
                   In beta, Out y, Index incy, Index batches) {
  return Run(call, t, op, m, n, alpha, UnderOp(a, t.matrix, op, lda), lda, {x, t.matrix, 0, incx}, beta,
             {y, t.result, 0, incy}, batches, true);
}

Status GemvStrided(const Call& call, Types t, int op, Index m, Index n, In alpha, In a, Index lda, Index stride_a, In x,
                   Index incx, Index stride_x, In beta, Out y, Index incy, Index stride_y, Index batches) {
  return Run(call, t, op, m, n, alpha, Batched(UnderOp(a, t.matrix, op, lda), stride_a), lda,
             {x, t.matrix, 0, incx, stride_x}, beta, {y, t.result, 0, incy, stride_y}, batches, false);
}

}  // namespace gridloom::blas
