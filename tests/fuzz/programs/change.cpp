// What is changed of programs: fields, by values at which something ends; bytes, where no field stands for them.
#include <algorithm>
#include <iterator>
#include <limits>
#include <type_traits>

#include "tests/fuzz/programs/program.h"

namespace gridloom::fuzz {

using namespace trace;

namespace {

std::uint64_t Below(Random& random, std::uint64_t end) { return random() % end; }
bool OneIn(Random& random, std::uint64_t n) { return Below(random, n) == 0; }

/// Near the old one, near a power of two, or any.
std::uint64_t Odd(std::uint64_t old, Random& random) {
  const std::uint64_t power = std::uint64_t{1} << Below(random, 64);
  switch (Below(random, 8)) {
    case 0: return old + 1;
    case 1: return old - 1;
    case 2: return old ^ power;
    case 3: return power;
    case 4: return power - 1;
    case 5: return 0 - power;
    case 6: return Below(random, 40);
    default: return random();
  }
}

template <typename T>
void Change(T& value, Random& random) {
  if constexpr (std::is_enum_v<T>) value = static_cast<T>(Odd(static_cast<std::uint64_t>(value), random));
  else if constexpr (std::is_same_v<T, bool>) value = !value;
  else value = static_cast<T>(Odd(static_cast<std::uint64_t>(value), random));
}

template <typename T>
auto* Any(T& values, Random& random) {
  return values.empty() ? nullptr : &values[Below(random, values.size())];
}

/// Takes one away, or puts one in twice.
template <typename T>
void ChangeList(std::vector<T>& list, Random& random) {
  if (list.empty()) return;
  const auto at = list.begin() + static_cast<std::ptrdiff_t>(Below(random, list.size()));
  if (OneIn(random, 2)) list.erase(at);
  else list.push_back(T(*at));
}

void ChangeKernel(KernelCode& code, Random& random) {
  if (OneIn(random, 8)) {
    Change(code.register_count, random);
    code.register_count %= 0x10000;
  }
  if (std::uint16_t* const reg = Any(code.operands, random); reg != nullptr && OneIn(random, 6)) Change(*reg, random);
  if (BasicBlock* const block = Any(code.blocks, random); block != nullptr && OneIn(random, 6))
    Change(OneIn(random, 2) ? block->first : block->count, random);
  if (OneIn(random, 16)) code.name = "\033[31m" + code.name + std::string(Below(random, 300), 'x');
  Instruction* const instruction = Any(code.instructions, random);
  if (instruction == nullptr) return;
  switch (Below(random, 10)) {
    case 0: instruction->op = static_cast<OpClass>(Below(random, kOpClassCount + 1)); break;
    case 1: instruction->space = static_cast<Space>(Below(random, 8)); break;
    case 2: instruction->width = static_cast<std::uint8_t>(1u << Below(random, 8)); break;
    case 3: Change(instruction->flags, random); break;
    case 4: Change(instruction->destinations, random); break;
    case 5: Change(instruction->sources, random); break;
    case 6: Change(instruction->barrier, random); break;
    case 7: Change(instruction->barrier_warps, random); break;
    case 8: Change(instruction->operands, random); break;
    default: instruction->flags ^= static_cast<std::uint8_t>(1u << Below(random, 8));
  }
}

void ChangeCta(LoadedCta& loaded, Random& random) {
  if (!loaded.shifts.empty() && OneIn(random, 3))
    return Change(loaded.shifts[Below(random, loaded.shifts.size())], random);
  CtaTrace cta = *loaded.trace;
  switch (Below(random, 8)) {
    case 0:
    case 1:
    case 2:
      if (MemoryAccess* const access = Any(cta.accesses, random)) {
        if (OneIn(random, 2)) Change(access->base, random);
        else if (OneIn(random, 2)) Change(access->stride, random);
        else Change(access->mask, random);
      }
      break;
    case 3:
      if (BlockVisit* const visit = Any(cta.visits, random))
        Change(OneIn(random, 4) ? visit->block : visit->mask, random);
      break;
    case 4:
      if (std::uint32_t* const word = Any(cta.lanes, random)) Change(*word, random);
      break;
    case 5:
      if (LanePattern* const pattern = Any(cta.patterns, random)) Change((*pattern)[Below(random, kWarpSize)], random);
      break;
    case 6:
      if (CtaEvent* const event = Any(cta.events, random)) {
        if (OneIn(random, 2)) Change(event->data[Below(random, 4)], random);
        else if (OneIn(random, 2)) event->kind = static_cast<EventKind>(Below(random, kEventKindCount));
        else Change(event->flags, random);
      }
      break;
    default: ChangeList(cta.warps, random);
  }
  loaded.trace = std::make_shared<const CtaTrace>(std::move(cta));
}

void ChangeLaunch(Launch& launch, Random& random) {
  LaunchShape& shape = launch.info.shape;
  switch (Below(random, 12)) {
    case 0: Change(shape.ctas, random); break;
    case 1: Change(shape.threads_per_cta, random); break;
    case 2: Change(shape.registers_per_thread, random); break;
    case 3: Change(shape.shared_bytes, random); break;
    case 4: Change(launch.info.kernel, random); break;
    case 5: Change(launch.info.stream, random); break;
    case 6: Change(launch.info.work, random); break;
    case 7: launch.info.role = static_cast<LaunchInfo::Role>(Below(random, 3)); break;
    case 8: launch.info.ranges = static_cast<LaunchInfo::Ranges>(Below(random, 3)); break;
    case 9: launch.complete = !launch.complete; break;
    case 10: ChangeList(launch.ctas, random); break;
    default:
      if (auto* const cta = Any(launch.ctas, random)) Change(cta->first, random);
  }
}

void ChangeAction(HostAction& action, Random& random) {
  switch (Below(random, 14)) {
    case 0:
      action.kind = static_cast<HostAction::Kind>(Below(random, static_cast<std::uint64_t>(HostAction::kLastKind) + 1));
      break;
    case 1: Change(action.work, random); break;
    case 2: Change(action.stream, random); break;
    case 3: action.after.push_back(OneIn(random, 2) ? Below(random, 12) : random()); break;
    case 4: action.group = Below(random, 12); break;
    case 5: Change(action.rank, random); break;
    case 6: Change(action.address, random); break;
    case 7: Change(action.bytes, random); break;
    case 8: Change(action.span, random); break;
    case 9: Change(action.source, random); break;
    case 10: action.like = Below(random, 12); break;
    case 11:
      action.reuses.push_back({.work = 1 + Below(random, 12), .begin = static_cast<std::int64_t>(Odd(0, random)) >> 4});
      break;
    case 12: action.sees = !action.sees; break;
    default: Change(action.host_span, random);
  }
}

}  // namespace

void Change(Program& program, Random& random) {
  switch (Below(random, 12)) {
    case 0:
    case 1:
      if (KernelCode* const code = Any(program.kernels, random)) ChangeKernel(*code, random);
      break;
    case 2:
    case 3:
      if (Launch* const launch = Any(program.launches, random)) ChangeLaunch(*launch, random);
      break;
    case 4:
    case 5:
      if (HostAction* const action = Any(program.actions, random)) ChangeAction(*action, random);
      break;
    case 6: ChangeList(program.launches, random); break;
    case 7: ChangeList(program.actions, random); break;
    default:
      if (Launch* const launch = Any(program.launches, random)) {
        if (auto* const cta = Any(launch->ctas, random)) ChangeCta(cta->second, random);
      }
  }
}

void Change(Bytes& bytes, Random& random) {
  for (std::uint64_t times = 1 + Below(random, 3); times > 0; --times) {
    const std::size_t at = Below(random, bytes.size() + 1);
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (Below(random, 5)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<std::uint8_t>(random());
        break;
      case 1:
        if (at < bytes.size()) bytes[at] ^= static_cast<std::uint8_t>(1u << Below(random, 8));
        break;
      case 2: bytes.insert(place, static_cast<std::uint8_t>(random())); break;
      case 3:
        if (at < bytes.size()) bytes.erase(place);
        break;
      default: {  // a number as it is written, near where something ends
        std::uint8_t number[ByteWriter::kLongestVarint];
        std::uint8_t* const end = ByteWriter::PutVarint(number, Odd(0, random));
        bytes.insert(place, static_cast<std::uint8_t*>(number), end);
      }
    }
  }
}

}  // namespace gridloom::fuzz
