#include "rewriter/passes/rewrite_cache.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "rewriter/ptx/printer.h"

namespace gridloom::passes {

RewriteKey ContentKey(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.low64, hash.high64};
}

namespace {

Result<CachedRewrite> Make(const Pipeline& pipeline, const ptx::Module& module, const RewriteKey& content) {
  GL_TRY(rewritten, Run(pipeline, module));
  std::string named(reinterpret_cast<const char*>(content.data()), sizeof content);
  named += pipeline.text() + '\n' + ptx::PrintModule(*rewritten.module);
  CachedRewrite made;
  made.key = ContentKey(named);
  made.rewritten = std::make_shared<const Rewritten>(std::move(rewritten));
  return made;
}

}  // namespace

std::shared_ptr<RewriteCache::Entry> RewriteCache::EntryFor(const Name& name) {
  const std::lock_guard lock(mutex_);
  auto& entry = entries_[name];
  if (entry == nullptr) entry = std::make_shared<Entry>();
  else used_.remove(name);
  used_.push_front(name);
  const std::shared_ptr<Entry> found = entry;
  while (used_.size() > capacity_) {
    entries_.erase(used_.back());
    used_.pop_back();
  }
  return found;
}

Result<CachedRewrite> RewriteCache::Get(const Pipeline& pipeline, const ptx::Module& module,
                                        const RewriteKey& content) {
  const std::shared_ptr<Entry> entry = EntryFor({content, pipeline.text()});
  const std::lock_guard lock(entry->mutex);
  if (!entry->result) entry->result.emplace(Make(pipeline, module, content));
  return *entry->result;
}

}  // namespace gridloom::passes
