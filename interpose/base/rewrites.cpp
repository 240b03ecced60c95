#include "interpose/base/rewrites.h"

namespace gridloom::session {

passes::RewriteCache& TheRewrites() {
  constexpr std::size_t kKeptModules = 32;  // also when no program uses them any more
  static auto* const cache = new passes::RewriteCache(kKeptModules);
  return *cache;
}

}  // namespace gridloom::session
