#include "interpose/observe/fill_order.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "interpose/base/log.h"
#include "interpose/base/settings.h"
#include "rewriter/support/own_thread.h"
#include "rewriter/support/result.h"
#include "sim/trace/trace_file.h"

namespace gridloom::session {
namespace {

constexpr std::uint64_t kPage = trace::HostAction::kRankedPage;

/// What follows the writes of the kernel, too; those of programs alone (UFFD_USER_MODE_ONLY) would make read() fail.
Result<int> OpenFaults() {
  int fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
  if (fd < 0) {
    const int error = errno;
    const int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
    fd = device < 0 ? -1 : ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC);
    if (device >= 0) close(device);
    if (fd < 0)
      return Error{std::string("userfaultfd: ") + std::strerror(error) +
                   "; it takes root, `sysctl vm.unprivileged_userfaultfd=1`, or the right to open /dev/userfaultfd"};
  }
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP;
  if (ioctl(fd, UFFDIO_API, &api) == 0) return fd;
  close(fd);
  return Error{"this kernel protects no pages from being written (Linux has it since 5.7)"};
}

}  // namespace

std::unique_ptr<FillOrder> FillOrder::Make() {
  if (!IsOn(TheSettings().record_order)) return nullptr;
  static_assert(kPage == 4096);
  const auto fd = sysconf(_SC_PAGESIZE) == static_cast<long>(kPage) ? OpenFaults()
                                                                    : Error{"pages of this machine are not of 4 KiB"};
  if (fd.ok()) return std::unique_ptr<FillOrder>(new FillOrder(*fd));
  LogFormat(LogLevel::kWarn, "the order in which the program fills what it copies is not recorded: %s",
            fd.error().message.c_str());
  return nullptr;
}

bool FillOrder::of_this_process() const { return owner_ == getpid(); }

FillOrder::FillOrder(int fd) : fd_(fd), owner_(getpid()) {
  // Signals are the program's: none is delivered to our thread.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  std::thread([this] {
    BecomeOwnThread();
    Main();
  }).detach();
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

/// Whoever writes to a protected page waits until it has been noted here. Nothing that this thread touches is in such a
/// page.
void FillOrder::Main() {
  std::array<uffd_msg, 64> messages;
  while (true) {
    const ssize_t got = read(fd_, messages.data(), sizeof messages);
    if (got < 0 && errno != EINTR && errno != EAGAIN) return;
    for (std::size_t i = 0; got > 0 && i < static_cast<std::size_t>(got) / sizeof(uffd_msg); ++i) {
      if (messages[i].event == UFFD_EVENT_PAGEFAULT) Note(messages[i].arg.pagefault.address);
    }
  }
}

void FillOrder::Note(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  Block* const block = Find(address);
  if (block != nullptr && address / kPage - block->first < block->ranks.size())
    block->ranks[address / kPage - block->first] = ++written_;
  Protect(address / kPage, 1, false);
}

bool FillOrder::Protect(std::uint64_t page, std::uint64_t pages, bool on) const {
  uffdio_writeprotect range{};
  range.range = {page * kPage, pages * kPage};
  range.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0;
  int done = 0;
  do done = ioctl(fd_, UFFDIO_WRITEPROTECT, &range);
  while (done != 0 && (errno == EAGAIN || errno == EINTR));
  return done == 0;
}

FillOrder::Block* FillOrder::Find(std::uint64_t address) {
  auto found = blocks_.upper_bound(address);
  if (found == blocks_.begin()) return nullptr;
  --found;
  return address < found->second.end ? &found->second : nullptr;
}

void FillOrder::Follow(std::uint64_t address, std::uint64_t bytes, bool fresh) {
  const std::uint64_t first = (address + kPage - 1) / kPage;
  // Memory of ours has its pages to itself; of the program's own, the last page may have something else behind it.
  const std::uint64_t last = fresh ? (address + bytes + kPage - 1) / kPage : (address + bytes) / kPage;
  if (last <= first || (fresh && address % kPage != 0)) return;
  Block block{.begin = address, .end = address + bytes, .first = first, .fresh = fresh, .ranks = {}};
  block.ranks.resize(last - first);
  void* const memory = reinterpret_cast<void*>(first * kPage);
  const std::uint64_t length = (last - first) * kPage;
  // A page that was never touched has nothing to protect, and a large one is protected as a whole.
  madvise(memory, length, MADV_NOHUGEPAGE);
  if (madvise(memory, length, MADV_POPULATE_READ) != 0) return;
  uffdio_register range{};
  range.range = {first * kPage, length};
  range.mode = UFFDIO_REGISTER_MODE_WP;
  if (ioctl(fd_, UFFDIO_REGISTER, &range) != 0) return;  // a file's, or another's
  const std::lock_guard lock(mutex_);
  if (Protect(first, last - first, true)) blocks_[address] = std::move(block);
}

void FillOrder::Leave(std::uint64_t address) {
  Block block;
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return;
    block = std::move(found->second);
    blocks_.erase(found);
  }
  uffdio_range range{block.first * kPage, block.ranks.size() * kPage};
  ioctl(fd_, UFFDIO_UNREGISTER, &range);
}

/// A page that is the program's in part only, at an end of its memory, counts as filled with the next one.
std::vector<std::uint32_t> FillOrder::Take(const std::byte* source, std::uint64_t bytes) {
  const auto address = reinterpret_cast<std::uint64_t>(source);
  const std::lock_guard lock(mutex_);
  const Block* const block = Find(address);
  if (block == nullptr || bytes == 0 || address + bytes > block->end) return {};
  const std::uint64_t last_page = block->ranks.size() - 1;
  const auto place_of = [&](std::uint64_t at) {
    return std::min(std::max(at / kPage, block->first) - block->first, last_page);
  };
  std::vector<std::uint32_t> ranks;
  bool known = true;
  for (std::uint64_t begin = address; begin < address + bytes; begin += kPage) {
    const std::uint64_t end = std::min(begin + kPage, address + bytes);
    std::uint32_t rank = 0;
    for (std::uint64_t place = place_of(begin); place <= place_of(end - 1); ++place)
      rank = std::max(rank, block->ranks[place]);
    known &= rank != 0 || block->fresh;
    ranks.push_back(rank != 0 ? rank : kNever);
  }
  const std::uint64_t first = place_of(address);
  Protect(block->first + first, place_of(address + bytes - 1) - first + 1, true);
  const bool written = std::ranges::any_of(ranks, [](std::uint32_t rank) { return rank != kNever; });
  return known && written ? ranks : std::vector<std::uint32_t>();
}

}  // namespace gridloom::session
