#include "scheduler/protocol/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace gridloom::protocol {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Error Failed(const char* what) {
  return Error{std::string("shared memory of a session: ") + what + ": " + std::strerror(errno)};
}

Result<SegmentLayout*> Map(int fd) {
  void* const memory = mmap(nullptr, sizeof(SegmentLayout), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return Failed("cannot map it");
  return static_cast<SegmentLayout*>(memory);
}

}  // namespace

Result<Segment> Segment::Create() {
  const int fd = memfd_create("gridloom-session", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return Failed("cannot make it");
  Segment segment(nullptr, fd);
  if (ftruncate(fd, sizeof(SegmentLayout)) != 0) return Failed("cannot give it its size");
  if (fcntl(fd, F_ADD_SEALS, kSeals) != 0) return Failed("cannot seal it");
  GL_TRY(layout, Map(fd));
  segment.layout_ = layout;  // all zero, as a new file is; pages that nobody writes to are never there
  layout->magic = kSegmentMagic;
  layout->version = kVersion;
  layout->header_bytes = offsetof(SegmentLayout, mailboxes);
  layout->bytes = sizeof(SegmentLayout);
  return segment;
}

Result<Segment> Segment::Attach(int fd) {
  Segment segment(nullptr, fd);
  struct stat info {};
  if (fstat(fd, &info) != 0) return Failed("cannot look at it");
  if (static_cast<std::uint64_t>(info.st_size) != sizeof(SegmentLayout))
    return Error{"the broker's shared memory has another size"};
  if ((fcntl(fd, F_GET_SEALS) & kSeals) != kSeals) return Error{"the broker's shared memory is not sealed"};
  GL_TRY(layout, Map(fd));
  segment.layout_ = layout;
  if (layout->magic != kSegmentMagic || layout->version != kVersion || layout->bytes != sizeof(SegmentLayout)) {
    return Error{"the broker's shared memory is of another version"};
  }
  return segment;
}

Segment::Segment(Segment&& other) noexcept
    : layout_(std::exchange(other.layout_, nullptr)), fd_(std::exchange(other.fd_, -1)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(layout_, other.layout_);
  std::swap(fd_, other.fd_);
  return *this;
}

Segment::~Segment() {
  if (layout_ != nullptr) munmap(layout_, sizeof(SegmentLayout));
  if (fd_ >= 0) close(fd_);
}

bool RingWriter::Push(RawRecord record) {
  if (pushed_ - layout_.taken.load(std::memory_order_acquire) >= kRingRecords) return false;
  record.sequence = pushed_;
  std::memcpy(&layout_.ring[pushed_ % kRingRecords], &record, sizeof record);
  // Pairs with RingReader::Take; ordered before the look at broker_sleeps (must_ring), which the broker sets before its
  // last look at `pushed`: one of the two sees the other.
  layout_.pushed.store(++pushed_, std::memory_order_seq_cst);
  return true;
}

Result<std::optional<RawRecord>> RingReader::Take() {
  const std::uint64_t pushed = layout_.pushed.load(std::memory_order_acquire);
  if (pushed == taken_) return std::optional<RawRecord>();
  if (pushed - taken_ > kRingRecords) {
    return Error{"the ring is said to hold " + std::to_string(pushed - taken_) + " records, it has room for " +
                 std::to_string(kRingRecords)};
  }
  RawRecord record;
  std::memcpy(&record, &layout_.ring[taken_ % kRingRecords], sizeof record);
  asm volatile("" ::: "memory");  // the copy is made here, and nobody looks at the original again
  layout_.taken.store(++taken_, std::memory_order_release);
  return std::optional(record);
}

}  // namespace gridloom::protocol
