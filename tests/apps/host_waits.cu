// Who waits for something waits for just that: not for what lies behind it in its stream, nor for what other threads
// queue meanwhile. Each program here ends only if that holds: a kernel behind waits for the host to go on.
#include <chrono>
#include <thread>

#include "spin.h"

struct Cells {
  int go;       ///< the host has gone on
  int gave_up;  ///< a kernel waited for that in vain
  int value;
};

__global__ void Store(volatile int* out, int value) { *out = value; }
// Waits for the host, at most some seconds.
__global__ void WaitForHost(volatile Cells* cells) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (cells->go != 0) return;
  } while (now - start < 5'000'000'000ull);
  cells->gave_up = 1;
}

class Round {
 public:
  Round() {
    CU(cudaHostAlloc(&cells_, sizeof(Cells), cudaHostAllocMapped));
    std::memset(cells_, 0, sizeof(Cells));
    CU(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CU(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CU(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  ~Round() {
    CU(cudaEventDestroy(event));
    CU(cudaStreamDestroy(a));
    CU(cudaStreamDestroy(b));
    CU(cudaFreeHost(cells_));
  }
  void Go() { reinterpret_cast<volatile Cells*>(cells_)->go = 1; }
  /// Everything ends, and no kernel has waited in vain.
  void End(const char* what) {
    Go();
    CU(cudaDeviceSynchronize());
    True(what, reinterpret_cast<volatile Cells*>(cells_)->gave_up == 0);
  }
  Cells* cells() const { return cells_; }
  int* value() const { return &cells_->value; }

  cudaStream_t a = nullptr, b = nullptr;
  cudaEvent_t event = nullptr;

 private:
  Cells* cells_ = nullptr;
};

// A short kernel, an event, a kernel that needs the host to go on.
void BehindAnEvent(int round) {
  Round r;
  Store<<<1, 1, 0, r.a>>>(r.value(), round);
  CU(cudaEventRecord(r.event, r.a));
  WaitForHost<<<1, 1, 0, r.a>>>(r.cells());
  CU(cudaEventSynchronize(r.event));
  Same("before the event", round, *static_cast<volatile int*>(r.value()), round);
  r.End("behind an event");
}

// The same through another stream: by its synchronisation, and by a copy.
void BehindInAnotherStream(int round) {
  for (const bool copies : {false, true}) {
    Round r;
    Buffer<int> cell(1);
    SpinThenStore<<<1, 1, 0, r.a>>>(r.value(), round, 100'000);
    CU(cudaEventRecord(r.event, r.a));
    WaitForHost<<<1, 1, 0, r.a>>>(r.cells());
    CU(cudaStreamWaitEvent(r.b, r.event, 0));
    Store<<<1, 1, 0, r.b>>>(cell, round + 1);
    int got = -1;
    if (copies) {
      CU(cudaMemcpyAsync(&got, cell, sizeof got, cudaMemcpyDeviceToHost,
                         r.b));  // to pageable memory: returns when it is done
    } else {
      CU(cudaStreamSynchronize(r.b));
      CU(cudaMemcpyAsync(&got, cell, sizeof got, cudaMemcpyDeviceToHost, r.b));
    }
    Same(copies ? "copy" : "stream", round, got, round + 1);
    r.End("behind, in another stream");
  }
}

// A thread waits for an event while another one puts more behind it.
void QueuedMeanwhile(int round) {
  Round r;
  SpinThenStore<<<1, 1, 0, r.a>>>(r.value(), round, 2'000'000);
  CU(cudaEventRecord(r.event, r.a));
  std::thread waits([&] {
    CU(cudaEventSynchronize(r.event));
    r.Go();
  });
  std::this_thread::sleep_for(std::chrono::microseconds(300 * (round % 8)));
  WaitForHost<<<1, 1, 0, r.a>>>(r.cells());
  waits.join();
  r.End("queued meanwhile");
}

// Threads that each wait for their own event of one stream, while the last one lets the stream go on.
void ManyWaiters() {
  Round r;
  constexpr int kThreads = 4;
  cudaEvent_t events[kThreads];
  for (cudaEvent_t& event : events) {
    CU(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync));
    SpinThenStore<<<1, 1, 0, r.a>>>(r.value(), 1, 200'000);
    CU(cudaEventRecord(event, r.a));
  }
  WaitForHost<<<1, 1, 0, r.a>>>(r.cells());
  std::vector<std::thread> threads;
  for (const cudaEvent_t event : events) threads.emplace_back([event] { CU(cudaEventSynchronize(event)); });
  for (std::thread& thread : threads) thread.join();
  r.End("many waiters");
  for (const cudaEvent_t event : events) CU(cudaEventDestroy(event));
}

int main() {
  for (int round = 0; round < 20; ++round) {
    BehindAnEvent(round);
    BehindInAnotherStream(round);
    QueuedMeanwhile(round);
    ManyWaiters();
  }
  return Verdict();
}
