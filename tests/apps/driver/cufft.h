// What driver_fft uses of cuFFT, declared by hand: no toolkit is needed. Numbers are those of cufft.h and
// library_types.h.
#pragma once

#include <cstddef>

using Wide = long long;
enum Type : int { kR2C = 0x2a, kC2R = 0x2c, kC2C = 0x29, kD2Z = 0x6a, kZ2D = 0x6c, kZ2Z = 0x69 };
enum Status : int {
  kInvalidPlan = 1,
  kInvalidType = 3,
  kInvalidValue = 4,
  kInvalidSize = 8,
  kNoWorkspace = 13,
  kNotImplemented = 14,
  kNotSupported = 16
};
enum : int { kForward = -1, kInverse = 1 };

extern "C" {
int cufftCreate(int*);
int cufftDestroy(int);
int cufftPlan1d(int*, int, int, int);
int cufftPlan2d(int*, int, int, int);
int cufftPlan3d(int*, int, int, int, int);
int cufftPlanMany(int*, int, int*, int*, int, int, int*, int, int, int, int);
int cufftMakePlan1d(int, int, int, int, std::size_t*);
int cufftMakePlanMany64(int, int, Wide*, Wide*, Wide, Wide, Wide*, Wide, Wide, int, Wide, std::size_t*);
int cufftXtMakePlanMany(int, int, Wide*, Wide*, Wide, Wide, int, Wide*, Wide, Wide, int, Wide, std::size_t*, int);
int cufftEstimate1d(int, int, int, std::size_t*);
int cufftGetSize(int, std::size_t*);
int cufftSetWorkArea(int, void*);
int cufftSetAutoAllocation(int, int);
int cufftSetStream(int, void*);
int cufftExecC2C(int, void*, void*, int);
int cufftExecR2C(int, void*, void*);
int cufftExecC2R(int, void*, void*);
int cufftXtExec(int, void*, void*, int);
int cufftGetVersion(int*);
int cufftXtSetCallback(int, void**, int, void**);
int cufftXtSetGPUs(int, int, int*);
}
