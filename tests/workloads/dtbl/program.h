// Shared by the programs of tests/workloads/dtbl: J. Wang, N. Rubin, A. Sidelnik and S. Yalamanchili, Dynamic Thread
// Block Launch (ISCA 2015), Table 4. Each has two forms with the same data and the same algorithm (5.1). In the flat
// one a thread does its nested work in a loop of its own. In the CDP one it launches a child grid for the work when
// there is enough of it (--threshold), and goes on: nobody waits for a child, so that thread blocks can take the place
// of child grids as they are (4.1). Every result is compared with the host's.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "workload.h"

enum class Form { kFlat, kCdp };

/// Streams of child grids: each launch has one of its own that does not block, as in the paper (3.1, Figure 3); or all
/// go to the NULL stream of the parent's block, where one runs after the other; or each is launched and forgotten
/// (cudaStreamFireAndForget).
enum class Streams { kOwn, kNone, kForget };

/// What a parent kernel knows of its children.
struct Nesting {
  int threshold;  ///< elements of nested work for which a child is launched
  Streams streams;
  int* refused;  ///< launches that the device did not take
};

/// Launches a child with a thread for each of `elements`: CTAs are always full, because blocks of one shape can join a
/// running grid (4.2). A parent that is launched again and again must not keep its streams: they are destroyed at once,
/// and gone when the child has ended.
template <auto kKernel, int kThreads, class... Arguments>
__device__ inline void LaunchChild(const Nesting& nesting, int elements, Arguments... arguments) {
  cudaStream_t stream = nullptr;
  bool good = true;
  if (nesting.streams == Streams::kOwn) good = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess;
  if (nesting.streams == Streams::kForget) stream = cudaStreamFireAndForget;
  kKernel<<<(elements + kThreads - 1) / kThreads, kThreads, 0, stream>>>(arguments...);
  good = cudaGetLastError() == cudaSuccess && good;
  if (nesting.streams == Streams::kOwn) cudaStreamDestroy(stream);
  if (!good) atomicAdd(nesting.refused, 1);
}

/// An input of Table 4, or a relative of one.
struct InputKind {
  const char* name;
  int threshold;  ///< the default of --threshold
  const char* about;
};

/// One value on the device that the host looks at between two kernels.
template <class T>
class DeviceValue {
 public:
  explicit DeviceValue(T value) : array_(std::vector<T>{value}) {}
  operator T*() const { return array_; }
  void Write(T value) const { array_.Write({value}); }
  T Read() const { return array_.Read()[0]; }

 private:
  DeviceArray<T> array_;
};

/// A run of a program: its form, its input, its numbers, what it launches, what it found.
class Program {
 public:
  Program(const char* name, const char* about, int argc, char** argv, std::vector<InputKind> inputs,
          std::vector<Number> numbers)
      : name_(name), about_(about), inputs_(std::move(inputs)), numbers_(std::move(numbers)) {
    numbers_.push_back({"threshold", 0, 0, 1, INT32_MAX});
    numbers_.push_back({"seed", 1, 1, 1, INT32_MAX});
    for (const Number& number : numbers_) values_.push_back(number.small);
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      if (argument == "--help" || argument == "-h") Help();
      if (argument == "--time") timed_ = true;
      if (argument != "--small" && argument != "--paper") continue;
      for (std::size_t number = 0; number < numbers_.size(); ++number) {
        values_[number] = argument == "--paper" ? numbers_[number].paper : numbers_[number].small;
      }
    }
    for (int i = 1; i < argc; ++i) i += Take(argv[i], i + 1 < argc ? argv[i + 1] : nullptr);
    int& threshold = values_[values_.size() - 2];
    if (threshold == 0) threshold = inputs_[input_].threshold;
  }
  Program(const Program&) = delete;

  Form form() const { return static_cast<Form>(form_); }
  bool flat() const { return form() == Form::kFlat; }
  std::string input() const { return inputs_[input_].name; }
  int threshold() const { return values_[values_.size() - 2]; }
  std::uint64_t seed() const { return static_cast<std::uint64_t>(values_.back()); }

  int operator[](const std::string& name) const {
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      if (numbers_[i].name == name) return values_[i];
    }
    Refuse(std::string(name_) + ": no number is called " + name);
  }

  /// What kernels of the CDP form are given. `most` children, at most, wait at any time: room for fewer (2048 where
  /// nobody asks) would have launches refused.
  Nesting Nest(std::size_t most) {
    if (!flat()) CU(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, std::max<std::size_t>(most, 2048)));
    refused_.emplace(0);
    if (timed_) CU(cudaDeviceSynchronize());
    begin_ = Clock::now();
    return {threshold(), static_cast<Streams>(streams_), *refused_};
  }

  /// After each launch from the host.
  void Launched() {
    CU(cudaGetLastError());
    ++host_launches_;
    if (!timed_) return;
    CU(cudaDeviceSynchronize());
    spent_ = Clock::now() - begin_;
  }

  /// The host's reference tells of each piece of nested work: one that is large enough is a child in the CDP form, of
  /// CTAs of `threads`.
  void Nested(int elements, int threads) {
    if (elements >= threshold()) NestedInGrid(elements, Ctas(elements, threads) * threads);
  }
  /// A child that has its number of threads whatever its elements.
  void NestedInGrid(int elements, int threads) {
    ++children_;
    child_elements_ += elements;
    child_threads_ += threads;
  }

  long children() const { return children_; }

  /// One line about the input that was made.
  template <class... Words>
  void Say(const Words&... words) const {
    std::ostringstream line;
    (line << ... << words);
    std::printf("%s %s: %s\n", name_, inputs_[input_].name, line.str().c_str());
  }

  /// Bit by bit. Results that have a digest are those that all forms must agree on.
  template <class T>
  void Compare(const char* what, const std::vector<T>& got, const std::vector<T>& want) {
    if (got.size() != want.size()) return Differ(what, "count", got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      ++checks_;
      if (std::memcmp(&got[i], &want[i], sizeof(T)) != 0) Differ(what, i, got[i], want[i]);
    }
    digest_ = (digest_ ^ Digest(got)) * 0x100000001B3u;
  }

  /// `what` says what is wrong when it is not good.
  void Check(const char* what, bool good) {
    ++checks_;
    if (!good && bad_++ == 0) first_ = what;
  }

  /// The last two lines, and the exit status.
  int Finish() {
    CU(cudaDeviceSynchronize());
    Compare("launches refused", std::vector<int>{refused_->Read()}, {0});
    std::printf("%s --form=%s --input=%s --streams=%s", name_, kForms[form_], inputs_[input_].name, kStreams[streams_]);
    for (std::size_t i = 0; i < numbers_.size(); ++i) std::printf(" --%s=%d", numbers_[i].name, values_[i]);
    std::printf(": %ld host launches, %ld device launches; ", host_launches_, flat() ? 0 : children_);
    if (timed_) std::fprintf(stderr, "%.1f us\n", std::chrono::duration<double, std::micro>(spent_).count());
    const double mean_by = children_ > 0 ? static_cast<double>(children_) : 1;
    std::printf("%ld children of %.1f threads for %.1f elements on average, threshold %d\n", children_,
                child_threads_ / mean_by, child_elements_ / mean_by, threshold());
    if (bad_ > 0) std::printf("FAIL: %s; %ld of %ld checks\n", first_.c_str(), bad_, checks_);
    else std::printf("result %016llx, PASS: %ld checks\n", static_cast<unsigned long long>(digest_), checks_);
    return bad_ > 0;
  }

 private:
  template <class Index, class T>
  void Differ(const char* what, const Index& index, const T& got, const T& want) {
    if (bad_++ > 0) return;
    std::ostringstream text;
    text.precision(17);
    text << what << "[" << index << "] is " << +got << ", want " << +want;
    first_ = text.str();
  }

  [[noreturn]] void Help() const {
    std::printf("%s: %s\n\nusage: %s [--form=flat|cdp] [--input=NAME] [--small | --paper] [--time] [OPTIONS]\n\n",
                name_, about_, name_);
    std::printf("  --form=flat|cdp             nested work in a loop of the thread (default), or as a child grid\n");
    std::printf(
        "  --streams=own|none|forget   of children: one each (default); the block's NULL stream; fire and forget\n");
    std::printf(
        "  --time                      tell on stderr how long it took from the first launch to the last kernel's "
        "end\n");
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      std::printf("  --input=%-20s%s%s, threshold %d\n", inputs_[i].name, inputs_[i].about, i == 0 ? " (default)" : "",
                  inputs_[i].threshold);
    }
    for (const Number& number : numbers_) {
      if (number.small == 0)
        std::printf("  --%-26selements of nested work that are worth a child\n",
                    (std::string(number.name) + "=N").c_str());
      else
        std::printf("  --%-26s%d, with --paper %d\n", (std::string(number.name) + "=N").c_str(), number.small,
                    number.paper);
    }
    std::printf("\nexamples:\n  gridloom run -- ./%s --form cdp\n", name_);
    std::printf("  gridloom run -- ./%s --form flat --input %s --seed 7\n", name_, inputs_.back().name);
    std::printf("  gridloom run --memcheck -- ./%s --form cdp --streams forget --threshold 8\n", name_);
    std::exit(0);
  }

  /// Whether the value was an argument of its own.
  bool Take(const std::string& argument, const char* next) {
    if (argument == "--small" || argument == "--paper" || argument == "--time") return false;
    const std::size_t equals = argument.find('=');
    const std::string key = argument.substr(0, equals);
    if (key.compare(0, 2, "--") != 0)
      Refuse(std::string(name_) + ": there is no " + argument + "; see " + name_ + " --help");
    if (equals == std::string::npos && next == nullptr)
      Refuse(std::string(name_) + ": " + key + " needs a value; see " + name_ + " --help");
    Set(key.substr(2), equals == std::string::npos ? next : argument.substr(equals + 1));
    return equals == std::string::npos;
  }

  void Set(const std::string& key, const std::string& value) {
    std::vector<std::string> names;
    for (const InputKind& input : inputs_) names.emplace_back(input.name);
    if (key == "form") return Choose(key, value, {kForms, kForms + 2}, form_);
    if (key == "streams") return Choose(key, value, {kStreams, kStreams + 3}, streams_);
    if (key == "input") return Choose(key, value, names, input_);
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      if (key != numbers_[i].name) continue;
      values_[i] = numbers_[i].Checked(name_, value);
      return;
    }
    Refuse(std::string(name_) + ": there is no --" + key + "; see " + name_ + " --help");
  }

  void Choose(const std::string& key, const std::string& value, const std::vector<std::string>& names,
              int& choice) const {
    std::string all;
    for (std::size_t i = 0; i < names.size(); ++i) {
      all += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
      if (value == names[i]) choice = static_cast<int>(i);
    }
    if (std::find(names.begin(), names.end(), value) == names.end())
      Refuse(std::string(name_) + ": --" + key + "=" + value + " is not " + all);
  }

  using Clock = std::chrono::steady_clock;

  static constexpr const char* kForms[] = {"flat", "cdp"};
  static constexpr const char* kStreams[] = {"own", "none", "forget"};

  const char *name_, *about_;
  std::vector<InputKind> inputs_;
  std::vector<Number> numbers_;
  std::vector<int> values_;
  int form_ = 0, streams_ = 0, input_ = 0;
  bool timed_ = false;
  Clock::time_point begin_;
  Clock::duration spent_{};
  std::optional<DeviceValue<int>> refused_;
  long host_launches_ = 0, children_ = 0, checks_ = 0, bad_ = 0;
  long long child_elements_ = 0, child_threads_ = 0;
  std::uint64_t digest_ = 0xCBF29CE484222325u;
  std::string first_;
};
