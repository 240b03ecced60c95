// Traces and sessions that mean harm, against what reads them: replays, and the broker's timing model with sessions one
// after the other. Both under every policy and with every proposed part. Whatever a program says, the process lives,
// what it read ends with a result or an error, and an honest session gets its answer.
#include <sys/socket.h>
#include <sys/time.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "scheduler/policy/builtin.h"
#include "sim/device/device_files.h"
#include "sim/hardware/catalog.h"
#include "sim/study/replay/job.h"
#include "sim/tenants/timing_service.h"
#include "sim/trace/trace_records.h"
#include "tests/fuzz/programs/program.h"

namespace gridloom::fuzz {
namespace {

using protocol::Fd;
using protocol::FrameKind;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMostVisits = 100'000;  // of what is replayed: the rest takes time and shows nothing
constexpr int kSessionsOfAModel = 25;
constexpr auto kPatience = std::chrono::seconds(60);

struct Options {
  std::uint64_t sessions = 100, seed = 1;
  double seconds = 0;         ///< as long, however many sessions; 0: as many as there are to be
  std::string parts, corpus;  ///< of all parts that one; a folder of files
  std::string keep;           ///< where the file or frames are kept that are being read
};

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

/// A device, and how its kernels are scheduled.
struct Model {
  std::string policy, part;
  sim::DeviceSpec device;
  std::string name() const { return policy + " with " + part; }
};

std::vector<Model> Models(const std::string& only) {
  std::vector<Model> models;
  std::vector<std::string> parts = {"none"};
  for (const hardware::PartKind* const kind : hardware::Kinds()) parts.emplace_back(kind->name);
  for (const std::string& part : parts) {
    if (!only.empty() && part != only) continue;
    for (const policy::PolicyInfo& policy : policy::Policies()) {
      // Small devices, on which kernels of a program meet.
      auto device = sim::LoadDevice(part == "pagoda" || part == "gemtc" ? "titanx-maxwell" : "fermi-8");
      if (!device.ok()) Die(device.error().message);
      device->sm.count = 2;
      if (!hardware::Equip(part, "", *device).ok()) continue;
      models.push_back({std::string(policy.name), part, hardware::WithPartsFor(*device, policy.name)});
    }
  }
  return models;
}

// ---- replays

std::uint64_t VisitsOf(const std::shared_ptr<trace::TraceFile>& file) {
  std::uint64_t visits = 0;
  for (std::size_t l = 0; l < file->launches().size(); ++l) {
    const auto source = trace::TraceFile::Source(file, l);
    for (const std::uint64_t cta : file->launches()[l].KeptCtas()) {
      const auto loaded = source->Load(cta);
      if (!loaded.ok()) break;
      visits += loaded->trace->visits.size();
      for (const trace::Repeat& repeat : loaded->trace->repeats) visits += repeat.more * repeat.visit_count;
      if (visits > kMostVisits) return visits;
    }
  }
  return visits;
}

bool ReplayFile(const Model& model, Bytes bytes) {
  const auto file = trace::TraceFile::FromBytes(std::move(bytes), "input");
  if (!file.ok() || VisitsOf(*file) > kMostVisits) return false;
  return study::Replay(model.device, model.policy, {*file}, 1).ok();
}

// ---- sessions

/// One timing model, and the sessions that it has.
class Service {
 public:
  explicit Service(const Model& model) : name_(model.name()) {
    auto made = tenants::TimingService::Create(model.device,
                                               {.policy = model.policy, .patience_ms = 1, .launch_seconds = 0.01});
    if (!made.ok()) return;  // policies and parts that brokers do not have
    service_ = std::move(made).value();
    good_ = Join();
  }
  bool there() const { return service_ != nullptr; }

  /// A session that says all that, and goes: at once, or when it has been answered.
  void Say(const std::vector<Frame>& frames, bool stays) {
    const std::uint64_t session = sessions_ + 1;
    {
      const Fd socket = Join();
      SetPatience(socket, std::chrono::milliseconds(stays ? 500 : 1));
      for (const Frame& frame : frames) {
        if (!protocol::SendFrame(socket.get(), frame.kind, frame.bytes)) break;
      }
      if (stays) static_cast<void>(protocol::ReceiveFrame(socket.get()).ok());
    }
    CheckHonest();
    service_->Leave(session);
  }

 private:
  Fd Join() {
    auto socket = service_->Join({.session = ++sessions_,
                                  .tenant = static_cast<std::uint32_t>(sessions_),
                                  .tenant_name = "tenant",
                                  .program = "program",
                                  .limits = {}});
    if (!socket.ok()) Die(name_ + ": " + socket.error().message);
    return std::move(socket).value();
  }

  static void SetPatience(const Fd& socket, std::chrono::milliseconds patience) {
    const timeval time{patience.count() / 1000, patience.count() % 1000 * 1000};
    setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  }

  /// An event that is recorded and waited for.
  void CheckHonest() {
    trace::HostAction action;
    action.kind = trace::HostAction::Kind::kMarker;
    action.work = ++works_;
    action.stream = 1;
    trace::ByteWriter marker, question;
    trace::PutAction(action, marker);
    for (const std::uint64_t value : {works_, std::uint64_t{1}, works_}) question.Varint(value);
    SetPatience(good_, kPatience);
    const bool said = protocol::SendFrame(good_.get(), FrameKind::kAction, marker.bytes()) &&
                      protocol::SendFrame(good_.get(), FrameKind::kWait, question.bytes());
    const auto answer = protocol::ReceiveFrame(good_.get());
    if (!service_->problem().empty()) Die(name_ + ": the model has ended: " + service_->problem());
    if (!said || !answer.ok() || !answer->has_value()) Die(name_ + ": the honest session has no answer");
  }

  const std::string name_;
  std::unique_ptr<tenants::TimingService> service_;
  std::uint64_t sessions_ = 0, works_ = 0;
  Fd good_;
};

// ---- all of it

class Runner {
 public:
  explicit Runner(Options options)
      : options_(std::move(options)), random_(options_.seed), models_(Models(options_.parts)) {
    for (const std::string& name : Files(options_.corpus)) {
      std::ifstream in(name, std::ios::binary);
      corpus_.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
  }

  int Run() {
    for (const Bytes& file : corpus_) RunFile(file);
    const auto begin = Clock::now();
    const auto goes_on = [&] {
      if (options_.seconds == 0) return sessions_ < options_.sessions;
      return std::chrono::duration<double>(Clock::now() - begin).count() < options_.seconds;
    };
    while (goes_on()) RunModel(goes_on);
    std::printf("%zu files, %llu sessions and %llu replays, %llu of which came to an end\n", corpus_.size(),
                static_cast<unsigned long long>(sessions_), static_cast<unsigned long long>(replays_),
                static_cast<unsigned long long>(ended_));
    return sessions_ == 0 ? 1 : 0;
  }

 private:
  static std::vector<std::string> Files(const std::string& folder) {
    std::vector<std::string> names;
    if (folder.empty()) return names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path());
    std::sort(names.begin(), names.end());
    return names;
  }

  /// A file of the corpus as it is, and as a session, under each policy and with each part once.
  void RunFile(const Bytes& file) {
    const auto opened = trace::TraceFile::FromBytes(file, "corpus");
    if (!opened.ok()) Die("a file of the corpus is no trace: " + opened.error().message);
    const Program program = ReadProgram(*opened);
    for (std::size_t i = 0; i < models_.size(); ++i) {
      if (models_[i].policy != "leftover" && models_[i].part != "none") continue;
      replays_ += 1;
      ended_ += ReplayFile(models_[i], file) ? 1 : 0;
      Service service(models_[i]);
      if (!service.there()) continue;
      service.Say(FramesOf(program, random_, false), true);
      ++sessions_;
    }
  }

  template <typename GoesOn>
  void RunModel(const GoesOn& goes_on) {
    const Model& model = models_[random_() % models_.size()];
    std::optional<Service> service(model);
    for (int i = 0; i < kSessionsOfAModel && goes_on(); ++i) {
      Program program = corpus_.empty() || random_() % 4 != 0 ? RandomProgram(random_) : FromCorpus();
      const bool valid = random_() % 3 == 0;
      for (std::uint64_t changes = valid ? 0 : 1 + random_() % 4; changes > 0; --changes) Change(program, random_);
      const bool damage = !valid && random_() % 2 == 0;
      if (service->there()) {
        const std::vector<Frame> frames = FramesOf(program, random_, damage);
        Keep(model, "session " + std::to_string(i), frames);
        service->Say(frames, random_() % 2 == 0);
      }
      ++sessions_;
      if (i % 2 != 0) continue;
      Bytes file = FileOf(program, random_, damage);
      Keep(model, "replay", {{FrameKind::kCode, file}});
      ++replays_;
      ended_ += ReplayFile(model, std::move(file)) ? 1 : 0;
    }
  }

  Program FromCorpus() {
    const auto opened = trace::TraceFile::FromBytes(corpus_[random_() % corpus_.size()], "corpus");
    return ReadProgram(*opened);
  }

  /// What is read now, for who looks for what it has done.
  void Keep(const Model& model, const std::string& what, const std::vector<Frame>& frames) const {
    if (options_.keep.empty()) return;
    std::ofstream out(options_.keep, std::ios::binary | std::ios::trunc);
    for (const Frame& frame : frames)
      out.write(reinterpret_cast<const char*>(frame.bytes.data()), static_cast<std::streamsize>(frame.bytes.size()));
    std::ofstream about(options_.keep + ".txt", std::ios::trunc);
    about << model.name() << ", " << what << ", " << sessions_ << " sessions before it\n";
  }

  const Options options_;
  Random random_;
  const std::vector<Model> models_;
  std::vector<Bytes> corpus_;
  std::uint64_t sessions_ = 0, replays_ = 0, ended_ = 0;
};

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--sessions") options.sessions = std::strtoull(value.c_str(), nullptr, 10);
    else if (name == "--seed") options.seed = std::strtoull(value.c_str(), nullptr, 10);
    else if (name == "--seconds") options.seconds = std::strtod(value.c_str(), nullptr);
    else if (name == "--part") options.parts = value;
    else if (name == "--corpus") options.corpus = value;
    else if (name == "--keep") options.keep = value;
    else
      Die("usage: hostile_programs [--sessions N | --seconds S] [--seed N] [--part NAME] [--corpus FOLDER] [--keep "
          "FILE]");
  }
  return options;
}

}  // namespace
}  // namespace gridloom::fuzz

int main(int argc, char** argv) { return gridloom::fuzz::Runner(gridloom::fuzz::Parse(argc, argv)).Run(); }
