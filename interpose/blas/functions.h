// What each family of cuBLAS functions in functions.txt does. Parameters are those of the function after its handle,
// integers as 64-bit ones, enumerations by their numbers; Types is what the letter in the name says.
#pragma once

#include "interpose/blas/call.h"

namespace gridloom::blas {

using In = const void*;
using Out = void*;

Status Gemm(const Call&, Types, int op_a, int op_b, Index m, Index n, Index k, In alpha, In a, Index lda, In b,
            Index ldb, In beta, Out c, Index ldc);
Status GemmBatched(const Call&, Types, int op_a, int op_b, Index m, Index n, Index k, In alpha, In a, Index lda, In b,
                   Index ldb, In beta, Out c, Index ldc, Index batches);
Status GemmStrided(const Call&, Types, int op_a, int op_b, Index m, Index n, Index k, In alpha, In a, Index lda,
                   Index stride_a, In b, Index ldb, Index stride_b, In beta, Out c, Index ldc, Index stride_c,
                   Index batches);
Status GemmGrouped(const Call&, Types, In ops_a, In ops_b, In ms, In ns, In ks, In alphas, In a, In ldas, In b, In ldbs,
                   In betas, In c, In ldcs, Index groups, In sizes);
Status GemmTyped(const Call&, Types, int op_a, int op_b, Index m, Index n, Index k, In alpha, In a, int type_a,
                 Index lda, In b, int type_b, Index ldb, In beta, Out c, int type_c, Index ldc);
Status GemmEx(const Call&, int op_a, int op_b, Index m, Index n, Index k, In alpha, In a, int type_a, Index lda, In b,
              int type_b, Index ldb, In beta, Out c, int type_c, Index ldc, int compute, int algorithm);
Status GemmBatchedEx(const Call&, int op_a, int op_b, Index m, Index n, Index k, In alpha, In a, int type_a, Index lda,
                     In b, int type_b, Index ldb, In beta, Out c, int type_c, Index ldc, Index batches, int compute,
                     int algorithm);
Status GemmStridedEx(const Call&, int op_a, int op_b, Index m, Index n, Index k, In alpha, In a, int type_a, Index lda,
                     Index stride_a, In b, int type_b, Index ldb, Index stride_b, In beta, Out c, int type_c, Index ldc,
                     Index stride_c, Index batches, int compute, int algorithm);
Status GemmGroupedEx(const Call&, In ops_a, In ops_b, In ms, In ns, In ks, In alphas, In a, int type_a, In ldas, In b,
                     int type_b, In ldbs, In betas, In c, int type_c, In ldcs, Index groups, In sizes, int compute);

Status Gemv(const Call&, Types, int op, Index m, Index n, In alpha, In a, Index lda, In x, Index incx, In beta, Out y,
            Index incy);
Status GemvBatched(const Call&, Types, int op, Index m, Index n, In alpha, In a, Index lda, In x, Index incx, In beta,
                   Out y, Index incy, Index batches);
Status GemvStrided(const Call&, Types, int op, Index m, Index n, In alpha, In a, Index lda, Index stride_a, In x,
                   Index incx, Index stride_x, In beta, Out y, Index incy, Index stride_y, Index batches);

Status Syrk(const Call&, Types, int fill, int op, Index n, Index k, In alpha, In a, Index lda, In beta, Out c,
            Index ldc);
Status Herk(const Call&, Types, int fill, int op, Index n, Index k, In alpha, In a, Index lda, In beta, Out c,
            Index ldc);
Status Syr2k(const Call&, Types, int fill, int op, Index n, Index k, In alpha, In a, Index lda, In b, Index ldb,
             In beta, Out c, Index ldc);
Status Her2k(const Call&, Types, int fill, int op, Index n, Index k, In alpha, In a, Index lda, In b, Index ldb,
             In beta, Out c, Index ldc);
Status Syrkx(const Call&, Types, int fill, int op, Index n, Index k, In alpha, In a, Index lda, In b, Index ldb,
             In beta, Out c, Index ldc);
Status Herkx(const Call&, Types, int fill, int op, Index n, Index k, In alpha, In a, Index lda, In b, Index ldb,
             In beta, Out c, Index ldc);

Status Symm(const Call&, Types, int side, int fill, Index m, Index n, In alpha, In a, Index lda, In b, Index ldb,
            In beta, Out c, Index ldc);
Status Hemm(const Call&, Types, int side, int fill, Index m, Index n, In alpha, In a, Index lda, In b, Index ldb,
            In beta, Out c, Index ldc);
Status Trmm(const Call&, Types, int side, int fill, int op, int diagonal, Index m, Index n, In alpha, In a, Index lda,
            In b, Index ldb, Out c, Index ldc);
Status TrmmInPlace(const Call&, Types, int side, int fill, int op, int diagonal, Index m, Index n, In alpha, In a,
                   Index lda, Out b, Index ldb);
Status Trsm(const Call&, Types, int side, int fill, int op, int diagonal, Index m, Index n, In alpha, In a, Index lda,
            Out b, Index ldb);
Status TrsmBatched(const Call&, Types, int side, int fill, int op, int diagonal, Index m, Index n, In alpha, In a,
                   Index lda, In b, Index ldb, Index batches);

Status XtGemm(const Call&, Types, int op_a, int op_b, Index m, Index n, Index k, In alpha, In a, Index lda, In b,
              Index ldb, In beta, Out c, Index ldc);

Status LtMatmul(const Call&, In descriptor, In alpha, In a, In layout_a, In b, In layout_b, In beta, In c, In layout_c,
                Out d, In layout_d, In algorithm, In workspace, Index workspace_size, In stream);
Status LtHeuristic(const Call&, In descriptor, In layout_a, In layout_b, In layout_c, In layout_d, In preference,
                   Index wanted, Out results, Out count);
Status LtCheck(const Call&, In descriptor, In layout_a, In layout_b, In layout_c, In layout_d, In algorithm,
               Out result);

}  // namespace gridloom::blas
