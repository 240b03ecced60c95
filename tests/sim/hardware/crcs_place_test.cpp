// On which SMs the part that lets dependent kernels overlap puts CTAs of which it knows what each touches, which of
// them it puts there first, and what it does not follow.
#include <catch2/catch.hpp>
#include <map>

#include "tests/sim/hardware/random_program.h"
#include "tests/sim/timing/test_part.h"

namespace gridloom::timing {
namespace {

constexpr std::uint64_t kPlacedArray = 1 << 20, kPlacedPage = 4096;

/// Where CTAs begin, in the order in which they do.
struct Starts final : CtaEvents {
  void Attach(Ports& ports, DeviceInput&) { ports.cta_events.push_back(this); }
  void OnCtaStart(Cycle, const CtaPlace& place) override { of[place.launch].push_back(place); }
  std::map<WorkId, std::vector<CtaPlace>> of;

  /// How many CTAs of the kernel each of its SMs got.
  std::vector<std::uint64_t> PerSm(WorkId kernel) {
    std::map<std::uint32_t, std::uint64_t> sms;
    for (const CtaPlace& place : of[kernel]) ++sms[place.sm];
    std::vector<std::uint64_t> ctas;
    for (const auto& [sm, count] : sms) ctas.push_back(count);
    return ctas;
  }
  std::vector<std::uint64_t> Order(WorkId kernel) {
    std::vector<std::uint64_t> ctas;
    for (const CtaPlace& place : of[kernel]) ctas.push_back(place.cta);
    return ctas;
  }
};

/// With four SMs, of which each has room for eight CTAs.
sim::DeviceSpec FourSms(const std::string& keys) {
  sim::DeviceSpec device = TestDevice("crcs");
  device.sm.count = 4;
  REQUIRE(sim::ApplyDeviceText("proposed: [crcs]\nhardware: {crcs: {" + keys + "}}", "test", device).ok());
  return device;
}

/// CTA i reads page i of the array.
Touched APageEach(std::uint64_t ctas) {
  Touched touched(ctas);
  for (std::uint64_t i = 0; i < ctas; ++i)
    touched[i] = {{.first = kPlacedArray + i * kPlacedPage, .bytes = kPlacedPage, .flags = trace::kRangeRead}};
  return touched;
}

constexpr trace::LaunchShape kShape{.ctas = 0, .threads_per_cta = 32, .registers_per_thread = 16, .shared_bytes = 0};

/// Kernels with so many CTAs in streams of their own, which begin together, long after their profilers have ended.
std::vector<WorkId> AddSideBySide(Program& program, const std::vector<std::uint64_t>& ctas) {
  constexpr std::uint32_t kProfilers = 100;
  constexpr Cycle kLater = 100'000;
  std::vector<WorkId> profilers, kernels;
  for (std::uint32_t i = 0; i < ctas.size(); ++i) {
    KernelWork profiler;
    profiler.order.stream = kProfilers + i;
    profiler.source = ProfilerOf(APageEach(ctas[i]));
    profiler.use.tracking = Tracking::kProfiler;
    profilers.push_back(program.Add(std::move(profiler)));
  }
  for (std::uint32_t i = 0; i < ctas.size(); ++i) {
    KernelWork kernel;
    kernel.order = {.stream = i, .submitted = kLater, .after = {profilers[i]}};
    kernel.source = ReleasingOf(APageEach(ctas[i]), kShape, 40, 1, "kernel" + std::to_string(i));
    kernel.use = {.tracking = Tracking::kKernel, .partner = profilers[i]};
    kernels.push_back(program.Add(std::move(kernel)));
  }
  return kernels;
}

std::string FailureOf(const Program& program, const std::string& keys) {
  const ProgramRun run = RunProgram(FourSms(keys), program, {.policy = "crcs-ready"});
  return run.status.ok() ? "" : run.status.error().message;
}

TEST_CASE("Crcs_ASmallGrid_IsSpreadEvenly_OverTheKernelsPartOfTheDevice") {
  const auto per_sm = [](const std::string& readiness, const std::vector<std::uint64_t>& ctas) {
    Program program;
    const std::vector<WorkId> kernels = AddSideBySide(program, ctas);
    Starts starts;
    REQUIRE(RunProgram(FourSms("readiness: " + readiness), program, {.policy = "crcs-fifo", .parts = {Borrow(starts)}})
                .status.ok());
    std::vector<std::vector<std::uint64_t>> all;
    for (const WorkId kernel : kernels) all.push_back(starts.PerSm(kernel));
    return all;
  };
  using Counts = std::vector<std::vector<std::uint64_t>>;
  CHECK(per_sm("on", {4}) == Counts{{1, 1, 1, 1}});
  CHECK(per_sm("on", {8}) == Counts{{2, 2, 2, 2}});
  CHECK(per_sm("on", {5}) == Counts{{2, 2, 1}});
  CHECK(per_sm("on", {4, 4}) == Counts{{2, 2}, {2, 2}});
  CHECK(per_sm("off", {5})[0].size() == 4);  // one SM after the other, as others place them
}

TEST_CASE("Crcs_CtasWhosePagesAreThere_StartFirst") {
  constexpr std::uint64_t kCtas = 4;
  for (const bool ready : {true, false}) {
    Program program;
    for (std::uint64_t page = kCtas; page-- > 0;) {
      CopyWork copy;
      copy.direction = CopyDirection::kToDevice;
      copy.bytes = kPlacedPage;
      copy.use.address = kPlacedArray + page * kPlacedPage;
      program.Add(std::move(copy));
    }
    const WorkId kernel = AddTracked(program, {}, APageEach(kCtas), kShape, 4, 1);
    Starts starts;
    const ProgramRun run = RunProgram(FourSms(ready ? "readiness: on, dma_ns: 100000" : "dma_ns: 100000"), program,
                                      {.policy = ready ? "crcs-ready" : "crcs-fifo", .parts = {Borrow(starts)}});
    REQUIRE(run.status.ok());
    CHECK(starts.Order(kernel) ==
          (ready ? std::vector<std::uint64_t>{3, 2, 1, 0} : std::vector<std::uint64_t>{0, 1, 2, 3}));
  }
}

TEST_CASE("Crcs_WorksOfMorePagesThanThereIsMemoryFor_EndTheSimulation_WhichSaysWhatToDo") {
  const auto copied = [](CopyDirection direction, std::uint64_t address, std::uint64_t bytes, std::uint64_t span) {
    Program program;
    CopyWork copy;
    copy.direction = direction;
    copy.bytes = bytes;
    copy.use.address = address;
    copy.use.span = span;
    program.Add(std::move(copy));
    return FailureOf(program, "readiness: on");
  };
  const auto touched = [](const TouchedRange& range, const std::string& keys) {
    Program program;
    AddTracked(program, {}, {{range}}, kShape, 0, 1);
    return FailureOf(program, keys);
  };
  const auto told = Catch::Contains("hardware.crcs.page_bytes=2097152");
  CHECK(copied(CopyDirection::kToDevice, kPlacedArray, kPlacedPage, kPlacedPage).empty());
  CHECK_THAT(copied(CopyDirection::kToDevice, kPlacedArray, kPlacedPage, std::uint64_t{1} << 40), told);
  CHECK_THAT(copied(CopyDirection::kToHost, kPlacedArray, std::uint64_t{1} << 40, 0), told);
  CHECK_THAT(copied(CopyDirection::kFill, ~std::uint64_t{0}, kPlacedPage, kPlacedPage), told);
  CHECK_THAT(copied(CopyDirection::kFromStorage, 0, std::uint64_t{1} << 50, 0), told);
  const std::uint64_t much = std::uint64_t{1} << 40;
  CHECK(touched({.first = kPlacedArray, .bytes = kPlacedPage, .flags = trace::kRangeRead}, "readiness: on").empty());
  CHECK_THAT(touched({.first = kPlacedArray, .bytes = much, .flags = trace::kRangeRead}, "readiness: on"), told);
  CHECK_THAT(
      touched({.first = kPlacedArray, .bytes = 32, .distance = 1 << 20, .pieces = much, .flags = trace::kRangeRead},
              ""),
      told);
  CHECK_THAT(
      touched({.first = kPlacedArray, .bytes = 4, .distance = 8, .pieces = much, .flags = trace::kRangeRead}, ""),
      told);
}

}  // namespace
}  // namespace gridloom::timing
