// Finds and loads the compiler library when a kernel must be compiled; a program whose kernels are all cached never
// does.
#pragma once

#include <memory>
#include <string>

#include "rewriter/support/result.h"
#include "sim/exec/compiler/find_line.h"

namespace gridloom::exec {

/// Opens the compiler library at `path`, for good, and checks that it is of this build. The handle is for dlsym. The
/// error says what to do.
Result<void*> OpenCompiler(const std::string& path);

class CompilerLoader {
 public:
  /// With a function given (tests), nothing is loaded and `id` identifies it.
  explicit CompilerLoader(CompileFn compile = nullptr, std::string id = {});
  /// The library at `path`.
  explicit CompilerLoader(std::string path);

  /// Identifies the compiler and the processor it compiles for, without loading it: file name, size and time of change
  /// of the library, and what the processor says of itself.
  const std::string& id() const { return id_; }
  const std::string& path() const { return path_; }
  /// The program beside the library that makes machine code for others (background/service.cpp).
  std::string ServicePath() const;
  /// Loads it where nobody has. A thread of ours leaves that to another one, and gives up when it takes longer than any
  /// loading does: a thread of the program's then holds the loader's lock, perhaps while it waits for what ours is
  /// about. The next call tries again.
  Result<CompileFn> Load();
  /// Whether Load gives the same answer from now on.
  bool settled() const;
  /// Null when the library cannot be loaded, or for tests' compilers. Likewise LoadFindLine.
  InterpretFn LoadInterpret();
  FindLineFn LoadFindLine();

 private:
  struct Functions {
    CompileFn compile = nullptr;
    FindLineFn find_line = nullptr;
    InterpretFn interpret = nullptr;
    std::string error;
  };
  struct Loading;
  static Functions Open(const std::string& path);
  const Functions& Get();

  std::string path_, id_;
  std::shared_ptr<Loading> loading_;  ///< shared with the thread that loads
};

}  // namespace gridloom::exec
