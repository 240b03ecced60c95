// A library whose constructor comes to its end when the word at the address in the environment's GL_LOADING_UNTIL is 1,
// and says with 2 that it has begun: the loader's lock is held as long.
#include <sched.h>

#include <atomic>
#include <cstdlib>

__attribute__((constructor)) static void Wait() {
  const char* const where = std::getenv("GL_LOADING_UNTIL");
  if (where == nullptr) return;
  auto* const word = reinterpret_cast<std::atomic<int>*>(std::strtoull(where, nullptr, 16));
  word->store(2);
  while (word->load() != 1) sched_yield();
}
