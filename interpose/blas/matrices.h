// How cuBLAS's arguments describe matrices: column-major, under an operation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "interpose/blas/call.h"

namespace gridloom::blas {

inline Triangle Flipped(Triangle triangle) {
  if (triangle == Triangle::kFull) return triangle;
  return triangle == Triangle::kLower ? Triangle::kUpper : Triangle::kLower;
}

/// `address` column-major with leading dimension `ld`; strides of a matrix of op(A).
inline Matrix UnderOp(const void* address, Element element, int op, Index ld) {
  Matrix matrix{};
  matrix.address = reinterpret_cast<std::uintptr_t>(address);
  matrix.element = element;
  matrix.row_stride = op == kOpN ? 1 : ld;
  matrix.column_stride = op == kOpN ? ld : 1;
  matrix.conjugate = op == kOpC && IsComplex(element);
  return matrix;
}
/// cublasFillMode_t's triangle of a matrix before its operation.
inline Triangle Stored(int fill, int op) {
  const Triangle triangle = fill == 0 ? Triangle::kLower : Triangle::kUpper;
  return op == kOpN ? triangle : Flipped(triangle);
}
/// The part that begins at (row, column).
inline Matrix From(Matrix matrix, Index row, Index column) {
  matrix.start += row * matrix.row_stride + column * matrix.column_stride;
  return matrix;
}

inline Matrix Batched(Matrix matrix, Index stride) {
  matrix.batch_stride = stride;
  return matrix;
}
inline Matrix Transposed(Matrix matrix) {
  std::swap(matrix.row_stride, matrix.column_stride);
  matrix.stored = Flipped(matrix.stored);
  return matrix;
}
inline Matrix Conjugated(Matrix matrix) {
  matrix.conjugate = matrix.conjugate != IsComplex(matrix.element);
  return matrix;
}

inline bool KnownOp(int op) { return op >= kOpN && op <= kOpC; }
/// Whether a leading dimension holds what op makes `rows` x `columns`.
inline bool GoodLd(int op, Index rows, Index columns, Index ld) {
  return ld >= std::max<Index>(1, op == kOpN ? rows : columns);
}

/// The product a * b, which the caller completes.
inline Product Of(const Matrix& a, const Matrix& b, const Matrix& c, Index m, Index n, Index k) {
  Product product{};
  product.a = a;
  product.b = b;
  product.c = product.d = c;
  product.m = m;
  product.n = n;
  product.k = k;
  product.batches = 1;
  return product;
}

/// Whether one kernel can make this product: it converts factors to what it sums in, f32 for all but those named.
bool CanMultiply(Element a, Element b, Element c, Element d);

}  // namespace gridloom::blas
