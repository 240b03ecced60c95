// Runs tasks in one of their forms, checks what they leave, and prints the summary.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "pagoda/task.h"

/// Changes one bit: the fault of --fault.
static __global__ void FlipBit(unsigned char* byte) { *byte ^= 0x10; }

/// Threads of the host that wait for work. One thread at a time may call For().
class Workers {
 public:
  /// 0: one a core.
  explicit Workers(int threads) {
    if (threads == 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    for (int i = 1; i < threads; ++i) threads_.emplace_back([this] { Wait(); });
  }
  Workers(const Workers&) = delete;
  ~Workers() {
    Begin(nullptr, 0);
    for (std::thread& thread : threads_) thread.join();
  }
  int size() const { return static_cast<int>(threads_.size()) + 1; }

  /// Calls body(i) for each i below `count`, on whichever thread is free next; returns when all have ended.
  void For(int count, const std::function<void(int)>& body) {
    Begin(&body, count);
    for (int i = next_++; i < count; i = next_++) body(i);
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void Begin(const std::function<void(int)>* body, int count) {
    const std::lock_guard lock(mutex_);
    body_ = body;
    count_ = count;
    next_ = 0;
    busy_ = static_cast<int>(threads_.size());
    ++round_;
    begun_.notify_all();
  }

  void Wait() {
    for (long seen = 0;;) {
      const std::function<void(int)>* body;
      int count;
      {
        std::unique_lock lock(mutex_);
        begun_.wait(lock, [&] { return round_ != seen; });
        seen = round_;
        body = body_;
        count = count_;
      }
      if (body == nullptr) return;
      for (int i = next_++; i < count; i = next_++) (*body)(i);
      const std::lock_guard lock(mutex_);
      if (--busy_ == 0) ended_.notify_one();
    }
  }

  std::vector<std::thread> threads_;
  std::mutex mutex_;  ///< of all below but next_
  std::condition_variable begun_, ended_;
  const std::function<void(int)>* body_ = nullptr;
  int count_ = 0, busy_ = 0;
  long round_ = 0;
  std::atomic<int> next_{0};
};

/// Streams that do not wait for the NULL stream.
class StreamSet {
 public:
  explicit StreamSet(int count) : streams_(static_cast<std::size_t>(count)) {
    for (cudaStream_t& stream : streams_) CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  StreamSet(const StreamSet&) = delete;
  ~StreamSet() {
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  int size() const { return static_cast<int>(streams_.size()); }
  cudaStream_t operator[](int i) const { return streams_[static_cast<std::size_t>(i)]; }

  /// All that is in the first stream now goes before what is put into the others from now on.
  void Fork() {
    const cudaEvent_t event = NewEvent();
    CU(cudaEventRecord(event, streams_[0]));
    for (std::size_t i = 1; i < streams_.size(); ++i) CU(cudaStreamWaitEvent(streams_[i], event, 0));
  }
  /// All that is in the others now goes before what is put into the first one from now on.
  void Join() {
    for (std::size_t i = 1; i < streams_.size(); ++i) {
      const cudaEvent_t event = NewEvent();
      CU(cudaEventRecord(event, streams_[i]));
      CU(cudaStreamWaitEvent(streams_[0], event, 0));
    }
  }

 private:
  cudaEvent_t NewEvent() {
    events_.emplace_back();
    CU(cudaEventCreateWithFlags(&events_.back(), cudaEventDisableTiming));
    return events_.back();
  }

  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_;  ///< kept: a capture may still know them
};

/// Time from Begin() to End(): of the host's clock, and of events before and behind all that is in the streams.
class Stopwatch {
 public:
  Stopwatch() {
    CU(cudaEventCreate(&begin_));
    CU(cudaEventCreate(&end_));
  }
  Stopwatch(const Stopwatch&) = delete;
  ~Stopwatch() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  void Begin(StreamSet& streams) {
    CU(cudaDeviceSynchronize());
    start_ = std::chrono::steady_clock::now();
    CU(cudaEventRecord(begin_, streams[0]));
    streams.Fork();
  }
  void End(StreamSet& streams) {
    streams.Join();
    CU(cudaEventRecord(end_, streams[0]));
    CU(cudaEventSynchronize(end_));
    wall_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
    float ms = 0;
    CU(cudaEventElapsedTime(&ms, begin_, end_));
    event_ms_ = ms;
  }
  double wall_ms() const { return wall_ms_; }
  double event_ms() const { return event_ms_; }

 private:
  cudaEvent_t begin_, end_;
  std::chrono::steady_clock::time_point start_;
  double wall_ms_ = 0, event_ms_ = 0;
};

/// From when the host spawns a task, or a batch of them, until the last of it has ended: by events, of which the first
/// is in a stream that has nothing else.
class Latencies {
 public:
  explicit Latencies(std::size_t count) : spans_(count) {
    CU(cudaStreamCreateWithFlags(&clock_, cudaStreamNonBlocking));
    for (Span& span : spans_) {
      CU(cudaEventCreate(&span.begin));
      CU(cudaEventCreate(&span.end));
    }
  }
  Latencies(const Latencies&) = delete;
  ~Latencies() {
    for (Span& span : spans_) {
      cudaEventDestroy(span.begin);
      cudaEventDestroy(span.end);
    }
    cudaStreamDestroy(clock_);
  }
  void Begin(std::size_t i) { CU(cudaEventRecord(spans_[i].begin, clock_)); }
  void End(std::size_t i, std::size_t tasks, cudaStream_t stream) {
    CU(cudaEventRecord(spans_[i].end, stream));
    spans_[i].tasks = static_cast<double>(tasks);
  }
  /// Of all tasks, when the device has nothing left to do.
  void Print(const char* name) const {
    double sum = 0, most = 0, tasks = 0;
    for (const Span& span : spans_) {
      float ms = 0;
      CU(cudaEventElapsedTime(&ms, span.begin, span.end));
      sum += ms * span.tasks;
      tasks += span.tasks;
      most = std::max<double>(most, ms);
    }
    std::printf("%s: latency of a task %.4f ms on average, %.4f ms at most\n", name, sum / tasks, most);
  }

 private:
  struct Span {
    cudaEvent_t begin, end;
    double tasks = 0;
  };
  std::vector<Span> spans_;
  cudaStream_t clock_;
};

class Run {
 public:
  Run(const Options& options, const Kind& kind)
      : options_(options),
        kind_(kind),
        workers_(options["host-threads"]),
        tasks_(static_cast<std::size_t>(options["tasks"])) {
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      Task& task = tasks_[i];
      task.index = static_cast<int>(i);
      task.threads = options["threads"];
      task.blocks = options.Has("blocks") ? options["blocks"] : 1;
      kind.Describe(task);
      if (options["irregular"] != 0) task.threads = ThreadsFor(task.share);
      in_bytes_ += Padded(task.in_bytes);
      out_bytes_ += Padded(task.out_bytes);
      scratch_bytes_ += Padded(task.scratch_bytes);
    }
  }
  Run(const Run&) = delete;

  int Main() {
    Allocate();
    const std::string loaded = kind_.Load();
    if (options_.timed()) std::printf("%s: %s\n", options_.name(), loaded.c_str());
    for (int i = 0; i < options_["repeat"]; ++i) {
      std::memset(host_out_->data(), 0xA5, out_bytes_);
      if (options_.form() == Form::kPthreads) OnHost();
      else OnDevice();
    }
    Check();
    kind_.CheckMore(tasks_);
    return Finish();
  }

 private:
  static std::size_t Padded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

  void Allocate() {
    host_in_ = std::make_unique<HostArray<char>>(in_bytes_);
    host_out_ = std::make_unique<HostArray<char>>(out_bytes_);
    const bool device = options_.form() != Form::kPthreads;
    in_ = std::make_unique<DeviceArray<char>>(device ? in_bytes_ : 0);
    out_ = std::make_unique<DeviceArray<char>>(device ? out_bytes_ : 0);
    scratch_ = std::make_unique<DeviceArray<char>>(device ? scratch_bytes_ : 0);
    std::size_t in = 0, out = 0, scratch = 0;
    for (Task& task : tasks_) {
      task.host_in = host_in_->data() + in;
      task.host_out = host_out_->data() + out;
      if (device) {
        task.in = *in_ + in;
        task.out = *out_ + out;
        task.scratch = *scratch_ + scratch;
      }
      in += Padded(task.in_bytes);
      out += Padded(task.out_bytes);
      scratch += Padded(task.scratch_bytes);
    }
    workers_.For(static_cast<int>(tasks_.size()), [&](int i) { kind_.Fill(tasks_[i], tasks_[i].host_in); });
  }

  void OnHost() {
    const auto start = std::chrono::steady_clock::now();
    workers_.For(static_cast<int>(tasks_.size()),
                 [&](int i) { kind_.Compute(tasks_[i], tasks_[i].host_in, tasks_[i].host_out); });
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (options_.timed()) std::printf("%s: %.3f ms wall, %d host threads\n", options_.name(), ms, workers_.size());
    if (Faulty() != nullptr) Faulty()->host_out[Faulty()->out_bytes / 2] ^= 0x10;
  }

  void OnDevice() {
    StreamSet streams(options_.form() == Form::kSerial ? 1 : options_["streams"]);
    if (!options_.copies() && in_bytes_ > 0) CU(cudaMemcpy(*in_, host_in_->data(), in_bytes_, cudaMemcpyHostToDevice));
    std::function<void()> run;
    std::unique_ptr<HostArray<char>> host_arguments;
    std::unique_ptr<DeviceArray<char>> arguments;
    std::vector<cudaGraphExec_t> graphs;
    latencies_.reset();
    if (options_.latency()) latencies_ = std::make_unique<Latencies>(options_.batched() ? Batches() : tasks_.size());
    launches_ = 0;
    if (options_.form() == Form::kFused) {
      host_arguments = std::make_unique<HostArray<char>>(tasks_.size() * kind_.argument_bytes());
      arguments = std::make_unique<DeviceArray<char>>(tasks_.size() * kind_.argument_bytes());
      for (std::size_t i = 0; i < tasks_.size(); ++i)
        kind_.PutArguments(tasks_[i], host_arguments->data() + i * kind_.argument_bytes());
      run = [&] { RunFused(streams, host_arguments->data(), *arguments); };
    } else if (options_.form() == Form::kGraph) {
      for (std::size_t first = 0; first < tasks_.size(); first += Batch()) graphs.push_back(Captured(streams, first));
      run = [&] {
        for (std::size_t i = 0; i < graphs.size(); ++i) {
          const cudaStream_t stream = streams[static_cast<int>(i) % streams.size()];
          if (latencies_) latencies_->Begin(i);
          CU(cudaGraphLaunch(graphs[i], stream));
          if (latencies_) latencies_->End(i, std::min(Batch(), tasks_.size() - i * Batch()), stream);
        }
      };
    } else {
      run = [&] { RunTasks(streams); };
    }
    Stopwatch watch;
    if (options_.timed()) watch.Begin(streams);
    run();
    if (options_.timed()) watch.End(streams);
    CU(cudaDeviceSynchronize());
    if (options_.timed())
      std::printf("%s: %.3f ms wall, %.3f ms between events\n", options_.name(), watch.wall_ms(), watch.event_ms());
    if (latencies_) latencies_->Print(options_.name());
    if (!options_.copies()) CU(cudaMemcpy(host_out_->data(), *out_, out_bytes_, cudaMemcpyDeviceToHost));
    for (cudaGraphExec_t graph : graphs) CU(cudaGraphExecDestroy(graph));
  }

  /// All at once; or in batches, after each of which the host waits and copies the results. It does not wait for these.
  void RunTasks(StreamSet& streams) {
    const bool batches = options_.Is("spawn", "batches");
    const std::size_t step = batches ? Batch() : tasks_.size();
    for (std::size_t first = 0; first < tasks_.size(); first += step) {
      const std::size_t last = std::min(first + step, tasks_.size());
      SpawnTasks(streams, first, last, !batches);
      if (!batches) continue;
      CU(cudaDeviceSynchronize());
      for (std::size_t i = first; i < last; ++i) End(i, StreamOf(i, streams));
    }
  }

  /// Each launcher has streams of its own, and tasks in turn.
  void SpawnTasks(StreamSet& streams, std::size_t first, std::size_t last, bool ends) {
    const std::size_t launchers = Launchers(streams);
    const auto launch = [&](std::size_t launcher) {
      for (std::size_t i = first + launcher; i < last; i += launchers) {
        if (latencies_) latencies_->Begin(i);
        Spawn(tasks_[i], StreamOf(i, streams));
        if (ends) End(i, StreamOf(i, streams));
      }
    };
    std::vector<std::thread> threads;
    for (std::size_t launcher = 1; launcher < launchers; ++launcher) threads.emplace_back(launch, launcher);
    launch(0);
    for (std::thread& thread : threads) thread.join();
  }
  std::size_t Launchers(const StreamSet& streams) const {
    return static_cast<std::size_t>(std::min(options_["launchers"], streams.size()));
  }
  cudaStream_t StreamOf(std::size_t task, const StreamSet& streams) const {
    const std::size_t launchers = Launchers(streams), launcher = task % launchers;
    const std::size_t own = (static_cast<std::size_t>(streams.size()) - launcher + launchers - 1) / launchers;
    return streams[static_cast<int>(launcher + task / launchers % own * launchers)];
  }

  /// One task with what it reads.
  void Spawn(const Task& task, cudaStream_t stream) {
    if (options_.copies()) CopyIn(task, stream);
    kind_.Launch(task, stream);
    ++launches_;
    if (&task == Faulty())
      FlipBit<<<1, 1, 0, stream>>>(reinterpret_cast<unsigned char*>(task.out + task.out_bytes / 2));
  }
  /// And what it has made.
  void End(std::size_t task, cudaStream_t stream) {
    if (options_.copies()) CopyOut(tasks_[task], stream);
    if (latencies_) latencies_->End(task, 1, stream);
  }

  static void CopyIn(const Task& task, cudaStream_t stream) {
    if (task.in_bytes > 0) CU(cudaMemcpyAsync(task.in, task.host_in, task.in_bytes, cudaMemcpyHostToDevice, stream));
  }
  static void CopyOut(const Task& task, cudaStream_t stream) {
    CU(cudaMemcpyAsync(task.host_out, task.out, task.out_bytes, cudaMemcpyDeviceToHost, stream));
  }

  /// Batches of tasks, each with one copy of all that its tasks need (or a copy for each), one kernel, one copy of all
  /// that they make.
  void RunFused(StreamSet& streams, const char* host_arguments, char* arguments) {
    int batch = 0;
    for (std::size_t first = 0; first < tasks_.size(); first += Batch(), ++batch) {
      const cudaStream_t stream = streams[batch % streams.size()];
      const std::size_t count = std::min(Batch(), tasks_.size() - first), each = kind_.argument_bytes();
      const Task &begin = tasks_[first], &last = tasks_[first + count - 1];
      if (latencies_) latencies_->Begin(batch);
      CU(cudaMemcpyAsync(arguments + first * each, host_arguments + first * each, count * each, cudaMemcpyHostToDevice,
                         stream));
      const bool copies = options_.copies(), each_task = options_.Is("fused-copies", "each");
      const std::size_t in = last.in + last.in_bytes - begin.in, out = last.out + last.out_bytes - begin.out;
      for (std::size_t i = first; copies && each_task && i < first + count; ++i) CopyIn(tasks_[i], stream);
      if (copies && !each_task && in > 0)
        CU(cudaMemcpyAsync(begin.in, begin.host_in, in, cudaMemcpyHostToDevice, stream));
      kind_.LaunchFused(arguments + first * each, static_cast<int>(count), stream);
      ++launches_;
      if (Faulty() >= &begin && Faulty() <= &last) {
        FlipBit<<<1, 1, 0, stream>>>(reinterpret_cast<unsigned char*>(Faulty()->out + Faulty()->out_bytes / 2));
      }
      for (std::size_t i = first; copies && each_task && i < first + count; ++i) CopyOut(tasks_[i], stream);
      if (copies && !each_task) CU(cudaMemcpyAsync(begin.host_out, begin.out, out, cudaMemcpyDeviceToHost, stream));
      if (latencies_) latencies_->End(batch, count, stream);
    }
  }

  /// A graph of the tasks of a batch: as many chains as there are streams.
  cudaGraphExec_t Captured(StreamSet& streams, std::size_t first) {
    CU(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeRelaxed));
    streams.Fork();
    for (std::size_t i = first; i < std::min(first + Batch(), tasks_.size()); ++i) {
      const cudaStream_t stream = streams[static_cast<int>(i - first) % streams.size()];
      Spawn(tasks_[i], stream);
      if (options_.copies()) CopyOut(tasks_[i], stream);
    }
    streams.Join();
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CU(cudaStreamEndCapture(streams[0], &graph));
    CU(cudaGraphInstantiate(&ready, graph, 0));
    CU(cudaGraphDestroy(graph));
    return ready;
  }

  /// Every task's result, word by word, on all cores; what is found is told task by task afterwards.
  void Check() {
    struct Found {
      std::size_t word;
      std::uint32_t got, want;
    };
    std::vector<std::vector<Found>> found(tasks_.size());
    digests_.resize(tasks_.size());
    workers_.For(static_cast<int>(tasks_.size()), [&](int i) {
      const Task& task = tasks_[i];
      std::vector<std::uint32_t> want(task.out_bytes / 4), got(want.size());
      kind_.Compute(task, task.host_in, reinterpret_cast<char*>(want.data()));
      std::memcpy(got.data(), task.host_out, task.out_bytes);
      for (std::size_t word = 0; word < want.size(); ++word) {
        if (got[word] != want[word]) found[i].push_back({word, got[word], want[word]});
      }
      digests_[i] = Digest(got);
    });
    for (const Task& task : tasks_) {
      Checks().checks += static_cast<long>(task.out_bytes / 4);
      for (const Found& word : found[task.index]) {
        if (++Checks().bad > 10) continue;
        std::printf("%s: task %d, word %zu is %08x, want %08x\n", options_.name(), task.index, word.word, word.got,
                    word.want);
      }
    }
  }

  int Finish() const {
    long threads = 0;
    for (const Task& task : tasks_)
      threads += static_cast<long>(options_.form() == Form::kFused ? kFusedThreads : task.threads) * task.blocks;
    std::size_t in = 0, out = 0;
    for (const Task& task : tasks_) in += task.in_bytes, out += task.out_bytes;
    const std::string about = kind_.About(tasks_);
    std::printf("%s: %zu tasks, %ld launches of kernels, %ld threads, %zu bytes in, %zu bytes out%s\n",
                options_.Text().c_str(), tasks_.size(), launches_.load(),
                options_.form() == Form::kPthreads ? 0 : threads, in, out, about.empty() ? "" : ("; " + about).c_str());
    std::printf("result %016llx, ", static_cast<unsigned long long>(Digest(digests_)));
    return Verdict();
  }

  std::size_t Batches() const { return (tasks_.size() + Batch() - 1) / Batch(); }
  std::size_t Batch() const { return static_cast<std::size_t>(options_["batch"]); }
  const Task* Faulty() const {
    const int fault = options_["fault"];
    return fault >= 0 && fault < static_cast<int>(tasks_.size()) ? &tasks_[fault] : nullptr;
  }

  const Options& options_;
  const Kind& kind_;
  Workers workers_;
  std::vector<Task> tasks_;
  std::size_t in_bytes_ = 0, out_bytes_ = 0, scratch_bytes_ = 0;
  std::unique_ptr<HostArray<char>> host_in_, host_out_;
  std::unique_ptr<DeviceArray<char>> in_, out_, scratch_;
  std::unique_ptr<Latencies> latencies_;
  std::atomic<long> launches_{0};
  std::vector<std::uint64_t> digests_;
};
