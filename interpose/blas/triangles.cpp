// cublas*symm, hemm, trmm, trsm: one factor is stored as a triangle.
#include "interpose/blas/functions.h"
#include "interpose/blas/matrices.h"

namespace gridloom::blas {
namespace {

constexpr int kLeft = 0, kRight = 1;  // cublasSideMode_t
constexpr int kUnit = 1;              // cublasDiagType_t

struct Sides {
  int side, fill;
  Index m, n;
  Index order() const { return side == kLeft ? m : n; }
  bool Valid() const { return (side == kLeft || side == kRight) && (fill == 0 || fill == 1) && m >= 0 && n >= 0; }
};

/// C = alpha A B + beta C, or with B A.
Status Multiply(const Call& call, Types t, const Sides& s, Outside outside, const void* alpha, const void* a, Index lda,
                const void* b, Index ldb, const void* beta, void* c, Index ldc) {
  Settings settings{};
  if (const Status status = ReadSettings(call, &settings); status != kSuccess) return status;
  const Index least = std::max<Index>(1, s.m);
  if (!s.Valid() || lda < std::max<Index>(1, s.order()) || ldb < least || ldc < least) return kInvalidValue;
  if (s.m == 0 || s.n == 0) return kSuccess;
  if (alpha == nullptr || beta == nullptr) return kInvalidValue;
  Matrix triangle = UnderOp(a, t.matrix, kOpN, lda);
  triangle.stored = Stored(s.fill, kOpN);
  triangle.outside = outside;
  const Matrix other = UnderOp(b, t.matrix, kOpN, ldb), result = UnderOp(c, t.result, kOpN, ldc);
  Product product =
      s.side == kLeft ? Of(triangle, other, result, s.m, s.n, s.m) : Of(other, triangle, result, s.m, s.n, s.n);
  product.alpha = FactorAt(alpha, t.factor, settings.device_factors);
  product.beta = FactorAt(beta, t.factor, settings.device_factors);
  return Launch(call.name, product, settings.stream);
}

/// op(A), of which a triangle is stored and the rest is zero.
Matrix TriangleUnderOp(const void* a, Types t, int fill, int op, int diagonal, Index lda) {
  Matrix triangle = UnderOp(a, t.matrix, op, lda);
  triangle.stored = Stored(fill, op);
  triangle.outside = Outside::kZero;
  triangle.unit_diagonal = diagonal == kUnit;
  return triangle;
}

Status Scale(const Call& call, const Matrix& b, Index m, Index n, Index batches, const Factor& alpha,
             cuda::CUstream stream) {
  Product product = Of(b, b, b, m, n, 0);
  product.batches = batches;
  product.beta = alpha;
  return Launch(call.name, product, stream);
}

/// X of a X = b in place of b, in blocks of kSolveRows rows: the block itself, then its part in all rows to come.
Status SolveBlocks(const Call& call, const Matrix& a, const Matrix& b, Index rows, Index columns, Index batches,
                   cuda::CUstream stream) {
  const bool forward = a.stored == Triangle::kLower;
  for (Index done = 0; done < rows; done += kSolveRows) {
    const Index size = std::min<Index>(kSolveRows, rows - done), left = rows - done - size;
    const Index row = forward ? done : left;
    Solve solve{From(a, row, row), From(b, row, 0), size, columns, batches};
    if (const Status status = Launch(call.name, solve, stream); status != kSuccess) return status;
    if (left == 0) break;
    const Index rest = forward ? row + size : 0;
    Matrix beside = From(a, rest, row);
    beside.stored = Triangle::kFull;
    Product product = Of(beside, From(b, row, 0), From(b, rest, 0), left, columns, size);
    product.batches = batches;
    product.alpha.value[0] = -1;
    product.beta = One();
    if (const Status status = Launch(call.name, product, stream); status != kSuccess) return status;
  }
  return kSuccess;
}

Status SolveFor(const Call& call, Types t, const Sides& s, int op, int diagonal, const void* alpha, const void* a,
                Index lda, const void* b, Index ldb, Index batches, bool by_pointer) {
  Settings settings{};
  if (const Status status = ReadSettings(call, &settings); status != kSuccess) return status;
  if (!s.Valid() || !KnownOp(op) || diagonal < 0 || diagonal > kUnit || lda < std::max<Index>(1, s.order()) ||
      ldb < std::max<Index>(1, s.m) || batches < 0)
    return kInvalidValue;
  if (s.m == 0 || s.n == 0 || batches == 0) return kSuccess;
  if (alpha == nullptr) return kInvalidValue;
  Matrix triangle = TriangleUnderOp(a, t, s.fill, op, diagonal, lda), values = UnderOp(b, t.result, kOpN, ldb);
  triangle.by_pointer = values.by_pointer = by_pointer;
  const Factor factor = FactorAt(alpha, t.factor, settings.device_factors);
  if (const Status status = Scale(call, values, s.m, s.n, batches, factor, settings.stream); status != kSuccess)
    return status;
  if (s.side == kLeft) return SolveBlocks(call, triangle, values, s.m, s.n, batches, settings.stream);
  return SolveBlocks(call, Transposed(triangle), Transposed(values), s.n, s.m, batches,
                     settings.stream);  // X A = B: A^T X^T = B^T
}

}  // namespace

Status Symm(const Call& call, Types t, int side, int fill, Index m, Index n, In alpha, In a, Index lda, In b, Index ldb,
            In beta, Out c, Index ldc) {
  return Multiply(call, t, {side, fill, m, n}, Outside::kMirrored, alpha, a, lda, b, ldb, beta, c, ldc);
}
Status Hemm(const Call& call, Types t, int side, int fill, Index m, Index n, In alpha, In a, Index lda, In b, Index ldb,
            In beta, Out c, Index ldc) {
  return Multiply(call, t, {side, fill, m, n}, Outside::kConjugated, alpha, a, lda, b, ldb, beta, c, ldc);
}

/// c may be b itself: then the product is made beside it.
Status Trmm(const Call& call, Types t, int side, int fill, int op, int diagonal, Index m, Index n, In alpha, In a,
            Index lda, In b, Index ldb, Out c, Index ldc) {
  const Sides s{side, fill, m, n};
  Settings settings{};
  if (const Status status = ReadSettings(call, &settings); status != kSuccess) return status;
  const Index least = std::max<Index>(1, m);
  if (!s.Valid() || !KnownOp(op) || diagonal < 0 || diagonal > kUnit || lda < std::max<Index>(1, s.order()) ||
      ldb < least || ldc < least)
    return kInvalidValue;
  if (m == 0 || n == 0) return kSuccess;
  if (alpha == nullptr) return kInvalidValue;
  const Matrix triangle = TriangleUnderOp(a, t, fill, op, diagonal, lda), result = UnderOp(c, t.result, kOpN, ldc);
  Matrix other = UnderOp(b, t.matrix, kOpN, ldb);
  std::uint64_t copy = 0;
  if (b == c) {
    if (const Status status = Allocate(m * n * SizeOf(t.matrix), settings.stream, &copy); status != kSuccess)
      return status;
    Product product = Of(other, other, other, m, n, 0);
    other = UnderOp(nullptr, t.matrix, kOpN, m);
    other.address = copy;
    product.d = other;
    product.beta = One();
    if (const Status status = Launch(call.name, product, settings.stream); status != kSuccess) return status;
  }
  Product product = side == kLeft ? Of(triangle, other, result, m, n, m) : Of(other, triangle, result, m, n, n);
  product.alpha = FactorAt(alpha, t.factor, settings.device_factors);
  const Status status = Launch(call.name, product, settings.stream);
  return copy == 0 || status != kSuccess ? status : Free(copy, settings.stream);
}

Status TrmmInPlace(const Call& call, Types t, int side, int fill, int op, int diagonal, Index m, Index n, In alpha,
                   In a, Index lda, Out b, Index ldb) {
  return Trmm(call, t, side, fill, op, diagonal, m, n, alpha, a, lda, b, ldb, b, ldb);
}

Status Trsm(const Call& call, Types t, int side, int fill, int op, int diagonal, Index m, Index n, In alpha, In a,
            Index lda, Out b, Index ldb) {
  return SolveFor(call, t, {side, fill, m, n}, op, diagonal, alpha, a, lda, b, ldb, 1, false);
}
Status TrsmBatched(const Call& call, Types t, int side, int fill, int op, int diagonal, Index m, Index n, In alpha,
                   In a, Index lda, In b, Index ldb, Index batches) {
  return SolveFor(call, t, {side, fill, m, n}, op, diagonal, alpha, a, lda, b, ldb, batches, true);
}

}  // namespace gridloom::blas
