// What each function of cuFFT in functions.txt does. Parameters are those of the function, enumerations by their
// numbers.
#pragma once

#include "interpose/fft/status.h"

namespace gridloom::fft {

Status Create(void* handle);
Status Destroy(int handle);

Status Plan1d(void* handle, int n, int type, int batch);
Status Plan2d(void* handle, int n0, int n1, int type);
Status Plan3d(void* handle, int n0, int n1, int n2, int type);
Status PlanMany(void* handle, int rank, void* n, void* in_embed, int in_stride, int in_dist, void* out_embed,
                int out_stride, int out_dist, int type, int batch);
Status MakePlan1d(int handle, int n, int type, int batch, void* size);
Status MakePlan2d(int handle, int n0, int n1, int type, void* size);
Status MakePlan3d(int handle, int n0, int n1, int n2, int type, void* size);
Status MakePlanMany(int handle, int rank, void* n, void* in_embed, int in_stride, int in_dist, void* out_embed,
                    int out_stride, int out_dist, int type, int batch, void* size);
Status MakePlanMany64(int handle, int rank, void* n, void* in_embed, long long in_stride, long long in_dist,
                      void* out_embed, long long out_stride, long long out_dist, int type, long long batch, void* size);
Status XtMakePlanMany(int handle, int rank, void* n, void* in_embed, long long in_stride, long long in_dist,
                      int in_type, void* out_embed, long long out_stride, long long out_dist, int out_type,
                      long long batch, void* size, int execution_type);

Status Estimate1d(int n, int type, int batch, void* size);
Status Estimate2d(int n0, int n1, int type, void* size);
Status Estimate3d(int n0, int n1, int n2, int type, void* size);
Status EstimateMany(int rank, void* n, void* in_embed, int in_stride, int in_dist, void* out_embed, int out_stride,
                    int out_dist, int type, int batch, void* size);
Status GetSize1d(int handle, int n, int type, int batch, void* size);
Status GetSize2d(int handle, int n0, int n1, int type, void* size);
Status GetSize3d(int handle, int n0, int n1, int n2, int type, void* size);
Status GetSizeMany(int handle, int rank, void* n, void* in_embed, int in_stride, int in_dist, void* out_embed,
                   int out_stride, int out_dist, int type, int batch, void* size);
Status GetSizeMany64(int handle, int rank, void* n, void* in_embed, long long in_stride, long long in_dist,
                     void* out_embed, long long out_stride, long long out_dist, int type, long long batch, void* size);
Status XtGetSizeMany(int handle, int rank, void* n, void* in_embed, long long in_stride, long long in_dist, int in_type,
                     void* out_embed, long long out_stride, long long out_dist, int out_type, long long batch,
                     void* size, int execution_type);
Status GetSize(int handle, void* size);
Status SetWorkArea(int handle, void* area);
Status XtSetWorkArea(int handle, void* areas);
Status SetAutoAllocation(int handle, int on);
Status SetWorkAreaPolicy(int handle, int policy, void* size);

Status SetStream(int handle, void* stream);
Status Execute(int handle, void* in, void* out, int direction);
Status ExecuteForward(int handle, void* in, void* out);
Status ExecuteInverse(int handle, void* in, void* out);

Status SetProperty(int handle, int property, long long value);
Status GetProperty(int handle, int property, void* value);
Status ResetProperty(int handle, int property);

/// Names the function in the log, once.
Status Refuse(const char* name, Status status);

}  // namespace gridloom::fft
