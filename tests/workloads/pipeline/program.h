// Shared by the programs of tests/workloads/pipeline. Each is a pipeline of tasks: data sets go through the same
// kernels, one after the other. A data set has buffers and a CUDA stream of its own; kernel j of it begins after kernel
// j-1 of it, and kernels of different data sets have nothing to do with each other. All inputs are on the device before
// the first kernel is launched, and nothing is copied until the last one has ended. Every result of every data set is
// compared with what the host computes.
#pragma once

#include <algorithm>
#include <cerrno>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "workload.h"

/// What the command line says. All programs have --sets=N, --serial (one stream for all data sets), --alone (times of
/// the kernels alone) and --order (of the launches: data set after data set, or stage after stage).
class Options {
 public:
  Options(const char* name, int argc, char** argv, std::vector<Number> numbers, std::vector<const char*> flags = {})
      : name_(name), numbers_(std::move(numbers)), flags_(std::move(flags)) {
    numbers_.push_back({"sets", 12, 16, 1, 64});
    flags_.insert(flags_.end(), {"serial", "alone"});
    for (const Number& number : numbers_) values_.push_back(number.small);
    for (int i = 1; i < argc; ++i) {
      if (std::string(argv[i]) == "--small" || std::string(argv[i]) == "--paper") TakeSizes(argv[i][2] == 'p');
    }
    for (int i = 1; i < argc; ++i) Take(argv[i]);
  }

  const char* name() const { return name_; }
  bool stage_after_stage() const { return stage_after_stage_; }

  int operator[](const std::string& name) const {
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      if (numbers_[i].name == name) return values_[i];
    }
    Refuse(std::string(name_) + ": no number is called " + name);
  }

  bool Has(const std::string& flag) const { return std::find(given_.begin(), given_.end(), flag) != given_.end(); }

  /// The numbers and flags of this run, as they can be given again.
  std::string Text() const {
    std::string text = name_;
    for (std::size_t i = 0; i < numbers_.size(); ++i)
      text += std::string(" --") + numbers_[i].name + "=" + std::to_string(values_[i]);
    for (const std::string& flag : given_) text += " --" + flag;
    return text + (stage_after_stage_ ? " --order=stages" : "");
  }

 private:
  void TakeSizes(bool paper) {
    for (std::size_t i = 0; i < numbers_.size(); ++i) values_[i] = paper ? numbers_[i].paper : numbers_[i].small;
  }

  void Take(const std::string& argument) {
    if (argument == "--small" || argument == "--paper") return;
    if (argument == "--order=sets" || argument == "--order=stages") {
      stage_after_stage_ = argument == "--order=stages";
      return;
    }
    for (const char* flag : flags_) {
      if (argument == std::string("--") + flag) {
        given_.push_back(flag);
        return;
      }
    }
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      const std::string key = std::string("--") + numbers_[i].name + "=";
      if (argument.compare(0, key.size(), key) == 0) {
        values_[i] = numbers_[i].Checked(name_, argument.substr(key.size()));
        return;
      }
    }
    std::string usage = std::string(name_) + ": there is no " + argument + "; usage: " + name_ + " [--small | --paper]";
    for (std::size_t i = 0; i < numbers_.size(); ++i)
      usage += std::string(" [--") + numbers_[i].name + "=" + std::to_string(values_[i]) + "]";
    for (const char* flag : flags_) usage += std::string(" [--") + flag + "]";
    Refuse(usage + " [--order=sets|stages]");
  }

  const char* name_;
  std::vector<Number> numbers_;
  std::vector<int> values_;
  std::vector<const char*> flags_;
  std::vector<std::string> given_;
  bool stage_after_stage_ = false;
};

/// An input: on the device, and kept on the host for the check.
template <class T>
struct Input {
  explicit Input(std::vector<T> values) : host(std::move(values)), device(host) {}
  operator const T*() const { return device; }
  const std::vector<T> host;
  const DeviceArray<T> device;
};

/// Registers with which 1024 threads fit on an SM of Fermi: the limit (__maxnreg__) of kernels that would take more
/// otherwise.
constexpr int kFermiRegisters = 32;

/// CTAs of `kernel` that one SM of Fermi (compute capability 2.0) has room for at once.
inline int CtasOnFermi(const void* kernel, int threads) {
  constexpr int kCtas = 8, kWarps = 48, kSharedBytes = 48 << 10, kRegisters = 32768, kSharedUnit = 128,
                kRegisterUnit = 64;
  const auto round_up = [](int value, int unit) { return (value + unit - 1) / unit * unit; };
  cudaFuncAttributes attributes;
  CU(cudaFuncGetAttributes(&attributes, kernel));
  const int warps = round_up(threads, 32) / 32,
            shared = round_up(static_cast<int>(attributes.sharedSizeBytes), kSharedUnit);
  const int registers = warps * round_up(attributes.numRegs * 32, kRegisterUnit);
  return std::min({kCtas, kWarps / warps, shared > 0 ? kSharedBytes / shared : kCtas, kRegisters / registers});
}

/// A run of a program. `Set` is a data set: its buffers, made by Set(options, index), where equal indices make equal
/// data sets.
template <class Set>
class Pipeline {
 public:
  explicit Pipeline(const Options& options) : options_(options) {
    for (int set = 0; set < options["sets"]; ++set) {
      sets_.emplace_back(options, set);
      streams_.push_back(nullptr);
      if (set > 0 && options.Has("serial")) streams_.back() = streams_.front();
      else CU(cudaStreamCreateWithFlags(&streams_.back(), cudaStreamNonBlocking));
    }
    if (options.Has("alone")) spare_.emplace(options, 0);
  }
  Pipeline(const Pipeline&) = delete;
  ~Pipeline() {
    streams_.erase(std::unique(streams_.begin(), streams_.end()), streams_.end());
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  }

  const std::deque<Set>& sets() const { return sets_; }

  /// The next stage: a kernel without dynamic shared memory, launched by calling what `give` is handed with the
  /// kernel's arguments for a data set.
  template <class... Parameters, class Give>
  void Stage(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, Give give) {
    const auto launch = [=](const Set& set, cudaStream_t stream) {
      give(set, [=](Parameters... parameters) { kernel<<<grid, block, 0, stream>>>(parameters...); });
      CU(cudaGetLastError());
    };
    const int ctas = grid.x * grid.y * grid.z, threads = block.x * block.y * block.z;
    int here = 0;
    CU(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&here, kernel, threads, 0));
    const double fermi = CtasOnFermi(reinterpret_cast<const void*>(kernel), threads);
    stages_.push_back({name, ctas, threads, ctas / fermi, static_cast<double>(ctas) / here, launch});
  }

  /// All kernels of all data sets.
  void Run() {
    CU(cudaDeviceSynchronize());
    if (spare_) RunAlone();
    const std::size_t launches = sets_.size() * stages_.size();
    for (std::size_t i = 0; i < launches; ++i) {
      const std::size_t set = options_.stage_after_stage() ? i % sets_.size() : i / stages_.size();
      stages_[options_.stage_after_stage() ? i / sets_.size() : i % stages_.size()].launch(sets_[set], streams_[set]);
    }
    CU(cudaDeviceSynchronize());
  }

  /// What a kernel has written, to be compared with what it should be.
  template <class T>
  std::vector<T> Result(const DeviceArray<T>& array) {
    const std::vector<T> values = array.Read();
    digests_.push_back(Digest(values));
    return values;
  }

  /// Prints the line of summary and returns the exit status.
  int Finish() const {
    std::printf("%s: %zu launches", options_.Text().c_str(), sets_.size() * stages_.size());
    for (const StageInfo& stage : stages_) {
      std::printf(", %s %d x %d (%.1f SMs, here %.1f)", stage.name, stage.ctas, stage.threads, stage.fermi_sms,
                  stage.sms_here);
    }
    std::printf(", class %s, here %s, result %016llx, ", Class(&StageInfo::fermi_sms).c_str(),
                Class(&StageInfo::sms_here).c_str(), static_cast<unsigned long long>(Digest(digests_)));
    return Verdict();
  }

 private:
  struct StageInfo {
    const char* name;
    int ctas, threads;
    double fermi_sms, sms_here;  ///< that the grid needs to be resident as a whole: equation 1 of the paper, on Fermi
                                 ///< and on this device
    std::function<void(const Set&, cudaStream_t)> launch;
  };

  /// Each kernel once, with the device to itself, on a data set that is not one of the results.
  void RunAlone() {
    cudaEvent_t begin, end;
    CU(cudaEventCreate(&begin));
    CU(cudaEventCreate(&end));
    for (const StageInfo& stage : stages_) {
      CU(cudaEventRecord(begin, streams_[0]));
      stage.launch(*spare_, streams_[0]);
      CU(cudaEventRecord(end, streams_[0]));
      CU(cudaEventSynchronize(end));
      float ms = 0;
      CU(cudaEventElapsedTime(&ms, begin, end));
      std::printf("%s: %s alone %.4f ms\n", options_.name(), stage.name, ms);
    }
    CU(cudaEventDestroy(begin));
    CU(cudaEventDestroy(end));
  }

  /// Light-load: each kernel's CTAs fit on the SMs all at once. Of the paper's 8, 16 and 24 SMs.
  std::string Class(double StageInfo::*sms) const {
    double most = 0;
    for (const StageInfo& stage : stages_) most = std::max(most, stage.*sms);
    return most <= 8 ? "light" : most <= 16 ? "light from 16 SMs on" : most <= 24 ? "light with 24 SMs" : "heavy";
  }

  const Options& options_;
  std::deque<Set> sets_;
  std::optional<Set> spare_;
  std::vector<cudaStream_t> streams_;
  std::vector<StageInfo> stages_;
  std::vector<std::uint64_t> digests_;
};
