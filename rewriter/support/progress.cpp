#include "rewriter/support/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "rewriter/support/printable.h"

namespace gridloom {
namespace {

constexpr std::size_t kBarWidth = 30;
constexpr auto kBetweenFrames = std::chrono::milliseconds(200);

}  // namespace

bool Progress::IsTerminal(std::FILE* out) { return isatty(fileno(out)) != 0; }

Progress::Progress(std::size_t parts, Options options) : parts_(parts), options_(std::move(options)) {
  if (!options_.bar || options_.quiet || parts_ == 0) return;
  ticker_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!end_.wait_for(lock, kBetweenFrames, [this] { return ending_; })) Draw();
  });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  end_.notify_all();
  if (ticker_.joinable()) ticker_.join();
  Clear();
}

void Progress::Done(const std::string& line) {
  const std::lock_guard lock(mutex_);
  ++done_;
  if (options_.quiet) return;
  if (!options_.bar) std::fprintf(options_.out, "gridloom: %zu of %zu: %s\n", done_, parts_, Printable(line).c_str());
  else Draw();
}

void Progress::Note(const std::string& line) {
  const std::lock_guard lock(mutex_);
  Clear();
  std::fprintf(options_.out, "gridloom: %s\n", Printable(line).c_str());
}

void Progress::Draw() {
  const double running = options_.running ? std::max(0.0, options_.running()) : 0;
  const double whole = std::min(1.0, (static_cast<double>(done_) + running) / static_cast<double>(parts_));
  const auto filled = static_cast<std::size_t>(whole * kBarWidth);
  const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
  std::fprintf(options_.out, "\r\033[K[%s] %3.0f %%  %zu of %zu", bar.c_str(), 100 * whole, done_, parts_);
  std::fflush(options_.out);
  drawn_ = true;
}

void Progress::Clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", options_.out);
  std::fflush(options_.out);
  drawn_ = false;
}

}  // namespace gridloom
