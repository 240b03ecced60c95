// The command line of the programs of tests/workloads/pagoda.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "workload.h"

/// How tasks get to the device: each as a kernel in one of several streams (HyperQ), each as a kernel in one stream,
/// many in one kernel of which each block has one (static fusion), the kernels of `kTasks` in graphs; or not at all:
/// threads of the host do them.
enum class Form { kTasks, kSerial, kFused, kGraph, kPthreads };

/// What a program has beside the options that all have.
struct Traits {
  bool shared = false;  ///< its kernels can do without shared memory: --shared
  bool blocks = false;  ///< a task can have several blocks: --blocks
  /// The number of tasks is known before they run: --tasks, --irregular, and the forms fused and graph.
  bool counted = true;
  bool vectors = false;  ///< there are published vectors, for which a kernel is launched at the end: --vectors
  int launchers = 1;     ///< the default of --launchers
};

class Options {
 public:
  Options(const char* name, const char* about, int argc, char** argv, Traits traits, std::vector<Number> numbers)
      : name_(name), about_(about), numbers_(std::move(numbers)) {
    if (traits.counted) {
      numbers_.push_back({"tasks", 128, 32768, 1, 1 << 20});
      numbers_.push_back({"irregular", 0, 0, 0, INT32_MAX});
      numbers_.push_back({"batch", 64, 4096, 1, 1 << 20});
    }
    numbers_.push_back({"threads", 128, 128, 32, 1024, 32});
    if (traits.blocks) numbers_.push_back({"blocks", 1, 1, 1, 4096});
    numbers_.push_back({"streams", 32, 32, 1, 1024});
    if (traits.counted) numbers_.push_back({"launchers", traits.launchers, traits.launchers, 1, 64});
    numbers_.push_back({"host-threads", 0, 0, 0, 1024});
    numbers_.push_back({"seed", 1, 1, 1, INT32_MAX});
    numbers_.push_back({"repeat", 1, 1, 1, 1000});
    numbers_.push_back({"fault", -1, -1, -1, INT32_MAX});
    for (const Number& number : numbers_) values_.push_back(number.small);
    choices_.push_back({"form", traits.counted
                                    ? std::vector<std::string>{"tasks", "serial", "fused", "graph", "pthreads"}
                                    : std::vector<std::string>{"tasks", "serial", "pthreads"}});
    choices_.push_back({"copies", {"yes", "no"}});
    if (traits.counted) choices_.push_back({"fused-copies", {"one", "each"}});
    if (traits.counted) choices_.push_back({"spawn", {"free", "batches"}});
    if (traits.shared) choices_.push_back({"shared", {"yes", "no"}});
    if (!traits.counted) choices_.push_back({"wait", {"host", "events"}});
    if (traits.vectors) choices_.push_back({"vectors", {"yes", "no"}});
    Parse(argc, argv);
    // As many kernels at once as there are streams need as many hardware queues, for which the driver is asked before
    // its first call (6.1).
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  }
  Options(const Options&) = delete;

  const char* name() const { return name_; }
  bool timed() const { return timed_; }
  bool latency() const { return latency_; }
  bool batched() const { return form() == Form::kFused || form() == Form::kGraph; }
  bool copies() const { return Chosen("copies") == "yes"; }
  bool shared() const { return Chosen("shared") == "yes"; }
  bool vectors() const { return Chosen("vectors") == "yes"; }
  bool Is(const std::string& choice, const std::string& value) const { return Chosen(choice) == value; }
  std::uint64_t seed() const { return static_cast<std::uint64_t>((*this)["seed"]); }

  Form form() const {
    const std::string form = Chosen("form");
    return form == "tasks"    ? Form::kTasks
           : form == "serial" ? Form::kSerial
           : form == "fused"  ? Form::kFused
           : form == "graph"  ? Form::kGraph
                              : Form::kPthreads;
  }

  bool Has(const std::string& name) const {
    return std::any_of(numbers_.begin(), numbers_.end(), [&](const Number& number) { return name == number.name; });
  }

  int operator[](const std::string& name) const {
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      if (name == numbers_[i].name) return values_[i];
    }
    Refuse(std::string(name_) + ": no number is called " + name);
  }

  /// The choices and numbers of this run, as they can be given again.
  std::string Text() const {
    std::string text = name_;
    for (const Choice& choice : choices_) {
      const bool usual = choice.name == "fused-copies" || choice.name == "spawn";
      if (!usual || choice.chosen != 0) text += " --" + choice.name + "=" + choice.values[choice.chosen];
    }
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      if (std::string("tasks").compare(numbers_[i].name) != 0 && values_[i] == numbers_[i].small &&
          IsUsual(numbers_[i].name))
        continue;
      text += std::string(" --") + numbers_[i].name + "=" + std::to_string(values_[i]);
    }
    return text;
  }

 private:
  struct Choice {
    std::string name;
    std::vector<std::string> values;
    std::size_t chosen = 0;
  };

  /// Whether a number is left out of Text() where nobody has set it.
  static bool IsUsual(const std::string& name) {
    return name == "irregular" || name == "batch" || name == "blocks" || name == "launchers" ||
           name == "host-threads" || name == "repeat" || name == "fault";
  }

  std::string Chosen(const std::string& name) const {
    for (const Choice& choice : choices_) {
      if (choice.name == name) return choice.values[choice.chosen];
    }
    return "";
  }

  void Parse(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      if (argument == "--help" || argument == "-h") Help();
      if (argument != "--small" && argument != "--paper") continue;
      for (std::size_t n = 0; n < numbers_.size(); ++n)
        values_[n] = argument == "--paper" ? numbers_[n].paper : numbers_[n].small;
    }
    for (int i = 1; i < argc; ++i) i += Take(argv[i], i + 1 < argc ? argv[i + 1] : nullptr);
  }

  /// Whether the value was an argument of its own.
  bool Take(const std::string& argument, const char* next) {
    if (argument == "--small" || argument == "--paper") return false;
    if (argument == "--time" || (argument == "--latency" && Has("batch"))) {
      (argument == "--time" ? timed_ : latency_) = true;
      return false;
    }
    const std::size_t equals = argument.find('=');
    const std::string key = argument.substr(0, equals);
    if (key.compare(0, 2, "--") != 0 || !Known(key.substr(2)))
      Refuse(std::string(name_) + ": there is no " + key + "; see " + name_ + " --help");
    if (equals == std::string::npos && next == nullptr)
      Refuse(std::string(name_) + ": " + key + " needs a value; see " + name_ + " --help");
    Set(key.substr(2), equals == std::string::npos ? next : argument.substr(equals + 1));
    return equals == std::string::npos;
  }

  bool Known(const std::string& key) const {
    return Has(key) ||
           std::any_of(choices_.begin(), choices_.end(), [&](const Choice& choice) { return choice.name == key; });
  }

  void Set(const std::string& key, const std::string& value) {
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      if (key == numbers_[i].name) values_[i] = numbers_[i].Checked(name_, value);
    }
    for (Choice& choice : choices_) {
      if (key != choice.name) continue;
      const auto found = std::find(choice.values.begin(), choice.values.end(), value);
      if (found == choice.values.end())
        Refuse(std::string(name_) + ": --" + key + "=" + value + " is not " + Join(choice.values, ", ", " or "));
      choice.chosen = static_cast<std::size_t>(found - choice.values.begin());
    }
  }

  static std::string Join(const std::vector<std::string>& words, const std::string& between, const std::string& last) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i)
      text += (i == 0 ? "" : i + 1 < words.size() ? between : last) + words[i];
    return text;
  }

  [[noreturn]] void Help() const {
    std::printf("%s: %s\n\nusage: %s [--small | --paper] [--time] [OPTIONS]\n\n", name_, about_, name_);
    for (const Choice& choice : choices_) {
      std::printf("  --%-40s%s (default: %s)\n", (choice.name + "=" + Join(choice.values, "|", "|")).c_str(),
                  About(choice.name), choice.values[0].c_str());
    }
    for (const Number& number : numbers_) {
      std::printf("  --%-40s%s (default: %d; --paper: %d)\n", (std::string(number.name) + "=N").c_str(),
                  About(number.name), number.small, number.paper);
    }
    std::printf("  --%-40swall time, and events' time, of the tasks with their copies\n", "time");
    if (Has("batch"))
      std::printf("  --%-40sof tasks: from when one is spawned until it, or its batch, has ended\n", "latency");
    std::printf("\nexamples:\n  gridloom run -- ./%s --time\n  gridloom run -- ./%s --form=serial --threads=32\n",
                name_, name_);
    std::exit(0);
  }

  static const char* About(const std::string& name) {
    static const std::pair<const char*, const char*> kAbout[] = {
        {"form", "how tasks run"},
        {"copies",
         "each task copies its data to the device and back; or all are copied before the first and after the last"},
        {"fused-copies", "form fused: one copy for a batch's data, or one for each task's"},
        {"spawn",
         "forms tasks and serial: tasks are spawned freely; or none before all of the batch before it have ended"},
        {"shared", "kernels use shared memory"},
        {"vectors", "the published vectors are checked on the device, too"},
        {"wait", "who waits for tasks that others depend on: the host, phase after phase; or those others, for events"},
        {"cap", "steps of a pixel at most"},
        {"taps", "length of the filters"},
        {"channels", "pairs of filters that a signal goes through"},
        {"radius", "of the filter, around its middle"},
        {"least", "bytes of the shortest packet"},
        {"des", "bytes of the longest packet of 3DES"},
        {"mb", "side of the images of MB"},
        {"fb", "width of the signals of FB"},
        {"mm", "side of the matrices of MM"},
        {"side", "blocks of a row of the matrix"},
        {"tasks", "number of tasks"},
        {"size", "input of a task: side, width, or bytes"},
        {"irregular", "not 0: pseudo-random sizes of tasks, and 32 to 256 threads by size"},
        {"batch", "tasks of a fused kernel, of a graph, or that are spawned together"},
        {"threads", "threads of a block"},
        {"blocks", "blocks of a task"},
        {"streams", "streams that tasks take turns in"},
        {"launchers", "threads of the host that launch tasks"},
        {"host-threads", "of --form=pthreads, and of the check; 0: all cores"},
        {"seed", "of the inputs"},
        {"repeat", "runs of all tasks, one after the other"},
        {"fault", "task of which a bit is changed on the device: the check must find it"},
    };
    for (const auto& [known, about] : kAbout) {
      if (name == known) return about;
    }
    return "";
  }

  const char *name_, *about_;
  std::vector<Number> numbers_;
  std::vector<int> values_;
  std::vector<Choice> choices_;
  bool timed_ = false, latency_ = false;
};
