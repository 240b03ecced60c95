// Tasks by gridloom/pagoda.h: each runs once, with its arguments, its shared memory and its barriers; wait, check and
// waitAll mean what they say; what cannot be a task runs as well. Under Gridloom with and without its policy, and
// without Gridloom.
#include <gridloom/pagoda.h>

#include <cstring>
#include <string>
#include <vector>

#include "mix.h"

namespace pagoda = gridloom::pagoda;

struct Pair {
  double by;
  short more;
};

__global__ void Scale(Word* data, Pair pair, char add) {
  data[pagoda::getTid()] = static_cast<Word>(data[pagoda::getTid()] * pair.by) + pair.more + add;
}

__global__ void Reverse(Word* data) {
  Word* const words = reinterpret_cast<Word*>(pagoda::getSMPtr());
  const unsigned count = blockDim.x * blockDim.y * blockDim.z;
  Word* const own = data + blockIdx.x * count;
  words[pagoda::getTid()] = own[pagoda::getTid()];
  pagoda::syncBlock();
  own[pagoda::getTid()] = words[count - 1 - pagoda::getTid()];
}

__global__ void Long(volatile Word* flag, Word* out) {
  Word sum = 1;
  for (int i = 0; i < 3000000; ++i) sum = sum * 1664525u + 1013904223u;
  *out = sum;
  *flag = 1;
}

__global__ void Nothing() {}

int main() {
  constexpr unsigned kTasks = 3000, kThreads = 96;
  Word* data = nullptr;
  CU(cudaMallocManaged(&data, (kTasks * kThreads + 4096) * sizeof(Word)));
  for (unsigned i = 0; i < kTasks * kThreads; ++i) data[i] = i;
  unsigned wrong = 0;
  const auto check = [&](bool good, const char* what) {
    if (!good) std::printf("%s: %s\n", what, cudaGetErrorName(pagoda::lastError())), ++wrong;
  };
  std::vector<pagoda::TaskId> tasks;
  for (unsigned i = 0; i < kTasks; ++i) {
    Word* const own = data + i * kThreads;
    if (i % 3 == 0)
      tasks.push_back(pagoda::taskSpawn(kThreads, 1, 0, false, Scale, own, Pair{2.0, 3}, static_cast<char>(4)));
    else if (i % 3 == 1) tasks.push_back(pagoda::taskSpawn(dim3(8, 2, 2), 3, 32 * sizeof(Word), true, Reverse, own));
    else tasks.push_back(pagoda::taskSpawn(kThreads, 1, kThreads * sizeof(Word), true, Reverse, own));
    check(tasks.back() != 0, "a task was not spawned");
    if (i % 100 == 0) {
      check(pagoda::wait(tasks.back()) == cudaSuccess && pagoda::check(tasks.back()),
            "a task was waited for and is not over");
      if (i % 3 == 0) check(own[5] == 2 * (i * kThreads + 5) + 7, "a task was waited for and had not run");
    }
  }
  check(pagoda::waitAll() == cudaSuccess, "waitAll");
  for (unsigned i = 0; i < kTasks; ++i) {
    check(pagoda::check(tasks[i]), "all were waited for, and one is not over");
    for (unsigned t = 0; t < kThreads; ++t) {
      const Word got = data[i * kThreads + t], turned = i % 3 == 1 ? t / 32 * 32 + 31 - t % 32 : kThreads - 1 - t;
      const Word want = i % 3 == 0 ? 2 * (i * kThreads + t) + 7 : i * kThreads + turned;
      if (got != want && ++wrong <= 5) std::printf("task %u, thread %u: %u, not %u\n", i, t, got, want);
    }
  }
  Word* const more = data + kTasks * kThreads;
  std::memset(more, 0, 4096 * sizeof(Word));
  const pagoda::TaskId slow = pagoda::taskSpawn(32, 1, 0, false, Long, more, more + 1);
  const bool at_once = pagoda::check(slow);
  CU(cudaDeviceSynchronize());
  check(*static_cast<volatile Word*>(more) == 1 && pagoda::check(slow),
        "cudaDeviceSynchronize does not wait for tasks");
  std::printf("a long task was %s at once\n", at_once ? "over" : "not over");
  for (unsigned i = 0; i < 2048; ++i) more[i] = i;
  const pagoda::TaskId wide = pagoda::taskSpawn(1024, 2, 1024 * sizeof(Word), true, Reverse, more);
  check(wide != 0 && pagoda::wait(wide) == cudaSuccess && more[0] == 1023 && more[2047] == 1024, "a wide task");
  check(pagoda::taskSpawn(5000, 1, 0, false, Nothing) == 0 && pagoda::lastError() != cudaSuccess,
        "a task that cannot be launched");
  const cudaError_t unknown = pagoda::wait(static_cast<pagoda::TaskId>(123456789));
  check(unknown == cudaErrorInvalidValue, "a task that never was");
  cudaGetLastError();
  CU(cudaDeviceSynchronize());
  std::printf("%s\n", wrong == 0 ? "PASS" : "FAIL");
  return wrong != 0;
}
