#include "tests/fuzz/programs/program.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>

#include "sim/trace/trace_records.h"

namespace gridloom::fuzz {

using namespace trace;

namespace {

std::uint64_t Below(Random& random, std::uint64_t end) { return random() % end; }
bool OneIn(Random& random, std::uint64_t n) { return Below(random, n) == 0; }

// ---- programs by chance

Instruction RandomInstruction(KernelCode& code, Random& random) {
  Instruction instruction;
  instruction.line = static_cast<std::uint32_t>(code.instructions.size() + 1);
  if (OneIn(random, 2)) {
    constexpr Space kSpaces[] = {Space::kGlobal,   Space::kGlobal,  Space::kLocal,    Space::kShared,
                                 Space::kConstant, Space::kTexture, Space::kParameter};
    constexpr std::uint8_t kFlags[] = {0,         0,        kStore, kAtomic, kAtomic | kStore, kVolatile, kCacheGlobal,
                                       kReadOnly, kPrefetch};
    instruction.op = OpClass::kMemory;
    instruction.space = kSpaces[Below(random, std::size(kSpaces))];
    instruction.width = static_cast<std::uint8_t>(1u << Below(random, 5));
    instruction.flags = kFlags[Below(random, std::size(kFlags))];
    if (instruction.space == Space::kGlobal && OneIn(random, 3)) instruction.flags |= kGeneric;
  } else {
    do instruction.op = static_cast<OpClass>(Below(random, kOpClassCount));
    while (instruction.op == OpClass::kMemory || instruction.op == OpClass::kTensor);
    if (instruction.op == OpClass::kBarrier) {
      instruction.barrier = static_cast<std::uint8_t>(Below(random, 3));
      if (OneIn(random, 4)) instruction.barrier_warps = static_cast<std::uint8_t>(1 + Below(random, 4));
      if (OneIn(random, 8)) instruction.flags = kArrive;
    }
  }
  instruction.operands = static_cast<std::uint32_t>(code.operands.size());
  instruction.destinations = static_cast<std::uint8_t>(Below(random, 2));
  instruction.sources = static_cast<std::uint8_t>(Below(random, 3));
  for (int i = instruction.destinations + instruction.sources; i > 0; --i)
    code.operands.push_back(static_cast<std::uint16_t>(Below(random, code.register_count + 1)));
  return instruction;
}

KernelCode RandomKernel(Random& random) {
  KernelCode code;
  code.name = "kernel_" + std::to_string(Below(random, 5));
  code.register_count = 8;
  for (std::uint64_t blocks = 1 + Below(random, 5); blocks > 0; --blocks) {
    BasicBlock block{.first = static_cast<std::uint32_t>(code.instructions.size()),
                     .count = static_cast<std::uint32_t>(1 + Below(random, 5))};
    for (std::uint32_t i = 0; i < block.count; ++i) code.instructions.push_back(RandomInstruction(code, random));
    code.blocks.push_back(block);
  }
  return code;
}

MemoryAccess RandomAccess(const Instruction& instruction, std::uint32_t mask, CtaTrace& cta, Random& random) {
  MemoryAccess access;
  if (OneIn(random, 8)) return access;
  access.mask = mask;
  access.base =
      instruction.space == Space::kShared ? Below(random, 4096) * 16 : 0x7f0000000000 + Below(random, 1 << 16) * 128;
  if ((instruction.flags & kGeneric) != 0 && OneIn(random, 2))
    access.base =
        (OneIn(random, 2) ? MemoryAccess::kSharedWindow : MemoryAccess::kLocalWindow) + Below(random, 1 << 16) * 16;
  switch (Below(random, 4)) {
    case 0: access.stride = static_cast<std::int32_t>(Below(random, 4096)) - 2048; break;
    case 1:
      access.stride = MemoryAccess::kFirstPattern + static_cast<std::int32_t>(cta.patterns.size());
      for (std::int32_t& offset : cta.patterns.emplace_back())
        offset = static_cast<std::int32_t>(Below(random, 1 << 20));
      break;
    case 2: {
      std::vector<std::uint64_t> lanes;
      for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1)
        lanes.push_back(access.base + Below(random, 1 << 20) * instruction.width);
      access.base = AppendLanes(lanes, cta.lanes);
      access.stride = MemoryAccess::kScattered;
      break;
    }
    default: access.stride = instruction.width;
  }
  // Lanes below the beginning of a window or of memory would be none.
  if (access.stride < 0 && !access.has_pattern() && access.stride != MemoryAccess::kScattered) access.base += 1 << 20;
  return access;
}

CtaTrace RandomCta(const KernelCode& code, std::uint32_t warps, Random& random) {
  CtaTrace cta;
  for (std::uint32_t w = 0; w < warps; ++w) {
    WarpTrace warp{static_cast<std::uint32_t>(cta.visits.size()), 0, static_cast<std::uint32_t>(cta.accesses.size()),
                   0};
    for (std::uint64_t visits = Below(random, 12); visits > 0; --visits) {
      BlockVisit visit{static_cast<std::uint32_t>(Below(random, code.blocks.size())), ~0u};
      if (OneIn(random, 4)) visit.mask = static_cast<std::uint32_t>(random()) | 1;
      for (std::uint64_t times = OneIn(random, 4) ? 1 + Below(random, 20) : 1; times > 0; --times) {
        cta.visits.push_back(visit);
        const BasicBlock& block = code.blocks[visit.block];
        for (std::uint32_t i = block.first; i < block.first + block.count; ++i) {
          if (code.instructions[i].has_access())
            cta.accesses.push_back(RandomAccess(code.instructions[i], visit.mask, cta, random));
        }
      }
    }
    warp.visit_count = static_cast<std::uint32_t>(cta.visits.size()) - warp.first_visit;
    warp.access_count = static_cast<std::uint32_t>(cta.accesses.size()) - warp.first_access;
    cta.warps.push_back(warp);
  }
  return cta;
}

void AddEvents(const KernelCode& code, CtaTrace& cta, std::span<const std::uint64_t> works, Random& random) {
  for (std::uint32_t w = 0; w < cta.warps.size(); ++w) {
    for (std::uint32_t v = 0; v < cta.warps[w].visit_count; ++v) {
      if (!OneIn(random, 6)) continue;
      const BlockVisit& visit = cta.visits[cta.warps[w].first_visit + v];
      CtaEvent event{.kind = static_cast<EventKind>(Below(random, kEventKindCount)),
                     .flags = static_cast<std::uint8_t>(Below(random, 16)),
                     .warp = w,
                     .visit = v,
                     .instruction = code.blocks[visit.block].first,
                     .lanes = visit.mask,
                     .data = {0x7f0000000000 + Below(random, 1 << 20), 1 + Below(random, 256), 256, Below(random, 4)}};
      if (event.kind == EventKind::kDeviceLaunch)
        event.data = {works.empty() ? 0 : works[Below(random, works.size())], 1, 32, 64};
      cta.events.push_back(event);
    }
  }
}

void AddLaunch(Program& program, std::uint64_t work, std::span<const std::uint64_t> children, Random& random) {
  Launch launch;
  launch.info.kernel = static_cast<std::uint32_t>(Below(random, program.kernels.size()));
  launch.info.work = work;
  launch.info.stream = 1 + Below(random, 3);
  const std::uint64_t ctas = 1 + Below(random, OneIn(random, 4) ? 40 : 4);
  const auto warps = static_cast<std::uint32_t>(1 + Below(random, 4));
  launch.info.shape = {.ctas = ctas,
                       .threads_per_cta = warps * kWarpSize - static_cast<std::uint32_t>(Below(random, kWarpSize)),
                       .registers_per_thread = static_cast<std::uint32_t>(Below(random, 40)),
                       .shared_bytes = static_cast<std::uint32_t>(Below(random, 4096))};
  const KernelCode& code = program.kernels[launch.info.kernel];
  LoadedCta like;
  for (std::uint64_t i = 0; i < ctas; ++i) {
    if (like.trace == nullptr || OneIn(random, 4)) {
      CtaTrace cta = RandomCta(code, warps, random);
      if (!children.empty() || OneIn(random, 3)) AddEvents(code, cta, children, random);
      like = {.trace = std::make_shared<const CtaTrace>(std::move(cta)), .shifts = {}};
    } else {
      if (like.shifts.empty()) std::fill_n(like.shifts.Renew(AccessCount(code)), AccessCount(code), 0);
      std::size_t number = 0;
      for (const Instruction& instruction : code.instructions) {
        if (!instruction.has_access()) continue;
        if (instruction.space != Space::kShared) like.shifts[number] += 512;
        ++number;
      }
    }
    launch.ctas.emplace_back(i, like);
  }
  program.launches.push_back(std::move(launch));
}

}  // namespace

Program RandomProgram(Random& random) {
  Program program;
  for (std::uint64_t kernels = 1 + Below(random, 3); kernels > 0; --kernels)
    program.kernels.push_back(RandomKernel(random));
  std::vector<std::uint64_t> groups;                          // that are open
  std::map<std::uint64_t, std::vector<std::uint64_t>> parts;  // of launches that launch
  const std::uint64_t works = 1 + Below(random, 10);
  for (std::uint64_t work = 1; work <= works; ++work) {
    HostAction action;
    action.kind = static_cast<HostAction::Kind>(Below(random, static_cast<std::uint64_t>(HostAction::kLastKind) + 1));
    if (action.kind == HostAction::Kind::kWait || OneIn(random, 3)) action.kind = HostAction::Kind::kLaunch;
    action.work = work;
    action.stream = 1 + Below(random, 3);
    if (work > 1 && OneIn(random, 3)) action.after.push_back(1 + Below(random, work - 1));
    if (!groups.empty() && OneIn(random, 2)) action.group = groups[Below(random, groups.size())];
    if (action.group != 0 && OneIn(random, 6)) action.rank = ~std::uint64_t{0};
    if (action.kind == HostAction::Kind::kGroup || (action.kind == HostAction::Kind::kLaunch && OneIn(random, 4)))
      groups.push_back(work);
    if (action.group != 0) parts[action.group].push_back(work);
    if (action.kind < HostAction::Kind::kWait) {
      action.bytes = 1 + Below(random, 1 << 20);
      action.address = 0x7f0000000000 + Below(random, 1 << 20);
      if (action.kind == HostAction::Kind::kCopyOnDevice) action.source = 0x7f0000000000;
    }
    program.actions.push_back(action);
    if (action.group == 0 && OneIn(random, 4)) {
      HostAction wait;
      wait.kind = HostAction::Kind::kWait;
      wait.after = {1 + Below(random, work)};
      wait.sees = OneIn(random, 2);
      program.actions.push_back(wait);
    }
  }
  for (const HostAction& action : program.actions) {
    if (action.kind == HostAction::Kind::kLaunch && !OneIn(random, 16))
      AddLaunch(program, action.work, parts[action.work], random);
  }
  return program;
}

Program ReadProgram(const std::shared_ptr<TraceFile>& file) {
  constexpr std::size_t kMostCtas = 64;  // of a launch
  Program program{.kernels = file->kernels(), .launches = {}, .actions = file->actions()};
  for (std::size_t i = 0; i < file->launches().size(); ++i) {
    const TraceFile::Launch& of_file = file->launches()[i];
    Launch launch{.info = of_file.info, .complete = of_file.complete, .ctas = {}};
    const auto source = TraceFile::Source(file, i);
    for (const std::uint64_t cta : of_file.KeptCtas()) {
      if (launch.ctas.size() == kMostCtas) break;
      if (auto loaded = source->Load(cta)) launch.ctas.emplace_back(cta, std::move(*loaded));
    }
    if (launch.ctas.size() == kMostCtas) launch.info.shape.ctas = kMostCtas;
    program.launches.push_back(std::move(launch));
  }
  return program;
}

// ---- as files and frames

namespace {

Bytes Copy(const ByteWriter& out) { return {out.bytes().begin(), out.bytes().end()}; }

/// The CTAs that an encoder can write, as a directory and a content.
struct Batch {
  std::vector<std::uint64_t> ctas;
  ByteWriter content;
};

Batch Encode(const KernelCode& code, const Launch& launch) {
  Batch batch;
  if (!ValidateCode(code).ok()) return batch;
  CtaEncoder encoder(code);
  for (const auto& [index, cta] : launch.ctas) {
    const LaunchShape shape{.ctas = 1,
                            .threads_per_cta = static_cast<std::uint32_t>(cta.trace->warps.size()) * kWarpSize};
    if (!ValidateCta(code, shape, *cta.trace).ok() || (!cta.shifts.empty() && cta.shifts.size() != AccessCount(code)))
      continue;
    batch.ctas.push_back(index);
    encoder.Encode(cta, batch.content);
  }
  return batch;
}

struct Piece {
  ChunkType type = ChunkType::kInfo;
  Bytes directory, content;
};

std::vector<Piece> PiecesOf(const Program& program) {
  std::vector<Piece> pieces;
  const auto add = [&](ChunkType type, auto write) {
    ByteWriter out;
    write(out);
    pieces.push_back({type, {}, Copy(out)});
  };
  for (const KernelCode& code : program.kernels) add(ChunkType::kKernel, [&](ByteWriter& out) { PutCode(code, out); });
  for (const HostAction& action : program.actions)
    add(ChunkType::kHost, [&](ByteWriter& out) { PutAction(action, out); });
  for (std::size_t l = 0; l < program.launches.size(); ++l) {
    const Launch& launch = program.launches[l];
    add(ChunkType::kLaunchBegin, [&](ByteWriter& out) { PutInfo(launch.info, out); });
    if (launch.info.kernel >= program.kernels.size()) continue;
    const Batch batch = Encode(program.kernels[launch.info.kernel], launch);
    ByteWriter directory;
    PutCtas(l, batch.ctas, directory);
    pieces.push_back({ChunkType::kCtas, Copy(directory), Copy(batch.content)});
    if (!launch.complete) continue;
    add(ChunkType::kLaunchEnd, [&](ByteWriter& out) {
      for (const std::uint64_t number : {std::uint64_t{l}, std::uint64_t{batch.ctas.size()}, std::uint64_t{0}})
        out.Varint(number);
    });
  }
  return pieces;
}

void Damage(std::vector<Piece>& pieces, Random& random) {
  Piece& piece = pieces[Below(random, pieces.size())];
  switch (Below(random, 8)) {
    case 0: pieces.erase(pieces.begin() + (&piece - pieces.data())); break;
    case 1: std::swap(piece, pieces[Below(random, pieces.size())]); break;
    case 2: pieces.push_back(Piece(piece)); break;
    case 3: Change(piece.directory, random); break;
    default: Change(piece.content, random); break;
  }
}

}  // namespace

Bytes FileOf(const Program& program, Random& random, bool damage) {
  std::vector<Piece> pieces = PiecesOf(program);
  if (damage && !pieces.empty()) Damage(pieces, random);
  FileHeader header{};
  std::memcpy(header.magic, kFileMagic, sizeof header.magic);
  header.version = kFormatVersion;
  Bytes file(sizeof header);
  std::memcpy(file.data(), &header, sizeof header);
  ChunkPacker packer;
  for (const Piece& piece : pieces) {
    const ByteSpan packed = packer.Pack(piece.type, piece.directory, piece.content);
    file.insert(file.end(), packed.begin(), packed.end());
  }
  return file;
}

std::vector<Frame> FramesOf(const Program& program, Random& random, bool damage) {
  using protocol::FrameKind;
  std::vector<Frame> frames;
  const auto add = [&](FrameKind kind, auto write) {
    ByteWriter out;
    write(out);
    frames.push_back({kind, Copy(out)});
  };
  const auto numbers = [](ByteWriter& out, std::initializer_list<std::uint64_t> values) {
    for (const std::uint64_t value : values) out.Varint(value);
  };
  for (const KernelCode& code : program.kernels) add(FrameKind::kCode, [&](ByteWriter& out) { PutCode(code, out); });
  std::map<std::uint64_t, const Launch*> launches;
  for (const Launch& launch : program.launches) {
    if (launch.info.of_program()) launches[launch.info.work] = &launch;
  }
  std::map<std::uint64_t, std::uint64_t> number_of;  // of works: sessions count them one by one
  std::map<std::uint64_t, bool> groups;
  for (const HostAction& action : program.actions) groups[action.group] = true;
  std::vector<std::uint64_t> open;
  std::uint64_t questions = 0;
  for (const HostAction& action : program.actions) {
    const auto renumbered = [&](std::uint64_t work) { return number_of.contains(work) ? number_of[work] : work; };
    if (action.kind == HostAction::Kind::kWait) {
      if (action.after.empty()) continue;
      add(OneIn(random, 2) ? FrameKind::kWait : FrameKind::kAsk, [&](ByteWriter& out) {
        numbers(out, {++questions, 1, renumbered(action.after[0])});
      });
      continue;
    }
    HostAction said = action;
    said.work = number_of.size() + 1;
    for (std::uint64_t& work : said.after) work = renumbered(work);
    said.group = action.group == 0 ? 0 : renumbered(action.group);
    number_of[action.work] = said.work;
    const bool opens = groups.contains(action.work) || action.kind == HostAction::Kind::kGroup;
    const auto launch = action.kind == HostAction::Kind::kLaunch ? launches.find(action.work) : launches.end();
    if (opens) open.push_back(said.work);
    if (launch == launches.end()) {
      if (said.kind == HostAction::Kind::kLaunch)
        said.kind = opens ? HostAction::Kind::kGroup : HostAction::Kind::kMarker;
      add(FrameKind::kAction, [&](ByteWriter& out) { PutAction(said, out); });
      continue;
    }
    const Launch& of = *launch->second;
    add(FrameKind::kLaunch, [&](ByteWriter& out) {
      out.Fixed(static_cast<std::uint8_t>(opens ? 1 : 0));
      PutInfo(of.info, out);
      PutAction(said, out);
    });
    if (of.info.kernel >= program.kernels.size()) continue;
    const Batch batch = Encode(program.kernels[of.info.kernel], of);
    add(FrameKind::kCtas, [&](ByteWriter& out) {
      PutCtas(said.work, batch.ctas, out);
      if (batch.content.size() != 0)
        std::memcpy(out.Grow(batch.content.size()), batch.content.bytes().data(), batch.content.size());
    });
    if (of.complete) add(FrameKind::kEndLaunch, [&](ByteWriter& out) { numbers(out, {said.work}); });
  }
  for (const std::uint64_t work : open) add(FrameKind::kCloseGroup, [&](ByteWriter& out) { numbers(out, {work}); });
  add(FrameKind::kFinish, [&](ByteWriter& out) { numbers(out, {++questions}); });
  if (!damage) return frames;
  Frame& frame = frames[Below(random, frames.size())];
  switch (Below(random, 8)) {
    case 0: frames.erase(frames.begin() + (&frame - frames.data())); break;
    case 1: std::swap(frame, frames[Below(random, frames.size())]); break;
    case 2: frames.push_back(Frame(frame)); break;
    case 3: frame.kind = static_cast<FrameKind>(1 + Below(random, 11)); break;
    default: Change(frame.bytes, random); break;
  }
  return frames;
}

}  // namespace gridloom::fuzz
