// Stream order, events between streams, queries while work runs, the legacy default stream, priorities, elapsed time.
#include "spin.h"

__global__ void Count(volatile int* count) { *count = *count + 1; }

// A stream takes a bounded number of operations in advance, like a GPU's: when the launches are through, most kernels
// have run.
void LaunchMany() {
  constexpr int kLaunches = 6000, kDepth = 2048;
  int* count = nullptr;
  CU(cudaHostAlloc(&count, sizeof(int), cudaHostAllocMapped));
  *count = 0;
  SpinThenStore<<<1, 1>>>(count, 0, 50'000'000);  // the first of them cannot start at once
  for (int i = 0; i < kLaunches; ++i) Count<<<1, 1>>>(count);
  True("bounded queue", *static_cast<volatile int*>(count) >= kLaunches - kDepth);
  CU(cudaDeviceSynchronize());
  Same("all ran", 0, *count, kLaunches);
  CU(cudaFreeHost(count));
}

// So it is with copies, fills and events, however small.
void QueueManySmall() {
  constexpr int kRounds = 3000, kDepth = 2048;
  int* copies = nullptr;
  CU(cudaHostAlloc(&copies, kRounds * sizeof(int), cudaHostAllocMapped));
  std::memset(copies, 0, kRounds * sizeof(int));
  Buffer<int> source(std::vector<int>{1}), filled(1);
  std::vector<cudaEvent_t> events(kRounds);
  for (cudaEvent_t& event : events) CU(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  int* cell = source;
  const auto begin = [&] { SpinThenStore<<<1, 1>>>(cell, 1, 20'000'000); };
  begin();
  for (int i = 0; i < kRounds; ++i)
    CU(cudaMemcpyAsync(copies + i, source, sizeof(int), cudaMemcpyDeviceToHost, nullptr));
  True("bounded copies", static_cast<volatile int*>(copies)[kRounds - 1 - kDepth] == 1);
  begin();
  for (int i = 0; i < kRounds; ++i) CU(cudaEventRecord(events[i], nullptr));
  Error("bounded events", cudaEventQuery(events[kRounds - 1 - kDepth]), cudaSuccess);
  begin();
  for (int i = 0; i < kRounds; ++i) {
    if (i == kRounds - 1 - kDepth) CU(cudaEventRecord(events[0], nullptr));
    CU(cudaMemsetAsync(filled, i, sizeof(int), nullptr));
  }
  Error("bounded fills", cudaEventQuery(events[0]), cudaSuccess);
  CU(cudaDeviceSynchronize());
  for (const cudaEvent_t event : events) CU(cudaEventDestroy(event));
  CU(cudaFreeHost(copies));
}

int main() {
  Buffer<int> cell(8);
  int* p = cell;
  cudaStream_t a, b, free_running;
  CU(cudaStreamCreate(&a));
  CU(cudaStreamCreate(&b));
  CU(cudaStreamCreateWithFlags(&free_running, cudaStreamNonBlocking));
  cudaEvent_t start, done, plain;
  CU(cudaEventCreate(&start));
  CU(cudaEventCreate(&done));
  CU(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming | cudaEventBlockingSync));

  // In-stream order.
  for (int digit = 1; digit <= 5; ++digit) AppendDigit<<<1, 1, 0, a>>>(p, digit);
  CU(cudaStreamSynchronize(a));
  Same("order", 0, cell.Read()[0], 12345);

  // b waits for an event of a; a query while the work runs says not ready.
  CU(cudaEventRecord(start, a));
  SpinThenStore<<<1, 1, 0, a>>>(p + 1, 7, 30'000'000);
  CU(cudaEventRecord(done, a));
  Error("query running", cudaEventQuery(done), cudaErrorNotReady);
  Error("query stream", cudaStreamQuery(a), cudaErrorNotReady);
  CU(cudaStreamWaitEvent(b, done, 0));
  AppendDigit<<<1, 1, 0, b>>>(p + 1, 3);
  Error("free stream", cudaStreamQuery(free_running), cudaSuccess);
  CU(cudaStreamSynchronize(b));
  Same("waited", 1, cell.Read()[1], 73);
  CU(cudaEventSynchronize(done));
  float milliseconds = -1;
  CU(cudaEventElapsedTime(&milliseconds, start, done));
  True("elapsed", milliseconds >= 0);
  Error("query finished", cudaEventQuery(done), cudaSuccess);
  Error("never recorded", cudaEventQuery(plain), cudaSuccess);
  CU(cudaEventRecord(plain, a));
  Error("no timing", cudaEventElapsedTime(&milliseconds, start, plain), cudaErrorInvalidResourceHandle);
  cudaGetLastError();

  // The legacy default stream waits for blocking streams and they wait for it.
  SpinThenStore<<<1, 1, 0, a>>>(p + 2, 1, 10'000'000);
  AppendDigit<<<1, 1>>>(p + 2, 2);
  AppendDigit<<<1, 1, 0, b>>>(p + 2, 3);
  CU(cudaDeviceSynchronize());
  Same("legacy", 2, cell.Read()[2], 123);

  // An event recorded twice holds the later work; waiting on a stream that goes away finishes it.
  CU(cudaEventRecord(plain, a));
  SpinThenStore<<<1, 1, 0, a>>>(p + 3, 4, 5'000'000);
  CU(cudaEventRecord(plain, a));
  CU(cudaStreamWaitEvent(free_running, plain, 0));
  AppendDigit<<<1, 1, 0, free_running>>>(p + 3, 2);
  CU(cudaStreamDestroy(a));
  CU(cudaStreamSynchronize(free_running));
  Same("destroyed", 3, cell.Read()[3], 42);

  int least = 0, greatest = 0, priority = 1;
  CU(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  True("priorities", least >= greatest);
  cudaStream_t urgent;
  CU(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, greatest));
  CU(cudaStreamGetPriority(urgent, &priority));
  Same("priority", 0, priority, greatest);
  unsigned flags = 0;
  CU(cudaStreamGetFlags(urgent, &flags));
  Same("flags", 0, flags, unsigned(cudaStreamNonBlocking));
  AppendDigit<<<1, 1, 0, urgent>>>(p + 4, 6);
  CU(cudaStreamSynchronize(urgent));
  Same("urgent", 4, cell.Read()[4], 6);
  CU(cudaStreamDestroy(urgent));
  CU(cudaStreamDestroy(b));
  CU(cudaStreamDestroy(free_running));
  CU(cudaEventDestroy(start));
  CU(cudaEventDestroy(done));
  CU(cudaEventDestroy(plain));
  LaunchMany();
  QueueManySmall();
  return Verdict();
}
