// What the kernels of this folder are written with. They are compiled to PTX by clang without a CUDA toolkit
// (cmake/own_kernels.cmake), and passes link the result into programs.
#pragma once

#include <cstdint>

#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))

namespace gridloom::kernels {

using Word = std::uint32_t;
inline constexpr Word kLanes = 32, kAllLanes = ~Word{0};

__device__ inline Word Lane() { return __nvvm_read_ptx_sreg_laneid(); }
__device__ inline Word ThreadNumber() { return __nvvm_read_ptx_sreg_tid_x(); }
__device__ inline Word BlockThreads() { return __nvvm_read_ptx_sreg_ntid_x(); }
__device__ inline Word BlockNumber() { return __nvvm_read_ptx_sreg_ctaid_x(); }
/// Of the whole grid.
__device__ inline std::uint64_t BlocksOfGrid() {
  const std::uint64_t x = static_cast<Word>(__nvvm_read_ptx_sreg_nctaid_x());
  return x * static_cast<Word>(__nvvm_read_ptx_sreg_nctaid_y()) * static_cast<Word>(__nvvm_read_ptx_sreg_nctaid_z());
}
__device__ inline std::uint64_t GridNumber() {
  std::uint64_t number;
  asm volatile("mov.u64 %0, %%gridid;" : "=l"(number));
  return number;
}
__device__ inline Word LanesBelow() { return __nvvm_read_ptx_sreg_lanemask_lt(); }

__device__ inline void WaitForWarp(Word lanes = kAllLanes) { __nvvm_bar_warp_sync(lanes); }
__device__ inline void WaitForBlock() { __syncthreads(); }
__device__ inline Word Vote(bool value, Word lanes = kAllLanes) { return __nvvm_vote_ballot_sync(lanes, value); }
__device__ inline Word Shuffle(Word value, Word from, Word lanes) {
  return static_cast<Word>(__nvvm_shfl_sync_idx_i32(lanes, static_cast<int>(value), static_cast<int>(from), 31));
}
/// The lanes that are here together.
__device__ inline Word ActiveLanes() {
  Word lanes;
  asm volatile("activemask.b32 %0;" : "=r"(lanes));
  return lanes;
}
/// Those of `lanes` that have the same value. From sm_70 on.
__device__ inline Word Match(std::uint64_t value, Word lanes) {
  Word same;
  asm volatile("match.any.sync.b64 %0, %1, %2;" : "=r"(same) : "l"(value), "r"(lanes));
  return same;
}

/// What was written before is seen before what is written after it: by the block, the device, and the host.
__device__ inline void BlockFence() { __nvvm_membar_cta(); }
__device__ inline void DeviceFence() { __nvvm_membar_gl(); }
__device__ inline void SystemFence() { __nvvm_membar_sys(); }

/// The compiler's own trap goes on to an exit, which passes take for an end of the thread.
__device__ inline void Trap() { asm volatile("trap;"); }

/// The number of the lowest bit that is set. There is one.
__device__ inline Word LowestBit(Word bits) { return static_cast<Word>(__builtin_clz(__builtin_bitreverse32(bits))); }
__device__ inline Word HighestBit(Word bits) { return 31 - static_cast<Word>(__builtin_clz(bits)); }
__device__ inline Word CountBits(Word bits) { return static_cast<Word>(__builtin_popcount(bits)); }

template <typename Object>
using InShared = volatile __attribute__((address_space(3))) Object*;

/// The address of a shared variable in its own space, as the instructions for shared memory take it. Pointers change
/// between spaces by casts of C only.
__device__ inline Word SharedAddress(const volatile void* address) {
  return static_cast<Word>(
      reinterpret_cast<std::uint64_t>((const volatile __attribute__((address_space(3))) void*)address));
}
template <typename Object>
__device__ inline Object* SharedAt(std::uint64_t address) {
  return (Object*)(InShared<Object>)address;
}

/// Counts down together with others; what is left.
__device__ inline Word CountDown(volatile Word& count) {
  return static_cast<Word>(__nvvm_atom_add_gen_i(reinterpret_cast<int*>(const_cast<Word*>(&count)), -1)) - 1;
}
/// Adds together with others; what was there.
__device__ inline std::uint64_t Add(std::uint64_t& sum, std::uint64_t value) {
  return static_cast<std::uint64_t>(
      __nvvm_atom_add_gen_ll(reinterpret_cast<long long*>(&sum), static_cast<long long>(value)));
}
/// What was there.
__device__ inline Word Exchange(Word& word, Word wanted) {
  return static_cast<Word>(__nvvm_atom_xchg_gen_i(reinterpret_cast<int*>(&word), static_cast<int>(wanted)));
}
__device__ inline std::uint64_t Exchange(std::uint64_t& word, std::uint64_t wanted) {
  return static_cast<std::uint64_t>(
      __nvvm_atom_xchg_gen_ll(reinterpret_cast<long long*>(&word), static_cast<long long>(wanted)));
}
/// The word becomes `wanted` if it is `expected`; what it was.
__device__ inline Word Exchange(Word& word, Word expected, Word wanted) {
  return static_cast<Word>(
      __nvvm_atom_cas_gen_i(reinterpret_cast<int*>(&word), static_cast<int>(expected), static_cast<int>(wanted)));
}

}  // namespace gridloom::kernels
