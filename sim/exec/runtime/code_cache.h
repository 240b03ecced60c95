// Compiled kernels on disk, shared by all processes of a user. A file holds one kernel; it is written under another name and
// renamed, so that readers see all of it or nothing. What is truncated, foreign, damaged or of another build is ignored and
// replaced. Nothing here ever fails a launch: without a usable directory there is no cache.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/exec/compiler/compiler.h"

namespace gridloom::exec {

using CacheKey = std::array<std::uint64_t, 2>;

/// What compiled code depends on, as one number: XXH3 128. `code`: the kernel's CodeKey.
CacheKey MakeCacheKey(const std::array<std::uint64_t, 2>& code, const CompileOptions& options, std::string_view compiler_id);

/// A kernel as the cache keeps it: what is damaged, foreign or under another key does not unpack.
std::string PackKernel(const CacheKey& key, const CompiledKernel& kernel);
std::optional<CompiledKernel> UnpackKernel(const CacheKey& key, std::string_view bytes);

class CodeCache {
 public:
  using Log = std::function<void(std::string_view)>;
  /// An empty directory name means no cache. The directory is made when missing and must belong to the user alone.
  CodeCache(std::string directory, std::uint64_t limit_bytes, Log log);

  bool enabled() const { return enabled_; }
  std::optional<CompiledKernel> Load(const CacheKey& key);
  void Store(const CacheKey& key, const CompiledKernel& kernel);
  /// Remembers, by an empty file, that a kernel ran whose code is not there. Returns whether that was known already.
  bool Note(const CacheKey& key) const;

  /// A short text beside the kernels, by the name of its file.
  std::optional<std::string> LoadText(const std::string& name) const;
  void StoreText(const std::string& name, std::string_view text);

  std::string PathOf(const CacheKey& key) const;

 private:
  /// Writes a file whole, under another name first. Where that fails, nothing is kept from then on.
  bool Write(const std::string& path, std::span<const std::string_view> parts);
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
