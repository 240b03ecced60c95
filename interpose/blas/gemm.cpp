// cublas*gemm*: C = alpha op(A) op(B) + beta C.
#include <cstring>

#include "interpose/base/log.h"
#include "interpose/blas/functions.h"
#include "interpose/blas/matrices.h"

namespace gridloom::blas {
namespace {

/// The arguments that all forms share.
struct Shape {
  int op_a, op_b;
  Index m, n, k;
};
struct Operand {
  const void* address;
  Element element;
  Index ld;
  Index stride = 0;
};

bool Valid(const Shape& s, Index lda, Index ldb, Index ldc, Index batches) {
  return KnownOp(s.op_a) && KnownOp(s.op_b) && s.m >= 0 && s.n >= 0 && s.k >= 0 && batches >= 0 &&
         GoodLd(s.op_a, s.m, s.k, lda) && GoodLd(s.op_b, s.k, s.n, ldb) && ldc >= std::max<Index>(1, s.m);
}

Status Refuse(const char* name) {
  GL_LOG(kError, "%s: this combination of element types is not supported", name);
  return kNotSupported;
}

Product Describe(const Shape& s, const Operand& a, const Operand& b, const Operand& c, Index batches, bool by_pointer) {
  Product product = Of(Batched(UnderOp(a.address, a.element, s.op_a, a.ld), a.stride),
                       Batched(UnderOp(b.address, b.element, s.op_b, b.ld), b.stride),
                       Batched(UnderOp(c.address, c.element, kOpN, c.ld), c.stride), s.m, s.n, s.k);
  product.batches = batches;
  product.a.by_pointer = product.b.by_pointer = product.c.by_pointer = product.d.by_pointer = by_pointer;
  return product;
}

Status Run(const Call& call, const Shape& s, Element factor, const void* alpha, const Operand& a, const Operand& b,
           const void* beta, const Operand& c, Index batches, bool by_pointer) {
  Settings settings{};
  if (const Status status = ReadSettings(call, &settings); status != kSuccess) return status;
  if (!Valid(s, a.ld, b.ld, c.ld, batches)) return kInvalidValue;
  if (s.m == 0 || s.n == 0 || batches == 0) return kSuccess;
  if (alpha == nullptr || beta == nullptr) return kInvalidValue;
  if (!CanMultiply(a.element, b.element, c.element, c.element)) return Refuse(call.name);
  Product product = Describe(s, a, b, c, batches, by_pointer);
  product.alpha = FactorAt(alpha, factor, settings.device_factors);
  product.beta = FactorAt(beta, factor, settings.device_factors);
  return Launch(call.name, product, settings.stream);
}

/// Run for functions that are told their types.
Status RunTyped(const Call& call, const Shape& s, std::optional<Element> factor, const void* alpha, const void* a,
                int type_a, Index lda, Index stride_a, const void* b, int type_b, Index ldb, Index stride_b,
                const void* beta, const void* c, int type_c, Index ldc, Index stride_c, Index batches,
                bool by_pointer) {
  const auto element_a = ElementOf(type_a), element_b = ElementOf(type_b), element_c = ElementOf(type_c);
  if (!element_a || !element_b || !element_c || !factor) return Refuse(call.name);
  return Run(call, s, *factor, alpha, {a, *element_a, lda, stride_a}, {b, *element_b, ldb, stride_b}, beta,
             {c, *element_c, ldc, stride_c}, batches, by_pointer);
}

bool ComplexType(int type) {
  const auto element = ElementOf(type);
  return element && IsComplex(*element);
}

/// Entry `i` of an array of integers of the function's width.
Index At(const Call& call, const void* array, Index i) {
  return call.wide ? static_cast<const std::int64_t*>(array)[i] : static_cast<const int*>(array)[i];
}

}  // namespace

bool CanMultiply(Element a, Element b, Element c, Element d) {
  const auto small_integer = [](Element e) { return e == Element::kI8 || e == Element::kU8; };
  const auto special = [](Element e) { return e == Element::kF64 || e == Element::kI32 || IsComplex(e); };
  if (d == Element::kI32) return small_integer(a) && small_integer(b) && c == d;
  if (special(a) || special(b) || special(c) || special(d)) return a == b && a == c && a == d && a != Element::kI32;
  return !small_integer(c) && !small_integer(d);
}

Status Gemm(const Call& call, Types t, int op_a, int op_b, Index m, Index n, Index k, In alpha, In a, Index lda, In b,
            Index ldb, In beta, Out c, Index ldc) {
  return Run(call, {op_a, op_b, m, n, k}, t.factor, alpha, {a, t.matrix, lda}, {b, t.matrix, ldb}, beta,
             {c, t.result, ldc}, 1, false);
}

Status GemmBatched(const Call& call, Types t, int op_a, int op_b, Index m, Index n, Index k, In alpha, In a, Index lda,
                   In b, Index ldb, In beta, Out c, Index ldc, Index batches) {
  return Run(call, {op_a, op_b, m, n, k}, t.factor, alpha, {a, t.matrix, lda}, {b, t.matrix, ldb}, beta,
             {c, t.result, ldc}, batches, true);
}

Status GemmStrided(const Call& call, Types t, int op_a, int op_b, Index m, Index n, Index k, In alpha, In a, Index lda,
                   Index stride_a, In b, Index ldb, Index stride_b, In beta, Out c, Index ldc, Index stride_c,
                   Index batches) {
  return Run(call, {op_a, op_b, m, n, k}, t.factor, alpha, {a, t.matrix, lda, stride_a}, {b, t.matrix, ldb, stride_b},
             beta, {c, t.result, ldc, stride_c}, batches, false);
}

Status GemmTyped(const Call& call, Types t, int op_a, int op_b, Index m, Index n, Index k, In alpha, In a, int type_a,
                 Index lda, In b, int type_b, Index ldb, In beta, Out c, int type_c, Index ldc) {
  return RunTyped(call, {op_a, op_b, m, n, k}, t.factor, alpha, a, type_a, lda, 0, b, type_b, ldb, 0, beta, c, type_c,
                  ldc, 0, 1, false);
}

Status GemmEx(const Call& call, int op_a, int op_b, Index m, Index n, Index k, In alpha, In a, int type_a, Index lda,
              In b, int type_b, Index ldb, In beta, Out c, int type_c, Index ldc, int compute, int) {
  return RunTyped(call, {op_a, op_b, m, n, k}, FactorOf(compute, ComplexType(type_c)), alpha, a, type_a, lda, 0, b,
                  type_b, ldb, 0, beta, c, type_c, ldc, 0, 1, false);
}

Status GemmBatchedEx(const Call& call, int op_a, int op_b, Index m, Index n, Index k, In alpha, In a, int type_a,
                     Index lda, In b, int type_b, Index ldb, In beta, Out c, int type_c, Index ldc, Index batches,
                     int compute, int) {
  return RunTyped(call, {op_a, op_b, m, n, k}, FactorOf(compute, ComplexType(type_c)), alpha, a, type_a, lda, 0, b,
                  type_b, ldb, 0, beta, c, type_c, ldc, 0, batches, true);
}

Status GemmStridedEx(const Call& call, int op_a, int op_b, Index m, Index n, Index k, In alpha, In a, int type_a,
                     Index lda, Index stride_a, In b, int type_b, Index ldb, Index stride_b, In beta, Out c, int type_c,
                     Index ldc, Index stride_c, Index batches, int compute, int) {
  return RunTyped(call, {op_a, op_b, m, n, k}, FactorOf(compute, ComplexType(type_c)), alpha, a, type_a, lda, stride_a,
                  b, type_b, ldb, stride_b, beta, c, type_c, ldc, stride_c, batches, false);
}

/// Each group is one batched product; the groups' pointers follow each other in the arrays in device memory.
Status GemmGroupedEx(const Call& call, In ops_a, In ops_b, In ms, In ns, In ks, In alphas, In a, int type_a, In ldas,
                     In b, int type_b, In ldbs, In betas, In c, int type_c, In ldcs, Index groups, In sizes,
                     int compute) {
  const auto factor = FactorOf(compute, ComplexType(type_c));
  if (!factor) return Refuse(call.name);
  if (groups < 0) return kInvalidValue;
  const auto from = [](In pointers, Index first) { return static_cast<const void* const*>(pointers) + first; };
  const auto factor_of = [&](In factors, Index group) {
    return static_cast<const char*>(factors) + group * SizeOf(*factor);
  };
  Index first = 0;
  for (Index g = 0; g < groups; ++g) {
    const Shape shape{static_cast<const int*>(ops_a)[g], static_cast<const int*>(ops_b)[g], At(call, ms, g),
                      At(call, ns, g), At(call, ks, g)};
    const Index size = At(call, sizes, g);
    const Status status = RunTyped(call, shape, factor, factor_of(alphas, g), from(a, first), type_a, At(call, ldas, g),
                                   0, from(b, first), type_b, At(call, ldbs, g), 0, factor_of(betas, g), from(c, first),
                                   type_c, At(call, ldcs, g), 0, size, true);
    if (status != kSuccess) return status;
    first += size;
  }
  return kSuccess;
}

Status GemmGrouped(const Call& call, Types t, In ops_a, In ops_b, In ms, In ns, In ks, In alphas, In a, In ldas, In b,
                   In ldbs, In betas, In c, In ldcs, Index groups, In sizes) {
  const bool wide = t.matrix == Element::kF64;
  const int type = wide ? 1 : 0;       // CUDA_R_64F, CUDA_R_32F
  const int compute = wide ? 70 : 68;  // CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_32F
  return GemmGroupedEx(call, ops_a, ops_b, ms, ns, ks, alphas, a, type, ldas, b, type, ldbs, betas, c, type, ldcs,
                       groups, sizes, compute);
}

}  // namespace gridloom::blas
