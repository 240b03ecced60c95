// cuBLASLt's matrix product, cublasLtMatmul: descriptors in place of arguments, factors for 8-bit types, bias and
// activation. Attributes are read with cuBLASLt's own functions; numbers are those of cublasLt.h.
#include <cstring>
#include <string>

#include "interpose/base/log.h"
#include "interpose/blas/functions.h"
#include "interpose/blas/matrices.h"

namespace gridloom::blas {
namespace {

constexpr char kLibrary[] = "libcublasLt.so";

enum Attribute : int {
  kComputeType = 0,
  kScaleType = 1,
  kPointerMode = 2,
  kTransA = 3,
  kTransB = 4,
  kTransC = 5,
  kFillMode = 6,
  kEpilogue = 7,
  kBiasPointer = 8,
  kBiasBatchStride = 10,
  kScaleA = 17,
  kScaleB = 18,
  kScaleC = 19,
  kScaleD = 20,
  kAmaxD = 21,
  kBiasType = 26,
  kScaleModeA = 31,
  kScaleModeD = 34,
};
enum LayoutAttribute : int {
  kType = 0,
  kOrder = 1,
  kRows = 2,
  kColumns = 3,
  kLd = 4,
  kBatchCount = 5,
  kBatchOffset = 6
};
enum PointerMode : int { kHost = 0, kDevice = 1, kVectors = 2, kAlphaVectorBetaZero = 3, kAlphaVectorBetaHost = 4 };
/// cublasLtEpilogue_t is a set of these.
enum EpilogueBit : unsigned { kPlain = 1, kReluBit = 2, kBiasBit = 4, kGeluBit = 32 };

/// An attribute of a descriptor, or `missing` when this version of cuBLASLt does not know it.
template <typename Value>
Value Read(const char* getter, const void* descriptor, int attribute, Value missing) {
  using Get = int(const void*, int, void*, std::size_t, std::size_t*);
  auto* const get = Real(kLibrary, static_cast<Get*>(nullptr), getter);
  Value value{};
  std::size_t written = 0;
  return get != nullptr && get(descriptor, attribute, &value, sizeof value, &written) == kSuccess ? value : missing;
}
template <typename Value>
Value OfProduct(const void* descriptor, Attribute attribute, Value missing) {
  return Read("cublasLtMatmulDescGetAttribute", descriptor, attribute, missing);
}
template <typename Value>
Value OfLayout(const void* layout, LayoutAttribute attribute, Value missing) {
  return Read("cublasLtMatrixLayoutGetAttribute", layout, attribute, missing);
}

struct Layout {
  int type, order, batches;
  Index rows, columns, ld, stride;
};

Layout ReadLayout(const void* layout) {
  return {OfLayout(layout, kType, -1),
          OfLayout(layout, kOrder, 0),
          OfLayout(layout, kBatchCount, 1),
          static_cast<Index>(OfLayout(layout, kRows, std::uint64_t{0})),
          static_cast<Index>(OfLayout(layout, kColumns, std::uint64_t{0})),
          OfLayout(layout, kLd, std::int64_t{0}),
          OfLayout(layout, kBatchOffset, std::int64_t{0})};
}

/// What of a product cannot be made here, by name; empty: all of it can.
using Why = std::string;

Why DescribeMatrix(const char* name, const Layout& layout, int op, Matrix* matrix) {
  const auto element = ElementOf(layout.type);
  if (!element) return std::string("the type of matrix ") + name;
  if (layout.order != 0 && layout.order != 1) return std::string("the order of matrix ") + name;
  *matrix = Batched(UnderOp(nullptr, *element, op, layout.ld), layout.stride);
  if (layout.order == 1) std::swap(matrix->row_stride, matrix->column_stride);
  return {};
}

Why DescribeEpilogue(const void* descriptor, Product* product) {
  const unsigned epilogue = OfProduct(descriptor, kEpilogue, unsigned{kPlain});
  if ((epilogue & ~(kPlain | kReluBit | kBiasBit | kGeluBit)) != 0) return "epilogue " + std::to_string(epilogue);
  if ((epilogue & kReluBit) != 0) product->activation = Activation::kRelu;
  if ((epilogue & kGeluBit) != 0) product->activation = Activation::kGelu;
  if ((epilogue & kBiasBit) == 0) return {};
  const int type = OfProduct(descriptor, kBiasType, -1);
  const auto small = [](Element e) { return e == Element::kE4m3 || e == Element::kE5m2; };
  auto element = ElementOf(type);
  if (type < 0) {  // as D, but with 8-bit factors never as one of them
    element = product->d.element;
    if (small(product->a.element) && (small(*element) || *element == Element::kF32))
      element = product->c.element == Element::kF16 ? Element::kF16 : Element::kBf16;
  }
  if (!element) return "the type of the bias";
  product->bias =
      Batched(UnderOp(nullptr, *element, kOpN, 0), OfProduct(descriptor, kBiasBatchStride, std::int64_t{0}));
  product->bias.address =
      reinterpret_cast<std::uintptr_t>(OfProduct(descriptor, kBiasPointer, static_cast<void*>(nullptr)));
  return {};
}

Why DescribeScales(const void* descriptor, Product* product) {
  constexpr Attribute kScales[] = {kScaleA, kScaleB, kScaleD};
  for (int i = 0; i < 3; ++i) {
    product->scales[i] =
        reinterpret_cast<std::uintptr_t>(OfProduct(descriptor, kScales[i], static_cast<void*>(nullptr)));
  }
  if (OfProduct(descriptor, kScaleC, static_cast<void*>(nullptr)) != nullptr) return "a scale of matrix C";
  if (OfProduct(descriptor, kAmaxD, static_cast<void*>(nullptr)) != nullptr) return "the greatest value of D";
  for (int mode = kScaleModeA; mode <= kScaleModeD; ++mode) {
    if (OfProduct(descriptor, static_cast<Attribute>(mode), 0) != 0) return "scales of blocks";
  }
  return {};
}

/// All of the product but addresses and factors; kInvalidValue for shapes that do not fit each other.
Status Describe(const void* descriptor, const void* layouts[4], Product* product, Why* why) {
  const Layout a = ReadLayout(layouts[0]), b = ReadLayout(layouts[1]), c = ReadLayout(layouts[2]),
               d = ReadLayout(layouts[3]);
  const int op_a = OfProduct(descriptor, kTransA, 0), op_b = OfProduct(descriptor, kTransB, 0);
  if (!KnownOp(op_a) || !KnownOp(op_b)) return kInvalidValue;
  const Index m = d.rows, n = d.columns, k = op_a == kOpN ? a.columns : a.rows;
  const bool fits = (op_a == kOpN ? a.rows : a.columns) == m && (op_b == kOpN ? b.rows : b.columns) == k &&
                    (op_b == kOpN ? b.columns : b.rows) == n && c.rows == m && c.columns == n;
  if (!fits) return kInvalidValue;
  *product = Of({}, {}, {}, m, n, k);
  product->batches = d.batches;
  const auto refuse = [&](Why what) {
    *why = std::move(what);
    return why->empty() ? kSuccess : kNotSupported;
  };
  if (refuse(DescribeMatrix("A", a, op_a, &product->a)) || refuse(DescribeMatrix("B", b, op_b, &product->b)) ||
      refuse(DescribeMatrix("C", c, kOpN, &product->c)) || refuse(DescribeMatrix("D", d, kOpN, &product->d)) ||
      refuse(DescribeEpilogue(descriptor, product)) || refuse(DescribeScales(descriptor, product)))
    return kNotSupported;
  if (OfProduct(descriptor, kTransC, 0) != kOpN) return refuse("an operation on C");
  if (OfProduct(descriptor, kFillMode, 2) != 2) return refuse("results in one triangle");
  if (!CanMultiply(product->a.element, product->b.element, product->c.element, product->d.element))
    return refuse("this combination of element types");
  const auto factor = ElementOf(OfProduct(descriptor, kScaleType, 0));
  if (!factor || (*factor == Element::kI32) != (product->d.element == Element::kI32))
    return refuse("the type of alpha and beta");
  product->alpha.element = product->beta.element = *factor;
  return kSuccess;
}

Why SetFactors(const void* descriptor, const void* alpha, const void* beta, Product* product) {
  const int mode = OfProduct(descriptor, kPointerMode, 0);
  if (mode < kHost || mode > kAlphaVectorBetaHost) return "pointer mode " + std::to_string(mode);
  const Element element = product->alpha.element;
  product->alpha = FactorAt(alpha, element, mode != kHost);
  product->beta =
      mode == kAlphaVectorBetaZero ? Factor{} : FactorAt(beta, element, mode == kDevice || mode == kVectors);
  if (mode >= kVectors) product->alpha.row_stride = 1;
  if (mode == kVectors) product->beta.row_stride = 1;
  return {};
}

Status Answer(const char* name, Status status, const Why& why) {
  if (!why.empty()) GL_LOG(kError, "%s: %s: not supported", name, why.c_str());
  return status;
}

/// cublasLtMatmulHeuristicResult_t, of which programs pass the first part on to cublasLtMatmul.
struct Heuristic {
  std::uint64_t algorithm[8];
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

}  // namespace

Status LtMatmul(const Call& call, In descriptor, In alpha, In a, In layout_a, In b, In layout_b, In beta, In c,
                In layout_c, Out d, In layout_d, In, In, Index, In stream) {
  if (call.handle == nullptr) return kNotInitialized;
  if (descriptor == nullptr || !layout_a || !layout_b || !layout_c || !layout_d || alpha == nullptr)
    return kInvalidValue;
  const void* layouts[4] = {layout_a, layout_b, layout_c, layout_d};
  Product product{};
  Why why;
  if (const Status status = Describe(descriptor, layouts, &product, &why); status != kSuccess)
    return Answer(call.name, status, why);
  if (why = SetFactors(descriptor, alpha, beta, &product); !why.empty()) return Answer(call.name, kNotSupported, why);
  product.a.address = reinterpret_cast<std::uintptr_t>(a);
  product.b.address = reinterpret_cast<std::uintptr_t>(b);
  product.c.address = reinterpret_cast<std::uintptr_t>(c);
  product.d.address = reinterpret_cast<std::uintptr_t>(d);
  return Launch(call.name, product, static_cast<cuda::CUstream>(const_cast<void*>(stream)));
}

/// One algorithm, ours, where it can make the product.
Status LtHeuristic(const Call& call, In descriptor, In layout_a, In layout_b, In layout_c, In layout_d, In,
                   Index wanted, Out results, Out count) {
  if (call.handle == nullptr) return kNotInitialized;
  if (descriptor == nullptr || !layout_a || !layout_b || !layout_c || !layout_d || wanted < 1 || results == nullptr ||
      count == nullptr)
    return kInvalidValue;
  *static_cast<int*>(count) = 0;
  const void* layouts[4] = {layout_a, layout_b, layout_c, layout_d};
  Product product{};
  Why why;
  if (const Status status = Describe(descriptor, layouts, &product, &why); status != kSuccess)
    return Answer(call.name, status, why);
  Heuristic heuristic{};
  heuristic.waves = 1.0f;
  std::memcpy(results, &heuristic, sizeof heuristic);
  *static_cast<int*>(count) = 1;
  return kSuccess;
}

Status LtCheck(const Call& call, In descriptor, In layout_a, In layout_b, In layout_c, In layout_d, In algorithm,
               Out result) {
  int count = 0;
  if (algorithm == nullptr) return kInvalidValue;
  const Status status =
      LtHeuristic(call, descriptor, layout_a, layout_b, layout_c, layout_d, nullptr, 1, result, &count);
  if (status == kSuccess) std::memcpy(result, algorithm, sizeof Heuristic{}.algorithm);
  return status;
}

}  // namespace gridloom::blas
