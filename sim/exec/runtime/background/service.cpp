// gridloom-compile: makes machine code for one program, beside it and for some seconds after its end (client.h). It is a process of its
// own, so that LLVM neither holds up the end of the program nor takes it along, and so that what has begun is not lost. It has what the
// program gave it: a socket, and nothing else.
//   gridloom-compile LIBRARY CACHE-DIRECTORY CACHE-BYTES THREADS
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "gl_compiler_interface.h"
#include "sim/exec/runtime/background/messages.h"
#include "sim/exec/runtime/code_cache.h"
#include "sim/exec/runtime/compiler_loader.h"

namespace {

using namespace gridloom;
using namespace gridloom::exec;
using namespace gridloom::exec::background;

constexpr unsigned kSecondsAfterEnd = 20;
constexpr int kNiceAfterEnd = 19;

struct Job {
  Request request;
  std::string name;
  int file = -1;  ///< PackModule's
};

class Service {
 public:
  Service(CompilerLoader& loader, CodeCache& cache) : loader_(loader), cache_(cache) {}

  /// Takes jobs until the program hangs up.
  void Listen() {
    for (;;) {
      Job job;
      const std::string message = Receive(kServiceSocket, job.file);
      if (message.empty()) return;
      if (message.size() < sizeof job.request) continue;
      std::memcpy(&job.request, message.data(), sizeof job.request);
      job.name = message.substr(sizeof job.request);
      if (job.name.size() != job.request.name_bytes || std::string_view(job.request.interface.data()) != kCompilerInterface) {
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
        if (jobs_.empty()) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      Make(job);
    }
  }

  void End() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    more_.notify_all();
  }

 private:
  void Make(Job& job) {
    const CacheKey key = job.request.key;
    if (std::optional<CompiledKernel> known = cache_.Load(key)) return Deliver(job, *known);
    const Result<std::string> packed = ReadFile(job.file);
    if (!packed.ok()) return Answer(job, packed.error().message);
    const Result<std::unique_ptr<ptx::Module>> module = UnpackModule(*packed);
    if (!module.ok()) return Answer(job, module.error().message);
    const Result<CompileFn> compile = loader_.Load();
    if (!compile.ok()) return Answer(job, compile.error().message);
    CompileOptions options;
    std::copy(std::begin(job.request.block), std::end(job.request.block), options.block);
    options.small_grid = job.request.small_grid != 0;
    options.clusters = job.request.clusters != 0;
    options.fetch_ahead = job.request.fetch_ahead != 0;
    options.few_lanes = job.request.few_lanes;
    options.cpu = std::string(job.request.cpu.data(), strnlen(job.request.cpu.data(), job.request.cpu.size()));
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
  bool ended_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("gridloom-compile is started by programs that run under Gridloom, to make machine code of their kernels beside them.\n",
               stderr);
    return 2;
  }
  CompilerLoader loader{std::string(argv[1])};
  CodeCache cache(argv[2], std::strtoull(argv[3], nullptr, 10), {});
  Service service(loader, cache);
  std::vector<std::thread> workers;
  for (unsigned long i = 0; i < std::clamp(std::strtoul(argv[4], nullptr, 10), 1ul, 64ul); ++i)
    workers.emplace_back([&] { service.Work(); });
  service.Listen();
  // The program has ended: what was asked for is finished for the next run of it, out of everybody's way and not for long.
  setpriority(PRIO_PROCESS, 0, kNiceAfterEnd);
  service.End();
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::seconds(kSecondsAfterEnd));
    _exit(0);
  }).detach();
  for (std::thread& worker : workers) worker.join();
  _exit(0);
}
