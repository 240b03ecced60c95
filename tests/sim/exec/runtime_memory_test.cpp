// Device memory: allocation, guard gaps, limits, virtual memory management, registrations, fork.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "sim/exec/device_memory.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

std::unique_ptr<DeviceMemory> Make(std::uint64_t limit = 0) {
  auto memory = DeviceMemory::Create({.limit_bytes = limit});
  REQUIRE(memory.ok());
  return std::move(*memory);
}

char* Bytes(std::uint64_t address) { return reinterpret_cast<char*>(address); }

/// True when reading there ends a process.
bool Faults(std::uint64_t address) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const bool readable = write(ends[1], Bytes(address), 1) == 1;  // EFAULT instead of a signal
  close(ends[0]);
  close(ends[1]);
  return !readable;
}

}  // namespace

TEST_CASE("Allocate_ReturnsZeroedAlignedMemoryBetweenGaps") {
  const auto memory = Make();
  for (const std::uint64_t bytes : {1ull, 255ull, 4096ull, 4097ull, 5ull << 20}) {
    const std::uint64_t base = memory->Allocate(bytes, 1, MemoryKind::kDevice);
    REQUIRE(base != 0);
    CHECK(base % 256 == 0);
    CHECK(base - memory->range_base() < memory->range_bytes());
    CHECK(Bytes(base)[0] == 0);
    CHECK(Bytes(base)[bytes - 1] == 0);
    std::memset(Bytes(base), 0xff, bytes);
    const std::uint64_t page_end = (base + bytes + 4095) / 4096 * 4096;
    CHECK(Faults(page_end));
    CHECK(memory->Accessible(base, bytes, true));
    CHECK_FALSE(memory->Accessible(base, bytes + 1, true));
    CHECK(memory->Find(base + bytes - 1)->base == base);
    CHECK_FALSE(memory->Find(base + bytes).has_value());
    CHECK(memory->high_water_bytes() >= base + bytes - memory->range_base());
    CHECK(memory->Free(base));
    CHECK(Faults(base));
    CHECK_FALSE(memory->Free(base));
    const std::uint64_t again = memory->Allocate(bytes, 1, MemoryKind::kDevice);
    CHECK(Bytes(again)[bytes - 1] == 0);
    memory->Free(again);
  }
  CHECK(memory->Allocate(1, 3, MemoryKind::kDevice) == 0);
  CHECK(memory->Allocate(0, 1, MemoryKind::kDevice) == 0);
  CHECK(memory->Allocate(~0ull, 1, MemoryKind::kDevice) == 0);
  const std::uint64_t aligned = memory->Allocate(10, 1ull << 24, MemoryKind::kDevice);
  CHECK(aligned % (1ull << 24) == 0);
}

TEST_CASE("Allocate_CountsDeviceManagedAndModuleMemoryAgainstTheLimit") {
  const auto memory = Make(10'000);
  const std::uint64_t a = memory->Allocate(6'000, 1, MemoryKind::kDevice);
  CHECK(a != 0);
  CHECK(memory->Allocate(5'000, 1, MemoryKind::kManaged) == 0);
  CHECK(memory->Allocate(5'000, 1, MemoryKind::kPinned) != 0);
  CHECK(memory->Allocate(4'000, 1, MemoryKind::kModule) != 0);
  CHECK(memory->used_bytes() == 10'000);
  CHECK(memory->Free(a));
  CHECK(memory->used_bytes() == 4'000);
  CHECK(memory->CreatePhysical(8'192) == 0);
}

TEST_CASE("Allocate_ManyRandomSizes_NeverOverlap") {
  const auto memory = Make();
  std::mt19937 random(1);
  std::map<std::uint64_t, std::uint64_t> live;
  for (int i = 0; i < 3'000; ++i) {
    if (live.empty() || random() % 3 != 0) {
      const std::uint64_t bytes = 1 + random() % (random() % 10 == 0 ? 3'000'000 : 20'000);
      const std::uint64_t base = memory->Allocate(bytes, 1u << (random() % 16), MemoryKind::kDevice);
      REQUIRE(base != 0);
      const auto next = live.lower_bound(base);
      if (next != live.end()) REQUIRE(base + bytes + 4096 <= next->first);
      if (next != live.begin()) REQUIRE(std::prev(next)->first + std::prev(next)->second + 4096 <= base);
      live.emplace(base, bytes);
    } else {
      auto it = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      REQUIRE(memory->Free(it->first));
      live.erase(it);
    }
  }
}

TEST_CASE("Allocate_FortyThousandSmallOnes_IsNotRefused") {
  const auto memory = Make();
  std::vector<std::uint64_t> bases;
  for (int i = 0; i < 40'000; ++i) {
    bases.push_back(memory->Allocate(64, 1, MemoryKind::kDevice));
    REQUIRE(bases.back() != 0);
    Bytes(bases.back())[63] = 1;
  }
  for (std::size_t i = 0; i < bases.size(); i += 2) REQUIRE(memory->Free(bases[i]));
  for (std::size_t i = 1; i < bases.size(); i += 2) REQUIRE(Bytes(bases[i])[63] == 1);
  for (std::size_t i = 1; i < bases.size(); i += 2) REQUIRE(memory->Free(bases[i]));
}

TEST_CASE("FindNearest_TellsByHowMuchAnAddressMissed") {
  const auto memory = Make();
  CHECK_FALSE(memory->FindNearest(123).has_value());
  const std::uint64_t base = memory->Allocate(1000, 1, MemoryKind::kDevice);
  memory->Allocate(1000, 1, MemoryKind::kInternal);
  CHECK(memory->FindNearest(base + 10)->distance == 0);
  CHECK(memory->FindNearest(base + 1000)->distance == 1);
  CHECK(memory->FindNearest(base + 1015)->distance == 16);
  CHECK(memory->FindNearest(base - 8)->distance == -8);
  CHECK(memory->FindNearest(base + 100'000)->allocation.base == base);
  CHECK(memory->FindNearest(0)->allocation.base == base);
  CHECK(memory->FindNearest(~0ull)->distance > 0);
}

TEST_CASE("Map_OnePhysicalTwice_SharesMemory") {
  const auto memory = Make();
  constexpr std::uint64_t kBytes = 2 << 20;
  const std::uint64_t range = memory->Reserve(4 * kBytes, kBytes, 0);
  REQUIRE(range != 0);
  CHECK(range % kBytes == 0);
  CHECK(memory->Find(range)->kind == MemoryKind::kReserved);
  CHECK_FALSE(memory->Accessible(range, 1, false));
  const std::uint64_t physical = memory->CreatePhysical(2 * kBytes);
  REQUIRE(physical != 0);
  CHECK(memory->used_bytes() == 2 * kBytes);
  CHECK(memory->Map(range, 2 * kBytes, physical, 0));
  CHECK(memory->Map(range + 2 * kBytes, kBytes, physical, kBytes));
  CHECK_FALSE(memory->Map(range + kBytes, kBytes, physical, 0));
  CHECK_FALSE(memory->Map(range + 3 * kBytes, 2 * kBytes, physical, 0));
  CHECK_FALSE(memory->Map(range + 3 * kBytes, kBytes, physical, 2 * kBytes));
  CHECK_FALSE(memory->Accessible(range, 1, false));
  CHECK(memory->Protect(range, 3 * kBytes, true, true));
  CHECK(memory->Accessible(range, 3 * kBytes, true));
  CHECK_FALSE(memory->Accessible(range, 3 * kBytes + 1, true));
  Bytes(range)[kBytes + 5] = 42;
  CHECK(Bytes(range)[2 * kBytes + 5] == 42);
  CHECK(memory->Protect(range + kBytes, kBytes, true, false));
  CHECK(memory->Accessible(range + kBytes, kBytes, false));
  CHECK_FALSE(memory->Accessible(range + kBytes, kBytes, true));
  CHECK_FALSE(memory->Accessible(range, 2 * kBytes, true));
  // What another process has of it.
  const int descriptor = memory->ExportPhysical(physical);
  REQUIRE(descriptor >= 0);
  bool at_host = true;
  std::uint64_t bytes = 0;
  const std::uint64_t same = memory->ImportPhysical(descriptor, &bytes, &at_host);
  CHECK_FALSE(at_host);
  CHECK(ftruncate(descriptor, 0) != 0);  // nobody can take the pages away
  close(descriptor);
  CHECK(same != 0);
  CHECK(bytes == 2 * kBytes);
  CHECK(memory->used_bytes() == 4 * kBytes);
  CHECK(memory->DestroyPhysical(same));
  CHECK(memory->used_bytes() == 2 * kBytes);
  const int unsealed = memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING),
            odd = memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE((ftruncate(unsealed, 4096) == 0 && ftruncate(odd, 4095) == 0));
  REQUIRE(fcntl(odd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
  for (const int wrong : {unsealed, odd, -1, 0, 1 << 20}) CHECK(memory->ImportPhysical(wrong, &bytes, &at_host) == 0);
  close(unsealed), close(odd);
  CHECK(memory->ExportPhysical(physical + 100) == -1);
  CHECK(memory->DestroyPhysical(physical));
  CHECK_FALSE(memory->DestroyPhysical(physical));
  CHECK(memory->ExportPhysical(physical) == -1);
  CHECK(Bytes(range)[2 * kBytes + 5] == 42);
  CHECK_FALSE(memory->Release(range, 4 * kBytes));
  CHECK_FALSE(memory->Unmap(range, 4 * kBytes));
  CHECK(memory->Unmap(range, 3 * kBytes));
  CHECK(memory->used_bytes() == 0);
  CHECK(Faults(range));
  CHECK_FALSE(memory->Free(range));
  CHECK(memory->Release(range, 4 * kBytes));
  CHECK(memory->Reserve(kBytes, 4096, range + kBytes) == range + kBytes);
}

TEST_CASE("RegisterHost_RangesDoNotOverlapAndAreFound") {
  const auto memory = Make();
  std::vector<char> host(100'000);
  CHECK(memory->RegisterHost(host.data() + 1000, 1000, false));
  CHECK_FALSE(memory->RegisterHost(host.data() + 1500, 10, false));
  CHECK_FALSE(memory->RegisterHost(host.data() + 500, 501, false));
  CHECK(memory->RegisterHost(host.data() + 500, 500, true));
  const auto at = [&](std::size_t offset) { return reinterpret_cast<std::uint64_t>(host.data() + offset); };
  CHECK(memory->Find(at(1999))->kind == MemoryKind::kRegistered);
  CHECK_FALSE(memory->Find(at(2000)).has_value());
  CHECK(memory->Accessible(at(1000), 1000, true));
  CHECK_FALSE(memory->Accessible(at(1000), 1001, true));
  CHECK(memory->Accessible(at(500), 500, false));
  CHECK_FALSE(memory->Accessible(at(500), 500, true));
  CHECK(memory->FindNearest(at(2003))->distance == 4);
  for (std::size_t i = 100; i < 900; ++i) REQUIRE(memory->RegisterHost(host.data() + i * 100, 50, false));
  for (std::size_t i = 100; i < 900; ++i) REQUIRE(memory->Accessible(at(i * 100 + 49), 1, true));
  CHECK(memory->UnregisterHost(host.data() + 1000));
  CHECK_FALSE(memory->UnregisterHost(host.data() + 1000));
  CHECK_FALSE(memory->Accessible(at(1000), 1, false));
}

TEST_CASE("RegisterHost_ReadersSeeEachRangeWholeWhileWritersWork") {
  const auto memory = Make();
  std::vector<char> host(4096 * 64);
  REQUIRE(memory->RegisterHost(host.data() + 4096 * 40, 4096, false));
  std::atomic<bool> stop{false};
  std::atomic<int> misses{0};
  std::thread reader([&] {
    while (!stop)
      if (!memory->Accessible(reinterpret_cast<std::uint64_t>(host.data() + 4096 * 40 + 4000), 8, true)) ++misses;
  });
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 30; ++i) memory->RegisterHost(host.data() + 4096 * i, 100, false);
    for (int i = 0; i < 30; ++i) memory->UnregisterHost(host.data() + 4096 * i);
  }
  stop = true;
  reader.join();
  CHECK(misses == 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("Create_UnderAnAddressSpaceLimit_TakesLessOrSaysWhy") {
  for (const std::uint64_t limit_mib : {std::uint64_t{8} << 10, std::uint64_t{512}}) {
    const pid_t child = fork();
    if (child == 0) {
      const rlimit limit{limit_mib << 20, limit_mib << 20};
      setrlimit(RLIMIT_AS, &limit);
      const auto memory = DeviceMemory::Create({});
      if (limit_mib > 4096) _exit(memory.ok() && (*memory)->range_bytes() >= std::uint64_t{1} << 30 ? 0 : 1);
      _exit(!memory.ok() && memory.error().message.find("ulimit -v") != std::string::npos ? 0 : 2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WEXITSTATUS(status) == 0);
  }
}
#endif

TEST_CASE("Fork_ChildHasACopyOfDeviceMemory") {
  const auto memory = Make();
  const std::uint64_t base = memory->Allocate(4096, 1, MemoryKind::kDevice);
  Bytes(base)[0] = 1;
  const pid_t child = fork();
  if (child == 0) {
    const bool inherited = Bytes(base)[0] == 1 && memory->Accessible(base, 4096, true);
    Bytes(base)[0] = 2;
    const std::uint64_t more = memory->Allocate(4096, 1, MemoryKind::kDevice);
    _exit(inherited && more != 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(Bytes(base)[0] == 1);
}

TEST_CASE("LetThrough_InTheDevicePageOfAnAllocationOrTheOneBefore_OpensItUntilItIsAllocated") {
  constexpr std::uint64_t kPage = 2u << 20;
  auto made = DeviceMemory::Create({.device_page_bytes = kPage});
  REQUIRE(made.ok());
  const auto memory = std::move(*made);
  CHECK_FALSE(memory->LetThrough(memory->range_base()));
  const std::uint64_t small = memory->Allocate(3000, 256, MemoryKind::kDevice);
  const std::uint64_t large = memory->Allocate(2 * kPage + 5000, 256, MemoryKind::kDevice);
  REQUIRE(large >= small + kPage);

  const std::uint64_t past = small + 3000 + 20000;
  CHECK(Faults(past));
  CHECK(memory->LetThrough(past));
  std::memset(Bytes(past), 7, 100);
  CHECK_FALSE(memory->Find(past).has_value());
  CHECK(memory->LetThrough(past + 100));  // another thread was quicker: nothing is lost
  CHECK(Bytes(past)[99] == 7);

  CHECK(memory->LetThrough(large + 2 * kPage + 200'000));
  CHECK(memory->LetThrough(large - 2048));
  CHECK_FALSE(memory->LetThrough(large + 4 * kPage));
  CHECK(memory->LetThrough(small - 1));
  CHECK_FALSE(memory->LetThrough(small - kPage - 1));  // the runtime's own memory
  CHECK_FALSE(memory->LetThrough(0));

  // Allocations made there are empty, and what is freed is not accessible.
  const std::uint64_t later = memory->Allocate(100'000, 4096, MemoryKind::kDevice);
  REQUIRE((later <= past && past < later + 100'000));
  CHECK(Bytes(past)[0] == 0);
  CHECK(memory->Free(later));
  CHECK(Faults(past));
}

TEST_CASE("LetThrough_WithoutDevicePagesOrInProtectedMemory_IsNever") {
  const auto strict = Make();
  const std::uint64_t base = strict->Allocate(3000, 256, MemoryKind::kDevice);
  CHECK_FALSE(strict->LetThrough(base + 5000));

  auto made = DeviceMemory::Create({.device_page_bytes = 2u << 20});
  REQUIRE(made.ok());
  const auto memory = std::move(*made);
  memory->Allocate(3000, 256, MemoryKind::kDevice);
  const std::uint64_t reserved = memory->Reserve(1u << 20, 4096, 0);
  CHECK_FALSE(memory->LetThrough(reserved + 4096));  // without memory behind it
  const std::uint64_t shared = memory->Allocate(100, 256, MemoryKind::kInternal);
  CHECK_FALSE(memory->LetThrough(shared));
}

/// Of [base, base + bytes).
std::uint64_t ResidentBytes(std::uint64_t base, std::uint64_t bytes) {
  std::vector<unsigned char> there(bytes / 4096);
  REQUIRE(mincore(Bytes(base), bytes, there.data()) == 0);
  return 4096 *
         static_cast<std::uint64_t>(std::ranges::count_if(there, [](unsigned char page) { return (page & 1) != 0; }));
}

/// As a kernel that runs for so long would.
void Look(DeviceMemory& memory) {
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  memory.LookAtPages();
}

constexpr std::uint64_t kMiB = 1u << 20;

void Fill(std::uint64_t base, std::uint64_t bytes, int value) { std::memset(Bytes(base), value, bytes); }

/// One byte of each 128 KiB.
void TouchHereAndThere(std::uint64_t base, std::uint64_t bytes) {
  for (std::uint64_t at = 0; at < bytes; at += kMiB / 8) *Bytes(base + at) = 1;
}

/// Whether the system gives large pages to who asks.
bool HasLargePages() {
  const auto memory = Make();
  const std::uint64_t base = memory->Allocate(4 * kMiB, 1, MemoryKind::kDevice);
  *Bytes(base) = 1;
  return ResidentBytes(base, 4 * kMiB) == 2 * kMiB;
}

TEST_CASE("LookAtPages_MemoryTouchedHereAndThere_TakesLittleMoreThanThat") {
  const auto memory = Make();
  const std::uint64_t base = memory->Allocate(256 * kMiB, 1, MemoryKind::kDevice);
  TouchHereAndThere(base, 32 * kMiB);
  Look(*memory);
  TouchHereAndThere(base + 32 * kMiB, 224 * kMiB);
  CHECK(ResidentBytes(base, 256 * kMiB) <= 48 * kMiB);
  Look(*memory);
  TouchHereAndThere(base + kMiB / 16, 256 * kMiB);
  CHECK(ResidentBytes(base, 256 * kMiB) <= 64 * kMiB);
  CHECK(*Bytes(base + 255 * kMiB) == 1);
  CHECK(memory->Free(base));
  Look(*memory);  // it is gone
}

TEST_CASE("LookAtPages_MemoryFilledAsItLies_KeepsLargePages") {
  if (!HasLargePages()) {
    WARN("skipped: this system has no large pages");
    return;
  }
  const auto memory = Make();
  const std::uint64_t base = memory->Allocate(256 * kMiB, 1, MemoryKind::kDevice);
  Look(*memory);  // nothing is known yet
  Fill(base, 16 * kMiB, 1);
  Look(*memory);
  *Bytes(base + 128 * kMiB) = 1;
  CHECK(ResidentBytes(base + 128 * kMiB, 2 * kMiB) == 2 * kMiB);
}

TEST_CASE("LookAtPages_MemoryFilledWithZeros_HasLargePagesAgainWhenMoreIsFilled") {
  if (!HasLargePages()) {
    WARN("skipped: this system has no large pages");
    return;
  }
  const auto memory = Make();
  const std::uint64_t base = memory->Allocate(256 * kMiB, 1, MemoryKind::kDevice);
  Fill(base, 16 * kMiB, 0);
  Look(*memory);
  Fill(base + 16 * kMiB, 16 * kMiB, 0);
  Look(*memory);
  *Bytes(base + 128 * kMiB) = 1;
  CHECK(ResidentBytes(base + 128 * kMiB, 2 * kMiB) == 2 * kMiB);
}
