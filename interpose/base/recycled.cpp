#include "interpose/base/recycled.h"

#include <array>
#include <atomic>
#include <utility>

#include "rewriter/support/own_thread.h"

namespace gridloom::session {
namespace {

constexpr std::size_t kStep = 64, kLargest = 1024, kClasses = kLargest / kStep;
constexpr unsigned kChain = 32;  ///< blocks
constexpr unsigned kHoard = 4;   ///< chains that a thread keeps; one that kept all would make others allocate ever more

/// What a free block begins with.
struct Block {
  Block* next = nullptr;   ///< of its chain
  Block* chain = nullptr;  ///< of a chain's first block: the next chain
};

/// Chains that threads have left, by class.
class Shelf {
 public:
  void Leave(Block* chain) noexcept {
    Block* top = chains_.load(std::memory_order_relaxed);
    do chain->chain = top;
    while (!chains_.compare_exchange_weak(top, chain, std::memory_order_release, std::memory_order_relaxed));
  }
  /// All are taken at once and those beyond kHoard are left again: a chain that is taken alone may be left again
  /// meanwhile, which the exchange would not see.
  Block* Take() noexcept {
    Block* const taken = chains_.exchange(nullptr, std::memory_order_acquire);
    Block* last = taken;
    for (unsigned i = 1; last != nullptr && i < kHoard; ++i) last = last->chain;
    if (last != nullptr) LeaveRow(std::exchange(last->chain, nullptr));
    return taken;
  }

 private:
  void LeaveRow(Block* row) noexcept {
    Block* none = nullptr;
    while (row != nullptr &&
           !chains_.compare_exchange_strong(none, row, std::memory_order_release, std::memory_order_relaxed)) {
      // Others have left some: few, as there was none a moment ago.
      if (Block* const others = chains_.exchange(nullptr, std::memory_order_acquire); others != nullptr) {
        Block* end = others;
        while (end->chain != nullptr) end = end->chain;
        end->chain = std::exchange(row, others);
      }
      none = nullptr;
    }
  }

  std::atomic<Block*> chains_{nullptr};
};
constinit std::array<Shelf, kClasses> g_shelves;

/// A thread's own. Trivial to destroy, since threads free blocks until their last moment.
struct Own {
  Block* blocks = nullptr;  ///< to give out
  Block* chains = nullptr;  ///< behind them, as Take gave them
  Block* freed = nullptr;   ///< a chain that grows
  unsigned count = 0;       ///< its blocks
};
__attribute__((tls_model("initial-exec"))) thread_local constinit std::array<Own, kClasses> t_own;
__attribute__((tls_model("initial-exec"))) thread_local constinit bool t_watched = false;
__attribute__((tls_model("initial-exec"))) thread_local constinit bool t_ending = false;

/// Leaves a thread's blocks to the others when it ends.
void LeaveAll(void*) {
  t_ending = true;
  for (std::size_t i = 0; i < kClasses; ++i) {
    Own& own = t_own[i];
    while (own.chains != nullptr) g_shelves[i].Leave(std::exchange(own.chains, own.chains->chain));
    if (own.blocks != nullptr) g_shelves[i].Leave(std::exchange(own.blocks, nullptr));
    if (own.freed != nullptr) g_shelves[i].Leave(std::exchange(own.freed, nullptr));
    own.count = 0;
  }
}

void PrepareEnd() {
  if (t_watched) return;
  t_watched = true;
  static const ThreadEnd end(LeaveAll);
  end.Watch(&t_own);
}

/// AddressSanitizer would not see the use of a block that was given back.
constexpr bool kRecycles =
#if defined(__SANITIZE_ADDRESS__)
    false;
#else
    true;
#endif

bool IsLarge(std::size_t bytes) { return !kRecycles || bytes == 0 || bytes > kLargest; }
std::size_t ClassOf(std::size_t bytes) { return (bytes - 1) / kStep; }

}  // namespace

void* TakeRecycled(std::size_t bytes) {
  if (IsLarge(bytes)) return ::operator new(bytes);
  const std::size_t size_class = ClassOf(bytes);
  Own& own = t_own[size_class];
  if (own.blocks == nullptr) {
    if (own.chains == nullptr) {
      if (!t_ending) PrepareEnd();
      own.chains = g_shelves[size_class].Take();
    }
    if (own.chains != nullptr) own.blocks = std::exchange(own.chains, own.chains->chain);
  }
  if (own.blocks == nullptr) {
    own.blocks = std::exchange(own.freed, nullptr);
    own.count = 0;
  }
  if (own.blocks == nullptr) return ::operator new((size_class + 1) * kStep);
  Block* const block = std::exchange(own.blocks, own.blocks->next);
  // Blocks come from another processor's cache: the next one is fetched while this one is used.
  for (std::size_t line = 0; own.blocks != nullptr && line <= size_class; ++line)
    __builtin_prefetch(reinterpret_cast<const std::byte*>(own.blocks) + line * kStep, 1);
  return block;
}

void GiveRecycled(void* block, std::size_t bytes) noexcept {
  if (IsLarge(bytes)) return ::operator delete(block);
  if (!t_ending) PrepareEnd();
  const std::size_t size_class = ClassOf(bytes);
  Own& own = t_own[size_class];
  own.freed = new (block) Block{.next = own.freed};
  if (++own.count < kChain && !t_ending) return;
  g_shelves[size_class].Leave(std::exchange(own.freed, nullptr));
  own.count = 0;
}

}  // namespace gridloom::session
