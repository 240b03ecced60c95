// Compiled kernels on disk, shared by all processes of a user. A file holds one kernel: its bytecode, until its machine
// code is there. It is written under another name and renamed, so that readers see all of it or nothing. What is
// truncated, foreign, damaged or of another build is ignored and replaced. Nothing here ever fails a launch: without a
// usable directory there is no cache.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "sim/exec/compiler/compiler.h"

namespace gridloom::exec {

using CacheKey = std::array<std::uint64_t, 2>;

/// What compiled code depends on, as one number: XXH3 128. `code`: the kernel's CodeKey.
CacheKey MakeCacheKey(const std::array<std::uint64_t, 2>& code, const CompileOptions& options,
                      std::string_view compiler_id);

/// A kernel as the cache keeps it: what is damaged, foreign or under another key does not unpack.
std::string PackKernel(const CacheKey& key, const CompiledKernel& kernel);
std::optional<CompiledKernel> UnpackKernel(const CacheKey& key, std::string_view bytes);

/// What the cache has of a kernel: nothing, machine code, or bytecode.
using CachedKernel = std::variant<std::monostate, CompiledKernel, InterpretedKernel>;

class CodeCache {
 public:
  /// A claim says that this process makes a kernel's machine code, for as long as the object lives. Others may make it
  /// all the same.
  class Claim {
   public:
    explicit Claim(int fd) : fd_(fd) {}
    ~Claim();
    Claim(Claim&& other) noexcept : fd_(other.fd_) { other.fd_ = kNobody; }
    Claim& operator=(Claim&&) = delete;
    /// Another process has claimed it.
    bool is_others() const { return fd_ == kOthers; }
    static constexpr int kNobody = -1, kOthers = -2;

   private:
    int fd_;
  };

  using Log = std::function<void(std::string_view)>;
  /// An empty directory name means no cache. The directory is made when missing and must belong to the user alone.
  CodeCache(std::string directory, std::uint64_t limit_bytes, Log log);

  bool enabled() const { return enabled_; }
  CachedKernel Find(const CacheKey& key);
  /// Machine code only.
  std::optional<CompiledKernel> Load(const CacheKey& key);
  void Store(const CacheKey& key, const CompiledKernel& kernel);
  /// In place of nothing: what the cache has of the kernel meanwhile stays.
  void StoreBytecode(const CacheKey& key, const InterpretedKernel& kernel);
  /// The claim ends with the process, however that ends. A kernel that the cache has nothing of is claimed by nobody.
  Claim ClaimToMake(const CacheKey& key) const;

  /// A short text beside the kernels, by the name of its file.
  std::optional<std::string> LoadText(const std::string& name) const;
  void StoreText(const std::string& name, std::string_view text);

  std::string PathOf(const CacheKey& key) const;

 private:
  enum class Where : std::uint8_t { kAnywhere, kNewPlace };
  /// Writes a file whole, under another name first. Where that fails, nothing is kept from then on. kNewPlace: a file
  /// that is there stays, and the answer is false.
  bool Write(const std::string& path, std::string_view contents, Where where);
  void Keep(const CacheKey& key, std::string_view packed, Where where);
  void Disable(const std::string& why);
  void Evict();

  std::string directory_;
  std::uint64_t limit_bytes_;
  Log log_;
  bool enabled_ = false;
  std::mutex mutex_;
  std::uint64_t known_bytes_ = 0;  // in the directory, as far as this process knows
  bool counted_ = false;
};

/// $XDG_CACHE_HOME/gridloom, else ~/.cache/gridloom, else empty.
std::string DefaultCacheDirectory();

}  // namespace gridloom::exec
