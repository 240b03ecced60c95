// Stands for NVIDIA's libcublasLt where it is not installed, as cublas_stub.cpp for libcublas: descriptors are real,
// products are refused.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0, kInvalidValue = 7, kNotSupported = 15;

/// Attributes by number.
using Descriptor = std::map<int, std::vector<char>>;

int Set(Descriptor* descriptor, int attribute, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  (*descriptor)[attribute].assign(bytes, bytes + size);
  return kSuccess;
}
int Get(const Descriptor* descriptor, int attribute, void* data, std::size_t size, std::size_t* written) {
  const auto found = descriptor->find(attribute);
  if (found == descriptor->end() || found->second.size() != size) return kInvalidValue;
  std::memcpy(data, found->second.data(), size);
  *written = size;
  return kSuccess;
}

}  // namespace

EXPORT int cublasLtMatmulDescCreate(Descriptor** descriptor, int compute, int scale) {
  *descriptor = new Descriptor;
  return Set(*descriptor, 0, &compute, sizeof compute) + Set(*descriptor, 1, &scale, sizeof scale);
}
EXPORT int cublasLtMatmulDescDestroy(Descriptor* descriptor) { return delete descriptor, kSuccess; }
EXPORT int cublasLtMatmulDescSetAttribute(Descriptor* d, int attribute, const void* data, std::size_t size) {
  return Set(d, attribute, data, size);
}
EXPORT int cublasLtMatmulDescGetAttribute(Descriptor* d, int attribute, void* data, std::size_t size,
                                          std::size_t* written) {
  return Get(d, attribute, data, size, written);
}
EXPORT int cublasLtMatrixLayoutCreate(Descriptor** layout, int type, std::uint64_t rows, std::uint64_t columns,
                                      std::int64_t ld) {
  *layout = new Descriptor;
  return Set(*layout, 0, &type, sizeof type) + Set(*layout, 2, &rows, sizeof rows) +
         Set(*layout, 3, &columns, sizeof columns) + Set(*layout, 4, &ld, sizeof ld);
}
EXPORT int cublasLtMatrixLayoutDestroy(Descriptor* layout) { return delete layout, kSuccess; }
EXPORT int cublasLtMatrixLayoutSetAttribute(Descriptor* d, int attribute, const void* data, std::size_t size) {
  return Set(d, attribute, data, size);
}
EXPORT int cublasLtMatrixLayoutGetAttribute(Descriptor* d, int attribute, void* data, std::size_t size,
                                            std::size_t* written) {
  return Get(d, attribute, data, size, written);
}
EXPORT int cublasLtMatmulPreferenceCreate(Descriptor** preference) { return *preference = new Descriptor, kSuccess; }
EXPORT int cublasLtMatmulPreferenceDestroy(Descriptor* preference) { return delete preference, kSuccess; }

// The products: to be found at link time, never to be reached.
EXPORT int cublasLtMatmul() { return kNotSupported; }
EXPORT int cublasLtMatmulAlgoGetHeuristic() { return kNotSupported; }
