// A narrow task, and what kinds of tasks there are. T. T. Yeh, A. Sabne, P. Sakdhnagool, R. Eigenmann and T. G. Rogers,
// Pagoda: fine-grained GPU resource virtualization for narrow tasks (PPoPP 2017), Tables 3 and 4.
#pragma once

#include <memory>
#include <sstream>
#include <string>

#include "pagoda/options.h"

/// Of functions that are the host's form of a task: the compiler may use fused multiply-adds where the machine has
/// them. What they round, and how often, is written out (fmaf), so that results are the same everywhere.
#define PAGODA_HOST __attribute__((target_clones("fma", "default")))

/// Threads of a block of a fused kernel (6.3).
constexpr int kFusedThreads = 256;

struct Task {
  int index = 0;
  int size = 0;      ///< of its input: side, width, bytes
  double share = 1;  ///< of what the largest task has to go through, as far as the size tells
  int threads = 0, blocks = 1;
  std::size_t in_bytes = 0, out_bytes = 0;  ///< whole words of 32 bits
  std::size_t scratch_bytes = 0;            ///< on the device
  char *host_in = nullptr, *host_out = nullptr;
  char *in = nullptr, *out = nullptr, *scratch = nullptr;
};

/// A kind of tasks: their inputs, their kernels, what the host computes for one.
class Kind {
 public:
  virtual ~Kind() = default;

  /// Size and bytes of a task. Sizes are those of options, or drawn from `random` (--irregular).
  virtual void Describe(Task& task) const = 0;
  virtual void Fill(const Task& task, char* in) const = 0;
  /// What `out` must be, bit by bit.
  virtual void Compute(const Task& task, const char* in, char* out) const = 0;

  /// The task as a kernel.
  virtual void Launch(const Task& task, cudaStream_t stream) const = 0;
  /// One kernel for several tasks. `arguments` are those of each, on the device, as PutArguments leaves them.
  virtual void LaunchFused(const char* arguments, int tasks, cudaStream_t stream) const = 0;
  virtual std::size_t argument_bytes() const = 0;
  virtual void PutArguments(const Task& task, char* where) const = 0;

  /// Has the driver load the kernels. Returns how many registers and how much shared memory they have.
  virtual std::string Load() const = 0;
  /// Something to say of what the tasks found, or nothing.
  virtual std::string About(const std::vector<Task>&) const { return ""; }
  /// Checks beyond Compute, which Note() what they find.
  virtual void CheckMore(const std::vector<Task>&) const {}
};

/// A kind whose kernels have arguments of one type, and are the same function of them: of one, or of one for each
/// block.
template <class Arguments>
class KindOf : public Kind {
 public:
  using TaskKernel = void (*)(Arguments);
  using FusedKernel = void (*)(const Arguments*);

  /// `shared_bytes` of a block of so many threads.
  KindOf(TaskKernel task, FusedKernel fused, std::size_t (*shared_bytes)(int threads) = nullptr)
      : task_(task), fused_(fused), shared_bytes_(shared_bytes) {}

  virtual Arguments ArgumentsOf(const Task& task) const = 0;

  void Launch(const Task& task, cudaStream_t stream) const override {
    task_<<<task.blocks, task.threads, SharedBytes(task.threads), stream>>>(ArgumentsOf(task));
    CU(cudaGetLastError());
  }
  void LaunchFused(const char* arguments, int tasks, cudaStream_t stream) const override {
    fused_<<<tasks, kFusedThreads, SharedBytes(kFusedThreads), stream>>>(reinterpret_cast<const Arguments*>(arguments));
    CU(cudaGetLastError());
  }
  std::size_t argument_bytes() const override { return sizeof(Arguments); }
  void PutArguments(const Task& task, char* where) const override {
    const Arguments arguments = ArgumentsOf(task);
    std::memcpy(where, &arguments, sizeof(Arguments));
  }
  std::string Load() const override {
    std::ostringstream text;
    for (const void* kernel : {reinterpret_cast<const void*>(task_), reinterpret_cast<const void*>(fused_)}) {
      cudaFuncAttributes attributes;
      CU(cudaFuncGetAttributes(&attributes, kernel));
      text << (kernel == reinterpret_cast<const void*>(task_) ? "task " : ", fused ") << attributes.numRegs
           << " registers, " << attributes.sharedSizeBytes << " bytes of shared memory";
    }
    text << ", and with 128 threads " << SharedBytes(128) << " more";
    return text.str();
  }

 private:
  std::size_t SharedBytes(int threads) const { return shared_bytes_ != nullptr ? shared_bytes_(threads) : 0; }

  TaskKernel task_;
  FusedKernel fused_;
  std::size_t (*shared_bytes_)(int threads);
};

/// What is drawn for a task: the same whatever else there is.
inline Random RandomOf(const Options& options, int task, std::uint64_t of = 1) {
  Random random(options.seed() * 1000003 + static_cast<std::uint64_t>(task) * 31 + of);
  random.Next();
  return random;
}

/// The size of a task: `most`, or, of irregular ones, from `least` to that in steps.
inline int SizeOf(const Options& options, int task, int least, int most, int step) {
  if (options["irregular"] == 0) return most;
  Random random(static_cast<std::uint64_t>(options["irregular"]) * 7919 + static_cast<std::uint64_t>(task));
  random.Next();
  const int first = Ctas(least, step), last = most / step;
  return last <= first
             ? most
             : (first + static_cast<int>(random.Next() % static_cast<std::uint32_t>(last - first + 1))) * step;
}

/// Threads of an irregular task: 256 where it has more than half of what the largest one has, 128 for more than a
/// quarter, 64 for more than an eighth, otherwise 32.
inline int ThreadsFor(double share) { return share > 0.5 ? 256 : share > 0.25 ? 128 : share > 0.125 ? 64 : 32; }

/// Of tasks whose work is as the square of their size, or as their size.
inline double Square(double share) { return share * share; }

inline void FillUniform(float* values, std::size_t count, float low, float high, Random random) {
  for (std::size_t i = 0; i < count; ++i) values[i] = random.Uniform(low, high);
}
