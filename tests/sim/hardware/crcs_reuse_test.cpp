// Copies that overlap and use the same memory of the host's: it is filled anew, and results come to it, where earlier
// ones are done.
#include <catch2/catch.hpp>

#include "tests/sim/hardware/random_program.h"

namespace gridloom::timing {
namespace {

constexpr std::uint64_t kReusedArray = 1 << 20, kOther = 1 << 24, kReusedPage = 4096, kBytes = 64 * kReusedPage;

sim::DeviceSpec Slow(std::uint64_t storage_mb_s, std::uint64_t to_device_mb_s, std::uint64_t to_host_mb_s) {
  sim::DeviceSpec device = TestDevice("crcs");
  device.timing.host.storage_mb_s = storage_mb_s;
  device.timing.pcie.to_device_mb_s = to_device_mb_s;
  device.timing.pcie.to_host_mb_s = to_host_mb_s;
  REQUIRE(sim::ApplyDeviceText("proposed: [crcs]", "test", device).ok());
  return device;
}

using Reuses = std::vector<HostReuse>;
std::shared_ptr<const Reuses> Of(Reuses reuses) { return std::make_shared<const Reuses>(std::move(reuses)); }

/// Works that come in streams of their own.
struct Calls {
  Program program;
  std::uint32_t streams = 0;

  WorkId Copy(CopyDirection direction, std::uint64_t address, WorkId partner, Reuses reuses = {},
              std::uint64_t bytes = kBytes) {
    CopyWork copy{.order = {.stream = streams++, .submitted = 0, .after = {}}, .direction = direction, .bytes = bytes};
    copy.use.address = address;
    copy.use.partner = partner;
    if (!reuses.empty()) copy.use.reuses = Of(std::move(reuses));
    return program.Add(std::move(copy));
  }
  WorkId Storage(CopyDirection direction, Reuses reuses = {}, std::uint64_t bytes = kBytes) {
    return Copy(direction, 0, kNoWork, std::move(reuses), bytes);
  }
  std::vector<Cycle> Ends(const sim::DeviceSpec& device) const {
    const ProgramRun run = RunProgram(device, program, {.policy = "crcs-fifo"});
    INFO((run.status.ok() ? "" : run.status.error().message));
    REQUIRE(run.status.ok());
    std::vector<Cycle> ends;
    for (const WorkResult& work : run.outcome.works) ends.push_back(work.ended);
    return ends;
  }
};

/// When two copies from one place, or from two, have ended, that are read from fast storage and sent over a slow link;
/// with what is read.
std::vector<Cycle> Refilled(bool one_place, std::int64_t begin = 0) {
  Calls calls;
  const WorkId first_read = calls.Storage(CopyDirection::kFromStorage);
  const WorkId first = calls.Copy(CopyDirection::kToDevice, kReusedArray, first_read);
  const WorkId second_read =
      calls.Storage(CopyDirection::kFromStorage, one_place ? Reuses{{.earlier = first, .begin = begin}} : Reuses{});
  calls.Copy(CopyDirection::kToDevice, kOther, second_read);
  return calls.Ends(Slow(100'000, 1000, 1000));
}

TEST_CASE("Crcs_HostMemoryThatIsFilledAnew_IsRead_WhenItsPagesHaveBeenSent") {
  const std::vector<Cycle> two = Refilled(false), one = Refilled(true), half = Refilled(true, kBytes / 2);
  CHECK(two[2] < two[1] / 10);  // storage is fast
  CHECK(one[0] <= two[0]);      // read alone
  CHECK(one[1] <= two[1]);      // nothing else is on its way
  CHECK(one[2] > one[1]);       // its last page is read when that of the first copy has been sent
  CHECK(one[3] < one[1] + one[1] / 10 + two[3] / 2);
  CHECK(half[2] > half[1] / 3);  // the second half of what is read lies where the first half of the first copy does
  CHECK(half[2] < 3 * half[1] / 4);
  CHECK(Refilled(true, kBytes) == two);
  CHECK(Refilled(true, -static_cast<std::int64_t>(kBytes)) == two);
}

TEST_CASE("Crcs_ResultsComeToHostMemory_WhenWhatLaysThereHasBeenSent") {
  for (const bool same : {false, true}) {
    Calls calls;
    const WorkId in = calls.Copy(CopyDirection::kToDevice, kReusedArray, kNoWork);
    const WorkId out =
        calls.Copy(CopyDirection::kToHost, kOther, kNoWork, same ? Reuses{{.earlier = in, .begin = 0}} : Reuses{});
    const std::vector<Cycle> ends = calls.Ends(Slow(0, 1000, 100'000));
    CHECK((ends[out] > ends[in]) == same);
  }
}

TEST_CASE("Crcs_HostMemoryThatIsWrittenToStorage_IsFilledAnew_PageByPage") {
  Calls calls;
  const WorkId writing = calls.Storage(CopyDirection::kToStorage);
  const WorkId out = calls.Copy(CopyDirection::kToHost, kReusedArray, writing);
  const WorkId reading = calls.Storage(CopyDirection::kFromStorage, {{.earlier = writing, .begin = 0}});
  const WorkId in = calls.Copy(CopyDirection::kToDevice, kOther, reading);
  const WorkId again = calls.Copy(CopyDirection::kToHost, kReusedArray, kNoWork, {{.earlier = in, .begin = 0}});
  const std::vector<Cycle> ends = calls.Ends(Slow(1000, 100'000, 100'000));
  CHECK(ends[out] < ends[writing] / 10);
  CHECK(ends[reading] > ends[writing]);
  CHECK(ends[reading] < ends[writing] + ends[writing] / 10);  // both go on at the same time
  CHECK(ends[again] > ends[in]);
}

TEST_CASE("Crcs_WithoutStorage_ACopyIsSentAgain_WhenTheEarlierOneHasBeen") {
  Calls calls;
  const WorkId first = calls.Copy(CopyDirection::kToDevice, kReusedArray, kNoWork);
  const WorkId all = calls.Copy(CopyDirection::kToDevice, kOther, kNoWork, {{.earlier = first, .begin = 0}});
  const WorkId page =
      calls.Copy(CopyDirection::kToDevice, 2 * kOther, kNoWork, {{.earlier = first, .begin = 0}}, kReusedPage);
  const std::vector<Cycle> ends = calls.Ends(Slow(0, 1000, 1000));
  CHECK(ends[first] < ends[all]);
  CHECK(ends[page] < ends[all]);
}

}  // namespace
}  // namespace gridloom::timing
