// Rewritten modules kept in memory, by content and pipeline: a program that loads the same image into several contexts,
// or again and again, has it rewritten once. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "rewriter/passes/pipeline.h"

namespace gridloom::passes {

/// XXH3 128 of the original's content key, the pipeline's text and the printed result: names what was made and from
/// what, also for caches on disk. Two originals that differ in line breaks only differ here, since faults name their
/// lines.
using RewriteKey = std::array<std::uint64_t, 2>;

/// XXH3 128 of a module's text.
RewriteKey ContentKey(std::string_view text);

struct CachedRewrite {
  std::shared_ptr<const Rewritten> rewritten;
  RewriteKey key{};
};

class RewriteCache {
 public:
  /// Keeps the `capacity` entries used last; whoever holds an entry keeps it alive beyond that.
  explicit RewriteCache(std::size_t capacity) : capacity_(capacity) {}

  /// The module rewritten. `content` names what it was parsed from (ContentKey, or an equally good hash). Of several
  /// threads that ask for the same at once, one does the work.
  Result<CachedRewrite> Get(const Pipeline& pipeline, const ptx::Module& module, const RewriteKey& content);

 private:
  struct Entry {
    std::mutex mutex;
    std::optional<Result<CachedRewrite>> result;
  };
  using Name = std::pair<RewriteKey, std::string>;  // content, pipeline

  std::shared_ptr<Entry> EntryFor(const Name& name);

  const std::size_t capacity_;
  std::mutex mutex_;
  std::map<Name, std::shared_ptr<Entry>> entries_;
  std::list<Name> used_;  // last used first
};

}  // namespace gridloom::passes
