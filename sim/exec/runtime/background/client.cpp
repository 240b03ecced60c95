#include "sim/exec/runtime/background/client.h"

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "gl_compiler_interface.h"
#include "rewriter/support/own_thread.h"
#include "sim/exec/runtime/background/messages.h"
#include "sim/exec/runtime/background/spawn.h"

namespace gridloom::exec {

namespace bg = background;
using Clock = std::chrono::steady_clock;

/// One service and the threads that talk to it: one gives it jobs when they are due, one takes what it has made.
struct BackgroundCompiler::Link {
  struct Due {
    Clock::time_point when;
    Job job;
  };

  Link(const Options& with, std::atomic<bool>& available_flag) : options(with), available(available_flag) {}

  void Start(const std::shared_ptr<Link>& self) {
    const OwnThreadSignals signals;
    sender = std::thread([self] {
      BecomeOwnThread();
      self->SendDue();
    });
  }

  void Stop() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
      if (socket >= 0) shutdown(socket, SHUT_RDWR);
    }
    changed.notify_all();
    if (sender.joinable()) sender.join();
    if (socket >= 0) shutdown(socket, SHUT_RDWR);  // a sender that was at its first job has connected meanwhile
    if (receiver.joinable()) receiver.join();
    if (socket >= 0) close(socket);
  }

  void SendDue() {
    std::unique_lock lock(mutex);
    while (!stop) {
      auto next = queue.begin();
      for (auto it = queue.begin(); it != queue.end(); ++it)
        if (it->when < next->when) next = it;
      if (next == queue.end()) {
        changed.wait(lock);
        continue;
      }
      if (next->when > Clock::now()) {
        changed.wait_until(lock, next->when);
        continue;
      }
      Job job = std::move(next->job);
      queue.erase(next);
      lock.unlock();
      if (!job.wanted || job.wanted()) Give(std::move(job));
      lock.lock();
    }
  }

  /// On the sender's thread.
  void Give(Job job) {
    if (socket < 0 && !Connect()) {
      available = false;
      return Refuse(job, "the compile service does not start");
    }
    bg::Request request;
    std::strncpy(request.interface.data(), kCompilerInterface, request.interface.size() - 1);
    request.key = job.key;
    bg::SetOptions(job.options, request);
    if (job.kernel.size() > bg::kMaxName)
      return Refuse(job, "a kernel with a name of " + std::to_string(job.kernel.size()) + " bytes");
    request.name_bytes = static_cast<std::uint32_t>(job.kernel.size());
    int file = -1;
    {
      const std::lock_guard packing(packs);
      file = bg::MakeFile(bg::PackModule(*job.module));
    }
    if (file < 0) return Refuse(job, "no memory for the text of a module");
    {
      const std::lock_guard lock(mutex);
      request.id = ++last_id;
      pending.emplace(request.id, std::move(job));
    }
    std::string message(reinterpret_cast<const char*>(&request), sizeof request);
    {
      const std::lock_guard lock(mutex);
      message += pending.at(request.id).kernel;
    }
    const bool sent = bg::Send(socket, message, file);
    close(file);
    if (!sent) Fail(request.id);
  }

  bool Connect() {
    if (failed) return false;
    int pair[2];
    failed = true;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return false;
    const bool started = bg::SpawnDetached(
        {options.service, options.library, options.cache_directory, std::to_string(options.cache_bytes),
         std::to_string(options.threads), std::to_string(options.begins_for)},
        pair[1]);
    close(pair[1]);
    if (!started) {
      close(pair[0]);
      return false;
    }
    failed = false;
    const std::lock_guard lock(mutex);
    socket = pair[0];
    const OwnThreadSignals signals;
    receiver = std::thread([this] {
      BecomeOwnThread();
      TakeReplies();
    });
    return true;
  }

  void TakeReplies() {
    for (;;) {
      int file = -1;
      const std::string message = bg::Receive(socket, file);
      bg::Reply reply;
      if (message.size() < sizeof reply) break;
      std::memcpy(&reply, message.data(), sizeof reply);
      std::optional<Job> job = Take(reply.id);
      if (job) job->done(Read(*job, reply, message, file));
      if (file >= 0) close(file);
    }
    // The service has ended, or this end hangs up. What was asked for will not come.
    failed = true;
    std::unordered_map<std::uint64_t, Job> lost;
    {
      const std::lock_guard lock(mutex);
      lost = std::exchange(pending, {});
      if (stop) return;
    }
    for (auto& [id, job] : lost) job.done(Error{"the compile service has ended"});
  }

  static Result<CompiledKernel> Read(const Job& job, const bg::Reply& reply, const std::string& message, int file) {
    if (reply.ok == 0) return Error{message.substr(sizeof reply)};
    GL_TRY(bytes, bg::ReadFile(file));
    std::optional<CompiledKernel> kernel = UnpackKernel(job.key, bytes);
    if (!kernel) return Error{"the compile service sent something else than a kernel"};
    return std::move(*kernel);
  }

  std::optional<Job> Take(std::uint64_t id) {
    const std::lock_guard lock(mutex);
    const auto it = pending.find(id);
    if (it == pending.end()) return std::nullopt;
    std::optional<Job> job(std::move(it->second));
    pending.erase(it);
    return job;
  }

  void Fail(std::uint64_t id) {
    if (std::optional<Job> job = Take(id)) Refuse(*job, "the compile service does not answer");
  }

  /// Nobody is told once this end hangs up: that a call fails is then no fault of the service.
  void Refuse(const Job& job, std::string why) {
    {
      const std::lock_guard lock(mutex);
      if (stop) return;
    }
    job.done(Error{std::move(why)});
  }

  const Options options;
  std::atomic<bool>& available;
  std::mutex packs;  ///< held while a module's own lock is, which a fork must find free
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Due> queue;
  std::unordered_map<std::uint64_t, Job> pending;
  std::uint64_t last_id = 0;
  int socket = -1;
  bool stop = false;
  std::atomic<bool> failed{false};
  std::thread sender, receiver;
};

namespace {

/// The service works in another folder than the program.
BackgroundCompiler::Options Absolute(BackgroundCompiler::Options options) {
  for (std::string* const path : {&options.service, &options.library, &options.cache_directory}) {
    std::error_code problem;
    if (!path->empty()) *path = std::filesystem::absolute(*path, problem).string();
  }
  return options;
}

}  // namespace

BackgroundCompiler::BackgroundCompiler(Options options)
    : options_(Absolute(std::move(options))), available_(access(options_.service.c_str(), X_OK) == 0) {
  RegisterForkAware(this);
}

BackgroundCompiler::~BackgroundCompiler() {
  UnregisterForkAware(this);
  if (link_) link_->Stop();
}

void BackgroundCompiler::Ask(Job job, std::uint64_t delay_ns) {
  const std::lock_guard lock(mutex_);
  if (!link_) {
    link_ = std::make_shared<Link>(options_, available_);
    link_->Start(link_);
  }
  {
    const std::lock_guard link_lock(link_->mutex);
    link_->queue.push_back({Clock::now() + std::chrono::nanoseconds(delay_ns), std::move(job)});
  }
  link_->changed.notify_all();
}

void BackgroundCompiler::BeforeFork() {
  mutex_.lock();
  if (link_) link_->packs.lock();
}

void BackgroundCompiler::AfterForkInParent() {
  if (link_) link_->packs.unlock();
  mutex_.unlock();
}

/// The child has neither of the threads. What they were in the middle of stays as it is, for good; the next job makes
/// new ones.
void BackgroundCompiler::AfterForkInChild() {
  if (link_) {
    if (link_->socket >= 0) close(link_->socket);
    new std::shared_ptr<Link>(std::move(link_));
    link_ = nullptr;
  }
  mutex_.unlock();
}

}  // namespace gridloom::exec
