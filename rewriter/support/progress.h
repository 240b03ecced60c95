// Progress of long work: a bar on a terminal, a plain line for each part that is done elsewhere.
#pragma once

#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace gridloom {

/// Thread-safe. Writes to `out`, by default standard error.
class Progress {
 public:
  struct Options {
    std::FILE* out = stderr;
    bool bar = false;    ///< whether `out` is a terminal
    bool quiet = false;  ///< only Note() says something
    /// Between 0 and 1, of the parts that are not done: how many of them, added up. Called from another thread.
    std::function<double()> running;
  };
  static bool IsTerminal(std::FILE* out);

  Progress(std::size_t parts, Options options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Done(const std::string& line);  ///< a part is done
  void Note(const std::string& line);  ///< says something, above the bar

 private:
  void Draw();
  void Clear();

  const std::size_t parts_;
  const Options options_;
  std::mutex mutex_;
  std::condition_variable end_;
  bool ending_ = false, drawn_ = false;
  std::size_t done_ = 0;
  std::thread ticker_;  // redraws the bar
};

}  // namespace gridloom
