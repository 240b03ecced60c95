#include "sim/trace/kernel_trace.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace gridloom::trace {
namespace {

Error Bad(const std::string& where, const std::string& what) { return Error{where + ": " + what}; }

Status ValidateInstruction(const KernelCode& code, std::size_t index) {
  const Instruction& instruction = code.instructions[index];
  const std::string where = "kernel " + code.name + ", instruction " + std::to_string(index);
  if (static_cast<std::size_t>(instruction.op) >= kOpClassCount) return Bad(where, "unknown class");
  const std::uint64_t end = std::uint64_t{instruction.operands} + instruction.destinations + instruction.sources;
  if (end > code.operands.size()) return Bad(where, "operands end beyond the operand table");
  for (std::uint64_t i = instruction.operands; i < end; ++i) {
    if (code.operands[i] > code.register_count)
      return Bad(where, "register " + std::to_string(code.operands[i]) + " beyond register_count");
  }
  if (instruction.op == OpClass::kMemory) {
    if (instruction.space == Space::kNone || instruction.space > Space::kParameter)
      return Bad(where, "memory instruction without a space");
    if (!std::has_single_bit(instruction.width) || instruction.width > 16)
      return Bad(where, "access width is not 1, 2, 4, 8 or 16");
    if ((instruction.flags & kGeneric) != 0 && instruction.space != Space::kGlobal)
      return Bad(where, "a generic access of one space");
  }
  if (instruction.op == OpClass::kBarrier && instruction.barrier >= 16) return Bad(where, "barrier number above 15");
  return {};
}

Status ValidateAccess(const CtaTrace& cta, const MemoryAccess& access, const std::string& where) {
  if (access.has_pattern() && access.pattern() >= cta.patterns.size())
    return Bad(where, "lane pattern beyond the table");
  if (access.stride != MemoryAccess::kScattered) return {};
  const auto lanes = static_cast<std::uint32_t>(std::popcount(access.mask));
  if (access.mask == 0) return {};
  const std::uint64_t size = cta.lanes.size();
  if (access.base <= size && size - access.base >= ScatteredLanes::kHeadWords) {
    const std::uint32_t unit = ScatteredLanes::At(cta.lanes.data() + access.base).unit;
    if (size - access.base >= ScatteredLanes::Words(unit, lanes)) return {};
  }
  return Bad(where, "lane addresses beyond the table");
}

Status ValidateWarp(const KernelCode& code, const CtaTrace& cta, std::size_t index) {
  const WarpTrace& warp = cta.warps[index];
  const std::string where = "kernel " + code.name + ", warp " + std::to_string(index);
  if (std::uint64_t{warp.first_visit} + warp.visit_count > cta.visits.size())
    return Bad(where, "path beyond the table");
  if (std::uint64_t{warp.first_access} + warp.access_count > cta.accesses.size())
    return Bad(where, "accesses beyond the table");
  std::uint64_t expected = 0;
  for (std::uint32_t v = 0; v < warp.visit_count; ++v) {
    const BlockVisit& visit = cta.visits[warp.first_visit + v];
    if (visit.block >= code.blocks.size())
      return Bad(where, "block " + std::to_string(visit.block) + " does not exist");
    if (visit.mask == 0) return Bad(where, "block visited by no lane");
    const BasicBlock& block = code.blocks[visit.block];
    for (std::uint32_t i = 0; i < block.count; ++i) expected += code.instructions[block.first + i].has_access() ? 1 : 0;
  }
  if (expected != warp.access_count) {
    return Bad(where, std::to_string(warp.access_count) + " memory accesses recorded where the path executes " +
                          std::to_string(expected));
  }
  for (std::uint32_t a = 0; a < warp.access_count; ++a) {
    GL_TRY_STATUS(ValidateAccess(cta, cta.accesses[warp.first_access + a], where));
  }
  return {};
}

/// Memory instructions of visits of a warp that is valid.
std::uint64_t AccessesOf(const KernelCode& code, const CtaTrace& cta, const WarpTrace& warp, std::uint32_t from,
                         std::uint32_t to) {
  std::uint64_t accesses = 0;
  for (std::uint32_t v = from; v < to; ++v) {
    const BasicBlock& block = code.blocks[cta.visits[warp.first_visit + v].block];
    for (std::uint32_t i = 0; i < block.count; ++i) accesses += code.instructions[block.first + i].has_access() ? 1 : 0;
  }
  return accesses;
}

/// Whether some of the repeat's visits execute something: else a warp would go round without ever coming to an
/// instruction.
bool DoesSomething(const KernelCode& code, const CtaTrace& cta, const WarpTrace& warp, const Repeat& repeat) {
  const auto first = cta.visits.begin() + warp.first_visit + repeat.visit;
  return std::any_of(first, first + repeat.visit_count,
                     [&](const BlockVisit& visit) { return code.blocks[visit.block].count != 0; });
}

/// Whether an event is at one of the repeat's visits. Events are in order.
bool HasEvent(const CtaTrace& cta, const Repeat& repeat) {
  const auto place = [](const CtaEvent& event) { return std::pair(event.warp, event.visit); };
  const auto event = std::ranges::lower_bound(cta.events, std::pair(repeat.warp, repeat.visit), {}, place);
  return event != cta.events.end() && place(*event) < std::pair(repeat.warp, repeat.visit + repeat.visit_count);
}

}  // namespace

Status ValidateRepeats(const KernelCode& code, const CtaTrace& cta) {
  std::uint64_t made = cta.visits.size();
  std::uint32_t number = 0, visit = 0;
  std::uint64_t access = 0;
  for (const Repeat& repeat : cta.repeats) {
    const std::string where = "kernel " + code.name + ", repeat in warp " + std::to_string(repeat.warp);
    if (repeat.warp >= cta.warps.size()) return Bad(where, "the warp does not exist");
    if (repeat.warp != number) visit = 0, access = 0;
    const WarpTrace& warp = cta.warps[repeat.warp];
    if (repeat.visit_count == 0 || repeat.more == 0) return Bad(where, "nothing is repeated");
    if (std::uint64_t{repeat.visit} + repeat.visit_count > warp.visit_count)
      return Bad(where, "beyond the path of its warp");
    if (repeat.warp < number || repeat.visit < visit) return Bad(where, "not in order");
    access += AccessesOf(code, cta, warp, visit, repeat.visit);
    visit = repeat.visit + repeat.visit_count;
    const std::uint64_t accesses = AccessesOf(code, cta, warp, repeat.visit, visit);
    if (access != repeat.access || accesses != repeat.access_count)
      return Bad(where, "accesses that are not those of its visits");
    access += accesses;
    number = repeat.warp;
    if (HasEvent(cta, repeat)) return Bad(where, "an event is repeated");
    if (!DoesSomething(code, cta, warp, repeat)) return Bad(where, "no instruction is repeated");
    if (made > kMostVisitsMade || repeat.more > (kMostVisitsMade - made) / repeat.visit_count)
      return Bad("kernel " + code.name, "a CTA makes more than " + std::to_string(kMostVisitsMade) + " visits");
    made += repeat.more * repeat.visit_count;
  }
  return {};
}

namespace {

auto PlaceOf(const CtaEvent& event) { return std::tuple(event.warp, event.visit, event.instruction); }

/// Whether all pieces of a range end before the last address does: who follows ranges adds them up.
bool IsInMemory(const CtaEvent& range) {
  const auto& [first, bytes, distance, pieces] = range.data;
  const auto last = static_cast<unsigned __int128>(pieces == 0 ? 0 : pieces - 1) * distance + bytes;
  return last <= UINT64_MAX - first;
}

Status ValidateEvent(const KernelCode& code, const CtaTrace& cta, std::size_t index) {
  const CtaEvent& event = cta.events[index];
  const std::string where = "kernel " + code.name + ", event " + std::to_string(index);
  if (static_cast<std::size_t>(event.kind) >= kEventKindCount) return Bad(where, "unknown kind");
  if (event.warp >= cta.warps.size()) return Bad(where, "warp " + std::to_string(event.warp) + " does not exist");
  const WarpTrace& warp = cta.warps[event.warp];
  if (event.visit >= warp.visit_count) return Bad(where, "beyond the path of its warp");
  const BlockVisit& visit = cta.visits[warp.first_visit + event.visit];
  const BasicBlock& block = code.blocks[visit.block];
  if (event.instruction < block.first || event.instruction - block.first >= block.count)
    return Bad(where, "instruction outside the block");
  if (event.lanes == 0 || (event.lanes & ~visit.mask) != 0) return Bad(where, "lanes that are not active");
  const bool is_range = event.kind == EventKind::kSetRange || event.kind == EventKind::kReleaseRange;
  if (is_range && !IsInMemory(event)) return Bad(where, "a range beyond the last address");
  if (index != 0 && PlaceOf(event) < PlaceOf(cta.events[index - 1])) return Bad(where, "not in order");
  return {};
}

/// The lowest and the highest address of an access's lanes, at least one of which is active. Where they go round the
/// end of all addresses: everything.
AccessRange LanesOf(const CtaTrace& cta, const MemoryAccess& access) {
  constexpr AccessRange kAll{.first = 0, .last = UINT64_MAX};
  const auto low = static_cast<std::uint32_t>(std::countr_zero(access.mask));
  const auto high = kWarpSize - 1 - static_cast<std::uint32_t>(std::countl_zero(access.mask));
  AccessRange lanes;
  if (access.stride == MemoryAccess::kScattered) {
    const ScatteredLanes scattered = ScatteredLanes::At(cta.lanes.data() + access.base);
    for (std::size_t i = static_cast<std::size_t>(std::popcount(access.mask)); i-- > 0;) {
      lanes.first = std::min(lanes.first, scattered[i]);
      lanes.last = std::max(lanes.last, scattered[i]);
    }
    return lanes;
  }
  std::int64_t first = std::int64_t{access.stride} * low, last = std::int64_t{access.stride} * high;
  if (access.has_pattern()) {
    const LanePattern& pattern = cta.patterns[access.pattern()];
    first = last = pattern[low];
    for (std::uint32_t rest = access.mask; rest != 0; rest &= rest - 1) {
      const std::int64_t offset = pattern[static_cast<std::size_t>(std::countr_zero(rest))];
      first = std::min(first, offset);
      last = std::max(last, offset);
    }
  } else if (access.stride < 0) {
    std::swap(first, last);
  }
  lanes = {.first = access.base + static_cast<std::uint64_t>(first),
           .last = access.base + static_cast<std::uint64_t>(last)};
  return lanes.empty() ? kAll : lanes;
}

bool IsMemory(std::uint64_t first, std::uint64_t last) { return first <= last && last < MemoryAccess::kAddressEnd; }

}  // namespace

std::uint64_t BytesOf(const CtaTrace& cta) {
  const auto bytes = [](const auto& table) { return std::uint64_t{table.capacity()} * sizeof table[0]; };
  return sizeof cta + bytes(cta.warps) + bytes(cta.visits) + bytes(cta.accesses) + bytes(cta.lanes) +
         bytes(cta.patterns) + bytes(cta.repeats) + bytes(cta.events);
}

std::span<const Repeat> RepeatsOf(const CtaTrace& cta, std::uint32_t warp) {
  const auto repeats = std::ranges::equal_range(cta.repeats, warp, {}, &Repeat::warp);
  return {repeats.begin(), repeats.end()};
}

std::vector<PathPiece> PiecesOf(const CtaTrace& cta, std::uint32_t number) {
  const WarpTrace& warp = cta.warps[number];
  std::vector<PathPiece> pieces;
  std::uint32_t visit = 0, access = 0;
  const auto once = [&](std::uint32_t end) {
    if (visit < end) pieces.push_back({warp.first_visit + visit, end - visit, warp.first_access + access});
  };
  for (const Repeat& repeat : RepeatsOf(cta, number)) {
    once(repeat.visit);
    pieces.push_back(
        {warp.first_visit + repeat.visit, repeat.visit_count, warp.first_access + repeat.access, repeat.more + 1});
    visit = repeat.visit + repeat.visit_count;
    access = repeat.access + repeat.access_count;
  }
  once(warp.visit_count);
  return pieces;
}

std::span<const CtaEvent> EventsOf(const CtaTrace& cta, std::uint32_t warp) {
  const auto events = std::ranges::equal_range(cta.events, warp, {}, &CtaEvent::warp);
  return {events.begin(), events.end()};
}

Shifts& Shifts::operator=(const Shifts& other) {
  if (this != &other) std::copy(other.begin(), other.end(), Renew(other.size()));
  return *this;
}

std::uint32_t PutLanes(std::span<const std::uint64_t> addresses, std::uint32_t* words) {
  if (addresses.empty()) return 0;
  const auto [lowest, highest] = std::ranges::minmax(addresses);
  const std::uint32_t unit = highest - lowest <= UINT32_MAX ? 1 : ScatteredLanes::kFar;
  ScatteredLanes::PutHead(lowest, unit, words);
  std::uint32_t* next = words + ScatteredLanes::kHeadWords;
  for (const std::uint64_t address : addresses) {
    *next++ = static_cast<std::uint32_t>(address - lowest);
    if (unit == ScatteredLanes::kFar) *next++ = static_cast<std::uint32_t>((address - lowest) >> 32);
  }
  return static_cast<std::uint32_t>(next - words);
}

std::uint64_t AppendLanes(std::span<const std::uint64_t> addresses, Table<std::uint32_t>& lanes) {
  const std::size_t begin = lanes.size();
  lanes.resize(begin + ScatteredLanes::kMostWords);
  lanes.resize(begin + PutLanes(addresses, lanes.data() + begin));
  return begin;
}

void LaneAddresses(const CtaTrace& cta, const MemoryAccess& access, std::array<std::uint64_t, kWarpSize>& addresses) {
  if (access.has_pattern()) {
    const LanePattern& pattern = cta.patterns[access.pattern()];
    for (std::uint32_t lane = 0; lane < kWarpSize; ++lane)
      addresses[lane] = access.base + static_cast<std::uint64_t>(std::int64_t{pattern[lane]});
    return;
  }
  if (access.stride != MemoryAccess::kScattered) {
    for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
      addresses[lane] = access.base + static_cast<std::uint64_t>(static_cast<std::int64_t>(access.stride) * lane);
    }
    return;
  }
  if (access.mask == 0) return;
  const ScatteredLanes lanes = ScatteredLanes::At(cta.lanes.data() + access.base);
  std::size_t next = 0;
  for (std::uint32_t rest = access.mask; rest != 0; rest &= rest - 1)
    addresses[static_cast<std::size_t>(std::countr_zero(rest))] = lanes[next++];
}

AccessWindow WindowOf(Space space, std::uint8_t flags, const CtaTrace& cta, const MemoryAccess& access) {
  if ((flags & kGeneric) == 0 || access.mask == 0) return {space, 0};
  // Of the first active lane: the base of a stride or pattern may lie below the window.
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(access.mask));
  std::uint64_t address = access.base;
  if (access.stride == MemoryAccess::kScattered) address = ScatteredLanes::At(cta.lanes.data() + access.base)[0];
  else if (access.has_pattern())
    address += static_cast<std::uint64_t>(std::int64_t{cta.patterns[access.pattern()][lane]});
  else address += static_cast<std::uint64_t>(std::int64_t{access.stride} * lane);
  if ((address & MemoryAccess::kSharedWindow) != 0) return {Space::kShared, MemoryAccess::kSharedWindow};
  if ((address & MemoryAccess::kLocalWindow) != 0) return {Space::kLocal, MemoryAccess::kLocalWindow};
  return {space, 0};
}

Status ValidateCode(const KernelCode& code) {
  for (std::size_t i = 0; i < code.instructions.size(); ++i) GL_TRY_STATUS(ValidateInstruction(code, i));
  std::vector<bool> taken(code.instructions.size());
  for (std::size_t b = 0; b < code.blocks.size(); ++b) {
    const BasicBlock& block = code.blocks[b];
    if (std::uint64_t{block.first} + block.count > code.instructions.size()) {
      return Bad("kernel " + code.name + ", block " + std::to_string(b), "instructions beyond the table");
    }
    for (std::uint32_t i = block.first; i < block.first + block.count; ++i) {
      if (taken[i]) return Bad("kernel " + code.name + ", block " + std::to_string(b), "instructions of another block");
      taken[i] = true;
    }
  }
  return ValidateMeanings(code);
}

Status ValidateCta(const KernelCode& code, const LaunchShape& shape, const CtaTrace& cta) {
  if (cta.warps.size() != shape.warps_per_cta()) {
    return Bad("kernel " + code.name,
               std::to_string(cta.warps.size()) + " warps in a CTA of " + std::to_string(shape.warps_per_cta()));
  }
  for (std::size_t w = 0; w < cta.warps.size(); ++w) GL_TRY_STATUS(ValidateWarp(code, cta, w));
  GL_TRY_STATUS(ValidateEvents(code, cta));
  return ValidateRepeats(code, cta);
}

Status ValidateEvents(const KernelCode& code, const CtaTrace& cta) {
  for (std::size_t e = 0; e < cta.events.size(); ++e) GL_TRY_STATUS(ValidateEvent(code, cta, e));
  return {};
}

Result<std::vector<AccessRange>> AccessRangesOf(const KernelCode& code, const CtaTrace& cta) {
  std::vector<std::uint32_t> number_of{0};  // by instruction: memory instructions before it
  for (const Instruction& instruction : code.instructions)
    number_of.push_back(number_of.back() + (instruction.has_access() ? 1 : 0));
  std::vector<AccessRange> ranges(number_of.back());
  for (const WarpTrace& warp : cta.warps) {
    const MemoryAccess* access = cta.accesses.data() + warp.first_access;
    for (std::uint32_t v = 0; v < warp.visit_count; ++v) {
      const BasicBlock& block = code.blocks[cta.visits[warp.first_visit + v].block];
      const std::uint32_t end = block.first + block.count;
      if (number_of[block.first] == number_of[end]) continue;
      for (std::uint32_t i = block.first; i < end; ++i) {
        const Instruction& instruction = code.instructions[i];
        if (!instruction.has_access()) continue;
        const MemoryAccess& one = *access++;
        const AccessWindow window = WindowOf(instruction.space, instruction.flags, cta, one);
        if (one.mask == 0 || window.space == Space::kShared) continue;
        const AccessRange lanes = LanesOf(cta, one);
        const std::uint64_t first = lanes.first - window.added, begin_of_last = lanes.last - window.added;
        const std::uint64_t last = begin_of_last + instruction.width - 1;
        if (!IsMemory(first, begin_of_last) || !IsMemory(first, last)) {
          return Bad("kernel " + code.name + ", instruction " + std::to_string(i),
                     "an access at " + std::to_string(lanes.first) + ", where there is no memory");
        }
        AccessRange& range = ranges[number_of[i]];
        range.first = std::min(range.first, first);
        range.last = std::max(range.last, last);
      }
    }
  }
  return ranges;
}

Status ValidateShifts(const KernelCode& code, std::span<const AccessRange> ranges, const Shifts& shifts) {
  if (shifts.empty()) return {};
  if (shifts.size() != ranges.size()) {
    return Bad("kernel " + code.name,
               std::to_string(shifts.size()) + " shifts for " + std::to_string(ranges.size()) + " memory instructions");
  }
  std::size_t number = 0;
  for (const Instruction& instruction : code.instructions) {
    if (!instruction.has_access()) continue;
    const std::uint64_t shift = shifts[number];
    const AccessRange& range = ranges[number++];
    if (shift == 0) continue;
    if (instruction.space == Space::kShared)
      return Bad("kernel " + code.name, "addresses of shared memory are shifted");
    if (!range.empty() && !IsMemory(range.first + shift, range.last + shift))
      return Bad("kernel " + code.name, "a shift by " + std::to_string(shift) + " goes to where there is no memory");
  }
  return {};
}

Status CtaChecks::Check(const KernelCode& code, const LaunchShape& shape, const LoadedCta& cta) {
  if (cta.trace != valid_) {
    valid_ = nullptr;
    GL_TRY_STATUS(ValidateCta(code, shape, *cta.trace));
    GL_TRY(ranges, AccessRangesOf(code, *cta.trace));
    ranges_ = std::move(ranges);
    valid_ = cta.trace;
  }
  return ValidateShifts(code, ranges_, cta.shifts);
}

std::uint32_t AccessCount(const KernelCode& code) {
  return static_cast<std::uint32_t>(std::ranges::count_if(code.instructions, &Instruction::has_access));
}

CtaTrace Flatten(const KernelCode& code, const LoadedCta& cta) {
  CtaTrace flat = *cta.trace;
  if (cta.shifts.empty()) return flat;
  std::vector<std::size_t> numbers;
  for (const Instruction& instruction : code.instructions)
    numbers.push_back((numbers.empty() ? 0 : numbers.back()) + instruction.has_access());
  for (const WarpTrace& warp : flat.warps) {
    MemoryAccess* access = flat.accesses.data() + warp.first_access;
    for (std::uint32_t v = 0; v < warp.visit_count; ++v) {
      const BasicBlock& block = code.blocks[flat.visits[warp.first_visit + v].block];
      for (std::uint32_t i = block.first; i < block.first + block.count; ++i) {
        const Instruction& instruction = code.instructions[i];
        if (!instruction.has_access()) continue;
        // A generic instruction's shift is that of what lies in memory.
        const bool moves = WindowOf(instruction.space, instruction.flags, flat, *access).space != Space::kShared;
        const std::uint64_t shift = moves ? cta.shifts[numbers[i] - 1] : 0;
        if (access->stride != MemoryAccess::kScattered) {
          access->base += access->mask != 0 ? shift : 0;
        } else if (access->mask != 0) {
          std::uint32_t* const words = flat.lanes.data() + access->base;
          const ScatteredLanes lanes = ScatteredLanes::At(words);
          ScatteredLanes::PutHead(lanes.low + shift, lanes.unit, words);
        }
        ++access;
      }
    }
  }
  return flat;
}

std::shared_ptr<const CtaTrace> FlatTrace(const KernelCode& code, LoadedCta cta) {
  return cta.shifts.empty() ? std::move(cta.trace) : std::make_shared<const CtaTrace>(Flatten(code, cta));
}

std::uint64_t InstructionCount(const KernelCode& code, const CtaTrace& cta) {
  std::uint64_t count = 0;
  for (const BlockVisit& visit : cta.visits) count += code.blocks[visit.block].count;
  for (const Repeat& repeat : cta.repeats) {
    const std::uint32_t first = cta.warps[repeat.warp].first_visit + repeat.visit;
    for (std::uint32_t v = first; v < first + repeat.visit_count; ++v)
      count += repeat.more * code.blocks[cta.visits[v].block].count;
  }
  return count;
}

}  // namespace gridloom::trace
