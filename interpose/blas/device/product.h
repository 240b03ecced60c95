// What a matrix product is told, shared by the host (interpose/blas) and the kernels (product.cu). Plain data, 64-bit
// clean.
#pragma once

namespace gridloom::blas {

/// How one element lies in memory.
enum class Element : unsigned char { kF32, kF64, kF16, kBf16, kE4m3, kE5m2, kI8, kU8, kI32, kC32, kC64 };

enum class Triangle : unsigned char { kFull, kLower, kUpper };
/// What the elements outside of the stored triangle are: the mirrored ones, those conjugated, or zero.
enum class Outside : unsigned char { kMirrored, kConjugated, kZero };

/// Element (i, j) of matrix `batch` is at index start + i * row_stride + j * column_stride + batch * batch_stride, in
/// elements; with `by_pointer`, `address` is an array of pointers in device memory, one per matrix, and there is no
/// batch stride.
struct Matrix {
  unsigned long long address;
  long long start, row_stride, column_stride, batch_stride;
  Element element;
  bool conjugate;
  bool by_pointer;
  Triangle stored;  ///< only factors are stored in part
  Outside outside;
  bool unit_diagonal;  ///< the diagonal is 1 and not read
};

/// A factor: value[0] + i value[1], or, when address is not 0, read from device memory by the kernel.
struct Factor {
  unsigned long long address;
  long long row_stride;  ///< a factor for each row of the result, so many elements apart; 0: one for all
  double value[2];
  Element element;
  bool conjugate;
};

enum class Activation : unsigned char { kNone, kRelu, kGelu };

/// d = activation(alpha * a * b + beta * c + bias), for each of `batches`; a is m x k, b is k x n, c and d are m x n.
/// c is not read where beta is 0; a and b are not read where alpha is 0.
struct Product {
  Matrix a, b, c, d;
  Matrix bias;                   ///< one value a row (its column stride is 0); none when the address is 0
  unsigned long long scales[3];  ///< f32 numbers in device memory that multiply the product (2) and the result; 0: none
  Factor alpha, beta;
  long long m, n, k, batches;
  Triangle triangle;  ///< the part of d that is written
  Activation activation;
  bool real_diagonal;  ///< results of herk and the like: imaginary parts of the diagonal become 0
};

/// Solves a x = b in place of b, which is rows x columns: a is a triangle of at most kSolveRows rows.
struct Solve {
  Matrix a, b;
  long long rows, columns, batches;
};
inline constexpr int kSolveRows = 64;

inline constexpr int kTileRows = 32, kTileDepth = 32, kWarps = 16;
/// Columns of the result that one warp computes, by what its sums are kept in: as many as leave the sums in registers.
template <typename Sum>
inline constexpr int kWarpColumns = sizeof(Sum) <= 4   ? 8
                                    : sizeof(Sum) <= 8 ? 4
                                                       : 2;

}  // namespace gridloom::blas
