#include "interpose/blas/host_product.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <system_error>
#include <thread>

#include "interpose/blas/host_library.h"
#include "interpose/blas/host_matrix.h"

namespace gridloom::blas {
namespace {

using Wide = __int128;

// ---- whether all that a product names is there

/// Plain memory of the device, all of it in one allocation. What has pages of its own kind is left to the kernel.
bool IsMemory(const exec::DeviceMemory& memory, Wide first, Wide last) {
  if (first < 0 || last < first || last > static_cast<Wide>(UINT64_MAX)) return false;
  const auto found = memory.Find(static_cast<std::uint64_t>(first));
  if (!found || last >= static_cast<Wide>(found->base) + found->bytes) return false;
  switch (found->kind) {
    case exec::MemoryKind::kDevice:
    case exec::MemoryKind::kPool:
    case exec::MemoryKind::kModule:
    case exec::MemoryKind::kPinned: return true;
    default: return false;
  }
}

struct Axis {
  Index count, stride;
};

/// Elements from `start` on along the axes, at `address`.
bool IsMemory(const exec::DeviceMemory& memory, std::uint64_t address, Index start, std::initializer_list<Axis> axes,
              Index size) {
  Wide first = start, last = start;
  for (const Axis& axis : axes) {
    const Wide reach = Wide{axis.count - 1} * axis.stride;
    (reach < 0 ? first : last) += reach;
  }
  return size > 0 && address % static_cast<std::uint64_t>(std::min<Index>(size, 8)) == 0 &&
         IsMemory(memory, static_cast<Wide>(address) + first * size,
                  static_cast<Wide>(address) + (last + 1) * size - 1);
}

bool IsMemory(const exec::DeviceMemory& memory, const Matrix& matrix, Index rows, Index columns, Index batches) {
  const Index size = SizeOf(matrix.element);
  const Axis of_rows{rows, matrix.row_stride}, of_columns{columns, matrix.column_stride};
  if (!matrix.by_pointer)
    return IsMemory(memory, matrix.address, matrix.start, {of_rows, of_columns, {batches, matrix.batch_stride}}, size);
  if (!IsMemory(memory, matrix.address, 0, {{batches, 1}}, 8)) return false;
  const auto* const addresses = reinterpret_cast<const std::uint64_t*>(matrix.address);
  return std::all_of(addresses, addresses + batches, [&](std::uint64_t address) {
    return IsMemory(memory, address, matrix.start, {of_rows, of_columns}, size);
  });
}

bool IsMemory(const exec::DeviceMemory& memory, const Factor& factor, Index rows) {
  return factor.address == 0 ||
         IsMemory(memory, factor.address, 0, {{factor.row_stride == 0 ? 1 : rows, factor.row_stride}},
                  SizeOf(factor.element));
}

// ---- the product

template <typename Value>
class HostProduct {
 public:
  HostProduct(const Product& product, HostGemm<Value> gemm) : p_(product), gemm_(gemm) {}

  /// What of the memory is not there is left to the kernel, which ends with the right fault.
  bool AllIsMemory(const exec::DeviceMemory& memory) const {
    if (!IsMemory(memory, p_.alpha, p_.m) || !IsMemory(memory, p_.beta, p_.m)) return false;
    for (const std::uint64_t scale : p_.scales) {
      if (scale != 0 && !IsMemory(memory, scale, 0, {}, sizeof(float))) return false;
    }
    if (p_.bias.address != 0 && !IsMemory(memory, p_.bias, p_.m, 1, p_.batches)) return false;
    if (WithProduct() &&
        !(IsMemory(memory, p_.a, p_.m, p_.k, p_.batches) && IsMemory(memory, p_.b, p_.k, p_.n, p_.batches)))
      return false;
    if (ReadsC() && !IsMemory(memory, p_.c, p_.m, p_.n, p_.batches)) return false;
    return IsMemory(memory, p_.d, p_.m, p_.n, p_.batches);
  }

  void Run(unsigned threads) const {
    constexpr Index kLarge = Index{1} << 21;  // multiply-adds of a product that the library's own threads share
    if (p_.batches < 2 || threads < 2 || p_.m * p_.n * std::max<Index>(p_.k, 1) >= kLarge) {
      for (Index batch = 0; batch < p_.batches; ++batch) RunOne(batch);
      return;
    }
    std::atomic<Index> next{0};
    std::atomic<bool> no_memory{false};
    const auto work = [&] {
      try {
        for (Index batch = next++; batch < p_.batches && !no_memory; batch = next++) RunOne(batch);
      } catch (const std::bad_alloc&) {
        no_memory = true;
      }
    };
    std::vector<std::thread> others;
    try {
      for (unsigned i = 1; i < std::min<Index>(threads, p_.batches); ++i) others.emplace_back(work);
    } catch (const std::system_error&) {  // fewer will do
    }
    work();
    for (std::thread& other : others) other.join();
    if (no_memory) throw std::bad_alloc();
  }

  /// Whether something was written.
  bool began() const { return began_; }

 private:
  /// alpha or beta of a row (device/product.cu, ReadFactor).
  static Value ReadFactor(const Factor& factor, Index row) {
    const void* const data = reinterpret_cast<const void*>(factor.address);
    const Index at = row * factor.row_stride;
    if constexpr (kIsComplex<Value>) {
      using Real = typename Value::value_type;
      Value value(static_cast<Real>(factor.value[0]), static_cast<Real>(factor.value[1]));
      if (data != nullptr) {
        const bool real = factor.element == Element::kF32 || factor.element == Element::kF64;
        value = real ? Value(static_cast<const Real*>(data)[at]) : static_cast<const Value*>(data)[at];
      }
      return factor.conjugate ? std::conj(value) : value;
    } else {
      return data == nullptr ? static_cast<Value>(factor.value[0]) : ReadElement<Value>(data, at, factor.element);
    }
  }
  static Value Scale(Value value, std::uint64_t address) {
    if constexpr (std::is_same_v<Value, float>) {
      if (address != 0) return value * *reinterpret_cast<const float*>(address);
    }
    return value;
  }

  bool WithProduct() const { return p_.k > 0 && (p_.alpha.row_stride != 0 || ReadFactor(p_.alpha, 0) != Value{}); }
  bool ReadsC() const { return p_.beta.row_stride != 0 || ReadFactor(p_.beta, 0) != Value{}; }

  /// Whether the result is what the BLAS writes, where it writes it; `transposed`: row by row.
  bool IsPlain(bool transposed) const {
    const bool same = p_.c.address == p_.d.address && p_.c.start == p_.d.start && p_.c.row_stride == p_.d.row_stride &&
                      p_.c.column_stride == p_.d.column_stride && p_.c.batch_stride == p_.d.batch_stride &&
                      p_.c.by_pointer == p_.d.by_pointer && p_.c.element == p_.d.element;
    return HasType<Value>(p_.d.element) && p_.triangle == Triangle::kFull && p_.activation == Activation::kNone &&
           p_.bias.address == 0 && p_.scales[0] == 0 && p_.scales[1] == 0 && p_.scales[2] == 0 &&
           p_.alpha.row_stride == 0 && p_.beta.row_stride == 0 && !p_.real_diagonal && WithProduct() &&
           (same || !ReadsC()) && LiesAs(p_.d, p_.m, p_.n, transposed);
  }

  /// Copies have been made by now: nothing can fail any more.
  void Multiply(const BlasFactor<Value>& a, const BlasFactor<Value>& b, Index m, Index n, Value alpha, Value beta,
                Value* c, Index leading) const {
    began_ = true;
    const int rows = static_cast<int>(m), columns = static_cast<int>(n), depth = static_cast<int>(p_.k),
              ldc = static_cast<int>(leading);
    gemm_(&a.op, &b.op, &rows, &columns, &depth, &alpha, a.data, &a.leading, b.data, &b.leading, &beta, c, &ldc);
  }

  void RunOne(Index batch) const {
    const HostMatrix d(p_.d, batch);
    const bool in_place =
        p_.d.by_pointer != p_.a.by_pointer || p_.d.address == p_.a.address || p_.d.address == p_.b.address;
    if (!in_place && (IsPlain(false) || IsPlain(true))) {
      const bool transposed = !IsPlain(false);
      Value* const to = static_cast<Value*>(d.data) + d.start;
      const Value alpha = ReadFactor(p_.alpha, 0), beta = ReadFactor(p_.beta, 0);
      if (!transposed) {
        const auto a = FactorFor<Value>({p_.a, batch}, p_.m, p_.k);
        return Multiply(a, FactorFor<Value>({p_.b, batch}, p_.k, p_.n), p_.m, p_.n, alpha, beta, to,
                        p_.d.column_stride);
      }
      // The columns of the transposed product lie behind each other: b' a'.
      const Matrix a = Transposed(p_.a), b = Transposed(p_.b);
      const auto first = FactorFor<Value>({b, batch}, p_.n, p_.k);
      return Multiply(first, FactorFor<Value>({a, batch}, p_.k, p_.m), p_.n, p_.m, alpha, beta, to, p_.d.row_stride);
    }
    std::vector<Value> sums;
    if (WithProduct()) {
      sums.resize(static_cast<std::size_t>(p_.m * p_.n));
      const auto a = FactorFor<Value>({p_.a, batch}, p_.m, p_.k);
      Multiply(a, FactorFor<Value>({p_.b, batch}, p_.k, p_.n), p_.m, p_.n, Value(1), Value{}, sums.data(),
               std::max<Index>(p_.m, 1));
    }
    Finish(batch, d, sums);
  }

  static Matrix Transposed(Matrix matrix) {
    std::swap(matrix.row_stride, matrix.column_stride);
    if (matrix.stored != Triangle::kFull)
      matrix.stored = matrix.stored == Triangle::kLower ? Triangle::kUpper : Triangle::kLower;
    return matrix;
  }

  /// What the kernel does with its sums (device/product.cu, Store), line by line as the result lies in memory.
  void Finish(Index batch, const HostMatrix& d, const std::vector<Value>& sums) const {
    // What is not read may be no memory: the result stands in for it.
    const HostMatrix c(ReadsC() ? p_.c : p_.d, batch), bias(p_.bias.address != 0 ? p_.bias : p_.d, batch);
    const bool by_rows = std::abs(p_.d.column_stride) < std::abs(p_.d.row_stride);
    const Index lines = by_rows ? p_.m : p_.n, length = by_rows ? p_.n : p_.m,
                step = by_rows ? p_.d.column_stride : p_.d.row_stride;
    std::vector<Value> line(static_cast<std::size_t>(length));
    for (Index outer = 0; outer < lines; ++outer) {
      // Of a triangle, the part of this line that is in it.
      const bool from_diagonal = (p_.triangle == Triangle::kLower) != by_rows;
      const Index first = p_.triangle == Triangle::kFull || !from_diagonal ? 0 : std::min(outer, length);
      const Index end = p_.triangle == Triangle::kFull || from_diagonal ? length : std::min(outer + 1, length);
      for (Index inner = first; inner < end; ++inner) {
        line[static_cast<std::size_t>(inner)] =
            by_rows ? Finished(c, bias, outer, inner, sums) : Finished(c, bias, inner, outer, sums);
      }
      const auto at = [&](Index inner) { return by_rows ? d.At(outer, inner) : d.At(inner, outer); };
      if (step == 1 && end > first) WriteLine(d.data, at(first), p_.d.element, end - first, line.data() + first);
      else
        for (Index inner = first; inner < end; ++inner)
          WriteElement(d.data, at(inner), p_.d.element, line[static_cast<std::size_t>(inner)]);
    }
  }

  Value Finished(const HostMatrix& c, const HostMatrix& bias, Index row, Index column,
                 const std::vector<Value>& sums) const {
    Value value{};
    if (p_.bias.address != 0) value = ReadElement<Value>(bias.data, bias.At(row, 0), p_.bias.element);
    if (const Value beta = ReadFactor(p_.beta, row); beta != Value{})
      value += beta * ReadElement<Value>(c.data, c.At(row, column), p_.c.element);
    if (!sums.empty()) {
      const Value alpha = Scale(Scale(ReadFactor(p_.alpha, row), p_.scales[0]), p_.scales[1]);
      value += alpha * sums[static_cast<std::size_t>(column * p_.m + row)];
    }
    value = Scale(Activate(value), p_.scales[2]);
    if constexpr (kIsComplex<Value>) {
      if (p_.real_diagonal && row == column) value = value.real();
    }
    return value;
  }

  Value Activate(Value value) const {
    if constexpr (!kIsComplex<Value>) {
      if (p_.activation == Activation::kRelu) return value > 0 ? value : 0;
      // GELU in the form with tanh.
      if (p_.activation == Activation::kGelu)
        return value / 2 *
               (1 + std::tanh(Value(0.7978845608028654) * (value + Value(0.044715) * value * value * value)));
    }
    return value;
  }

  const Product& p_;
  const HostGemm<Value> gemm_;
  mutable std::atomic<bool> began_{false};
};

/// Whether the host's BLAS has what the product is summed in, and this file what the elements are stored in.
bool IsTaken(const Product& p) {
  const auto taken = [](const Matrix& matrix) {
    switch (matrix.element) {
      case Element::kF32:
      case Element::kF64:
      case Element::kF16:
      case Element::kBf16:
      case Element::kC32:
      case Element::kC64: return true;
      default: return false;
    }
  };
  return taken(p.a) && taken(p.b) && taken(p.d) && (p.c.address == 0 || taken(p.c)) &&
         (p.bias.address == 0 || taken(p.bias)) && p.m > 0 && p.n > 0 && p.k >= 0 && p.m <= INT32_MAX &&
         p.n <= INT32_MAX && p.k <= INT32_MAX && p.batches > 0;
}

template <typename Value>
bool RunAs(const Product& product, const exec::DeviceMemory& memory, const HostLibrary& library, unsigned threads) {
  // alpha and beta are asked for before all is known to be there.
  for (const Factor* factor : {&product.alpha, &product.beta}) {
    if (!IsMemory(memory, *factor, product.m)) return false;
  }
  const HostProduct<Value> made(product, library.gemm<Value>());
  if (!made.AllIsMemory(memory)) return false;
  try {
    made.Run(threads);
  } catch (const std::bad_alloc&) {
    if (made.began()) throw;
    return false;  // no room for copies: the kernel needs none
  }
  return true;
}

}  // namespace

bool MultiplyOnHost(std::span<const std::byte> params, const exec::DeviceMemory& memory, unsigned threads) {
  Product product;
  if (params.size() < sizeof product) return false;
  std::memcpy(&product, params.data(), sizeof product);
  const HostLibrary& library = TheHostLibrary(threads);
  if (!library.found() || !IsTaken(product)) return false;
  switch (product.a.element) {
    case Element::kF64: return RunAs<double>(product, memory, library, threads);
    case Element::kC32: return RunAs<std::complex<float>>(product, memory, library, threads);
    case Element::kC64: return RunAs<std::complex<double>>(product, memory, library, threads);
    default: return RunAs<float>(product, memory, library, threads);
  }
}

}  // namespace gridloom::blas
