// Helpers of the programs that use the driver API.
#pragma once

#include <cuda.h>

#include <string>

#include "app.h"

#define DRV(call)                                                               \
  do {                                                                          \
    const CUresult drv_result = (call);                                         \
    if (drv_result != CUDA_SUCCESS) {                                           \
      const char* drv_name = "?";                                               \
      cuGetErrorName(drv_result, &drv_name);                                    \
      std::printf("FAIL %s:%d: %s: %s\n", __FILE__, __LINE__, #call, drv_name); \
      std::exit(1);                                                             \
    }                                                                           \
  } while (0)

inline bool Result(const char* what, CUresult got, CUresult want) { return Note(got == want, what, 0, got, want); }

/// out[i] = in[i] * factor + offset, as PTX; `factor` and the name can differ from module to module.
inline std::string AffinePtx(const char* name, int factor) {
  return std::string(
             ".version 6.4\n.target sm_75\n.address_size 64\n.visible .global .align 4 .u32 offset = 1;\n.visible "
             ".entry ") +
         name +
         "(.param .u64 out, .param .u64 in, .param .u32 n)\n{\n"
         "  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<6>;\n"
         "  ld.param.u64 %d0, [out]; ld.param.u64 %d1, [in]; ld.param.u32 %r0, [n];\n"
         "  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;\n"
         "  setp.ge.u32 %p, %r1, %r0; @%p bra done;\n"
         "  cvta.to.global.u64 %d0, %d0; cvta.to.global.u64 %d1, %d1; mul.wide.u32 %d2, %r1, 4;\n"
         "  add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2; ld.global.u32 %r4, [%d1]; ld.global.u32 %r5, [offset];\n"
         "  mad.lo.u32 %r4, %r4, " +
         std::to_string(factor) + ", %r5; st.global.u32 [%d0], %r4;\ndone:\n  ret;\n}\n";
}
