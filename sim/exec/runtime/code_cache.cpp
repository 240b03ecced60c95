#include "sim/exec/runtime/code_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "rewriter/support/whole_file.h"
#include "sim/exec/contract/warp_switch.h"
#include "sim/exec/runtime/bytecode_text.h"

namespace gridloom::exec {
namespace {

constexpr char kMagic[8] = {'G', 'L', 'K', 'E', 'R', 'N', 'E', 'L'};
constexpr std::uint32_t kFormat = 6;
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{256} << 20;
constexpr std::string_view kSuffix = ".glk";
// A FIFO in a file's place would have its opener wait.
constexpr int kToRead = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

enum class Holds : std::uint8_t { kMachineCode, kBytecode };

struct FileHeader {
  char magic[8];
  std::uint32_t format, abi;
  std::uint64_t key[2];
  std::uint32_t static_shared_bytes, local_bytes;
  std::uint8_t needs_fiber, simple_barriers, recursive, by_cta;
  std::uint32_t frame_bytes;
  std::uint32_t check_sites;
  std::uint8_t gives_way;
  Holds holds;
  std::uint8_t turns;
  std::uint8_t by_row;
  std::uint64_t object_bytes;
  std::uint64_t checksum[2];  // of the header with this field zero, and of the object
};
static_assert(sizeof(FileHeader) == 80 && std::is_trivially_copyable_v<FileHeader>);

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

bool ReadAll(int fd, void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes != 0) {
    const ssize_t got = read(fd, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

/// Sets errno when it fails.
bool WriteAll(int fd, const void* from, std::size_t bytes) {
  const int problem = WriteWhole(fd, {static_cast<const char*>(from), bytes});
  if (problem != 0) errno = problem;
  return problem == 0;
}

void Seal(FileHeader header, std::string_view object, std::uint64_t (&checksum)[2]) {
  header.checksum[0] = header.checksum[1] = 0;
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, &header, sizeof header);
  XXH3_128bits_update(&state, object.data(), object.size());
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  checksum[0] = hash.low64;
  checksum[1] = hash.high64;
}

std::string Sealed(FileHeader header, const CacheKey& key, std::string_view object) {
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.format = kFormat;
  header.abi = kAbiVersion;
  std::ranges::copy(key, header.key);
  header.object_bytes = object.size();
  Seal(header, object, header.checksum);
  std::string packed(reinterpret_cast<const char*>(&header), sizeof header);
  packed += object;
  return packed;
}

/// A header whose checksum is right, and what follows it in `bytes`.
std::optional<FileHeader> Unseal(const CacheKey& key, std::string_view& bytes) {
  FileHeader header{};
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes.remove_prefix(sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.format != kFormat || header.abi != kAbiVersion)
    return std::nullopt;
  if (header.key[0] != key[0] || header.key[1] != key[1] || header.object_bytes != bytes.size()) return std::nullopt;
  std::uint64_t checksum[2];
  Seal(header, bytes, checksum);
  if (checksum[0] != header.checksum[0] || checksum[1] != header.checksum[1]) return std::nullopt;
  return header;
}

void Put(const KernelFacts& facts, FileHeader& header) {
  header.static_shared_bytes = facts.static_shared_bytes;
  header.local_bytes = facts.local_bytes;
  header.frame_bytes = facts.frame_bytes;
  header.check_sites = facts.check_sites;
  header.needs_fiber = facts.needs_fiber;
  header.simple_barriers = facts.simple_barriers;
  header.gives_way = facts.gives_way;
  header.recursive = facts.recursive;
  header.by_cta = facts.by_cta;
  header.by_row = facts.by_row;
  header.turns = facts.turns;
}

KernelFacts FactsOf(const FileHeader& header) {
  return {.static_shared_bytes = header.static_shared_bytes,
          .local_bytes = header.local_bytes,
          .frame_bytes = header.frame_bytes,
          .check_sites = header.check_sites,
          .needs_fiber = header.needs_fiber != 0,
          .simple_barriers = header.simple_barriers != 0,
          .gives_way = header.gives_way != 0,
          .recursive = header.recursive != 0,
          .by_cta = header.by_cta != 0,
          .by_row = header.by_row != 0,
          .turns = header.turns != 0};
}

CachedKernel Unpack(const CacheKey& key, std::string_view bytes) {
  const std::optional<FileHeader> header = Unseal(key, bytes);
  if (!header) return {};
  if (header->holds == Holds::kMachineCode) {
    CompiledKernel kernel;
    kernel.facts() = FactsOf(*header);
    kernel.object.assign(bytes.begin(), bytes.end());
    return kernel;
  }
  std::optional<Bytecode> code = ReadBytecode(bytes);
  if (header->holds != Holds::kBytecode || !code) return {};
  InterpretedKernel kernel;
  kernel.facts() = FactsOf(*header);
  kernel.code = std::move(*code);
  return kernel;
}

std::string PackBytecode(const CacheKey& key, const InterpretedKernel& kernel) {
  FileHeader header{};
  header.holds = Holds::kBytecode;
  Put(kernel, header);
  return Sealed(header, key, WriteBytecode(kernel.code));
}

/// Only the user may be able to put code where this process will run it.
bool BelongsToUserAlone(const struct stat& status) {
  return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool MakeDirectories(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    mkdir(path.substr(0, slash).c_str(), 0700);
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

}  // namespace

CacheKey MakeCacheKey(const std::array<std::uint64_t, 2>& code, const CompileOptions& options,
                      std::string_view compiler_id) {
  std::string key(reinterpret_cast<const char*>(code.data()), sizeof code);
  const auto add = [&](std::string_view text) { key.append(text).push_back('\0'); };
  for (const std::uint32_t size : options.block) add(std::to_string(size));
  add(options.small_grid ? "small" : "large");
  add(options.clusters ? "clusters" : "");
  add(options.memcheck ? "memcheck" : "");
  add(std::to_string(static_cast<int>(options.record)));
  add(options.fetch_ahead ? "ahead" : "");
  add(std::to_string(options.few_lanes));
  add(options.guard_zones ? "zones" : "");
  add(options.cpu);
  add(compiler_id);
  add(std::to_string(kAbiVersion));
  add(kInlineRingSwitch ? "inline" : "calls");
  const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
  return {hash.low64, hash.high64};
}

std::string PackKernel(const CacheKey& key, const CompiledKernel& kernel) {
  FileHeader header{};
  header.holds = Holds::kMachineCode;
  Put(kernel, header);
  return Sealed(header, key, {reinterpret_cast<const char*>(kernel.object.data()), kernel.object.size()});
}

std::optional<CompiledKernel> UnpackKernel(const CacheKey& key, std::string_view bytes) {
  CachedKernel found = Unpack(key, bytes);
  auto* const kernel = std::get_if<CompiledKernel>(&found);
  if (!kernel) return std::nullopt;
  return std::move(*kernel);
}

CodeCache::Claim::~Claim() {
  if (fd_ >= 0) close(fd_);
}

CodeCache::CodeCache(std::string directory, std::uint64_t limit_bytes, Log log)
    : directory_(std::move(directory)), limit_bytes_(limit_bytes), log_(std::move(log)) {
  if (directory_.empty()) return;
  enabled_ = true;
  struct stat status {};
  if (!MakeDirectories(directory_) || stat(directory_.c_str(), &status) != 0) Disable(std::strerror(errno));
  else if (!S_ISDIR(status.st_mode)) Disable("not a directory");
  else if (!BelongsToUserAlone(status)) Disable("others may write to it, or it belongs to another user");
  else if (access(directory_.c_str(), R_OK | W_OK | X_OK) != 0) Disable(std::strerror(errno));
}

void CodeCache::Disable(const std::string& why) {
  enabled_ = false;
  if (log_) log_("kernel cache " + directory_ + " is not used: " + why);
}

std::string CodeCache::PathOf(const CacheKey& key) const {
  char name[33];
  std::snprintf(name, sizeof name, "%016llx%016llx", static_cast<unsigned long long>(key[1]),
                static_cast<unsigned long long>(key[0]));
  return directory_ + "/" + name + std::string(kSuffix);
}

CachedKernel CodeCache::Find(const CacheKey& key) {
  if (!enabled_) return {};
  const File file(open(PathOf(key).c_str(), kToRead));
  struct stat status {};
  if (!file.ok() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || !BelongsToUserAlone(status))
    return {};
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes > kMaxFileBytes) return {};
  std::string contents(bytes, '\0');
  if (!ReadAll(file.get(), contents.data(), contents.size())) return {};
  CachedKernel kernel = Unpack(key, contents);
  if (kernel.index() != 0) futimens(file.get(), nullptr);  // used just now: what has not been for longest goes first
  return kernel;
}

std::optional<CompiledKernel> CodeCache::Load(const CacheKey& key) {
  CachedKernel found = Find(key);
  auto* const kernel = std::get_if<CompiledKernel>(&found);
  if (!kernel) return std::nullopt;
  return std::move(*kernel);
}

void CodeCache::Store(const CacheKey& key, const CompiledKernel& kernel) {
  if (enabled_ && kernel.object.size() <= kMaxFileBytes - sizeof(FileHeader))
    Keep(key, PackKernel(key, kernel), Where::kAnywhere);
}

void CodeCache::StoreBytecode(const CacheKey& key, const InterpretedKernel& kernel) {
  if (!enabled_) return;
  const std::string packed = PackBytecode(key, kernel);
  if (packed.size() > kMaxFileBytes) return;
  const bool damaged = access(PathOf(key).c_str(), F_OK) == 0 && Find(key).index() == 0;
  Keep(key, packed, damaged ? Where::kAnywhere : Where::kNewPlace);
}

void CodeCache::Keep(const CacheKey& key, std::string_view packed, Where where) {
  if (!Write(PathOf(key), packed, where)) return;
  const std::lock_guard lock(mutex_);
  known_bytes_ += packed.size();
  if (!counted_ || known_bytes_ > limit_bytes_) Evict();
}

/// The claim is on the file that is there now: what is made replaces the file, and the claim goes with it.
CodeCache::Claim CodeCache::ClaimToMake(const CacheKey& key) const {
  if (!enabled_) return Claim(Claim::kNobody);
  const int fd = open(PathOf(key).c_str(), kToRead);
  if (fd < 0) return Claim(Claim::kNobody);
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return Claim(fd);
  const bool others = errno == EWOULDBLOCK;
  close(fd);
  return Claim(others ? Claim::kOthers : Claim::kNobody);
}

bool CodeCache::Write(const std::string& path, std::string_view contents, Where where) {
  static std::atomic<unsigned> counter{0};
  const std::string temporary =
      path + "." + std::to_string(getpid()) + "." + std::to_string(counter.fetch_add(1)) + ".tmp";
  bool written = false;
  {
    const File file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    written = file.ok() && WriteAll(file.get(), contents.data(), contents.size());
  }
  if (written && where == Where::kNewPlace) {
    if (renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) return true;
    if (errno == EEXIST || access(path.c_str(), F_OK) == 0) {
      unlink(temporary.c_str());
      return false;
    }
  }  // a file system that has no such operation
  if (written && rename(temporary.c_str(), path.c_str()) == 0) return true;
  const int error = errno;
  unlink(temporary.c_str());
  const std::lock_guard lock(mutex_);
  if (std::exchange(enabled_, false) && log_)
    log_("kernel cache " + directory_ + " is not used: " + std::strerror(error));
  return false;
}

std::optional<std::string> CodeCache::LoadText(const std::string& name) const {
  constexpr std::uint64_t kMostBytes = 4096;
  if (!enabled_) return std::nullopt;
  const File file(open((directory_ + "/" + name).c_str(), kToRead));
  struct stat status {};
  if (!file.ok() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || !BelongsToUserAlone(status))
    return std::nullopt;
  if (status.st_size < 0 || static_cast<std::uint64_t>(status.st_size) > kMostBytes) return std::nullopt;
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  if (!ReadAll(file.get(), text.data(), text.size())) return std::nullopt;
  return text;
}

void CodeCache::StoreText(const std::string& name, std::string_view text) {
  if (enabled_) Write(directory_ + "/" + name, text, Where::kAnywhere);
}

/// Counts the directory and, when it is too big, removes the files that were used least recently.
void CodeCache::Evict() {
  struct Entry {
    std::string path;
    std::uint64_t bytes;
    timespec used;
  };
  DIR* const listing = opendir(directory_.c_str());
  if (!listing) return;
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  const timespec now = [] {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    return time;
  }();
  while (const dirent* const item = readdir(listing)) {
    const std::string_view name = item->d_name;
    const bool left_over = name.ends_with(".tmp");
    if (!name.ends_with(kSuffix) && !left_over) continue;  // not ours
    std::string path = directory_ + "/" + std::string(name);
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (left_over) {
      if (now.tv_sec - status.st_mtim.tv_sec > 3600) unlink(path.c_str());  // of a process that was killed
      continue;
    }
    total += static_cast<std::uint64_t>(status.st_size);
    entries.push_back({std::move(path), static_cast<std::uint64_t>(status.st_size), status.st_mtim});
  }
  closedir(listing);
  if (total > limit_bytes_) {
    std::ranges::sort(entries, {}, [](const Entry& entry) { return std::pair(entry.used.tv_sec, entry.used.tv_nsec); });
    for (const Entry& entry : entries) {
      if (total <= limit_bytes_ / 10 * 9) break;
      if (unlink(entry.path.c_str()) == 0) total -= entry.bytes;
    }
  }
  known_bytes_ = total;
  counted_ = true;
}

std::string DefaultCacheDirectory() {
  if (const char* const cache = std::getenv("XDG_CACHE_HOME"); cache && cache[0] == '/')
    return std::string(cache) + "/gridloom";
  if (const char* const home = std::getenv("HOME"); home && home[0] == '/')
    return std::string(home) + "/.cache/gridloom";
  return {};
}

}  // namespace gridloom::exec
