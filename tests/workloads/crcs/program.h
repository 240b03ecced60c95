// Shared by the programs of tests/workloads/crcs. Each is a program of dependent kernels with its files around it:
// inputs are read from files page by page (the prelude) and copied to the device, kernels are launched, the result is
// copied back and written to a file page by page (the postlude), and what is in that file is compared with what the
// host computes.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <string>
#include <vector>

#include "workload.h"

/// A run of a program: its numbers, its files, its one line of summary.
class Program {
 public:
  Program(const char* name, int argc, char** argv, std::vector<Number> numbers)
      : name_(name), numbers_(std::move(numbers)) {
    for (const Number& number : numbers_) values_.push_back(number.small);
    Parse(argc, argv);
  }
  Program(const Program&) = delete;
  ~Program() {
    for (const File& input : inputs_) close(input.fd);
    if (result_.fd >= 0) close(result_.fd);
  }

  int operator[](const char* name) const {
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      if (std::strcmp(numbers_[i].name, name) == 0) return values_[i];
    }
    Refuse(std::string(name_) + ": no number is called " + name);
  }

  /// The prelude: fills all inputs from their files, a page at a time, in the order that --order says.
  void Prelude() {
    for (const Page& page : PagesInOrder()) {
      const File& input = inputs_[page.input];
      ReadPage(input, page.begin, std::min(kPageBytes, input.bytes - page.begin));
      bytes_read_ += std::min(kPageBytes, input.bytes - page.begin);
    }
  }

  /// After each launch.
  void Launched() {
    CU(cudaGetLastError());
    ++launches_;
  }

  /// Waits for the device; then the postlude: writes the result, which the last copy has brought, page by page.
  template <class T>
  void Postlude(const HostArray<T>& result) {
    CU(cudaDeviceSynchronize());
    result_ = Open("result", true);
    result_.memory = reinterpret_cast<char*>(result.data());
    result_.bytes = result.size() * sizeof(T);
    if (ftruncate(result_.fd, 0) != 0) RefuseFile(result_, std::strerror(errno));
    for (std::size_t begin = 0; begin < result_.bytes; begin += kPageBytes) {
      Write(result_, result_.memory + begin, std::min(kPageBytes, result_.bytes - begin), begin);
    }
  }

  /// Compares the file with the result, bit by bit, with what the host computed: prints the line of summary, returns
  /// the exit status.
  template <class T>
  int Finish(const std::vector<T>& want) {
    std::vector<T> got(want.size());
    File file = result_;
    file.memory = reinterpret_cast<char*>(got.data());
    if (FileBytes(file) != got.size() * sizeof(T)) RefuseFile(file, "is not as long as the result");
    ReadPage(file, 0, got.size() * sizeof(T));
    for (std::size_t i = 0; i < want.size(); ++i) Same("result", static_cast<long>(i), got[i], want[i]);
    std::printf("%s", name_);
    for (std::size_t i = 0; i < numbers_.size(); ++i) std::printf(" --%s=%d", numbers_[i].name, values_[i]);
    std::printf(" --order=%s: %d launches, %zu bytes read, %zu written, result %016llx, ", kOrders[order_], launches_,
                bytes_read_, result_.bytes, static_cast<unsigned long long>(Digest(got)));
    return Verdict();
  }

 private:
  template <class T>
  friend class Input;

  static constexpr std::size_t kPageBytes = 4096;
  enum Order { kInterleaved, kArrays, kRandom };
  static constexpr std::array<const char*, 3> kOrders = {"interleaved", "arrays", "random"};

  struct File {
    std::string path;  ///< empty: a file without a name, gone with the program
    int fd = -1;
    char* memory = nullptr;
    std::size_t bytes = 0;
  };
  struct Page {
    std::size_t input, begin;
  };

  [[noreturn]] void RefuseFile(const File& file, const std::string& why) const {
    Refuse(std::string(name_) + ": " + (file.path.empty() ? "a temporary file" : file.path) + ": " + why);
  }

  /// The file for `array` in the folder of --data, or a temporary one. One that is not there is made if `make` says so;
  /// fd < 0 if not.
  File Open(const char* array, bool make) const {
    File file;
    if (folder_.empty()) {
      std::FILE* const temporary = make ? std::tmpfile() : nullptr;
      if (make && temporary == nullptr) RefuseFile(file, std::strerror(errno));
      if (temporary != nullptr) {
        file.fd = dup(fileno(temporary));
        std::fclose(temporary);
      }
    } else {
      file.path = folder_ + "/" + name_ + "-" + array + ".bin";
      file.fd = open(file.path.c_str(), make ? O_RDWR | O_CREAT | O_NONBLOCK : O_RDONLY | O_NONBLOCK, 0666);
      if (file.fd < 0 && (make || errno != ENOENT)) RefuseFile(file, std::strerror(errno));
    }
    struct stat status;
    if (file.fd >= 0 && (fstat(file.fd, &status) != 0 || !S_ISREG(status.st_mode)))
      RefuseFile(file, "is no regular file");
    return file;
  }

  std::size_t FileBytes(const File& file) const {
    struct stat status;
    if (fstat(file.fd, &status) != 0) RefuseFile(file, std::strerror(errno));
    return static_cast<std::size_t>(status.st_size);
  }

  void ReadPage(const File& file, std::size_t begin, std::size_t bytes) const {
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t got = pread(file.fd, file.memory + begin + done, bytes - done, static_cast<off_t>(begin + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) RefuseFile(file, got == 0 ? "ends too early" : std::strerror(errno));
      done += static_cast<std::size_t>(got);
    }
  }

  void Write(const File& file, const void* data, std::size_t bytes, std::size_t begin) const {
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t put =
          pwrite(file.fd, static_cast<const char*>(data) + done, bytes - done, static_cast<off_t>(begin + done));
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) RefuseFile(file, put == 0 ? "takes no more bytes" : std::strerror(errno));
      done += static_cast<std::size_t>(put);
    }
  }

  /// Interleaved: a page of each array in turn. Random: array after array, its pages in an order drawn once and for
  /// all.
  std::vector<Page> PagesInOrder() const {
    std::vector<Page> pages;
    Random random(2016);
    for (std::size_t input = 0; input < inputs_.size(); ++input) {
      const std::size_t first = pages.size();
      for (std::size_t begin = 0; begin < inputs_[input].bytes; begin += kPageBytes) pages.push_back({input, begin});
      for (std::size_t left = pages.size() - first; order_ == kRandom && left > 1; --left) {
        std::swap(pages[first + left - 1], pages[first + random.Next64() % left]);
      }
    }
    if (order_ == kInterleaved)
      std::stable_sort(pages.begin(), pages.end(), [](const Page& a, const Page& b) { return a.begin < b.begin; });
    return pages;
  }

  void Parse(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], "--paper") != 0 && std::strcmp(argv[i], "--small") != 0) continue;
      for (std::size_t n = 0; n < numbers_.size(); ++n)
        values_[n] = argv[i][2] == 'p' ? numbers_[n].paper : numbers_[n].small;
    }
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      if (argument == "--paper" || argument == "--small") continue;
      const std::size_t equals = argument.find('=');
      const std::string key = argument.substr(0, equals);
      if (!Known(key)) RefuseArguments("there is no " + argument);
      if (equals == std::string::npos && i + 1 == argc) RefuseArguments(key + " needs a value");
      Set(key, equals != std::string::npos ? argument.substr(equals + 1) : argv[++i]);
    }
  }

  bool Known(const std::string& key) const {
    return key == "--order" || key == "--data" ||
           std::any_of(numbers_.begin(), numbers_.end(),
                       [&](const Number& number) { return key == std::string("--") + number.name; });
  }

  void Set(const std::string& key, const std::string& value) {
    if (key == "--data") {
      struct stat status;
      if (stat(value.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
        Refuse(std::string(name_) + ": --data=" + value + " is no folder");
      folder_ = value;
    } else if (key == "--order") {
      const auto found = std::find(kOrders.begin(), kOrders.end(), value);
      if (found == kOrders.end())
        Refuse(std::string(name_) + ": --order=" + value + " is none of interleaved, arrays, random");
      order_ = static_cast<Order>(found - kOrders.begin());
    } else {
      for (std::size_t i = 0; i < numbers_.size(); ++i) {
        if (key == std::string("--") + numbers_[i].name) values_[i] = numbers_[i].Checked(name_, value);
      }
    }
  }

  [[noreturn]] void RefuseArguments(const std::string& why) const {
    std::string usage = std::string(name_) + ": " + why + "; usage: " + name_ + " [--small | --paper]";
    for (std::size_t i = 0; i < numbers_.size(); ++i)
      usage += std::string(" [--") + numbers_[i].name + "=" + std::to_string(values_[i]) + "]";
    Refuse(usage + " [--order=interleaved|arrays|random] [--data=FOLDER]");
  }

  const char* name_;
  std::vector<Number> numbers_;
  std::vector<int> values_;
  Order order_ = kInterleaved;
  std::string folder_;
  std::vector<File> inputs_;
  File result_;
  std::size_t bytes_read_ = 0;
  int launches_ = 0;
};

/// Host memory of an input, which Prelude() fills from its file. `make` returns what is in that file where there is
/// none yet.
template <class T>
class Input : public HostArray<T> {
 public:
  /// An array of as many elements as the numbers of the run say.
  template <class Make>
  Input(Program& program, const char* name, std::size_t count, Make make)
      : Input(program, File(program, name, make), [count](const Program& run, const Program::File& file) {
          if (file.bytes == count * sizeof(T)) return;
          run.RefuseFile(file, "has " + std::to_string(file.bytes) + " bytes; the numbers of this run need " +
                                   std::to_string(count * sizeof(T)));
        }) {}

  /// An array of as many elements as the file has.
  template <class Make>
  Input(Program& program, const char* name, Make make)
      : Input(program, File(program, name, make), [](const Program& run, const Program::File& file) {
          const bool fits = file.bytes != 0 && file.bytes % sizeof(T) == 0 && file.bytes / sizeof(T) <= INT_MAX;
          if (!fits)
            run.RefuseFile(file, "has " + std::to_string(file.bytes) + " bytes, not one to 2^31 - 1 elements of " +
                                     std::to_string(sizeof(T)));
        }) {}

 private:
  template <class Check>
  Input(Program& program, Program::File file, Check check)
      : HostArray<T>((check(program, file), file.bytes / sizeof(T))) {
    file.memory = reinterpret_cast<char*>(this->data());
    program.inputs_.push_back(file);
  }

  template <class Make>
  static Program::File File(const Program& program, const char* name, Make make) {
    Program::File file = program.Open(name, false);
    if (file.fd < 0) {
      const std::vector<T> values = make();
      file = program.Open(name, true);
      program.Write(file, values.data(), values.size() * sizeof(T), 0);
    }
    file.bytes = program.FileBytes(file);
    return file;
  }
};
