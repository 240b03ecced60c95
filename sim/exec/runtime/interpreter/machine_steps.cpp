// Steps that touch the machine, but for memory: identity, parameters, the warp, helpers, calls.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/runtime/interpreter/interpreter.h"

namespace gridloom::exec {
namespace {

template <typename T>
void Fill(T* out, T value) {
  for (unsigned i = 0; i < kWarpSize; ++i) out[i] = value;
}

template <typename T>
T Field(const void* context, std::uint64_t offset) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(context) + offset, sizeof value);
  return value;
}

void RunSpecial(Frame& f, const ByteStep& s) {
  const std::uint64_t where = s.imm >> 8;
  auto* const out = f.Out<std::uint32_t>(s.dst);
  switch (static_cast<ByteSpecial>(s.imm & 0xff)) {
    case ByteSpecial::kTid: std::memcpy(out, f.warp->tid[where], sizeof f.warp->tid[where]); return;
    case ByteSpecial::kLane:
      for (unsigned i = 0; i < kWarpSize; ++i) out[i] = i;
      return;
    case ByteSpecial::kWarpWord: return Fill(out, Field<std::uint32_t>(f.warp, where));
    case ByteSpecial::kCtaWord: return Fill(out, Field<std::uint32_t>(f.warp->cta, where));
    case ByteSpecial::kLaunchWord: return Fill(out, Field<std::uint32_t>(f.warp->launch, where));
    case ByteSpecial::kLaunchLong:
      return Fill(f.Out<std::uint64_t>(s.dst), Field<std::uint64_t>(f.warp->launch, where));
  }
}

/// A run-time offset (an array parameter indexed by a variable) stays inside the padded block.
void RunParam(Frame& f, const ByteStep& s) {
  const auto* const offsets = f.In<std::uint64_t>(s.a);
  const std::uint32_t bytes = BytesOf(s.type);
  std::uint8_t* const out = f.Out<std::uint8_t>(s.dst);
  for (unsigned i = 0; i < kWarpSize; ++i)
    std::memcpy(out + std::size_t{i} * bytes,
                f.warp->launch->params + std::min<std::uint64_t>(offsets[i], Launch::kMaxParamBytes), bytes);
}

void RunSymbol(Frame& f, const ByteStep& s) { Fill(f.Out<std::uint64_t>(s.dst), f.warp->launch->symbols[s.imm]); }

/// Host address of a lane's address 0 in the space.
std::uint64_t Zero(const WarpCtx& warp, Space space, unsigned lane) {
  if (space == Space::kShared) return warp.cta->shared_base;
  return space == Space::kLocal ? warp.local_base + std::uint64_t{warp.local_stride} * lane : 0;
}

template <bool to>
void RunConvert(Frame& f, const ByteStep& s) {
  const auto* const a = f.In<std::uint64_t>(s.a);
  auto* const out = f.Out<std::uint64_t>(s.dst);
  for (unsigned i = 0; i < kWarpSize; ++i) {
    const std::uint64_t zero = Zero(*f.warp, static_cast<Space>(s.imm), i);
    out[i] = to ? a[i] + zero : a[i] - zero;
  }
}

void RunIsSpace(Frame& f, const ByteStep& s) {
  const auto* const a = f.In<std::uint64_t>(s.a);
  const WarpCtx& warp = *f.warp;
  const auto space = static_cast<Space>(s.imm);
  std::uint32_t bits = 0;
  for (unsigned i = 0; i < kWarpSize; ++i) {
    const bool shared = a[i] - Zero(warp, Space::kShared, i) < warp.cta->shared_bytes;
    const bool local = a[i] - Zero(warp, Space::kLocal, i) < warp.local_bytes;
    const bool is = space == Space::kShared ? shared : space == Space::kLocal ? local : !shared && !local;
    bits |= static_cast<std::uint32_t>(is) << i;
  }
  f.BitsOut(s.dst) = bits;
}

void RunBallot(Frame& f, const ByteStep& s) { Fill(f.Out<std::uint32_t>(s.dst), f.BitsIn(s.a) & f.mask); }
void RunActiveMask(Frame& f, const ByteStep& s) { Fill(f.Out<std::uint32_t>(s.dst), f.mask); }

/// A lane that does not take part gives zero (EmitShuffle).
void RunShuffle(Frame& f, const ByteStep& s) {
  const auto* const value = f.In<std::uint32_t>(s.a);
  const auto* const source = f.In<std::uint32_t>(s.b);
  const std::uint32_t valid = f.BitsIn(s.c), mask = f.mask;
  auto* const out = f.Out<std::uint32_t>(s.dst);
  for (unsigned i = 0; i < kWarpSize; ++i) {
    const std::uint32_t from = source[i] & 31;
    const std::uint32_t moved = (mask >> from & 1) != 0 ? value[from] : 0;
    out[i] = (valid >> i & 1) != 0 ? moved : value[i];
  }
}

/// BeginMet of warp_meeting.cpp. With all lanes here, what they have met for is what they exchange now.
void RunBeginMet(Frame& f, const ByteStep& s) {
  f.here = f.mask;
  f.met = 0;
  if (!f.meetings) return;
  if (f.mask == ~0u) {
    f.meetings->met = 0;
  } else if (s.imm != 0) {
    f.met = f.meetings->met & f.here;
    f.mask = f.here & ~f.met;
  }
}

void RunEndMet(Frame& f, const ByteStep&) {
  if (f.met == 0) return;
  f.mask = f.here;
  f.meetings->met &= ~f.here;
}

void RunMet(Frame& f, const ByteStep& s) {
  if (s.type == ByteType::kI1) {
    std::uint32_t bits = f.BitsIn(s.a) & ~f.met;
    ForEachLane(f.met, [&](std::uint32_t lane) { bits |= (f.meetings->results[s.imm][lane] & 1) << lane; });
    f.BitsOut(s.dst) = bits;
    return;
  }
  auto* const out = f.Out<std::uint32_t>(s.dst);
  std::memcpy(out, f.In<std::uint32_t>(s.a), sizeof(std::uint32_t) * kWarpSize);
  ForEachLane(f.met, [&](std::uint32_t lane) { out[lane] = f.meetings->results[s.imm][lane]; });
}

void RunGiveWay(Frame& f, const ByteStep&) { Helper_kGiveWay(f.warp, f.mask, 0, 0, nullptr); }
void RunExit(Frame& f, const ByteStep&) { f.warp->exited_mask |= f.mask; }

const std::uint32_t* ListOf(const Frame& f, const ByteStep& s) { return f.lists + s.b; }

void RunHelper(Frame& f, const ByteStep& s) {
  constexpr std::uint32_t kInPlace = 256;
  void* few[kInPlace];
  void** args = few;
  if (s.c > kInPlace) args = static_cast<void**>(__builtin_alloca(std::size_t{s.c} * sizeof(void*)));
  const std::uint32_t* const list = ListOf(f, s);
  for (std::uint32_t i = 0; i < s.c; ++i) args[i] = const_cast<std::uint8_t*>(f.In<std::uint8_t>(list[i]));
  f.warp->launch->helpers[s.a](f.warp, f.mask, s.line, s.imm, args);
}

void RunCall(Frame& f, const ByteStep& s) {
  const std::uint32_t* const list = ListOf(f, s);
  InterpretFunction(f.warp, *f.code, f.code->function(s.a), f.mask, &f, list, list + s.imm);
}

/// One call per distinct target, until every active lane has made its call.
void RunIndirectCall(Frame& f, const ByteStep& s) {
  const std::uint32_t* const list = ListOf(f, s);
  const auto results = static_cast<std::uint32_t>(s.imm), signature = static_cast<std::uint32_t>(s.imm >> 32);
  std::uint64_t pointers[kWarpSize];
  std::memcpy(pointers, f.In<std::uint64_t>(list[results]), sizeof pointers);
  auto* const kept = static_cast<std::uint8_t*>(__builtin_alloca(std::size_t{results} * 512 + 1));
  for (std::uint32_t left = f.mask; left != 0;) {
    std::uint64_t target = pointers[std::countr_zero(left)];
    std::uint32_t group = 0;
    ForEachLane(left,
                [&](std::uint32_t lane) { group |= static_cast<std::uint32_t>(pointers[lane] == target) << lane; });
    const DecodedFunction* const function = f.code->At(target, signature);
    if (!function) {
      void* const args[] = {&target};
      Helper_kInvalidCall(f.warp, group, 0, 0, args);  // does not come back
      return;
    }
    // The callee gives its results for all lanes: those that had theirs before keep them.
    const ByteFunction& form = function->form;
    for (std::uint32_t i = 0; i < results; ++i)
      std::memcpy(kept + std::size_t{i} * 512, f.Out<std::uint8_t>(list[i]), RegisterBytes(form.result_types[i]));
    InterpretFunction(f.warp, *f.code, *function, group, &f, list, list + results + 1);
    const std::uint32_t had = f.mask & ~left;
    for (std::uint32_t i = 0; i < results; ++i) {
      const std::uint32_t bytes = BytesOf(form.result_types[i]);
      std::uint8_t* const out = f.Out<std::uint8_t>(list[i]);
      if (bytes == 0) {
        std::uint32_t old;
        std::memcpy(&old, kept + std::size_t{i} * 512, sizeof old);
        f.BitsOut(list[i]) = (f.BitsOut(list[i]) & ~had) | (old & had);
      } else {
        ForEachLane(had, [&](std::uint32_t lane) {
          std::memcpy(out + std::size_t{lane} * bytes, kept + std::size_t{i} * 512 + std::size_t{lane} * bytes, bytes);
        });
      }
    }
    left &= ~group;
  }
}

/// Parts of a value, lowest first.
void RunJoin(Frame& f, const ByteStep& s) {
  const std::uint32_t* const list = ListOf(f, s);
  const std::uint32_t part = BytesOf(s.from), whole = BytesOf(s.type);
  std::uint8_t* const out = f.Out<std::uint8_t>(s.dst);
  for (std::uint32_t p = 0; p < s.c; ++p) {
    const auto* const from = f.In<std::uint8_t>(list[p]);
    for (unsigned i = 0; i < kWarpSize; ++i)
      std::memcpy(out + std::size_t{i} * whole + p * part, from + std::size_t{i} * part, part);
  }
}

}  // namespace

StepFn MachineStep(const ByteStep& step) {
  switch (step.code) {
    case ByteCode::kSpecial: return &RunSpecial;
    case ByteCode::kParam: return BytesOf(step.type) != 0 ? &RunParam : nullptr;
    case ByteCode::kSymbol: return &RunSymbol;
    case ByteCode::kToGeneric: return &RunConvert<true>;
    case ByteCode::kFromGeneric: return &RunConvert<false>;
    case ByteCode::kIsSpace: return &RunIsSpace;
    case ByteCode::kBallot: return &RunBallot;
    case ByteCode::kActiveMask: return &RunActiveMask;
    case ByteCode::kShuffle: return &RunShuffle;
    case ByteCode::kBeginMet: return &RunBeginMet;
    case ByteCode::kEndMet: return &RunEndMet;
    case ByteCode::kMet: return &RunMet;
    case ByteCode::kGiveWay: return &RunGiveWay;
    case ByteCode::kExit: return &RunExit;
    case ByteCode::kHelper: return &RunHelper;
    case ByteCode::kCall: return &RunCall;
    case ByteCode::kIndirectCall: return &RunIndirectCall;
    case ByteCode::kJoin: return &RunJoin;
    default: return nullptr;
  }
}

}  // namespace gridloom::exec
