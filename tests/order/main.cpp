// order [options]: random CUDA programs whose results say whether the order that CUDA promises was kept
// (docs/order.md).
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "execution.h"
#include "model.h"

namespace order {
namespace {

const char* const kUsage = R"(usage: order [options]
  --seed S            which programs are drawn (default 1)
  --first I           number of the first one (default 0)
  --programs N        how many (default 100)
  --repeat N          runs of each (default 1)
  --operations N      about how many operations each has (default 40)
  --threads N         most host threads (default 3)
  --spin N            most turns of an operation's loop, a nanosecond each (default 20000)
  --gates FORM        kernels that wait for the host: none; alone: the host awaits only what comes before them; beside: other streams' works, too (default)
  --without A,B       leave out: graphs, updates, conditions, destroy, pools, blocks, host-functions, cooperative,
                      meanwhile (works that are given while another thread waits)
  --keep LIST         of the program's operations only these, such as 0-3,7
  --patience S        seconds after which a program does not end (default 20)
  --sabotage WHAT     leave out calls, which has to be noticed: waits, events, streams, device, legacy, free; the exit code is 0 if it is
  --shrink            take operations away from the first program that fails, as long as it fails
  --list              show the programs, run nothing
)";

struct Options {
  std::uint64_t seed = 1;
  int first = 0, programs = 100, repeat = 1;
  Mix mix;
  Limits limits;
  std::string keep, sabotage;
  bool shrink = false, list = false;
  std::vector<std::string> of_mix;  ///< arguments that say what programs are made of, for the command that repeats one
};

[[noreturn]] void Usage(const std::string& what) {
  std::fprintf(stderr, "order: %s\n%s", what.c_str(), kUsage);
  std::exit(2);
}

std::vector<std::string> Split(const std::string& list) {
  std::vector<std::string> words(1);
  for (const char c : list) {
    if (c == ',') words.emplace_back();
    else words.back() += c;
  }
  return words;
}

void LeaveOut(Mix& mix, const std::string& list) {
  for (const std::string& word : Split(list)) {
    if (word == "graphs") mix.graphs = false;
    else if (word == "updates") mix.updates = false;
    else if (word == "conditions") mix.conditions = false;
    else if (word == "destroy") mix.destroy = false;
    else if (word == "pools") mix.pools = false;
    else if (word == "blocks") mix.blocks = false;
    else if (word == "host-functions") mix.host_functions = false;
    else if (word == "cooperative") mix.cooperative = false;
    else if (word == "meanwhile") mix.meanwhile = false;
    else if (!word.empty()) Usage("unknown --without " + word);
  }
}
Mix::Gates GatesOf(const std::string& word) {
  if (word == "none") return Mix::Gates::kNone;
  if (word == "alone") return Mix::Gates::kAlone;
  if (word == "beside") return Mix::Gates::kBeside;
  Usage("unknown --gates " + word);
}
Sabotage SabotageOf(const std::string& word) {
  static const char* const names[] = {"", "waits", "events", "streams", "device", "legacy", "free"};
  for (int i = 1; i < 7; ++i)
    if (word == names[i]) return static_cast<Sabotage>(i);
  Usage("unknown --sabotage " + word);
}

Options Parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = words[i];
    if (name == "--shrink") options.shrink = true;
    else if (name == "--list") options.list = true;
    else if (i + 1 == count) Usage("unknown " + name);
    if (options.shrink && name == "--shrink") continue;
    if (options.list && name == "--list") continue;
    const std::string value = words[++i];
    const int number = std::atoi(value.c_str());
    bool of_mix = true;
    if (name == "--operations") options.mix.operations = number;
    else if (name == "--threads") options.mix.threads = number;
    else if (name == "--spin") options.mix.spin = static_cast<std::uint32_t>(number);
    else if (name == "--gates") options.mix.gates = GatesOf(value);
    else if (name == "--without") LeaveOut(options.mix, value);
    else of_mix = false;
    if (of_mix) {
      options.of_mix.push_back(name);
      options.of_mix.push_back(value);
      continue;
    }
    if (name == "--seed") options.seed = std::strtoull(value.c_str(), nullptr, 0);
    else if (name == "--first") options.first = number;
    else if (name == "--programs") options.programs = number;
    else if (name == "--repeat") options.repeat = number;
    else if (name == "--keep") options.keep = value;
    else if (name == "--patience") options.limits.patience = std::atof(value.c_str());
    else if (name == "--sabotage") options.limits.sabotage = SabotageOf(value), options.sabotage = value;
    else Usage("unknown " + name);
  }
  if (options.mix.threads < 1 || options.mix.threads > 8 || options.mix.operations < 1 || options.mix.operations > 200)
    Usage("threads are 1 to 8, operations 1 to 200");
  return options;
}

std::set<int> ParseKeep(const std::string& list) {
  std::set<int> kept;
  for (const std::string& word : Split(list)) {
    int from = 0, to = 0;
    const int read = std::sscanf(word.c_str(), "%d-%d", &from, &to);
    if (read < 1) Usage("--keep takes numbers");
    if (read == 1) to = from;
    for (int i = from; i <= to; ++i) kept.insert(i);
  }
  return kept;
}
std::string FormatKeep(const std::set<int>& kept) {
  std::string list;
  for (auto i = kept.begin(); i != kept.end();) {
    const int from = *i;
    int to = from;
    for (++i; i != kept.end() && *i == to + 1; ++i) to = *i;
    list += (list.empty() ? "" : ",") + std::to_string(from) + (to > from ? "-" + std::to_string(to) : "");
  }
  return list;
}

Program TheProgram(const Options& options, int number) {
  Numbers numbers(options.seed * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(number));
  Program program = Draw(numbers.Next(), options.mix);
  if (options.keep.empty()) return program;
  const std::set<int> kept = ParseKeep(options.keep);
  std::vector<Operation> operations;
  for (const Operation& operation : program.operations)
    if (kept.count(operation.id) != 0) operations.push_back(operation);
  program.operations = operations;
  return program;
}

/// Arguments that run the program alone.
std::vector<std::string> Again(const Options& options, int number, const std::string& keep, int repeat) {
  std::vector<std::string> words = options.of_mix;
  for (const std::string& word :
       {std::string("--seed"), std::to_string(options.seed), std::string("--first"), std::to_string(number),
        std::string("--programs"), std::string("1"), std::string("--repeat"), std::to_string(repeat)})
    words.push_back(word);
  if (!options.sabotage.empty()) words.insert(words.end(), {"--sabotage", options.sabotage});
  if (!keep.empty()) words.insert(words.end(), {"--keep", keep});
  return words;
}

// For the report of a program that never ends.
const Options* g_options = nullptr;
const Model* g_model = nullptr;
int g_number = 0;

void Report(const std::vector<std::string>& failures) {
  std::printf("FAIL: program %d of seed %llu\n", g_number, static_cast<unsigned long long>(g_options->seed));
  for (std::size_t i = 0; i < failures.size() && i < 12; ++i) std::printf("  %s\n", failures[i].c_str());
  if (failures.size() > 12) std::printf("  and %zu more\n", failures.size() - 12);
  std::printf("the program:\n%s", g_model->Listing().c_str());
  std::printf("again:");
  for (const std::string& word : Again(*g_options, g_number, g_options->keep, 200)) std::printf(" %s", word.c_str());
  std::printf("\n");
  std::fflush(stdout);
}

// --- shrinking ---

/// Whether the program of these operations fails in a process of its own.
bool Fails(const Options& options, int number, const std::set<int>& kept) {
  std::vector<std::string> words = Again(options, number, FormatKeep(kept), options.repeat > 1 ? options.repeat : 50);
  words.insert(words.begin(), "/proc/self/exe");
  words.insert(words.end(), {"--patience", std::to_string(std::min(options.limits.patience, 2.0))});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) std::_Exit(125);
    execv(arguments[0], arguments.data());
    std::_Exit(125);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const bool ended = WIFEXITED(status);
  if (ended && (WEXITSTATUS(status) == 125 || WEXITSTATUS(status) == 2)) Usage("the program cannot be run again");
  return !ended || WEXITSTATUS(status) != 0;
}

/// Takes away ever smaller parts as long as what is left fails.
int Shrink(Options options, int number) {
  std::set<int> kept;
  for (const Operation& operation : TheProgram(options, number).operations) kept.insert(operation.id);
  options.keep.clear();
  for (std::size_t part = kept.size() / 2; part > 0; part = part == 1 ? 0 : (part + 1) / 2) {
    for (std::size_t from = 0; from < kept.size();) {
      std::set<int> without;
      std::size_t place = 0;
      for (const int operation : kept) {
        if (place < from || place >= from + part) without.insert(operation);
        ++place;
      }
      if (!without.empty() && Fails(options, number, without)) kept = without;
      else from += part;
    }
    std::printf("shrink: %zu operations left\n", kept.size());
    std::fflush(stdout);
  }
  options.keep = FormatKeep(kept);
  const Model model(TheProgram(options, number), options.mix);
  std::printf("the shrunk program:\n%s", model.Listing().c_str());
  std::printf("again:");
  for (const std::string& word : Again(options, number, options.keep, 200)) std::printf(" %s", word.c_str());
  std::printf("\n");
  return 1;
}

/// Of a program that never ends: the process ends behind it.
void ReportHang(const std::vector<std::string>& failures) {
  Report(failures);
  if (g_options->shrink) Shrink(*g_options, g_number);
}

/// Only a pause makes it likely that a thread is in its call when another one goes on. Who does not end for want of it
/// gets a longer one.
std::vector<std::string> PlayPatiently(Stage& stage, const Model& model, Limits limits) {
  std::vector<std::string> failures;
  bool pauses = false;
  for (const Call& call : model.calls) pauses = pauses || call.entered.first >= 0;
  for (const double pause : {0.0005, 0.05, 0.5}) {
    limits.pause = pause;
    failures = stage.Play(model, limits, ReportHang);
    if (failures.empty() || !pauses) return failures;
  }
  return failures;
}

int Main(const Options& options) {
  g_options = &options;
  if (options.list) {
    for (int i = 0; i < options.programs; ++i) {
      const Model model(TheProgram(options, options.first + i), options.mix);
      std::printf("program %d, %d host threads\n%s", options.first + i, model.threads, model.Listing().c_str());
    }
    return 0;
  }
  const auto start = std::chrono::steady_clock::now();
  Stage stage;
  long calls = 0, reads = 0, gates = 0;
  for (int i = 0; i < options.programs; ++i) {
    g_number = options.first + i;
    const Model model(TheProgram(options, g_number), options.mix);
    g_model = &model;
    for (int round = 0; round < options.repeat; ++round) {
      const std::vector<std::string> failures = PlayPatiently(stage, model, options.limits);
      calls += static_cast<long>(model.operations.size());
      for (const Access& access : model.accesses) reads += static_cast<long>(access.reads.size());
      for (const Operation& operation : model.operations) gates += operation.kind == Kind::kGate;
      if (failures.empty()) continue;
      if (options.limits.sabotage != Sabotage::kNone && options.keep.empty() && !options.shrink) {
        std::printf("PASS: noticed in program %d: %s\n", g_number, failures.front().c_str());
        return 0;
      }
      Report(failures);
      return options.shrink ? Shrink(options, g_number) : 1;
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%s: %d programs, %ld calls, %ld gates, %ld reads in %.1f s, %.0f programs a second\n",
              options.limits.sabotage == Sabotage::kNone ? "PASS" : "FAIL: not noticed",
              options.programs * options.repeat, calls, gates, reads, seconds,
              options.programs * options.repeat / seconds);
  return options.limits.sabotage != Sabotage::kNone && options.keep.empty();
}

}  // namespace
}  // namespace order

int main(int count, char** words) { return order::Main(order::Parse(count, words)); }
