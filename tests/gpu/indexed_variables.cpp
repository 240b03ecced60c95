// What `tab[%r1]` reads (PTX ISA 6.4.2: a variable indexed by a register): which index registers are extended with
// their sign, whether an index counts elements or bytes, and what a constant added to it counts. "name value" lines;
// each case is a module of its own, and has a process of its own, since an address beyond the variable may be a fault.
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "driver.h"

namespace {

struct Case {
  const char* name;
  const char* declare;  ///< at module scope, after `before`
  const char* local;    ///< in the function
  const char* index;    ///< type of %i
  std::int64_t value;   ///< of %i
  const char* read;     ///< writes %r
};

// `tab` has 70,000 numbers of 32 bits, of which number n is n + 1,000; fill writes them before read runs.
constexpr char kFill[] = R"(
.visible .entry fill() {
  .reg .u32 %t; .reg .u64 %a; .reg .pred %p;
  mov.u32 %t, 0;
  mov.u64 %a, tab;
LOOP:
  { .reg .u32 %v; add.u32 %v, %t, 1000; st.global.u32 [%a], %v; }
  add.u64 %a, %a, 4; add.u32 %t, %t, 1;
  setp.lt.u32 %p, %t, 70000; @%p bra LOOP;
  ret;
})";

#define HIGH(address)                        \
  "{ .reg .u64 %x, %y; mov.u64 %x, " address \
  "; mov.u64 %y, tab; sub.u64 %x, %x, %y; shr.u64 %x, %x, 32; cvt.u32.u64 %r, %x; }"

const Case kCases[] = {
    {"u32.3", "", "", "u32", 3, "ld.global.u32 %r, tab[%i];"},
    {"u32.3+2", "", "", "u32", 3, "ld.global.u32 %r, tab[%i+2];"},
    {"s32.3-2", "", "", "s32", 3, "ld.global.u32 %r, tab[%i+-2];"},
    {"bracketed.u32.3", "", "", "u32", 3, "ld.global.u32 %r, [tab+8];"},
    {"u16.65535", "", "", "u16", 65535, "ld.global.u32 %r, tab[%i];"},
    {"s16.65535", "", "", "s16", -1, "ld.global.u32 %r, tab[%i];"},
    {"b16.65535", "", "", "b16", 65535, "ld.global.u32 %r, tab[%i];"},
    {"s16.-1+100", "", "", "s16", -1, "ld.global.u32 %r, tab[%i+100];"},
    {"s32.-1+100", "", "", "s32", -1, "ld.global.u32 %r, tab[%i+100];"},
    {"u32.-1+100", "", "", "u32", 4294967295LL, "ld.global.u32 %r, tab[%i+100];"},
    {"s64.-1+100", "", "", "s64", -1, "ld.global.u32 %r, tab[%i+100];"},
    {"s32.-1", "", "", "s32", -1, "ld.global.u32 %r, tab[%i];"},
    {"s64.-1", "", "", "s64", -1, "ld.global.u32 %r, tab[%i];"},
    {"u64.5", "", "", "u64", 5, "ld.global.u32 %r, tab[%i];"},
    {"u8.element_of_load", "", "", "u32", 4, "ld.global.u8 %r, tab[%i];"},
    {"u64.element_of_load", "", "", "u32", 3, "{ .reg .u64 %w; ld.global.u64 %w, tab[%i+1]; cvt.u32.u64 %r, %w; }"},
    {"generic.u32.3", "", "", "u32", 3, "ld.u32 %r, tab[%i];"},
    {"mov.u32.3", "", "", "u32", 3, "{ .reg .u64 %x; mov.u64 %x, tab[%i]; ld.global.u32 %r, [%x]; }"},
    {"mov.u32.3+2", "", "", "u32", 3, "{ .reg .u64 %x; mov.u64 %x, tab[%i+2]; ld.global.u32 %r, [%x]; }"},
    {"cvta.u32.3", "", "", "u32", 3, "{ .reg .u64 %x; cvta.global.u64 %x, tab[%i]; ld.u32 %r, [%x]; }"},
    {"st.u32.3", "", "", "u32", 3, "st.global.u32 tab[%i], 77; ld.global.u32 %r, [tab+12];"},
    {"shared.u32.3", "", ".shared .u32 words[16];", "u32", 3,
     "st.shared.u32 [words+12], 55; ld.shared.u32 %r, words[%i];"},
    {"local.u32.3", "", ".local .u32 words[16];", "u32", 3, "st.local.u32 [words+12], 56; ld.local.u32 %r, words[%i];"},
    {"const.u32.2", ".const .u32 words[4] = {11, 12, 13, 14};", "", "u32", 2, "ld.const.u32 %r, words[%i];"},
    {"bytes.u32.2", ".global .u8 bytes[4] = {11, 12, 13, 14};", "", "u32", 2, "ld.global.u8 %r, bytes[%i];"},
    {"two_dimensions", ".global .u32 square[2][3] = {{11, 12, 13}, {14, 15, 16}};", "", "u32", 1,
     "ld.global.u32 %r, square[%i];"},
    {"two_subscripts", ".global .u32 square[2][3] = {{11, 12, 13}, {14, 15, 16}};", "", "u32", 1,
     "ld.global.u32 %r, square[%i][2];"},
    {"vector_element", ".global .v2 .u32 pairs[4] = {{11, 12}, {13, 14}, {15, 16}, {17, 18}};", "", "u32", 1,
     "ld.global.u32 %r, pairs[%i];"},
    // The offset of the address, its lower and its upper word: no access, no fault.
    {"low.u32.-1", "", "", "u32", 4294967295LL,
     "{ .reg .u64 %x, %y; mov.u64 %x, tab[%i]; mov.u64 %y, tab; sub.u64 %x, %x, %y; cvt.u32.u64 %r, %x; }"},
    {"high.u32.-1", "", "", "u32", 4294967295LL, HIGH("tab[%i]")},
    {"high.s32.-1", "", "", "s32", -1, HIGH("tab[%i]")},
    {"high.b32.-1", "", "", "b32", 4294967295LL, HIGH("tab[%i]")},
    {"high.s16.-1", "", "", "s16", -1, HIGH("tab[%i]")},
    {"high.u32.-1+100", "", "", "u32", 4294967295LL, HIGH("tab[%i+100]")},
    {"high.s32.-1+100", "", "", "s32", -1, HIGH("tab[%i+100]")},
    {"high.u32.0x40000001", "", "", "u32", 0x40000001, HIGH("tab[%i]")},
    {"high.u32.0x40000001+-2", "", "", "u32", 0x40000001, HIGH("tab[%i+-2]")},
    {"high.u64.0x40000001", "", "", "u64", 0x40000001, HIGH("tab[%i]")},
    {"high.shared.u32.-1", "", ".shared .u32 words[16];", "u32", 4294967295LL,
     "{ .reg .u64 %x, %y; mov.u64 %x, words[%i]; mov.u64 %y, words; sub.u64 %x, %x, %y; shr.u64 %x, %x, 32; "
     "cvt.u32.u64 %r, %x; }"},
    {"scalar.u32.0", ".global .u32 one = 21;", "", "u32", 0, "ld.global.u32 %r, one[%i];"},
};

void Run(const Case& test) {
  const std::string index = test.index;
  const std::string text =
      std::string(
          ".version 7.5\n.target sm_75\n.address_size 64\n.global .u32 below[64];\n.global .u32 tab[70000];\n") +
      test.declare + kFill + "\n.visible .entry read(.param ." + index + " i, .param .u64 out) {\n  .reg ." + index +
      " %i; .reg .u32 %r; .reg .u64 %o; " + test.local + "\n  ld.param." + index +
      " %i, [i]; ld.param.u64 %o, [out];\n  " + test.read + "\n  st.global.u32 [%o], %r; ret;\n}\n";
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction fill, read;
  CUdeviceptr out;
  std::uint32_t answer = 0;
  std::int64_t value = test.value;
  Find<decltype(&cuInit)>("cuInit")(0);
  Find<decltype(&cuDeviceGet)>("cuDeviceGet")(&device, 0);
  Find<decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, device);
  Find<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent")(context);
  CUresult status = Find<decltype(&cuModuleLoadData)>("cuModuleLoadData")(&module, text.c_str());
  if (status != CUDA_SUCCESS) {
    std::printf("%s module %d\n", test.name, static_cast<int>(status));
    return;
  }
  const auto get = Find<decltype(&cuModuleGetFunction)>("cuModuleGetFunction");
  const auto launch = Find<decltype(&cuLaunchKernel)>("cuLaunchKernel");
  get(&fill, module, "fill");
  get(&read, module, "read");
  Find<decltype(&cuMemAlloc)>("cuMemAlloc_v2")(&out, sizeof answer);
  launch(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  void* parameters[] = {&value, &out};
  launch(read, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
  status = Find<decltype(&cuMemcpyDtoH)>("cuMemcpyDtoH_v2")(&answer, out, sizeof answer);
  if (status != CUDA_SUCCESS) {
    std::printf("%s fault %d\n", test.name, static_cast<int>(status));
  } else {
    std::printf("%s %u\n", test.name, answer);
  }
}

}  // namespace

int main() {
  for (const Case& test : kCases) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      Run(test);
      std::fflush(stdout);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) std::printf("%s ended with status %d\n", test.name, status);
  }
}
