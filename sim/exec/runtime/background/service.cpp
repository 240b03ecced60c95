// gridloom-compile: makes machine code for one program, beside it and for some time after its end (client.h). It is a
// process of its own, so that LLVM neither holds up the end of the program nor takes it along, and so that what has
// begun is not lost. It has what the program gave it: a socket, and nothing else.
//   gridloom-compile LIBRARY CACHE-DIRECTORY CACHE-BYTES THREADS BEGINS-FOR-SECONDS
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "gl_compiler_interface.h"
#include "sim/exec/runtime/background/after_end.h"
#include "sim/exec/runtime/background/messages.h"
#include "sim/exec/runtime/code_cache.h"
#include "sim/exec/runtime/compiler_loader.h"

namespace {

using namespace gridloom;
using namespace gridloom::exec;
using namespace gridloom::exec::background;

// After the program's end. Limits are of processor time, as at the lowest priority a busy machine leaves little of each
// second. They end what never comes to an end: by far the largest kernels take a minute.
constexpr double kMostSecondsOfAThread = 600;
constexpr auto kMostWallTime = std::chrono::hours(1);
constexpr auto kLookEvery = std::chrono::seconds(1);

double ProcessorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Job {
  Request request;
  std::string name;
  int file = -1;  ///< PackModule's
};

class Service {
 public:
  Service(CompilerLoader& loader, CodeCache& cache, double begins_for)
      : loader_(loader), cache_(cache), begins_for_(begins_for) {}

  /// Takes jobs until the program hangs up.
  void Listen() {
    for (;;) {
      Job job;
      const std::string message = Receive(kServiceSocket, job.file);
      if (message.empty()) return;
      if (message.size() < sizeof job.request) continue;
      std::memcpy(&job.request, message.data(), sizeof job.request);
      job.name = message.substr(sizeof job.request);
      if (job.name.size() != job.request.name_bytes ||
          std::string_view(job.request.interface.data()) != kCompilerInterface) {
        Answer(job, "the compile service is of another build than the program's library");
        continue;
      }
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
      more_.notify_one();
    }
  }

  void Work() {
    for (;;) {
      Job job;
      {
        std::unique_lock lock(mutex_);
        more_.wait(lock, [&] { return !jobs_.empty() || ended_; });
        if (jobs_.empty() || (ended_ && ProcessorSeconds() - ended_at_ >= begins_for_)) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      Make(job);
    }
  }

  /// The program has ended: what was asked for is finished for the next run of it, out of everybody's way.
  void End() {
    LowerPriority();
    const std::lock_guard lock(mutex_);
    ended_ = true;
    ended_at_ = ProcessorSeconds();
    more_.notify_all();
  }

  bool HasWork() {
    const std::lock_guard lock(mutex_);
    return !jobs_.empty() || !making_.empty();
  }

  /// Until there is nothing left to wait for after the end, though threads may be at work.
  void WatchAfterEnd(std::size_t threads) {
    const auto start = std::chrono::steady_clock::now();
    const double most = kMostSecondsOfAThread * static_cast<double>(threads);
    do std::this_thread::sleep_for(kLookEvery);
    while (std::chrono::steady_clock::now() - start < kMostWallTime && ProcessorSeconds() - ended_at_ < most &&
           !OthersHaveMadeAll());
  }

 private:
  /// Later runs of the program have services of their own, which are faster as long as the program waits for them.
  bool OthersHaveMadeAll() {
    const std::lock_guard lock(mutex_);
    const bool more = !jobs_.empty() && ProcessorSeconds() - ended_at_ < begins_for_;
    return !more && !making_.empty() &&
           std::ranges::all_of(making_, [this](const CacheKey& key) { return cache_.Load(key).has_value(); });
  }

  void Make(Job& job) {
    const CacheKey key = job.request.key;
    std::list<CacheKey>::iterator place;
    bool ended = false;
    {
      const std::lock_guard lock(mutex_);
      place = making_.insert(making_.end(), key);
      ended = ended_;
    }
    const CodeCache::Claim claim = cache_.ClaimToMake(key);
    if (!ended || !claim.is_others()) MakeClaimed(job);
    else Close(job);
    const std::lock_guard lock(mutex_);
    making_.erase(place);
  }

  void MakeClaimed(Job& job) {
    const CacheKey key = job.request.key;
    if (std::optional<CompiledKernel> known = cache_.Load(key)) return Deliver(job, *known);
    const Result<std::string> packed = ReadFile(job.file);
    if (!packed.ok()) return Answer(job, packed.error().message);
    const Result<std::unique_ptr<ptx::Module>> module = UnpackModule(*packed);
    if (!module.ok()) return Answer(job, module.error().message);
    const Result<CompileFn> compile = loader_.Load();
    if (!compile.ok()) return Answer(job, compile.error().message);
    const CompileOptions options = OptionsOf(job.request);
    CompiledKernel made;
    (*compile)(module->get(), job.name.c_str(), &options, &made);
    if (!made.error.empty()) return Answer(job, made.error);
    cache_.Store(key, made);
    Deliver(job, made);
  }

  void Deliver(Job& job, const CompiledKernel& made) {
    const int file = MakeFile(PackKernel(job.request.key, made));
    if (file < 0) return Answer(job, "no memory for the code of a kernel");
    const Reply reply{job.request.id, 1, 0};
    Send(kServiceSocket, {reinterpret_cast<const char*>(&reply), sizeof reply}, file);
    close(file);
    Close(job);
  }

  void Answer(Job& job, std::string_view error) {
    error = error.substr(0, 2000);
    const Reply reply{job.request.id, 0, static_cast<std::uint32_t>(error.size())};
    std::string message(reinterpret_cast<const char*>(&reply), sizeof reply);
    message += error;
    Send(kServiceSocket, message, -1);
    Close(job);
  }

  static void Close(Job& job) {
    if (job.file >= 0) close(job.file);
    job.file = -1;
  }

  CompilerLoader& loader_;
  CodeCache& cache_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<Job> jobs_;
  std::list<CacheKey> making_;
  const double begins_for_;
  bool ended_ = false;
  double ended_at_ = 0;  ///< ProcessorSeconds
};

std::atomic<bool> g_held{false};

/// Of threads that stand still, wherever they are.
void Hold(int) {
  const int before = errno;
  constexpr timespec kPause{0, 20'000'000};
  while (g_held.load()) nanosleep(&kPause, nullptr);
  errno = before;
}

/// Where many programs have ended before this one, their services go first; where too many have, this one ends.
void LetOthersGoFirst(PlacesAfterEnd& places, std::vector<std::thread>& workers) {
  const PlacesAfterEnd::Place place = places.Take();
  if (place == PlacesAfterEnd::Place::kWork) return;
  if (place == PlacesAfterEnd::Place::kNone) _exit(0);
  struct sigaction action {};
  action.sa_handler = Hold;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  g_held = true;
  for (std::thread& worker : workers) pthread_kill(worker.native_handle(), SIGUSR1);
  places.WaitForWork();
  g_held = false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fputs(
        "gridloom-compile is started by programs that run under Gridloom, to make machine code of their kernels beside "
        "them.\n",
        stderr);
    return 2;
  }
  CompilerLoader loader{std::string(argv[1])};
  CodeCache cache(argv[2], std::strtoull(argv[3], nullptr, 10), {});
  Service service(loader, cache, std::strtod(argv[5], nullptr));
  std::vector<std::thread> workers;
  for (unsigned long i = 0; i < std::clamp(std::strtoul(argv[4], nullptr, 10), 1ul, 64ul); ++i)
    workers.emplace_back([&] { service.Work(); });
  service.Listen();
  service.End();
  PlacesAfterEnd places(cache.enabled() ? argv[2] : "", std::clamp(std::thread::hardware_concurrency(), 1u, 64u));
  if (service.HasWork()) LetOthersGoFirst(places, workers);
  std::thread([&service, threads = workers.size()] {
    service.WatchAfterEnd(threads);
    _exit(0);
  }).detach();
  for (std::thread& worker : workers) worker.join();
  _exit(0);
}
