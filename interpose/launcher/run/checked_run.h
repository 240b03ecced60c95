// A program under memcheck, and all processes that it starts: how it ended, and what they found, however they ended.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "interpose/launcher/temporary_folder.h"
#include "rewriter/support/result.h"

namespace gridloom::launcher {

/// For exec: they end with a null, and live as long as `words`.
std::vector<char*> Pointers(std::vector<std::string>& words);

struct ProgramEnd {
  int error = 0;  ///< errno of exec: the program was not started
  int signal = 0, exit_code = 0;
};
/// Starts it as a child and waits for it. The terminal's signals are the program's; those that end this process go on
/// to it.
ProgramEnd RunToItsEnd(std::vector<std::string>& program);
/// Ends this process by the signal that has ended the program.
[[noreturn]] void EndBySignal(int signal);

class CheckedRun {
 public:
  /// `json`: where the findings go, as `--memcheck-json` names it; empty: nowhere.
  static Result<CheckedRun> Make(std::string json);
  /// The file in which each process of the run says what it finds (interpose/observe/memcheck.h).
  const std::string& journal() const { return journal_; }
  /// Says what processes have found that could not sum it up themselves, and writes the JSON. Whether there was
  /// anything.
  Result<bool> Finish() const;

 private:
  std::unique_ptr<TemporaryFolder> folder_;
  std::string json_, journal_;
};

}  // namespace gridloom::launcher
