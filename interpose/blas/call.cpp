#include "interpose/blas/call.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "api_exports.h"
#include "interpose/base/log.h"
#include "interpose/blas/host_product.h"
#include "interpose/objects/module.h"

// The kernels' PTX, as text that ends with a zero byte.
asm(".section .rodata\n"
    "gl_product_ptx:\n"
    ".incbin \"" GRIDLOOM_PRODUCT_PTX
    "\"\n"
    ".byte 0\n"
    ".previous\n");
extern "C" __attribute__((visibility("hidden"))) const char gl_product_ptx[];

namespace gridloom::blas {
namespace {

/// How the kernels for what a product is summed in are named.
const char* Suffix(Element matrix, Element result) {
  switch (matrix) {
    case Element::kF64: return "f64";
    case Element::kC32: return "c32";
    case Element::kC64: return "c64";
    default: return result == Element::kI32 ? "i32" : "f32";
  }
}

Index TileColumns(Element matrix) {
  switch (matrix) {
    case Element::kF64:
    case Element::kC32: return kWarps * kWarpColumns<double>;
    case Element::kC64: return kWarps * kWarpColumns<double[2]>;
    default: return kWarps * kWarpColumns<float>;
  }
}

Status StatusOf(CUresult result) {
  switch (result) {
    case CUDA_SUCCESS: return kSuccess;
    case CUDA_ERROR_OUT_OF_MEMORY: return kAllocFailed;
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_INVALID_CONTEXT: return kNotInitialized;
    default: return kExecutionFailed;
  }
}

/// Says once that kernels of ours run in place of cuBLAS's.
void Announce(const char* name) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    GL_LOG(kInfo, "%s: cuBLAS's kernels are machine code; Gridloom's own make its products (gridloom_product_*)", name);
}

struct Dimensions {
  unsigned x, y, z;
};
constexpr Index kMostX = 0x7fffffff, kMostYZ = 65535;

std::atomic<CUstream>& KernelStream() {
  static std::atomic<CUstream> stream{nullptr};
  return stream;
}

unsigned GridSize(Index size, Index tile, Index most) {
  return static_cast<unsigned>(std::min((size + tile - 1) / tile, most));
}

/// Starts kernel `family` + `suffix`, with blocks of `warps` warps, for the function `name`.
Status Start(const char* name, const char* family, const char* suffix, Dimensions grid, unsigned warps,
             const void* argument, CUstream stream, session::Kernel::HostForm host_form = nullptr) {
  Announce(name);
  static hooks::OwnKernels kernels(gl_product_ptx);
  return StatusOf(kernels.Launch((std::string(family) + suffix).c_str(), {grid.x, grid.y, grid.z, 32 * warps}, argument,
                                 stream, host_form));
}

}  // namespace

std::optional<Element> ElementOf(int data_type) {
  switch (data_type) {
    case 0: return Element::kF32;
    case 1: return Element::kF64;
    case 2: return Element::kF16;
    case 3: return Element::kI8;
    case 4: return Element::kC32;
    case 5: return Element::kC64;
    case 8: return Element::kU8;
    case 10: return Element::kI32;
    case 14: return Element::kBf16;
    case 28: return Element::kE4m3;
    case 29: return Element::kE5m2;
    default: return std::nullopt;
  }
}

std::optional<Element> FactorOf(int compute_type, bool complex) {
  switch (compute_type) {
    case 64:
    case 65: return Element::kF16;
    case 68:
    case 69:
    case 74:
    case 75:
    case 77:
    case 78: return complex ? Element::kC32 : Element::kF32;
    case 70:
    case 71:
    case 79: return complex ? Element::kC64 : Element::kF64;
    case 72:
    case 73: return Element::kI32;
    default: return compute_type < 64 ? ElementOf(compute_type) : std::nullopt;
  }
}

Index SizeOf(Element element) {
  switch (element) {
    case Element::kE4m3:
    case Element::kE5m2:
    case Element::kI8:
    case Element::kU8: return 1;
    case Element::kF16:
    case Element::kBf16: return 2;
    case Element::kF32:
    case Element::kI32: return 4;
    case Element::kF64:
    case Element::kC32: return 8;
    case Element::kC64: return 16;
  }
  return 0;
}

bool IsComplex(Element element) { return element == Element::kC32 || element == Element::kC64; }

Element RealOf(Element element) {
  if (element == Element::kC32) return Element::kF32;
  return element == Element::kC64 ? Element::kF64 : element;
}

namespace {

/// cuBLAS's own functions that every call needs, found once: cuBLAS stays loaded from then on.
struct Getters {
  int (*stream)(void*, CUstream*);
  int (*mode)(void*, int*);

  static Getters Find() {
    Getters found{};
    found.stream = Real("libcublas.so", found.stream, "cublasGetStream_v2");
    found.mode = Real("libcublas.so", found.mode, "cublasGetPointerMode_v2");
    Dl_info library{};
    if (found.stream != nullptr && dladdr(reinterpret_cast<void*>(found.stream), &library) != 0)
      dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    return found;
  }
};

}  // namespace

void SetKernelStream(CUstream stream) { KernelStream().store(stream); }

Status ReadSettings(const Call& call, Settings* settings) {
  if (call.first_interface) {
    *settings = {KernelStream().load(), false};
    return kSuccess;
  }
  if (call.handle == nullptr) return kNotInitialized;
  static const Getters getters = Getters::Find();
  const auto [get_stream, get_mode] = getters;
  if (get_stream == nullptr || get_mode == nullptr) return kInternalError;
  int mode = 0;
  if (const int status = get_stream(call.handle, &settings->stream); status != kSuccess)
    return static_cast<Status>(status);
  if (const int status = get_mode(call.handle, &mode); status != kSuccess) return static_cast<Status>(status);
  settings->device_factors = mode != 0;
  return kSuccess;
}

Factor FactorAt(const void* pointer, Element element, bool on_device) {
  Factor factor{};
  factor.element = element;
  if (on_device) {
    factor.address = reinterpret_cast<std::uintptr_t>(pointer);
    return factor;
  }
  const auto read = [&]<typename Real>(Real, int part) {
    Real value;
    std::memcpy(&value, static_cast<const Real*>(pointer) + part, sizeof value);
    return static_cast<double>(value);
  };
  switch (element) {
    case Element::kF16: factor.value[0] = read(_Float16{}, 0); break;
    case Element::kF64: factor.value[0] = read(double{}, 0); break;
    case Element::kI32: factor.value[0] = read(int{}, 0); break;
    case Element::kC32: factor.value[0] = read(float{}, 0), factor.value[1] = read(float{}, 1); break;
    case Element::kC64: factor.value[0] = read(double{}, 0), factor.value[1] = read(double{}, 1); break;
    default: factor.value[0] = read(float{}, 0); break;
  }
  return factor;
}

Factor One() {
  Factor factor{};
  factor.value[0] = 1;
  return factor;
}

Status Launch(const char* name, const Product& product, CUstream stream) {
  if (product.m == 0 || product.n == 0 || product.batches == 0) return kSuccess;
  const Dimensions grid{GridSize(product.m, kTileRows, kMostX),
                        GridSize(product.n, TileColumns(product.a.element), kMostYZ),
                        GridSize(product.batches, 1, kMostYZ)};
  return Start(name, "gridloom_product_", Suffix(product.a.element, product.d.element), grid, kWarps, &product, stream,
               &MultiplyOnHost);
}

Status Launch(const char* name, const Solve& solve, CUstream stream) {
  if (solve.rows == 0 || solve.columns == 0 || solve.batches == 0) return kSuccess;
  const Dimensions grid{GridSize(solve.columns, 32, kMostX), 1, GridSize(solve.batches, 1, kMostYZ)};
  return Start(name, "gridloom_solve_", Suffix(solve.a.element, solve.b.element), grid, 1, &solve, stream);
}

Status Allocate(Index bytes, CUstream stream, std::uint64_t* address) {
  if (const CUresult result = hooks::BindContext(); result != CUDA_SUCCESS) return StatusOf(result);
  CUdeviceptr pointer = 0;
  const Status status = StatusOf(cuMemAllocAsync(&pointer, static_cast<std::size_t>(bytes), stream));
  *address = static_cast<std::uint64_t>(pointer);
  return status;
}
Status Free(std::uint64_t address, CUstream stream) {
  return StatusOf(cuMemFreeAsync(static_cast<CUdeviceptr>(address), stream));
}

}  // namespace gridloom::blas
