// FFTW, the host's library of Fourier transforms, where it is installed: it is looked for when the first plan is made.
#pragma once

#include <cstddef>
#include <mutex>

namespace gridloom::fft {

/// fftw_iodim64: a dimension, and how far its elements lie apart on both sides.
struct HostDimension {
  std::ptrdiff_t n, in_stride, out_stride;
};

/// FFTW's functions for one precision. Plans are opaque. Making and destroying plans needs PlannerLock(); executing
/// does not.
struct HostFunctions {
  void* (*plan_complex)(int rank, const HostDimension* dims, int howmany_rank, const HostDimension* howmany, void* in,
                        void* out, int sign, unsigned flags);
  void* (*plan_to_spectrum)(int rank, const HostDimension* dims, int howmany_rank, const HostDimension* howmany,
                            void* in, void* out, unsigned flags);
  void* (*plan_to_real)(int rank, const HostDimension* dims, int howmany_rank, const HostDimension* howmany, void* in,
                        void* out, unsigned flags);
  void (*execute_complex)(const void* plan, void* in, void* out);
  void (*execute_to_spectrum)(const void* plan, void* in, void* out);
  void (*execute_to_real)(const void* plan, void* in, void* out);
  void (*destroy)(void* plan);
  int (*alignment_of)(void* address);  ///< 0 where FFTW's vector loads are aligned
  void (*plan_with_threads)(int threads);
  int (*planned_threads)();  ///< null before FFTW 3.3.9
};

/// f32's (not `wide`) or f64's; null where they are not installed, or GRIDLOOM_FFT is `off`. Thread-safe.
const HostFunctions* FindHostFunctions(bool wide);

/// FFTW's planner is one for the process and must not be entered twice.
std::mutex& PlannerLock();

}  // namespace gridloom::fft
