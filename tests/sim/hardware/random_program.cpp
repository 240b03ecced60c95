#include "tests/sim/hardware/random_program.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <numeric>

#include "scheduler/policy/builtin.h"
#include "sim/hardware/catalog.h"

namespace gridloom::timing {
namespace {

using trace::OpClass;
using trace::Space;

constexpr std::uint32_t kProfilerStream = 1000, kStorageStream = 1001;
constexpr std::uint8_t kBoth = trace::kRangeRead | trace::kRangeWrite;
constexpr std::uint64_t kLocal = std::uint64_t{1} << 40;  // local memory lies apart

std::uint64_t Draw(std::mt19937_64& random, std::uint64_t low, std::uint64_t high) {
  return low + random() % (high - low + 1);
}

template <typename T>
T Choose(std::mt19937_64& random, std::initializer_list<T> values) {
  return values.begin()[random() % values.size()];
}

// ---- kernels

/// Blocks of the kernels below: one memory instruction each, then a barrier, then the end.
enum Block : std::uint32_t {
  kLoad,
  kLoadWide,
  kLoadReadOnly,
  kLoadVolatile,
  kLoadGeneric,
  kStore,
  kStoreWide,
  kAtomic,
  kReduce,
  kLocalUse,
  kMeet,
  kEnd
};

trace::KernelCode Code(const std::string& name) {
  CodeBuilder code(name);
  const auto begin = [&] {
    code.Block();
    code.Op(OpClass::kInt, {1}, {2});
  };
  begin(), code.Load(Space::kGlobal, 2);
  begin(), code.Load(Space::kGlobal, 3, 16);
  begin(), code.Load(Space::kGlobal, 2, 4, trace::kReadOnly);
  begin(), code.Load(Space::kGlobal, 2, 4, trace::kVolatile);
  begin(), code.Load(Space::kGlobal, 2, 4, trace::kGeneric);
  begin(), code.Store(Space::kGlobal, 2);
  begin(), code.Store(Space::kGlobal, 3, 16);
  begin(), code.Atomic(Space::kGlobal, 2);
  begin(), code.Store(Space::kGlobal, 2, 4, trace::kAtomic);
  begin(), code.Load(Space::kLocal, 4), code.Store(Space::kLocal, 4);
  code.Block();
  code.Barrier();
  code.Block();
  code.Op(OpClass::kInt, {1}, {1, 2, 3});
  code.Op(OpClass::kControl, {}, {1});
  return code.code();
}

trace::CtaEvent EventOf(const TouchedRange& range, trace::EventKind kind, std::uint32_t visit,
                        std::uint32_t instruction) {
  return {.kind = kind,
          .flags = range.flags,
          .warp = 0,
          .visit = visit,
          .instruction = instruction,
          .lanes = 1,
          .data = {range.first, range.bytes, range.distance, range.pieces}};
}

/// Writes the warps of a CTA whose ranges these are.
class CtaWriter {
 public:
  CtaWriter(const std::vector<TouchedRange>& ranges, std::uint64_t seed) : ranges_(ranges), random_(seed) {}

  std::shared_ptr<const trace::CtaTrace> Write(const trace::KernelCode& code, const trace::LaunchShape& shape,
                                               std::uint32_t visits) {
    for (std::uint32_t warp = 0; warp < shape.warps_per_cta(); ++warp) {
      cta_.Warp();
      for (std::uint32_t i = 0; i < visits; ++i) Visit();
      if (Draw(random_, 0, 3) == 0) {
        cta_.Visit(kLocalUse);
        cta_.Access(kLocal + warp * 128);
        cta_.Access(kLocal + warp * 128);
      }
      cta_.Visit(kMeet);
      cta_.Visit(kEnd);
    }
    auto made = std::make_shared<trace::CtaTrace>(*cta_.Finish());
    const std::uint32_t last = made->warps[0].visit_count - 1, instruction = code.blocks[kEnd].first + 1;
    for (const TouchedRange& range : ranges_)
      made->events.push_back(EventOf(range, trace::EventKind::kReleaseRange, last, instruction));
    return made;
  }

 private:
  void Visit() {
    const Block block = Choose(random_, {kLoad, kLoad, kLoad, kLoadWide, kLoadReadOnly, kLoadVolatile, kLoadGeneric,
                                         kStore, kStore, kStore, kStoreWide, kAtomic, kReduce});
    const std::uint64_t width = block == kLoadWide || block == kStoreWide ? 16 : 4;
    std::uint8_t flags = kBoth;
    if (block < kStore) flags = trace::kRangeRead;
    else if (block < kAtomic) flags = trace::kRangeWrite;
    std::vector<const TouchedRange*> fit;
    for (const TouchedRange& range : ranges_) {
      if ((range.flags & flags) == flags && range.bytes >= 2 * width) fit.push_back(&range);
    }
    if (fit.empty()) return;
    const std::uint32_t mask =
        Choose<std::uint32_t>(random_, {kAllLanes, kAllLanes, 0xffff, 0x10, static_cast<std::uint32_t>(random_()) | 2});
    cta_.Visit(block, mask);
    Access(*fit[random_() % fit.size()], width, mask);
  }

  /// The first of so many bytes that lie in a piece of the range.
  std::uint64_t AddressIn(const TouchedRange& range, std::uint64_t width, std::uint64_t bytes) {
    const std::uint64_t piece = range.first + random_() % std::max<std::uint64_t>(range.pieces, 1) * range.distance;
    const std::uint64_t low = (piece + width - 1) / width * width;
    return low + random_() % ((piece + range.bytes - low - bytes) / width + 1) * width;
  }

  void Access(const TouchedRange& range, std::uint64_t width, std::uint32_t mask) {
    const std::uint64_t row = width * trace::kWarpSize;
    const auto step = static_cast<std::int32_t>(width);
    if (range.bytes >= row + width && Draw(random_, 0, 2) != 0) {
      const std::uint64_t base = AddressIn(range, width, row);
      if (Draw(random_, 0, 3) != 0) cta_.Access(base, step, mask);
      else cta_.Access(base + row - width, -step, mask);
      return;
    }
    std::vector<std::uint64_t> lanes(static_cast<std::size_t>(std::popcount(mask)));
    for (std::uint64_t& lane : lanes) lane = AddressIn(range, width, width);
    cta_.Scatter(lanes, mask);
  }

  const std::vector<TouchedRange>& ranges_;
  std::mt19937_64 random_;
  CtaBuilder cta_;
};

}  // namespace

std::shared_ptr<trace::CtaSource> ProfilerOf(const Touched& touched) {
  CodeBuilder builder("profiler");
  builder.Block();
  for (std::uint16_t i = 1; i < 20; ++i) builder.Op(OpClass::kInt, {i}, {i});
  builder.Op(OpClass::kControl, {}, {1});
  const trace::KernelCode code = builder.code();
  const trace::LaunchShape shape{
      .ctas = touched.size(), .threads_per_cta = 1, .registers_per_thread = 24, .shared_bytes = 0};
  return std::make_shared<SyntheticSource>(code, shape, [touched](std::uint64_t index) {
    CtaBuilder cta;
    cta.Warp();
    cta.Visit(0, 1);
    auto made = std::make_shared<trace::CtaTrace>(*cta.Finish());
    for (const TouchedRange& range : touched[index])
      made->events.push_back(EventOf(range, trace::EventKind::kSetRange, 0, 19));
    return trace::LoadedCta{std::move(made), {}};
  });
}

std::shared_ptr<trace::CtaSource> ReleasingOf(const Touched& touched, const trace::LaunchShape& shape,
                                              std::uint32_t visits, std::uint64_t seed, const std::string& name) {
  trace::LaunchShape given = shape;
  given.ctas = touched.size();
  const trace::KernelCode code = Code(name);
  return std::make_shared<SyntheticSource>(code, given, [=](std::uint64_t index) {
    return trace::LoadedCta{CtaWriter(touched[index], seed + index).Write(code, given, visits), {}};
  });
}

WorkId AddTracked(Program& program, WorkOrder order, const Touched& touched, const trace::LaunchShape& shape,
                  std::uint32_t visits, std::uint64_t seed, const std::string& name) {
  const WorkId profiler =
      program.Add(KernelWork{.order = {.stream = kProfilerStream, .submitted = order.submitted, .after = {}},
                             .source = ProfilerOf(touched),
                             .owner = {.tenant = 0, .weight = 1, .priority = 1},
                             .use = {.tracking = Tracking::kProfiler}});
  order.after.push_back(profiler);
  return program.Add(KernelWork{.order = std::move(order),
                                .source = ReleasingOf(touched, shape, visits, seed, name),
                                .use = {.tracking = Tracking::kKernel, .partner = profiler}});
}

// ---- programs

namespace {

struct Array {
  std::uint64_t at = 0, bytes = 0;
};

/// Of the host's memory.
struct HostUse {
  WorkId copy = 0, last = 0;  ///< the copy; it, or the writing of what it brings
  std::int64_t begin = 0, span = 0;
};

class ProgramWriter {
 public:
  explicit ProgramWriter(std::mt19937_64& random) : random_(random) {}

  Program Write() {
    // Arrays lie close together, so that pages have bytes of two; some lie where others have been freed.
    std::uint64_t next = 1 << 20;
    for (std::uint64_t i = Draw(random_, 1, 5); i > 0; --i) {
      if (!arrays_.empty() && Draw(random_, 0, 4) == 0) next = arrays_[random_() % arrays_.size()].at;
      const std::uint64_t bytes = Choose<std::uint64_t>(random_, {256, 4096, 8192, 20000, 40000, 70000});
      arrays_.push_back({next, bytes});
      next += (bytes + 255) / 256 * 256 + Choose<std::uint64_t>(random_, {0, 0, 1024, 1 << 16});
    }
    streams_ = Choose<std::uint32_t>(random_, {1, 1, 2, 3});
    all_known_ = Draw(random_, 0, 2) != 0;
    for (std::uint64_t i = Draw(random_, 2, 18); i > 0; --i) AddWork();
    return std::move(program_);
  }

 private:
  WorkOrder Order() {
    WorkOrder order{.stream = static_cast<std::uint32_t>(random_() % streams_), .submitted = submitted_, .after = {}};
    submitted_ += Choose<Cycle>(random_, {0, 0, 0, 10, 500, 20000});
    if (Draw(random_, 0, 3) == 0 && !mine_.empty()) order.after.push_back(mine_[random_() % mine_.size()]);
    return order;
  }
  const Array& AnArray() { return arrays_[random_() % arrays_.size()]; }

  void AddWork() {
    switch (Draw(random_, 0, 11)) {
      case 0:
      case 1: return AddCopy(CopyDirection::kToDevice);
      case 2: return AddCopy(CopyDirection::kToHost);
      case 3: return AddCopy(Choose(random_, {CopyDirection::kFill, CopyDirection::kOnDevice}));
      case 4: mine_.push_back(program_.Add(MarkerWork{Order()})); return;
      default: return AddKernel();
    }
  }

  void AddCopy(CopyDirection direction) {
    const Array &array = AnArray(), &other = AnArray();
    CopyWork copy{.order = Order(), .direction = direction};
    const std::uint64_t first = random_() % array.bytes;
    copy.bytes = Draw(random_, 0, 1) == 0 ? array.bytes : 1 + random_() % (array.bytes - first);
    copy.use.address = copy.bytes == array.bytes ? array.at : array.at + first;
    copy.use.span = copy.bytes;
    // Rows that lie apart.
    if (Draw(random_, 0, 4) == 0) copy.bytes = 1 + copy.bytes / 3;
    if (direction == CopyDirection::kOnDevice) {
      copy.bytes = copy.use.span = std::min(copy.use.span, other.bytes);
      copy.use.source = other.at;
      copy.use.source_span = copy.bytes;
    }
    copy.use.special = !all_known_ && Draw(random_, 0, 5) == 0;
    const bool in = direction == CopyDirection::kToDevice, out = direction == CopyDirection::kToHost;
    if ((in || out) && Draw(random_, 0, 2) != 0) {
      CopyWork storage{
          .order = {.stream = kStorageStream + storages_++, .submitted = copy.order.submitted, .after = {}},
          .direction = in ? CopyDirection::kFromStorage : CopyDirection::kToStorage,
          .bytes = copy.bytes};
      if (Draw(random_, 0, 1) == 0) storage.use.ranks = Ranks(copy.bytes);
      if (in) Reuse(storage, copy.order.after, program_.works.size());
      copy.use.partner = program_.Add(std::move(storage));
    }
    if ((in || out) && (out || copy.use.partner == kNoWork)) Reuse(copy, copy.order.after, program_.works.size());
    mine_.push_back(program_.Add(std::move(copy)));
    if (in || out) UseHostMemory(std::get<CopyWork>(program_.works.back()));
  }

  /// What the work moves, which will have that number, lies somewhere in a small part of the host's memory, and comes
  /// behind the copies that use some of that.
  void Reuse(CopyWork& work, std::vector<WorkId>& after, std::size_t number) {
    host_begin_ = static_cast<std::int64_t>(random_() % 3 * 4096 + random_() % 2 * 100);
    if (Draw(random_, 0, 3) == 0) work.use.host_span = 2 * work.bytes;
    host_span_ = static_cast<std::int64_t>(std::max(work.use.host_span, work.bytes));
    std::vector<HostReuse> reuses;
    for (const HostUse& use : host_uses_) {
      if (use.begin >= host_begin_ + host_span_ || use.begin + use.span <= host_begin_) continue;
      reuses.push_back({.earlier = use.last, .begin = use.begin - host_begin_});
      after.push_back(use.copy);
      if (use.begin < host_begin_ || use.begin + use.span > host_begin_ + host_span_) continue;
      program_.refills.emplace_back(static_cast<WorkId>(number), use.last);
    }
    work.use.reuses = std::make_shared<const std::vector<HostReuse>>(std::move(reuses));
  }

  void UseHostMemory(CopyWork& copy) {
    copy.use.host_span = static_cast<std::uint64_t>(host_span_);
    const auto id = static_cast<WorkId>(program_.works.size() - 1);
    const bool written = copy.direction == CopyDirection::kToHost && copy.use.partner != kNoWork;
    host_uses_.push_back(
        {.copy = id, .last = written ? copy.use.partner : id, .begin = host_begin_, .span = host_span_});
  }

  std::shared_ptr<const std::vector<std::uint32_t>> Ranks(std::uint64_t bytes) {
    std::vector<std::uint32_t> ranks(bytes / 4096 + 1);
    std::iota(ranks.begin(), ranks.end(), 0);
    std::ranges::shuffle(ranks, random_);
    return std::make_shared<const std::vector<std::uint32_t>>(std::move(ranks));
  }

  void AddKernel() {
    const std::uint64_t ctas = Choose<std::uint64_t>(random_, {1, 1, 2, 3, 5, 8, 17});
    Touched touched(ctas);
    for (std::uint64_t i = Draw(random_, 0, 3); i > 0; --i) Touch(touched);
    const trace::LaunchShape shape{.ctas = ctas,
                                   .threads_per_cta = static_cast<std::uint32_t>(Draw(random_, 1, 128)),
                                   .registers_per_thread = static_cast<std::uint32_t>(Draw(random_, 8, 40)),
                                   .shared_bytes = Choose<std::uint32_t>(random_, {0, 0, 4096, 12000})};
    const auto visits = static_cast<std::uint32_t>(Draw(random_, 0, 12));
    const std::uint64_t seed = random_();
    const std::string name = "kernel" + std::to_string(program_.works.size());
    if (all_known_ || Draw(random_, 0, 3) != 0) {
      mine_.push_back(AddTracked(program_, Order(), touched, shape, visits, seed, name));
      return;
    }
    mine_.push_back(
        program_.Add(KernelWork{.order = Order(), .source = ReleasingOf(touched, shape, visits, seed, name)}));
  }

  /// One array, or two, as kernels mostly go through them.
  void Touch(Touched& touched) {
    const Array from = AnArray(), to = AnArray();
    const std::uint64_t ctas = touched.size();
    const auto slice = [&](const Array& array, std::uint64_t index, std::uint8_t flags) {
      const std::uint64_t bytes = std::max<std::uint64_t>(array.bytes / ctas, 32);
      return TouchedRange{.first = array.at + std::min(index * bytes, array.bytes - 32),
                          .bytes = std::min(bytes, array.bytes),
                          .flags = flags};
    };
    const auto all = [](const Array& array, std::uint8_t flags) {
      return TouchedRange{.first = array.at, .bytes = array.bytes, .flags = flags};
    };
    const std::uint64_t kind = Draw(random_, 0, 7);
    for (std::uint64_t i = 0; i < ctas; ++i) {
      std::vector<TouchedRange>& ranges = touched[i];
      switch (kind) {
        case 0: ranges.push_back(slice(from, i, kBoth)); break;
        case 1:
          ranges.insert(ranges.end(), {slice(from, i, trace::kRangeRead), slice(to, i, trace::kRangeWrite)});
          break;
        case 2:
          ranges.insert(ranges.end(), {slice(from, ctas - 1 - i, trace::kRangeRead), slice(to, i, trace::kRangeWrite)});
          break;
        case 3: ranges.insert(ranges.end(), {all(from, trace::kRangeRead), slice(to, i, trace::kRangeWrite)}); break;
        case 4:
          ranges.insert(ranges.end(),
                        {slice(from, i, trace::kRangeRead), TouchedRange{.first = to.at, .bytes = 64, .flags = kBoth}});
          break;
        case 5: {  // columns of a matrix
          const std::uint64_t pitch = Choose<std::uint64_t>(random_, {512, 4096, 5000, 12288}),
                              rows = from.bytes / pitch;
          if (rows == 0) break;
          const std::uint64_t width = std::max<std::uint64_t>(pitch / ctas, 32);
          ranges.push_back({.first = from.at + std::min(i * width, pitch - width),
                            .bytes = width,
                            .distance = pitch,
                            .pieces = rows,
                            .flags = kBoth});
          break;
        }
        case 6:
          if (random_() % 2 == 0) ranges.push_back(slice(from, random_() % ctas, kBoth));
          break;
        default:
          ranges.insert(ranges.end(),
                        {slice(from, i == 0 ? 0 : i - 1, trace::kRangeRead),
                         slice(from, std::min(i + 1, ctas - 1), trace::kRangeRead), slice(to, i, trace::kRangeWrite)});
      }
    }
  }

  std::mt19937_64& random_;
  Program program_;
  std::vector<Array> arrays_;
  std::vector<HostUse> host_uses_;
  std::int64_t host_begin_ = 0, host_span_ = 0;  // of the copy that is being made
  std::vector<WorkId> mine_;                     ///< without profilers and storage
  std::uint32_t streams_ = 1, storages_ = 0;
  bool all_known_ = false;  ///< what every work touches
  Cycle submitted_ = 0;
};

}  // namespace

Program RandomProgram(std::mt19937_64& random) { return ProgramWriter(random).Write(); }

std::string RandomCrcsKeys(std::mt19937_64& random) {
  const auto key = [](const std::string& name, std::uint64_t value) {
    return name + ": " + std::to_string(value) + ", ";
  };
  return key("page_bytes", Choose<std::uint64_t>(random, {4096, 4096, 8192, 65536})) +
         "order: " + Choose<std::string>(random, {"interleaved", "arrays", "random", "recorded"}) + ", " +
         "available: " + Choose<std::string>(random, {"ready", "written"}) + ", " + key("seed", random() % 100) +
         key("read_bytes", Choose<std::uint64_t>(random, {512, 1000, 4096, 16384})) +
         key("table_cycles", Choose<std::uint64_t>(random, {0, 1, 100, 3000})) +
         key("notify_cycles", Choose<std::uint64_t>(random, {0, 1, 100, 1000})) +
         key("line_cycles", Draw(random, 1, 9)) + key("entry_bytes", Choose<std::uint64_t>(random, {1, 16, 128})) +
         key("dma_ns", Choose<std::uint64_t>(random, {0, 10, 500})) +
         key("dat_entries", Choose<std::uint64_t>(random, {1, 2, 64})) +
         key("dat_miss_ns", Choose<std::uint64_t>(random, {0, 100})) +
         "readiness: " + Choose<std::string>(random, {"off", "on"});
}

// ---- runs

std::uint64_t ProgramRun::Count(std::string_view name) const {
  for (const CounterInfo& counter : hardware::CountersOf(device)) {
    if (counter.name == name) return counter.value(outcome.counters);
  }
  FAIL("no counter " << name);
  return 0;
}

ProgramRun RunProgram(const sim::DeviceSpec& device, const Program& program, const RunOptions& options) {
  const auto policy = policy::MakePolicy(options.policy, {.follows_pages = true}).value();
  auto parts = hardware::Build(device);
  INFO((parts.ok() ? "" : parts.error().message));
  REQUIRE(parts.ok());
  EngineOptions engine_options;
  engine_options.threads = options.threads;
  engine_options.plain = options.plain;
  engine_options.window = options.window;
  engine_options.parts = std::move(*parts);
  engine_options.parts.insert(engine_options.parts.end(), options.parts.begin(), options.parts.end());
  auto engine = Engine::Create(device, *policy, engine_options);
  INFO((engine.ok() ? "" : engine.error().message));
  REQUIRE(engine.ok());
  for (const Program::Work& work : program.works) {
    const auto added = std::visit([&](const auto& given) { return (*engine)->Add(given); }, work);
    INFO((added.ok() ? "" : added.error().message));
    REQUIRE(added.ok());
  }
  ProgramRun run{(*engine)->Run(), {(*engine)->results(), (*engine)->counters(), {}, {}}, device};
  for (std::size_t s = 0; s < device.sm.count; ++s) run.outcome.sms.push_back((*engine)->sm_counters(s));
  for (std::size_t p = 0; p < device.timing.dram.channels; ++p)
    run.outcome.partitions.push_back((*engine)->partition_counters(p));
  return run;
}

}  // namespace gridloom::timing
