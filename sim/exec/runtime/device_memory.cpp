// One lock guards the maps; readers share it. System calls that change mappings are made under it, so that an address
// is never handed out while it is still being taken back.
//
// After fork() the child has a copy of everything (private pages are copied on write) except memory made with
// CreatePhysical, which parent and child share, as they share every memfd.
#include "sim/exec/device_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>

#include "sim/exec/extent.h"
#include "sim/exec/runtime/address_space.h"
#include "sim/exec/runtime/fork_guard.h"
#include "sim/exec/runtime/host_registry.h"
#include "sim/exec/runtime/page_use.h"

namespace gridloom::exec {
namespace {

constexpr std::uint64_t kGuardBytes = kPageBytes;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;  // of physical memory that other processes may have
constexpr std::uint64_t kMinAlign = 256;
constexpr std::uint64_t kFirstLook = 1'000'000,
                        kRarestLook = 256'000'000;  // ns from look to look at how pages are used
// Every guarded allocation costs the kernel two mappings, and a process has 65,530. Beyond this many live ones the gaps
// become accessible memory, so that neighbours share a mapping: no guard, but no refusal either.
constexpr std::size_t kMaxGuarded = 20'000;

bool CountsAgainstLimit(MemoryKind kind) {
  return kind == MemoryKind::kDevice || kind == MemoryKind::kPool || kind == MemoryKind::kManaged ||
         kind == MemoryKind::kModule;
}

constexpr char kHostMemoryName[] = "gridloom-host-memory";

/// Memory of this machine.
std::uint64_t HostBytes() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// Whether a descriptor of CreatePhysical's is of memory at the host: the system keeps the name that a memfd was made
/// with.
bool IsHostMemory(int descriptor) {
  char name[64] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t length = readlink(link.c_str(), name, sizeof(name) - 1);
  return length > 0 && std::string_view(name).find(kHostMemoryName) != std::string_view::npos;
}

void* At(std::uint64_t address) { return reinterpret_cast<void*>(address); }

/// Back to reserved address space: pages go, any access faults.
void Withdraw(std::uint64_t address, std::uint64_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (mmap(At(address), bytes, PROT_NONE, kFlags, -1, 0) == MAP_FAILED) madvise(At(address), bytes, MADV_DONTNEED);
}

/// To some milliseconds, and soon.
std::uint64_t RoughNowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

int Protection(bool readable, bool writable) { return (readable ? PROT_READ : 0) | (writable ? PROT_WRITE : 0); }

class DeviceMemoryImpl final : public DeviceMemory, public ForkAware {
 public:
  DeviceMemoryImpl(AddressSpace space, const Options& options)
      : space_(std::move(space)),
        limit_(options.limit_bytes),
        quota_(options.quota),
        device_page_bytes_(options.device_page_bytes),
        remember_freed_(options.remember_freed) {
    RegisterForkAware(this);
    has_guard_zones_ = space_.has_guard_zones();
    if (device_page_bytes_ == 0) return;
    const std::uint64_t own = space_.bytes() / 64 & ~(device_page_bytes_ - 1);
    if (!space_.free().TakeAt(space_.base(), own)) return;
    // A page between them is nobody's: the first allocation of a program is not less lucky than the others.
    own_.Give(space_.base(), own - device_page_bytes_);
    programs_base_ += own - device_page_bytes_;
  }
  ~DeviceMemoryImpl() override {
    UnregisterForkAware(this);
    for (auto& [handle, physical] : physicals_) close(physical.fd);
  }

  std::uint64_t range_base() const override { return space_.base(); }
  std::uint64_t range_bytes() const override { return space_.bytes(); }
  std::uint64_t high_water_bytes() const override { return high_water_.load(std::memory_order_relaxed); }
  std::uint64_t limit_bytes() const override { return limit_; }
  std::uint64_t used_bytes() const override { return used_.load(std::memory_order_relaxed); }

  std::uint64_t Allocate(std::uint64_t bytes, std::uint64_t align, MemoryKind kind, AllocationOwner* owner) override;
  bool Free(std::uint64_t base) override;

  std::uint64_t Reserve(std::uint64_t bytes, std::uint64_t align, std::uint64_t hint) override;
  bool Release(std::uint64_t base, std::uint64_t bytes) override;
  std::uint64_t CreatePhysical(std::uint64_t bytes, bool at_host) override;
  bool DestroyPhysical(std::uint64_t handle) override;
  std::vector<std::uint64_t> ListPhysical() const override;
  int ExportPhysical(std::uint64_t handle) const override;
  std::uint64_t ImportPhysical(int descriptor, std::uint64_t* bytes, bool* at_host) override;
  bool Map(std::uint64_t address, std::uint64_t bytes, std::uint64_t handle, std::uint64_t offset) override;
  bool Unmap(std::uint64_t address, std::uint64_t bytes) override;
  bool Protect(std::uint64_t address, std::uint64_t bytes, bool readable, bool writable) override;

  bool RegisterHost(void* host, std::uint64_t bytes, bool read_only, AllocationOwner* owner) override;
  bool UnregisterHost(void* host) override;

  std::optional<Allocation> Find(std::uint64_t address) const override;
  std::optional<Nearest> FindNearest(std::uint64_t address) const override;
  std::optional<Allocation> FindFreed(std::uint64_t address) const override;
  std::vector<Allocation> List() const override;
  bool remembers_freed() const override { return remember_freed_; }
  bool Accessible(std::uint64_t address, std::uint64_t bytes, bool write) const override;

  bool LetThrough(std::uint64_t address) override;
  void LookAtPageUses() override;

  void BeforeFork() override { mutex_->lock(); }
  void AfterForkInParent() override { mutex_->unlock(); }
  // The child's thread has another number than the one that locked, and the C library looks at it: take a new lock.
  void AfterForkInChild() override {
    static_cast<void>(mutex_.release());
    mutex_ = std::make_unique<std::shared_mutex>();
  }

 private:
  struct Live {
    Allocation allocation;
    std::uint64_t extent = 0;  // address space taken, with the gap
  };
  struct Piece {  // of a reservation, with memory behind it
    std::uint64_t bytes = 0, handle = 0;
    bool readable = false, writable = false;
  };
  struct Physical {
    int fd = -1;
    std::uint64_t bytes = 0;
    bool charged = false;    // memory of the device's
    std::size_t pieces = 0;  // mapped
    bool destroyed = false;
  };
  using Pieces = std::map<std::uint64_t, Piece>;

  bool Charge(std::uint64_t bytes);
  void Uncharge(std::uint64_t bytes);
  void Remember(const Live& live);
  void WatchPages(std::uint64_t base, std::uint64_t bytes);
  void ForgetPages(std::uint64_t base);
  std::uint64_t TakeSpace(std::uint64_t bytes, std::uint64_t align, MemoryKind kind);
  void Give(std::uint64_t address, std::uint64_t bytes) {
    (address < programs_base_ ? own_ : space_.free()).Give(address, bytes);
  }
  void CloseStrays(std::uint64_t address, std::uint64_t bytes);
  bool BesideAllocation(std::uint64_t page) const;
  void Note(std::uint64_t end);
  const Live* LiveAt(std::uint64_t address) const;
  bool PiecesAccessible(std::uint64_t address, std::uint64_t bytes, bool write) const;
  bool Covered(std::uint64_t address, std::uint64_t bytes) const;
  void SplitAt(std::uint64_t address);
  void Unreference(std::uint64_t handle);

  std::unique_ptr<std::shared_mutex> mutex_ = std::make_unique<std::shared_mutex>();
  AddressSpace space_;
  // With device_page_bytes: space for kInternal, apart from the program's, so that LetThrough and pointers to what was
  // freed do not lead there. Up to programs_base_.
  ExtentMap own_;
  std::uint64_t programs_base_ = space_.base();
  std::map<std::uint64_t, Live> live_;
  std::map<std::uint64_t, Live> freed_;    // not handed out again yet, by address …
  std::deque<std::uint64_t> freed_order_;  // … and the oldest first
  std::uint64_t freed_bytes_ = 0;
  std::map<std::uint64_t, std::uint64_t>
      strays_;  // memory that LetThrough gave, outside of all allocations: start -> end
  Pieces pieces_;
  std::map<std::uint64_t, Physical> physicals_;
  HostRegistry registered_;
  std::uint64_t next_id_ = 1, next_handle_ = 1;
  std::uint64_t next_own_id_ = std::uint64_t{1} << 63;  // of what the program did not ask for
  const std::uint64_t limit_;
  const std::function<bool(std::uint64_t)> quota_;  // may be empty
  const std::uint64_t device_page_bytes_;
  const bool remember_freed_;
  std::atomic<std::uint64_t> used_{0}, high_water_{0};
  // Changed under the lock, or by who has set looking_ with the lock shared.
  std::map<std::uint64_t, PageUse> page_uses_;
  std::atomic<bool> looking_{false};
  std::atomic<std::uint64_t> next_look_{0}, look_interval_{kFirstLook};
};

bool DeviceMemoryImpl::Charge(std::uint64_t bytes) {
  const std::uint64_t used = used_.load(std::memory_order_relaxed);
  if (limit_ != 0 && (bytes > limit_ || used > limit_ - bytes)) return false;
  if (quota_ && !quota_(used + bytes)) return false;
  used_.store(used + bytes, std::memory_order_relaxed);
  return true;
}

void DeviceMemoryImpl::Uncharge(std::uint64_t bytes) {
  const std::uint64_t used = used_.fetch_sub(bytes, std::memory_order_relaxed) - bytes;
  if (quota_) quota_(used);
}

void DeviceMemoryImpl::Note(std::uint64_t end) {
  const std::uint64_t bytes = end - space_.base();
  if (bytes > high_water_.load(std::memory_order_relaxed)) high_water_.store(bytes, std::memory_order_relaxed);
}

std::uint64_t DeviceMemoryImpl::TakeSpace(std::uint64_t bytes, std::uint64_t align, MemoryKind kind) {
  if (kind == MemoryKind::kInternal) {
    if (const std::uint64_t base = own_.Take(bytes, align)) return base;
  }
  const std::uint64_t base = space_.free().Take(bytes, align);
  if (base != 0) CloseStrays(base, bytes);
  return base;
}

/// What kernels have left in free space must not appear in a new allocation.
void DeviceMemoryImpl::CloseStrays(std::uint64_t address, std::uint64_t bytes) {
  auto it = strays_.upper_bound(address);
  if (it != strays_.begin() && std::prev(it)->second > address) --it;
  while (it != strays_.end() && it->first < address + bytes) {
    Withdraw(it->first, it->second - it->first);
    it = strays_.erase(it);
  }
}

/// Is something the program allocated in this device page or in the next one?
bool DeviceMemoryImpl::BesideAllocation(std::uint64_t page) const {
  const auto counts = [](const auto& entry) { return CountsAgainstLimit(entry.second.allocation.kind); };
  const auto next = live_.lower_bound(page);
  for (auto it = next; it != live_.end() && it->first - page < 2 * device_page_bytes_; ++it)
    if (counts(*it)) return true;
  // What starts before the page: the last such allocation is the one that can reach into it.
  const auto before = std::find_if(std::make_reverse_iterator(next), live_.rend(), counts);
  return before != live_.rend() && before->first + before->second.allocation.bytes > page;
}

bool DeviceMemoryImpl::LetThrough(std::uint64_t address) {
  if (device_page_bytes_ == 0 || !space_.Contains(address) || address < programs_base_) return false;
  const std::uint64_t page = address & ~(device_page_bytes_ - 1);
  const std::unique_lock lock(*mutex_);
  const auto next = live_.upper_bound(address);
  std::uint64_t begin = std::max(page, programs_base_),
                end = std::min(page + device_page_bytes_, space_.base() + space_.bytes());
  if (next != live_.end()) end = std::min(end, next->first);
  if (next != live_.begin()) {
    const Allocation& previous = std::prev(next)->second.allocation;
    begin = std::max(begin, RoundUp(previous.base + previous.bytes, kPageBytes));
  }
  // In an allocation it is protected for another reason.
  if (address < begin || !BesideAllocation(page)) return false;
  if (mprotect(At(begin), end - begin, PROT_READ | PROT_WRITE) != 0) return false;
  // Part of it may be open already, by another thread or before a neighbour was freed: it keeps what was written to it.
  auto it = strays_.upper_bound(begin);
  if (it != strays_.begin() && std::prev(it)->second >= begin) --it;
  while (it != strays_.end() && it->first <= end) {
    begin = std::min(begin, it->first);
    end = std::max(end, it->second);
    it = strays_.erase(it);
  }
  strays_.emplace(begin, end);
  return true;
}

std::uint64_t DeviceMemoryImpl::Allocate(std::uint64_t bytes, std::uint64_t align, MemoryKind kind,
                                         AllocationOwner* owner) {
  if (bytes == 0 || bytes > space_.bytes() || (align & (align - 1)) != 0) return 0;
  const std::uint64_t usable = RoundUp(bytes, kPageBytes);
  const std::uint64_t extent = usable + kGuardBytes;
  const bool huge = bytes >= kHugePage;
  const std::unique_lock lock(*mutex_);
  if (CountsAgainstLimit(kind) && !Charge(bytes)) return 0;
  const std::uint64_t base = TakeSpace(extent, std::max({align, kMinAlign, huge ? kHugePage : kPageBytes}), kind);
  const bool guarded = live_.size() < kMaxGuarded;
  if (base == 0 || mprotect(At(base), guarded ? usable : extent, PROT_READ | PROT_WRITE) != 0) {
    if (base != 0) {
      Withdraw(base, extent);
      Give(base, extent);
    }
    if (CountsAgainstLimit(kind)) Uncharge(bytes);
    return 0;
  }
  if (huge)
    madvise(At(base), usable, MADV_HUGEPAGE);  // advice: fewer page faults and TLB misses where the kernel has them
  const bool own = kind == MemoryKind::kInternal || kind == MemoryKind::kModule;
  if (!own && PageUse::Matters(usable)) WatchPages(base, usable);
  live_.emplace(base, Live{{base, bytes, kind, own ? next_own_id_++ : next_id_++, owner}, extent});
  Note(base + bytes);
  return base;
}

void DeviceMemoryImpl::WatchPages(std::uint64_t base, std::uint64_t bytes) {
  page_uses_.emplace(base, PageUse(base, bytes));
  unknown_page_uses_.store(page_uses_.size(), std::memory_order_relaxed);
  look_interval_.store(kFirstLook, std::memory_order_relaxed);
  next_look_.store(RoughNowNs() + kFirstLook, std::memory_order_relaxed);
}

void DeviceMemoryImpl::ForgetPages(std::uint64_t base) {
  page_uses_.erase(base);
  unknown_page_uses_.store(page_uses_.size(), std::memory_order_relaxed);
}

void DeviceMemoryImpl::LookAtPageUses() {
  const std::uint64_t now = RoughNowNs();
  if (now < next_look_.load(std::memory_order_relaxed)) return;
  const std::shared_lock lock(*mutex_);
  if (looking_.exchange(true, std::memory_order_acquire)) return;
  if (now >= next_look_.load(std::memory_order_relaxed)) {
    for (auto it = page_uses_.begin(); it != page_uses_.end();)
      it = it->second.Look() ? page_uses_.erase(it) : std::next(it);
    unknown_page_uses_.store(page_uses_.size(), std::memory_order_relaxed);
    const std::uint64_t interval = look_interval_.load(std::memory_order_relaxed);
    next_look_.store(RoughNowNs() + interval, std::memory_order_relaxed);
    look_interval_.store(std::min(2 * interval, kRarestLook), std::memory_order_relaxed);
  }
  looking_.store(false, std::memory_order_release);
}

/// Keeps a freed range from being handed out until many others have been freed. It costs address space, no memory.
void DeviceMemoryImpl::Remember(const Live& live) {
  constexpr std::size_t kMostRemembered = 20'000;
  freed_.emplace(live.allocation.base, live);
  freed_order_.push_back(live.allocation.base);
  freed_bytes_ += live.extent;
  while (freed_bytes_ > space_.bytes() / 4 || freed_order_.size() > kMostRemembered) {
    const auto oldest = freed_.find(freed_order_.front());
    freed_order_.pop_front();
    freed_bytes_ -= oldest->second.extent;
    Give(oldest->first, oldest->second.extent);
    freed_.erase(oldest);
  }
}

bool DeviceMemoryImpl::Free(std::uint64_t base) {
  const std::unique_lock lock(*mutex_);
  const auto it = live_.find(base);
  if (it == live_.end() || it->second.allocation.kind == MemoryKind::kReserved) return false;
  const Live live = it->second;
  live_.erase(it);
  ForgetPages(base);
  CloseStrays(base, live.extent);
  Withdraw(base, live.extent);
  if (remember_freed_ && live.allocation.kind != MemoryKind::kInternal) Remember(live);
  else Give(base, live.extent);
  if (CountsAgainstLimit(live.allocation.kind)) Uncharge(live.allocation.bytes);
  return true;
}

std::uint64_t DeviceMemoryImpl::Reserve(std::uint64_t bytes, std::uint64_t align, std::uint64_t hint) {
  if (bytes == 0 || bytes > space_.bytes() || (align & (align - 1)) != 0) return 0;
  bytes = RoundUp(bytes, kPageBytes);
  align = std::max(align, kPageBytes);
  const std::uint64_t extent = bytes + kGuardBytes;
  const std::unique_lock lock(*mutex_);
  std::uint64_t base = 0;
  if (hint != 0 && hint % align == 0 && space_.free().TakeAt(hint, extent)) {
    base = hint;
    CloseStrays(base, extent);
  }
  if (base == 0) base = TakeSpace(extent, align, MemoryKind::kReserved);
  if (base == 0) return 0;
  live_.emplace(base, Live{{base, bytes, MemoryKind::kReserved, next_id_++, nullptr}, extent});
  Note(base + bytes);
  return base;
}

bool DeviceMemoryImpl::Release(std::uint64_t base, std::uint64_t bytes) {
  const std::unique_lock lock(*mutex_);
  const auto it = live_.find(base);
  if (it == live_.end() || it->second.allocation.kind != MemoryKind::kReserved) return false;
  if (RoundUp(bytes, kPageBytes) != it->second.allocation.bytes) return false;
  const auto piece = pieces_.lower_bound(base);
  if (piece != pieces_.end() && piece->first < base + bytes) return false;  // still mapped
  Give(base, it->second.extent);
  live_.erase(it);
  return true;
}

std::uint64_t DeviceMemoryImpl::CreatePhysical(std::uint64_t bytes, bool at_host) {
  if (bytes == 0 || !Extent(bytes).fits() || (at_host && bytes > HostBytes())) return 0;
  bytes = RoundUp(bytes, kPageBytes);
  const std::unique_lock lock(*mutex_);
  if (!at_host && !Charge(bytes)) return 0;
  const int fd = memfd_create(at_host ? kHostMemoryName : "gridloom-device-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // Sealed, so that nobody who gets a descriptor of it can take pages away from under another's mapping.
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0 || fcntl(fd, F_ADD_SEALS, kSeals) != 0) {
    if (fd >= 0) close(fd);
    if (!at_host) Uncharge(bytes);
    return 0;
  }
  const std::uint64_t handle = next_handle_++;
  physicals_.emplace(handle, Physical{fd, bytes, !at_host});
  return handle;
}

int DeviceMemoryImpl::ExportPhysical(std::uint64_t handle) const {
  const std::shared_lock lock(*mutex_);
  const auto it = physicals_.find(handle);
  return it == physicals_.end() || it->second.destroyed ? -1 : fcntl(it->second.fd, F_DUPFD_CLOEXEC, 0);
}

std::uint64_t DeviceMemoryImpl::ImportPhysical(int descriptor, std::uint64_t* bytes, bool* at_host) {
  struct stat state {};
  // Only a memfd has seals, and one without them could be made shorter while it is mapped.
  if ((fcntl(descriptor, F_GET_SEALS) & kSeals) != kSeals || fcntl(descriptor, F_GET_SEALS) < 0) return 0;
  if (fstat(descriptor, &state) != 0 || state.st_size <= 0 || state.st_size % static_cast<off_t>(kPageBytes) != 0)
    return 0;
  const auto size = static_cast<std::uint64_t>(state.st_size);
  *at_host = IsHostMemory(descriptor);
  const std::unique_lock lock(*mutex_);
  if (!*at_host && !Charge(size)) return 0;
  const int fd = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) {
    if (!*at_host) Uncharge(size);
    return 0;
  }
  const std::uint64_t handle = next_handle_++;
  physicals_.emplace(handle, Physical{fd, size, !*at_host});
  *bytes = size;
  return handle;
}

void DeviceMemoryImpl::Unreference(std::uint64_t handle) {
  const auto it = physicals_.find(handle);
  if (it == physicals_.end() || !it->second.destroyed || it->second.pieces != 0) return;
  close(it->second.fd);
  if (it->second.charged) Uncharge(it->second.bytes);
  physicals_.erase(it);
}

std::vector<std::uint64_t> DeviceMemoryImpl::ListPhysical() const {
  const std::shared_lock lock(*mutex_);
  std::vector<std::uint64_t> bytes;
  for (const auto& [handle, physical] : physicals_) bytes.push_back(physical.bytes);
  return bytes;
}

bool DeviceMemoryImpl::DestroyPhysical(std::uint64_t handle) {
  const std::unique_lock lock(*mutex_);
  const auto it = physicals_.find(handle);
  if (it == physicals_.end() || it->second.destroyed) return false;
  it->second.destroyed = true;
  Unreference(handle);
  return true;
}

bool DeviceMemoryImpl::Map(std::uint64_t address, std::uint64_t bytes, std::uint64_t handle, std::uint64_t offset) {
  if (bytes == 0 || (address | bytes | offset) % kPageBytes != 0) return false;
  const std::unique_lock lock(*mutex_);
  const Live* const live = LiveAt(address);
  if (!live || live->allocation.kind != MemoryKind::kReserved) return false;
  if (!LiesIn(live->allocation.base, live->allocation.bytes, address, bytes)) return false;
  const auto physical = physicals_.find(handle);
  if (physical == physicals_.end() || physical->second.destroyed) return false;
  if (!LiesIn(0, physical->second.bytes, offset, bytes)) return false;
  const auto next = pieces_.lower_bound(address);
  if (next != pieces_.end() && next->first < address + bytes) return false;
  if (next != pieces_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > address) return false;
  // Not accessible until Protect says so, as cuMemMap leaves it.
  if (mmap(At(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, physical->second.fd, static_cast<off_t>(offset)) ==
      MAP_FAILED)
    return false;
  pieces_.emplace(address, Piece{bytes, handle});
  ++physical->second.pieces;
  return true;
}

/// True when pieces lie gaplessly over [address, address + bytes).
bool DeviceMemoryImpl::Covered(std::uint64_t address, std::uint64_t bytes) const {
  const std::uint64_t end = address + bytes;
  while (address < end) {
    auto it = pieces_.upper_bound(address);
    if (it == pieces_.begin()) return false;
    --it;
    if (it->first + it->second.bytes <= address) return false;
    address = it->first + it->second.bytes;
  }
  return true;
}

void DeviceMemoryImpl::SplitAt(std::uint64_t address) {
  auto it = pieces_.upper_bound(address);
  if (it == pieces_.begin()) return;
  --it;
  if (it->first == address || it->first + it->second.bytes <= address) return;
  Piece tail = it->second;
  tail.bytes = it->first + it->second.bytes - address;
  it->second.bytes = address - it->first;
  ++physicals_.at(tail.handle).pieces;
  pieces_.emplace(address, tail);
}

bool DeviceMemoryImpl::Unmap(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0 || !IsRange(address, bytes) || (address | bytes) % kPageBytes != 0) return false;
  const std::unique_lock lock(*mutex_);
  if (!Covered(address, bytes)) return false;
  SplitAt(address);
  SplitAt(address + bytes);
  for (auto it = pieces_.lower_bound(address); it != pieces_.end() && it->first < address + bytes;) {
    const std::uint64_t handle = it->second.handle;
    it = pieces_.erase(it);
    --physicals_.at(handle).pieces;
    Unreference(handle);
  }
  Withdraw(address, bytes);
  return true;
}

bool DeviceMemoryImpl::Protect(std::uint64_t address, std::uint64_t bytes, bool readable, bool writable) {
  if (bytes == 0 || !IsRange(address, bytes) || (address | bytes) % kPageBytes != 0) return false;
  const std::unique_lock lock(*mutex_);
  if (!Covered(address, bytes)) return false;
  if (mprotect(At(address), bytes, Protection(readable, writable)) != 0) return false;
  SplitAt(address);
  SplitAt(address + bytes);
  for (auto it = pieces_.lower_bound(address); it != pieces_.end() && it->first < address + bytes; ++it) {
    it->second.readable = readable;
    it->second.writable = writable;
  }
  return true;
}

bool DeviceMemoryImpl::RegisterHost(void* host, std::uint64_t bytes, bool read_only, AllocationOwner* owner) {
  const auto base = reinterpret_cast<std::uint64_t>(host);
  if (host == nullptr || !IsRange(base, bytes)) return false;
  if (base < space_.base() + space_.bytes() && base + bytes > space_.base()) return false;
  const std::unique_lock lock(*mutex_);
  return registered_.Add({base, bytes, next_id_++, read_only, owner});
}

bool DeviceMemoryImpl::UnregisterHost(void* host) {
  const std::unique_lock lock(*mutex_);
  return registered_.Remove(reinterpret_cast<std::uint64_t>(host));
}

const DeviceMemoryImpl::Live* DeviceMemoryImpl::LiveAt(std::uint64_t address) const {
  auto it = live_.upper_bound(address);
  if (it == live_.begin()) return nullptr;
  --it;
  return address - it->first < it->second.allocation.bytes ? &it->second : nullptr;
}

Allocation AsAllocation(const HostRange& range) {
  return {range.base, range.bytes, MemoryKind::kRegistered, range.id, range.owner};
}

std::optional<Allocation> DeviceMemoryImpl::Find(std::uint64_t address) const {
  if (!space_.Contains(address)) {
    const auto range = registered_.Find(address);
    if (!range) return std::nullopt;
    return AsAllocation(*range);
  }
  const std::shared_lock lock(*mutex_);
  const Live* const live = LiveAt(address);
  if (!live) return std::nullopt;
  return live->allocation;
}

std::optional<DeviceMemory::Nearest> DeviceMemoryImpl::FindNearest(std::uint64_t address) const {
  std::optional<Nearest> best;
  const auto consider = [&](const Allocation& candidate) {
    std::int64_t distance = 0;
    const auto clamped = [](std::uint64_t bytes) {
      return static_cast<std::int64_t>(std::min<std::uint64_t>(bytes, INT64_MAX));
    };
    if (address < candidate.base) distance = -clamped(candidate.base - address);
    else if (address - candidate.base >= candidate.bytes)
      distance = clamped(address - candidate.base - candidate.bytes + 1);  // the byte after the last one is 1 past
    if (!best || std::abs(distance) < std::abs(best->distance)) best = Nearest{candidate, distance};
  };
  if (const auto range = registered_.FindBefore(address)) consider(AsAllocation(*range));
  if (const auto range = registered_.FindAfter(address)) consider(AsAllocation(*range));
  const std::shared_lock lock(*mutex_);
  const auto program_owned = [](const auto& entry) { return entry.second.allocation.kind != MemoryKind::kInternal; };
  const auto after = live_.upper_bound(address);
  if (const auto it = std::find_if(after, live_.end(), program_owned); it != live_.end())
    consider(it->second.allocation);
  const auto before = std::find_if(std::make_reverse_iterator(after), live_.rend(), program_owned);
  if (before != live_.rend()) consider(before->second.allocation);
  return best;
}

std::optional<Allocation> DeviceMemoryImpl::FindFreed(std::uint64_t address) const {
  const std::shared_lock lock(*mutex_);
  auto it = freed_.upper_bound(address);
  if (it == freed_.begin()) return std::nullopt;
  --it;
  if (address - it->first >= it->second.allocation.bytes) return std::nullopt;
  return it->second.allocation;
}

std::vector<Allocation> DeviceMemoryImpl::List() const {
  std::vector<Allocation> all;
  {
    const std::shared_lock lock(*mutex_);
    for (const auto& [base, live] : live_) all.push_back(live.allocation);
  }
  std::ranges::sort(all, {}, &Allocation::id);
  return all;
}

bool DeviceMemoryImpl::PiecesAccessible(std::uint64_t address, std::uint64_t bytes, bool write) const {
  if (!Covered(address, bytes)) return false;
  auto it = std::prev(pieces_.upper_bound(address));
  for (; it != pieces_.end() && it->first < address + bytes; ++it)
    if (!(write ? it->second.writable : it->second.readable)) return false;
  return true;
}

bool DeviceMemoryImpl::Accessible(std::uint64_t address, std::uint64_t bytes, bool write) const {
  if (bytes == 0 || !IsRange(address, bytes)) return bytes == 0;
  if (!space_.Contains(address)) return registered_.Accessible(address, bytes, write);
  const std::shared_lock lock(*mutex_);
  const Live* const live = LiveAt(address);
  if (!live || !LiesIn(live->allocation.base, live->allocation.bytes, address, bytes)) return false;
  return live->allocation.kind != MemoryKind::kReserved || PiecesAccessible(address, bytes, write);
}

}  // namespace

Result<std::unique_ptr<DeviceMemory>> DeviceMemory::Create(const Options& options) {
  GL_TRY(space, AddressSpace::Reserve(options.range_bytes));
  return std::unique_ptr<DeviceMemory>(new DeviceMemoryImpl(std::move(space), options));
}

}  // namespace gridloom::exec
