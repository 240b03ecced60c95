#include "scheduler/protocol/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

namespace gridloom::protocol {
namespace {

RawRecord Launch(std::uint64_t number) {
  RawRecord record;
  record.kind = static_cast<std::uint32_t>(RecordKind::kLaunch);
  record.launch = number;
  record.value = 5;
  record.threads_per_cta = 32;
  return record;
}

TEST_CASE("Segment_Memfd_CannotBeShrunkOrGrown") {
  const auto segment = Segment::Create();
  REQUIRE(segment.ok());
  CHECK(ftruncate(segment->fd(), 0) != 0);
  CHECK(ftruncate(segment->fd(), 1 << 30) != 0);
  CHECK(fcntl(segment->fd(), F_ADD_SEALS, F_SEAL_WRITE) != 0);  // nor may seals be added that would break the broker
}

TEST_CASE("Attach_NotSealedOrOfAnotherSize_IsRefused") {
  const int plain = memfd_create("plain", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(ftruncate(plain, sizeof(SegmentLayout)) == 0);
  CHECK_FALSE(Segment::Attach(plain).ok());
  const int small = memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(ftruncate(small, 4096) == 0);
  CHECK_FALSE(Segment::Attach(small).ok());
}

TEST_CASE("Ring_WritersRecords_ArriveInOrderAndWhole") {
  const auto segment = Segment::Create();
  REQUIRE(segment.ok());
  constexpr std::uint64_t kCount = 50'000;
  std::thread writer([&] {
    RingWriter ring(segment->layout());
    for (std::uint64_t i = 1; i <= kCount; ++i) {
      while (!ring.Push(Launch(i))) std::this_thread::yield();
    }
  });
  RingReader ring(segment->layout());
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 1; i <= kCount;) {
    const auto raw = ring.Take();
    REQUIRE(raw.ok());
    if (!*raw) {
      std::this_thread::yield();
      continue;
    }
    const auto record = ParseRecord(**raw, i - 1);
    if (!record.ok() || record->launch != i) ++wrong;
    ++i;
  }
  writer.join();
  CHECK(wrong == 0);
}

TEST_CASE("RingWriter_FullRing_TakesNoMore") {
  const auto segment = Segment::Create();
  REQUIRE(segment.ok());
  RingWriter writer(segment->layout());
  for (std::uint32_t i = 0; i < kRingRecords; ++i) CHECK(writer.Push(Launch(i + 1)));
  CHECK_FALSE(writer.Push(Launch(1)));
  RingReader reader(segment->layout());
  REQUIRE(reader.Take().ok());
  CHECK(writer.Push(Launch(2)));
}

TEST_CASE("RingReader_ImpossibleCount_IsAnError") {
  const auto segment = Segment::Create();
  REQUIRE(segment.ok());
  RingReader reader(segment->layout());
  segment->layout().pushed = kRingRecords + 1;
  CHECK_FALSE(reader.Take().ok());
  segment->layout().pushed = ~std::uint64_t{0};  // a count that went backwards
  CHECK_FALSE(reader.Take().ok());
}

TEST_CASE("ParseRecord_WhatNoRecordMaySay_IsAnError") {
  const auto parse = [](auto change) {
    RawRecord raw = Launch(1);
    change(raw);
    return ParseRecord(raw, 0).ok();
  };
  CHECK(parse([](RawRecord&) {}));
  CHECK_FALSE(parse([](RawRecord& r) { r.sequence = 1; }));
  CHECK_FALSE(parse([](RawRecord& r) { r.slot = kSlots; }));
  CHECK_FALSE(parse([](RawRecord& r) { r.kind = 0; }));
  CHECK_FALSE(parse([](RawRecord& r) { r.kind = 99; }));
  CHECK_FALSE(parse([](RawRecord& r) { r.value = 0; }));
  CHECK_FALSE(parse([](RawRecord& r) { r.value = ~std::uint64_t{0}; }));
  CHECK_FALSE(parse([](RawRecord& r) { r.threads_per_cta = 0; }));
  CHECK_FALSE(parse([](RawRecord& r) { r.threads_per_cta = 1u << 31; }));
  CHECK_FALSE(parse([](RawRecord& r) { r.registers_per_thread = 1u << 31; }));
  CHECK_FALSE(parse([](RawRecord& r) { r.shared_bytes = ~0u; }));
  CHECK_FALSE(parse([](RawRecord& r) { r.priority = 1'000'000; }));
  CHECK_FALSE(parse([](RawRecord& r) { r.flags = 0x80; }));
  CHECK_FALSE(parse([](RawRecord& r) { r.copied_bytes = ~std::uint64_t{0}; }));
}

}  // namespace
}  // namespace gridloom::protocol
