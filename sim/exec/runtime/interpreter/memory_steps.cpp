// Loads, stores and atomics of the interpreter. Lanes inside of the window and aligned are served here; all others by
// the helpers that machine code asks, too, which check lane by lane and name faults. Under memcheck the lanes have to
// be inside of what the access touched last (WarpCtx::check_sites), or memcheck has nothing against them
// (compiler/warp_window.cpp is the same in machine code).
#include <cstring>

#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/runtime/interpreter/frame.h"
#include "sim/exec/simd.h"

namespace gridloom::exec {

enum class Row : std::uint8_t { kNone, kSame, kConsecutive };

namespace {

/// Host addresses of lanes, and which of them may be touched without asking.
struct Addresses {
  alignas(64) std::uint64_t host[kWarpSize];
  std::uint32_t good = 0;
};

/// Global memory that lanes may touch without asking.
struct Reach {
  std::uint64_t base, bytes;
};

template <bool checked>
Reach GlobalReach(const Frame& f, std::uint64_t site) {
  if constexpr (!checked) return {f.warp->launch->window_base, f.warp->launch->window_bytes};
  const std::uint64_t* const words = f.warp->check_sites + site * 2;
  return {words[0], words[1]};
}

template <bool checked>
void Locate(const Frame& f, const std::uint64_t* at, Space space, std::uint32_t bytes, std::uint64_t site,
            Addresses& out) {
  const WarpCtx& warp = *f.warp;
  std::uint64_t zero = 0, stride = 0, low = 0, limit = 0;
  switch (space) {
    case Space::kShared:
      zero = low = warp.cta->shared_base;
      limit = warp.cta->shared_bytes;
      break;
    case Space::kLocal:
      zero = warp.local_base;
      stride = warp.local_stride;
      limit = warp.local_bytes;
      break;
    default: {
      const Reach global = GlobalReach<checked>(f, site);
      low = global.base;
      limit = global.bytes;
    }
  }
  limit = limit >= bytes ? limit - bytes + 1 : 0;
  std::uint32_t good = 0;
  for (unsigned i = 0; i < kWarpSize; ++i) {
    const std::uint64_t host = at[i] + zero + stride * i;
    const std::uint64_t offset = space == Space::kLocal ? at[i] : host - low;
    out.host[i] = host;
    good |= static_cast<std::uint32_t>(offset < limit && (host & (bytes - 1)) == 0) << i;
  }
  out.good = good & f.mask;
}

/// How all 32 addresses lie to each other.
GL_INLINE void FindRow(const std::uint64_t* at, std::uint64_t bytes, Row& row) {
  std::uint64_t apart = 0, step = 0, next = at[0];
  for (unsigned i = 0; i < kWarpSize; ++i, next += bytes) {
    apart |= at[i] ^ at[0];
    step |= at[i] ^ next;
  }
  row = apart == 0 ? Row::kSame : step == 0 ? Row::kConsecutive : Row::kNone;
}

}  // namespace

GL_SIMD_FUNCTION(RowOf, FindRow, (const std::uint64_t* at, std::uint64_t bytes, Row& row), (at, bytes, row))

namespace {

/// Host address of the first lane of a row of all lanes that may be touched as one: inside of the window, aligned, and
/// in one page, so that whoever faults there is the first lane. 0: lane by lane.
template <bool checked>
std::uint64_t RowAddress(const Frame& f, const std::uint64_t* at, Space space, std::uint32_t bytes, std::uint64_t site,
                         Row& row) {
  row = Row::kNone;
  if (f.mask != ~0u || space == Space::kLocal) return 0;
  const std::uint64_t first_step = at[1] - at[0];
  if (first_step != 0 && first_step != bytes) return 0;
  RowOf(at, bytes, row);
  if (row == Row::kNone) return 0;
  const WarpCtx& warp = *f.warp;
  const bool shared = space == Space::kShared;
  const std::uint64_t host = shared ? at[0] + warp.cta->shared_base : at[0];
  const Reach reach = shared ? Reach{warp.cta->shared_base, warp.cta->shared_bytes} : GlobalReach<checked>(f, site);
  const std::uint64_t offset = host - reach.base, limit = reach.bytes;
  const std::uint64_t span = row == Row::kSame ? bytes : std::uint64_t{bytes} * kWarpSize;
  const bool inside = offset < limit && span <= limit - offset && (host & (bytes - 1)) == 0;
  constexpr std::uint64_t kPage = 4096;
  return inside && (host ^ (host + span - 1)) < kPage ? host : 0;
}

/// Whether lanes may be served here at all: elements whose accesses are single moves, and no vector that has to be seen
/// whole.
bool Simple(const ByteStep& step, std::uint32_t bytes) {
#if defined(__SANITIZE_THREAD__)
  return false;  // an access that faults must not stand in code that the sanitizer knows
#else
  return BytesOf(step.type) <= 8 && bytes <= 32 && (bytes & (bytes - 1)) == 0 && !(IsStrong(step) && step.c > 1);
#endif
}

/// Whether memcheck has nothing against an access to shared memory, and has noted it.
bool SharedChecked(const Frame& f, const ByteStep& s, std::uint32_t bytes, AccessKind kind) {
  const auto* const at = f.In<std::uint64_t>(s.a);
  SharedAccessImm imm;
  imm.bytes = static_cast<std::uint8_t>(bytes);
  imm.kind = kind;
  const bool atomic = s.code == ByteCode::kCheckedAtomic;
  imm.strong = (atomic ? kind == AccessKind::kWrite : IsStrong(s)) ? 1 : 0;
  Row row = Row::kNone;
  if (f.mask == ~0u) RowOf(at, bytes, row);
  if (row != Row::kNone) {
    imm.pattern = row == Row::kSame ? SharedAccessImm::kUniform : SharedAccessImm::kConsecutive;
    imm.row_lanes = kWarpSize;
  }
  std::uint32_t go_ahead = 0;
  void* const args[] = {&go_ahead, const_cast<std::uint64_t*>(at)};
  Helper_kCheckShared(f.warp, f.mask, s.line, PackImm(imm), args);
  return go_ahead != 0;
}

/// Which of the lanes may be served here. Under memcheck all or none: it hears of all that are not.
template <bool checked>
void LocateLanes(const Frame& f, const ByteStep& s, std::uint32_t bytes, bool here, Addresses& at) {
  Locate<checked>(f, f.In<std::uint64_t>(s.a), SpaceOf(s), bytes, s.imm, at);
  if (!here || (checked && at.good != f.mask)) at.good = 0;
}

std::uint64_t SlowImm(const ByteStep& s, std::uint32_t bytes) {
  return SlowAccessImm(bytes, SpaceOf(s), IsStrong(s), static_cast<std::uint32_t>(s.imm));
}

/// Single moves.
template <typename T>
T Get(const T* from) {
  if constexpr (sizeof(T) <= 8) return __atomic_load_n(from, __ATOMIC_RELAXED);
  else return *from;  // left to the helper
}
template <typename T>
void Put(T* to, T value) {
  if constexpr (sizeof(T) <= 8) __atomic_store_n(to, value, __ATOMIC_RELAXED);
  else *to = value;
}

template <typename T>
void LoadRow(Frame& f, const ByteStep& s, const T* from, Row row) {
  const std::uint32_t* const list = f.lists + s.b;
  LaneAccess access(WarpOf(f.warp), s.line);
  access.At(0);
  for (std::uint32_t e = 0; e < s.c; ++e) {
    T* const out = f.Out<T>(list[e]);
    if (row == Row::kSame) {
      const T value = Get(from + e);
      for (unsigned i = 0; i < kWarpSize; ++i) out[i] = value;
    } else if (s.c == 1 && !IsStrong(s)) {
      std::memcpy(out, from, sizeof(T) * kWarpSize);
    } else {
      for (unsigned i = 0; i < kWarpSize; ++i) out[i] = Get(from + std::size_t{i} * s.c + e);
    }
  }
}

/// What a store is about to overwrite outside of its CTA is kept, if the grid may begin again. Shared and local memory,
/// which generic addresses reach, too, is the next CTA's by the time that stores are undone.
class Keeper {
 public:
  Keeper(const Frame& f, const ByteStep& s) : warp_(*f.warp), worker_(WarpOf(f.warp).cta->unit->worker) {
    if (SpaceOf(s) != Space::kShared && SpaceOf(s) != Space::kLocal) log_ = worker_.launch->undo.get();
  }
  void Keep(std::uint64_t address, std::uint32_t bytes) const {
    if (log_ != nullptr && !IsOwn(address) && !MayStore(address, bytes)) LeaveStopped(WarpOf(&warp_));
  }
  /// A store that is done elsewhere.
  void Miss(const Addresses& at, std::uint32_t mask) const {
    if (log_ == nullptr) return;
    ForEachLane(mask, [&](std::uint32_t lane) {
      if (!IsOwn(at.host[lane]) && !log_->Break()) LeaveStopped(WarpOf(&warp_));
    });
  }

 private:
  bool MayStore(std::uint64_t address, std::uint32_t bytes) const {
    if (log_->broken()) return true;
    UndoLog::Part& part = worker_.overwritten;
    if (!part.unseen.Contains(*worker_.launch->services->memory, address, bytes)) return log_->Break();
    return log_->Keep(part, address, bytes);
  }
  bool IsOwn(std::uint64_t address) const {
    return address - warp_.cta->shared_base < warp_.cta->shared_bytes ||
           address - warp_.local_base < std::uint64_t{warp_.local_stride} * kWarpSize;
  }
  WarpCtx& warp_;
  Worker& worker_;
  UndoLog* log_ = nullptr;
};

template <typename T>
void StoreRow(Frame& f, const ByteStep& s, T* to) {
  const std::uint32_t* const list = f.lists + s.b;
  LaneAccess access(WarpOf(f.warp), s.line);
  access.At(0);
  Keeper(f, s).Keep(reinterpret_cast<std::uint64_t>(to), static_cast<std::uint32_t>(sizeof(T)) * s.c * kWarpSize);
  if (s.c == 1) {
    std::memcpy(to, f.In<T>(list[0]), sizeof(T) * kWarpSize);
    return;
  }
  for (std::uint32_t e = 0; e < s.c; ++e) {
    const T* const from = f.In<T>(list[e]);
    for (unsigned i = 0; i < kWarpSize; ++i) to[std::size_t{i} * s.c + e] = from[i];
  }
}

template <typename T, bool checked>
void RunLoad(Frame& f, const ByteStep& s) {
  const std::uint32_t* const list = f.lists + s.b;
  const std::uint32_t bytes = static_cast<std::uint32_t>(sizeof(T)) * s.c;
  bool here = Simple(s, bytes);
  if constexpr (checked)
    if (here && SpaceOf(s) == Space::kShared) here = SharedChecked(f, s, bytes, AccessKind::kRead);
  if (here) {
    Row row;
    if (const std::uint64_t host = RowAddress<checked>(f, f.In<std::uint64_t>(s.a), SpaceOf(s), bytes, s.imm, row);
        host != 0)
      return LoadRow<T>(f, s, reinterpret_cast<const T*>(host), row);
  }
  Addresses at;
  LocateLanes<checked>(f, s, bytes, here, at);
  if (at.good != 0) {
    LaneAccess access(WarpOf(f.warp), s.line);
    for (std::uint32_t e = 0; e < s.c; ++e) {
      T* const out = f.Out<T>(list[e]);
      ForEachLane(at.good, [&](std::uint32_t lane) {
        access.At(lane);
        out[lane] = Get(reinterpret_cast<const T*>(at.host[lane]) + e);
      });
    }
  }
  const std::uint32_t rest = f.mask & ~at.good;
  if (rest == 0) return;
  alignas(64) std::uint8_t values[kWarpSize * 128];
  void* const args[] = {values, at.host};
  Helper_kLoadSlow(f.warp, rest, s.line, SlowImm(s, bytes), args);
  for (std::uint32_t e = 0; e < s.c; ++e) {
    T* const out = f.Out<T>(list[e]);
    ForEachLane(rest, [&](std::uint32_t lane) {
      std::memcpy(out + lane, values + std::size_t{lane} * bytes + e * sizeof(T), sizeof(T));
    });
  }
}

template <typename T, bool checked>
void RunStore(Frame& f, const ByteStep& s) {
  const std::uint32_t* const list = f.lists + s.b;
  const std::uint32_t bytes = static_cast<std::uint32_t>(sizeof(T)) * s.c;
  bool here = Simple(s, bytes);
  if constexpr (checked)
    if (here && SpaceOf(s) == Space::kShared) here = SharedChecked(f, s, bytes, AccessKind::kWrite);
  if (here && !IsStrong(s)) {
    Row row;
    if (const std::uint64_t host = RowAddress<checked>(f, f.In<std::uint64_t>(s.a), SpaceOf(s), bytes, s.imm, row);
        host != 0 && row == Row::kConsecutive)
      return StoreRow<T>(f, s, reinterpret_cast<T*>(host));
  }
  Addresses at;
  LocateLanes<checked>(f, s, bytes, here, at);
  const Keeper keeper(f, s);
  // In the order of the lanes, whoever serves them: where two write to one place, the last one wins.
  if (at.good == f.mask) {
    LaneAccess access(WarpOf(f.warp), s.line);
    ForEachLane(at.good, [&](std::uint32_t lane) {
      access.At(lane);
      keeper.Keep(at.host[lane], bytes);
      for (std::uint32_t e = 0; e < s.c; ++e) Put(reinterpret_cast<T*>(at.host[lane]) + e, f.In<T>(list[e])[lane]);
    });
    return;
  }
  keeper.Miss(at, f.mask);
  alignas(64) std::uint8_t values[kWarpSize * 128];
  for (std::uint32_t e = 0; e < s.c; ++e) {
    const T* const from = f.In<T>(list[e]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      std::memcpy(values + std::size_t{lane} * bytes + e * sizeof(T), from + lane, sizeof(T));
  }
  void* const args[] = {at.host, values};
  Helper_kStoreSlow(f.warp, f.mask, s.line, SlowImm(s, bytes), args);
}

/// `checked`: what memcheck has nothing against is done without asking again.
template <bool checked>
void RunAtomic(Frame& f, const ByteStep& s) {
  const Space space = AtomicSpace(s);
  const std::uint32_t bytes = checked ? BytesOf(s.type) : 1;
  Addresses at;
  Locate<checked>(f, f.In<std::uint64_t>(s.a), space, bytes, s.imm >> 32, at);
  bool known = false;
  if constexpr (checked) {
    const AccessKind kind = s.extra != 0 ? AccessKind::kWrite : AccessKind::kAtomic;
    known = at.good == f.mask && (space != Space::kShared || SharedChecked(f, s, bytes, kind));
  }
  void* const args[] = {s.dst == kNoRegister ? nullptr : f.Out<std::uint8_t>(s.dst), at.host,
                        const_cast<std::uint8_t*>(f.In<std::uint8_t>(s.b)),
                        const_cast<std::uint8_t*>(f.In<std::uint8_t>(s.c))};
  if (known) RunKnownAtomic(f.warp, f.mask, s.line, s.imm, args);
  else Helper_kAtomic(f.warp, f.mask, s.line, s.imm, args);
}

__extension__ typedef unsigned __int128 U128;

template <bool checked, bool load, typename T>
constexpr StepFn kAccess = load ? &RunLoad<T, checked> : &RunStore<T, checked>;

template <bool checked, bool load>
StepFn Of(const ByteStep& step) {
  if (BytesOf(step.type) * step.c > 128) return nullptr;
  switch (BytesOf(step.type)) {
    case 1: return kAccess<checked, load, std::uint8_t>;
    case 2: return kAccess<checked, load, std::uint16_t>;
    case 4: return kAccess<checked, load, std::uint32_t>;
    case 8: return kAccess<checked, load, std::uint64_t>;
    case 16: return kAccess<checked, load, U128>;
    default: return nullptr;
  }
}

}  // namespace

StepFn MemoryStep(const ByteStep& step) {
  switch (step.code) {
    case ByteCode::kLoad: return Of<false, true>(step);
    case ByteCode::kStore: return Of<false, false>(step);
    case ByteCode::kAtomic: return &RunAtomic<false>;
    case ByteCode::kCheckedLoad: return Of<true, true>(step);
    case ByteCode::kCheckedStore: return Of<true, false>(step);
    case ByteCode::kCheckedAtomic: return &RunAtomic<true>;
    default: return nullptr;
  }
}

}  // namespace gridloom::exec
