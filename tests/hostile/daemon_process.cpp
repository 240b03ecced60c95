#include "tests/hostile/daemon_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "rewriter/support/whole_file.h"
#include "scheduler/cli/ask.h"
#include "scheduler/protocol/socket.h"

namespace gridloom::hostile {
namespace {

namespace fs = std::filesystem;

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A number behind a name in a file of /proc.
std::uint64_t Field(const std::string& text, const std::string& name) {
  const std::size_t at = text.find("\n" + name + ":");
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + name.size() + 2, nullptr, 10);
}

std::uint16_t FreePort() {
  const protocol::Fd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  Require(bind(probe.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 &&
              getsockname(probe.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0,
          "no port is free");
  return ntohs(address.sin_port);
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

std::string ConfigText(const Setup& setup, const std::string& folder, std::uint16_t port) {
  std::string text = "state: " + folder + "/state\n" + setup.config;
  if (setup.timing)
    text += "timing: true\ndevice: fermi-8\npolicy: leftover\ntiming_patience_ms: 300\ntiming_alone: 8\n";
  if (setup.http) text += "http_port: " + std::to_string(port) + "\nhttp_token_file: " + folder + "/secret\n";
  return text;
}

}  // namespace

std::string DaemonPath() {
  const char* const given = std::getenv("GRIDLOOM_DAEMON");
  return given != nullptr && *given != '\0' ? given : HOSTILE_DAEMON;
}

std::string SanitizerOf(const std::string& program) {
  const auto bytes = ReadWholeFile(program);
  Require(bytes.ok(), "cannot read " + program);
  if (bytes->find("__tsan_func_entry") != std::string::npos) return "thread";
  return bytes->find("__asan_report_load") != std::string::npos ? "address" : "";
}

double Patience(double seconds) {
  static const bool slow = !SanitizerOf(DaemonPath()).empty();
  return slow ? 6 * seconds : seconds;
}

DaemonProcess::DaemonProcess(const Setup& setup, const std::string& socket) {
  char name[] = "/tmp/gridloom-hostile-XXXXXX";
  folder_ = mkdtemp(name);
  socket_ = socket.empty() ? folder_ + "/socket" : socket;
  if (setup.http) http_port_ = FreePort();
  Write(folder_ + "/config.yaml", ConfigText(setup, folder_, http_port_));
  Write(folder_ + "/secret", std::string(kHttpSecret) + "\n");
  const std::string program = DaemonPath(), config = folder_ + "/config.yaml", log = folder_ + "/log";
  std::vector<std::string> environment{
      "ASAN_OPTIONS=quarantine_size_mb=4:detect_leaks=1:verify_asan_link_order=0:exitcode=99",
      "TSAN_OPTIONS=halt_on_error=0:exitcode=99:history_size=4", "UBSAN_OPTIONS=print_stacktrace=1"};
  if (setup.slow_disk) environment.push_back(std::string("LD_PRELOAD=") + HOSTILE_SLOW_DISK);
  pid_ = fork();
  if (pid_ == 0) {
    setsid();  // as a service has it: the system shares processors out among sessions
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    if (setup.descriptors != 0) {
      const rlimit limit{setup.descriptors, setup.descriptors};
      setrlimit(RLIMIT_NOFILE, &limit);
    }
    for (const std::string& entry : environment) putenv(const_cast<char*>(entry.c_str()));
    execl(program.c_str(), program.c_str(), "--config", config.c_str(), "--socket", socket_.c_str(), nullptr);
    _exit(127);
  }
  Require(Within(10, [&] { return !alive() || broker::Ask(socket_, {}).ok(); }) && alive(),
          "the daemon did not start: " + Log());
}

DaemonProcess::~DaemonProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

bool DaemonProcess::alive() {
  if (pid_ <= 0) return false;
  if (waitpid(pid_, nullptr, WNOHANG) == 0) return true;
  pid_ = -1;
  return false;
}

Usage DaemonProcess::usage() const {
  const std::string folder = "/proc/" + std::to_string(pid_);
  const std::string status = TextOf(folder + "/status");
  Usage usage;
  usage.resident_kb = Field(status, "VmRSS");
  usage.peak_kb = Field(status, "VmHWM");
  usage.threads = Field(status, "Threads");
  std::error_code error;
  for (fs::directory_iterator at(folder + "/fd", error), end; !error && at != end; at.increment(error))
    ++usage.descriptors;
  std::istringstream times(TextOf(folder + "/task/" + std::to_string(pid_) + "/schedstat"));
  double cpu = 0, waited = 0;
  times >> cpu >> waited;
  usage.cpu_seconds = cpu / 1e9;
  usage.waited_seconds = waited / 1e9;
  return usage;
}

void DaemonProcess::ResetPeak() const { std::ofstream("/proc/" + std::to_string(pid_) + "/clear_refs") << "5"; }

std::uint64_t DaemonProcess::StateFileBytes(const std::string& name) const {
  std::error_code error;
  const auto size = fs::file_size(folder_ + "/state/" + name, error);
  return error ? 0 : size;
}

nlohmann::ordered_json DaemonProcess::Ask(const protocol::Request& request) const {
  // All who attack here are of the operator's own user, so a place may have to be waited for.
  Result<nlohmann::ordered_json> answer = Error{"not asked"};
  Within(10, [&] { return (answer = broker::Ask(socket_, request)).ok(); });
  if (!answer.ok()) throw Failed("the daemon did not answer an operator: " + answer.error().message);
  return std::move(answer).value();
}

void DaemonProcess::AwaitSessions(std::size_t count) const {
  Require(Within(15, [&] { return Ps()["sessions"].size() <= count; }),
          "sessions of processes that have gone are still there");
}

void DaemonProcess::Signal(int signal) const { kill(pid_, signal); }

void DaemonProcess::Stop() {
  Require(alive(), "the daemon ended: " + Log());
  kill(pid_, SIGTERM);
  int status = -1;
  Require(Within(20, [&] { return waitpid(pid_, &status, WNOHANG) == pid_; }),
          "the daemon does not end when it is told to");
  pid_ = -1;
  Require(WIFEXITED(status) && WEXITSTATUS(status) == 0,
          "the daemon ended with status " + std::to_string(status) + ": " + Log());
}

std::string DaemonProcess::Log() const {
  const std::string text = TextOf(folder_ + "/log");
  constexpr std::size_t kMost = 8000;
  return text.size() <= kMost ? text : text.substr(0, kMost / 2) + "\n[…]\n" + text.substr(text.size() - kMost / 2);
}

}  // namespace gridloom::hostile
