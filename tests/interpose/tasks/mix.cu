// Random mixes of launches, copies, fills, events and callbacks in streams of all kinds, over buffers that they share
// in the order that streams and events give; the host does the same in the order of the calls. What the device has then
// has to be what the host has.
//
// usage: mix [operations, 2000] [seed, 1] [microseconds that the host sleeps before every 32nd operation, 0]
#include <unistd.h>

#include <cstring>
#include <random>
#include <vector>

#include "mix.h"

namespace {

constexpr unsigned kBuffers = 40, kStreams = 12;

/// Whose operation it was, and an event behind it.
struct Use {
  int stream = -1;
  cudaEvent_t event = nullptr;
};

struct Buffer {
  Word* device = nullptr;
  std::vector<Word> host = std::vector<Word>(kWords);
  Use written;
  std::vector<Use> read;
};

class Mix {
 public:
  explicit Mix(unsigned seed) : random_(seed), buffers_(kBuffers), streams_(kStreams, nullptr) {
    // The first one is the NULL stream, then some that wait for it and some that do not.
    for (unsigned i = 1; i < kStreams; ++i)
      CU(cudaStreamCreateWithFlags(&streams_[i], i % 3 == 0 ? cudaStreamDefault : cudaStreamNonBlocking));
    for (Buffer& buffer : buffers_) {
      CU(cudaMalloc(&buffer.device, kWords * sizeof(Word)));
      for (Word& word : buffer.host) word = static_cast<Word>(random_());
      CU(cudaMemcpy(buffer.device, buffer.host.data(), kWords * sizeof(Word), cudaMemcpyHostToDevice));
    }
    CU(cudaMallocHost(&pinned_, kPinned * kWords * sizeof(Word)));
  }

  void Step() {
    const unsigned stream = Draw(8) == 0 ? 0 : 1 + Draw(kStreams - 1);
    const unsigned from = Draw(kBuffers), to = (from + 1 + Draw(kBuffers - 1)) % kBuffers;
    switch (Draw(24)) {
      case 0: return Copy(stream, from, to);
      case 1: return Fill(stream, to);
      case 2: return ThroughHost(stream, from, to);
      case 3: return WaitForSome(stream);
      default: return Launch(stream, from, to);
    }
  }

  int Finish() {
    CU(cudaDeviceSynchronize());
    unsigned wrong = wrong_waits_;
    unsigned long long digest = 14695981039346656037ull;
    for (unsigned b = 0; b < kBuffers; ++b) {
      std::vector<Word> got(kWords);
      CU(cudaMemcpy(got.data(), buffers_[b].device, kWords * sizeof(Word), cudaMemcpyDeviceToHost));
      for (unsigned i = 0; i < kWords; ++i) {
        digest = (digest ^ got[i]) * 1099511628211ull;
        if (got[i] != buffers_[b].host[i] && ++wrong <= 3)
          std::printf("buffer %u, word %u: %u, not %u\n", b, i, got[i], buffers_[b].host[i]);
      }
    }
    if (FirstCounter() != first_counted)
      std::printf("counted %u threads, not %u\n", FirstCounter(), first_counted), ++wrong;
    if (SecondCounter() != second_counted)
      std::printf("counted %u threads, not %u\n", SecondCounter(), second_counted), ++wrong;
    if (host_wrong_ != 0)
      std::printf("%u copies to the host were not done when the callback came\n", host_wrong_), ++wrong;
    std::printf("%s: %u launches, %u callbacks, %u waits, digest %016llx\n", wrong == 0 ? "PASS" : "FAIL", launches_,
                callbacks_, waits_, digest);
    return wrong != 0;
  }

 private:
  static constexpr unsigned kPinned = 16;

  unsigned Draw(unsigned below) { return static_cast<unsigned>(random_() % below); }

  void Follow(unsigned stream, const Use& use) {
    if (use.stream < 0 || use.stream == static_cast<int>(stream)) return;
    // The NULL stream and those that wait for it need no event.
    const auto blocks = [](unsigned s) { return s == 0 || s % 3 == 0; };
    if ((stream == 0 || use.stream == 0) && blocks(stream) && blocks(static_cast<unsigned>(use.stream))) return;
    switch (Draw(12)) {
      case 0: CU(cudaEventSynchronize(use.event)); break;
      case 1: CU(cudaStreamSynchronize(streams_[static_cast<unsigned>(use.stream)])); break;
      case 2:
        for (cudaError_t status = cudaErrorNotReady; status != cudaSuccess;) {
          status = cudaEventQuery(use.event);
          if (status != cudaErrorNotReady) CU(status);
        }
        break;
      default: CU(cudaStreamWaitEvent(streams_[stream], use.event, 0));
    }
  }

  void Begin(unsigned stream, const Buffer* from, const Buffer& to) {
    if (from != nullptr) Follow(stream, from->written);
    Follow(stream, to.written);
    for (const Use& use : to.read) Follow(stream, use);
  }
  void End(unsigned stream, Buffer* from, Buffer& to) {
    Use use{static_cast<int>(stream), nullptr};
    CU(cudaEventCreateWithFlags(&use.event, Draw(2) == 0 ? cudaEventDisableTiming : cudaEventDefault));
    CU(cudaEventRecord(use.event, streams_[stream]));
    events_.push_back(use.event);
    if (from != nullptr) from->read.push_back(use);
    to.written = use;
    to.read.clear();
    if (events_.size() < 600) return;
    CU(cudaDeviceSynchronize());
    for (Buffer& buffer : buffers_) buffer.written = {}, buffer.read.clear();
    for (cudaEvent_t event : events_) CU(cudaEventDestroy(event));
    events_.clear();
  }

  void Launch(unsigned stream, unsigned from, unsigned to) {
    Begin(stream, &buffers_[from], buffers_[to]);
    const unsigned form = Draw(kFirstCount + kSecondCount);
    const Form& kernel = form < kFirstCount ? kFirstForms[form] : kSecondForms[form - kFirstCount];
    Job job;
    // Most are narrow: one block or some, of whole warps or not. Few sizes: grids are compiled for each.
    constexpr unsigned kNarrow[] = {1, 31, 32, 64, 77, 128, 200, 256}, kWide[] = {512, 640};
    if (Draw(10) == 0) job.threads = kWide[Draw(2)], job.blocks = 1 + Draw(4);
    else job.threads = kNarrow[Draw(8)], job.blocks = 1 + Draw(511 / job.threads);
    job.factor = static_cast<unsigned>(random_() % 1000);
    job.in = buffers_[from].device, job.out = buffers_[to].device;
    kernel.launch(job, streams_[stream]);
    CU(cudaGetLastError());
    job.in = buffers_[from].host.data(), job.out = buffers_[to].host.data();
    kernel.host(job);
    ++launches_;
    End(stream, &buffers_[from], buffers_[to]);
  }

  void Copy(unsigned stream, unsigned from, unsigned to) {
    Begin(stream, &buffers_[from], buffers_[to]);
    CU(cudaMemcpyAsync(buffers_[to].device, buffers_[from].device, kWords * sizeof(Word), cudaMemcpyDeviceToDevice,
                       streams_[stream]));
    buffers_[to].host = buffers_[from].host;
    End(stream, &buffers_[from], buffers_[to]);
  }

  void Fill(unsigned stream, unsigned to) {
    Begin(stream, nullptr, buffers_[to]);
    CU(cudaMemsetAsync(buffers_[to].device, 0x5A, kWords * sizeof(Word), streams_[stream]));
    buffers_[to].host.assign(kWords, 0x5A5A5A5A);
    End(stream, nullptr, buffers_[to]);
  }

  struct Call {
    Word* words;
    std::vector<Word> expected;
    unsigned* wrong;
  };

  /// To pinned memory, where a callback changes it, and back.
  void ThroughHost(unsigned stream, unsigned from, unsigned to) {
    if (++pinned_used_ == kPinned) {
      CU(cudaDeviceSynchronize());
      pinned_used_ = 0;
    }
    Word* const words = pinned_ + pinned_used_ * kWords;
    Begin(stream, &buffers_[from], buffers_[to]);
    CU(cudaMemcpyAsync(words, buffers_[from].device, kWords * sizeof(Word), cudaMemcpyDeviceToHost, streams_[stream]));
    const auto call = [](void* data) {
      Call* const one = static_cast<Call*>(data);
      if (std::memcmp(one->words, one->expected.data(), kWords * sizeof(Word)) != 0)
        __atomic_add_fetch(one->wrong, 1, __ATOMIC_RELAXED);
      for (unsigned i = 0; i < kWords; ++i) one->words[i] = ~one->words[i];
      delete one;
    };
    CU(cudaLaunchHostFunc(streams_[stream], call, new Call{words, buffers_[from].host, &host_wrong_}));
    CU(cudaMemcpyAsync(buffers_[to].device, words, kWords * sizeof(Word), cudaMemcpyHostToDevice, streams_[stream]));
    for (unsigned i = 0; i < kWords; ++i) buffers_[to].host[i] = ~buffers_[from].host[i];
    ++callbacks_;
    End(stream, &buffers_[from], buffers_[to]);
  }

  void WaitForSome(unsigned stream) {
    ++waits_;
    if (Draw(3) == 0) CU(cudaDeviceSynchronize());
    else CU(cudaStreamSynchronize(streams_[stream]));
    const unsigned buffer = Draw(kBuffers);
    if (buffers_[buffer].written.stream < 0) return;
    CU(cudaEventSynchronize(buffers_[buffer].written.event));
    std::vector<Word> got(kWords);
    CU(cudaMemcpy(got.data(), buffers_[buffer].device, kWords * sizeof(Word), cudaMemcpyDeviceToHost));
    if (got != buffers_[buffer].host)
      std::printf("buffer %u was not what it should be when its event had been\n", buffer), ++wrong_waits_;
  }

  std::mt19937 random_;
  std::vector<Buffer> buffers_;
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_;
  Word* pinned_ = nullptr;
  unsigned pinned_used_ = 0, launches_ = 0, callbacks_ = 0, waits_ = 0, host_wrong_ = 0, wrong_waits_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  Mix mix(static_cast<unsigned>(argument(2, 1)));
  for (int i = 0; i < argument(1, 2000); ++i) {
    if (argument(3, 0) > 0 && i % 32 == 0) usleep(static_cast<useconds_t>(argument(3, 0)));
    mix.Step();
  }
  return mix.Finish();
}
