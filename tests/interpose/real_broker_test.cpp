// --connect and --device real: the broker says when, the program's process launches. The real driver is a stand-in
// whose kernels end when the test says so.
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "tests/interpose/real_fixture.h"

namespace gridloom {
namespace {

using protocol::Verdict;
using Fixture = RealFixture;

TEST_CASE("RealLaunch_IsGrantedLaunchedAndReportedWhenItHasRun") {
  Fixture f;
  Kernels(CUDA_ERROR_NOT_READY);
  const unsigned long before = Launches();
  const auto launches = f.Real()["launches"].get<int>(), ctas = f.Real()["ctas"].get<int>();
  CHECK(Launch(100) == CUDA_SUCCESS);
  CHECK(Launches() == before + 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(f.Real()["in_flight"] == 1);
  CHECK(f.Real()["launches"] == launches);
  Kernels(CUDA_SUCCESS);
  CHECK(f.Eventually([&] { return f.Real()["launches"] == launches + 1; }));
  CHECK(f.Real()["ctas"] == ctas + 100);
  CHECK(f.Real()["faults"] == 0);
}

TEST_CASE("RealLaunch_WhileAnotherTenantHasTheDevice_Waits") {
  Fixture f("serial");
  const auto other = f.Join("other");
  protocol::Client::Ticket ticket;
  std::uint64_t granted = 0;
  REQUIRE(other->Announce(broker::LaunchOf(8, false), &ticket) == Verdict::kGranted);
  REQUIRE(other->Wait(ticket, 0, &granted) == Verdict::kGranted);
  const unsigned long before = Launches();
  std::atomic<int> status{-1};
  std::thread launches([&] { status = Launch(8); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(Launches() == before);
  CHECK(status == -1);
  other->End(ticket, 8, false);
  launches.join();
  CHECK(status == CUDA_SUCCESS);
  CHECK(Launches() == before + 1);
}

TEST_CASE("RealLaunch_WithAPriorityAttribute_GoesBeforeThoseWithout") {
  constexpr unsigned kAll = 100'000;  // more than the device holds
  Fixture f("priority");
  const auto other = f.Join("other");
  protocol::Client::Ticket ticket;
  std::uint64_t granted = 0;
  REQUIRE(other->Announce(broker::LaunchOf(kAll, false), &ticket) == Verdict::kGranted);
  REQUIRE(other->Wait(ticket, 0, &granted) == Verdict::kGranted);
  Kernels(CUDA_ERROR_NOT_READY);
  const unsigned long before = Launches();
  std::atomic<bool> plain_launched{false}, urgent_launched{false};
  std::thread plain([&] {
    CHECK(Launch(kAll, 100) == CUDA_SUCCESS);
    plain_launched = true;
  });
  const auto waiting = [&](int launches) { return f.Eventually([&] { return f.Real()["in_flight"] == launches; }); };
  CHECK(waiting(1));
  std::thread urgent([&] {
    CUlaunchAttribute attributes[2] = {};
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attributes[1].value.priority = -5;
    const CUlaunchConfig config{.grid_dim_x = kAll,
                                .grid_dim_y = 1,
                                .grid_dim_z = 1,
                                .block_dim_x = 32,
                                .block_dim_y = 1,
                                .block_dim_z = 1,
                                .shared_mem_bytes = 0,
                                .stream = reinterpret_cast<CUstream>(200),
                                .attrs = attributes,
                                .num_attrs = 2};
    CHECK(cuLaunchKernelEx(&config, nullptr, nullptr, nullptr) == CUDA_SUCCESS);
    urgent_launched = true;
  });
  CHECK(waiting(2));
  CHECK(Launches() == before);
  other->End(ticket, kAll, false);
  CHECK(f.Eventually([&] { return Launches() == before + 1 && (urgent_launched || plain_launched); }));
  CHECK(urgent_launched);
  CHECK(!plain_launched);
  Kernels(CUDA_SUCCESS);
  urgent.join();
  plain.join();
  CHECK(Launches() == before + 2);
}

TEST_CASE("RealLaunch_OfAStreamWhoseLastOneRuns_WaitsForItsEnd_OthersDoNot") {
  Fixture f;
  Kernels(CUDA_ERROR_NOT_READY);
  const unsigned long before = Launches();
  CHECK(Launch(1, 100) == CUDA_SUCCESS);
  CHECK(Launch(1, 200) == CUDA_SUCCESS);
  CHECK(Launches() == before + 2);
  std::thread launches([&] { CHECK(Launch(1, 100) == CUDA_SUCCESS); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(Launches() == before + 2);
  Kernels(CUDA_SUCCESS);
  launches.join();
  CHECK(Launches() == before + 3);
}

TEST_CASE("RealLaunch_ThatFaults_IsItsTenantsFault") {
  Fixture f;
  const auto faults = f.Real()["faults"].get<int>();
  Kernels(CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(Launch(4) == CUDA_SUCCESS);
  CHECK(f.Eventually([&] { return f.Real()["faults"] == faults + 1; }));
  // One that the driver does not take has not run either; the stand-in's twin answers with the grid's size.
  CHECK(static_cast<int>(cuLaunchKernel_ptsz(nullptr, 42, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr)) == 42);
  CHECK(f.Eventually([&] { return f.Real()["faults"] == faults + 2; }));
}

TEST_CASE("RealLaunch_WhoseContextIsGone_HasRun") {
  Fixture f;
  const auto faults = f.Real()["faults"].get<int>(), launches = f.Real()["launches"].get<int>();
  Kernels(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(Launch(4) == CUDA_SUCCESS);
  CHECK(f.Eventually([&] { return f.Real()["launches"] == launches + 1; }));
  CHECK(f.Real()["faults"] == faults);
}

TEST_CASE("RealLaunch_IntoACapture_AsksNobody") {
  Fixture f;
  const auto launches = f.Real()["launches"].get<int>();
  const unsigned long before = Launches();
  Capture(true);
  CHECK(Launch(4) == CUDA_SUCCESS);
  CHECK(Launches() == before + 1);
  CHECK(f.Real()["launches"] == launches);
  CHECK(f.Real()["in_flight"] == 0);
}

TEST_CASE("RealLaunch_WithoutTheBroker_GoesOnAlone") {
  Fixture f;
  f.Stop();
  const unsigned long before = Launches();
  CHECK(f.Eventually([&] { return Launch(4) == CUDA_SUCCESS && Launches() > before; }));
  f.Start();
  CHECK(f.Eventually([&] { return !f.State()["sessions"].empty(); }));
}

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kLimit = 1024 * kKiB;  // the fixture's device
void Memory(CUresult status) { Fake<void(int)>("fake_set_memory_status")(status); }

/// The most that can be allocated now, in steps of 64 KiB; nothing of it stays.
std::size_t Room() {
  std::vector<CUdeviceptr> pieces(1);
  while (cuMemAlloc_v2(&pieces.back(), 64 * kKiB) == CUDA_SUCCESS) pieces.emplace_back();
  pieces.pop_back();
  for (const CUdeviceptr piece : pieces) CHECK(cuMemFree_v2(piece) == CUDA_SUCCESS);
  return pieces.size() * 64 * kKiB;
}

TEST_CASE("RealMemory_BeyondTheTenantsLimit_IsRefused") {
  Fixture f;
  REQUIRE(Room() == kLimit);
  CUdeviceptr first = 0, second = 0;
  CHECK(cuMemAlloc_v2(&first, 700 * kKiB) == CUDA_SUCCESS);
  CHECK(cuMemAlloc_v2(&second, 400 * kKiB) == CUDA_ERROR_OUT_OF_MEMORY);
  std::size_t free = 0, total = 0;
  CHECK(cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS);
  CHECK(total == kLimit);
  CHECK(free == kLimit - 700 * kKiB);
  // A failed free frees nothing, a failed allocation takes nothing.
  Memory(CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree_v2(first) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAlloc_v2(&second, 100 * kKiB) == CUDA_ERROR_INVALID_VALUE);
  Memory(CUDA_SUCCESS);
  CHECK(Room() == 320 * kKiB);
  CHECK(cuMemFree_v2(first) == CUDA_SUCCESS);
  CHECK(cuMemFree_v2(first) == CUDA_SUCCESS);  // not known any more: nothing is freed twice
  CHECK(Room() == kLimit);
  // A size that no sum holds.
  CHECK(cuMemAlloc_v2(&first, ~std::size_t{0}) == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("RealMemory_OfAllKindsCounts") {
  Fixture f;
  REQUIRE(Room() == kLimit);
  CUdeviceptr pointer = 0;
  std::size_t pitch = 0;
  CHECK(cuMemAllocPitch_v2(&pointer, &pitch, 1000, 512, 4) == CUDA_SUCCESS);
  CHECK(Room() == kLimit - 512 * kKiB);
  CHECK(cuMemFree_v2(pointer) == CUDA_SUCCESS);

  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{
      .width = 64, .height = 64, .depth = 16, .format = CU_AD_FORMAT_FLOAT, .num_channels = 2, .flags = 0};
  CHECK(cuArray3DCreate_v2(&array, &descriptor) == CUDA_SUCCESS);
  CHECK(Room() == kLimit - 512 * kKiB);
  CHECK(cuArrayDestroy(array) == CUDA_SUCCESS);

  // A handle's memory is there until it is neither held nor mapped.
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp prop{};
  prop.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
  CHECK(cuMemCreate(&handle, 512 * kKiB, &prop, 0) == CUDA_SUCCESS);
  CHECK(cuMemMap(0x10000000, 512 * kKiB, 0, handle, 0) == CUDA_SUCCESS);
  CHECK(cuMemRelease(handle) == CUDA_SUCCESS);
  CHECK(Room() == kLimit - 512 * kKiB);
  CHECK(cuMemUnmap(0x10000000, 512 * kKiB) == CUDA_SUCCESS);
  CHECK(Room() == kLimit);

  // Memory goes with its context.
  CUcontext context = nullptr;
  CHECK(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
  CHECK(cuMemAlloc_v2(&pointer, kLimit) == CUDA_SUCCESS);
  CHECK(cuCtxDestroy_v2(context) == CUDA_SUCCESS);
  CHECK(Room() == kLimit);
}

TEST_CASE("RealMemory_OfAnotherProcessOfTheTenant_Counts") {
  Fixture f;
  {
    const auto other = f.Join("real");
    REQUIRE(other->Reserve(512 * kKiB));
    CHECK(Room() == 512 * kKiB);
  }
  CHECK(f.Eventually([] { return Room() == kLimit; }));
}

TEST_CASE("RealMemory_CallsThatAreLookedUp_LeadThroughUs") {
  Fixture f;
  void* function = nullptr;
  CUdriverProcAddressQueryResult status{};
  REQUIRE(cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 0, &status) == CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  CHECK(reinterpret_cast<CUresult (*)(CUdeviceptr*, std::size_t)>(function)(&pointer, 2 * kLimit) ==
        CUDA_ERROR_OUT_OF_MEMORY);
}

// Last: an operator's kill is for good.
TEST_CASE("RealLaunch_OfASessionThatAnOperatorEnded_Fails") {
  Fixture f;
  const unsigned long before = Launches();
  protocol::Request kill;
  kill.verb = protocol::Verb::kKill;
  kill.target = "real";
  REQUIRE(f.Ask(kill));
  CHECK(f.Eventually([&] { return Launch(4) == CUDA_ERROR_MPS_CLIENT_TERMINATED; }));
  CHECK(Launches() == before);
}

}  // namespace
}  // namespace gridloom
