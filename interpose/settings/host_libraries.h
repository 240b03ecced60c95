// The libraries of the host that do the work of kernels where they are installed, for those who open them and for
// `gridloom doctor`, which says which there are.
#pragma once

namespace gridloom::settings {

/// BLAS libraries that make products of matrices, the preferred one first.
inline constexpr const char* kBlasLibraries[] = {"libopenblas.so.0", "libblis.so.4"};

/// FFTW's libraries that make transforms of f32 and of f64: those with threads, which bring the others along.
inline constexpr const char* kFftwLibraries[] = {"libfftw3f_threads.so.3", "libfftw3_threads.so.3"};

}  // namespace gridloom::settings
