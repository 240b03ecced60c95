// Bodies of kernels that are read when somebody asks for them: libraries come as modules of hundreds of kernels, of
// which a program launches a few, and reading them all takes seconds.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rewriter/ptx/ir.h"
#include "rewriter/ptx/lexer.h"
#include "rewriter/ptx/symbols.h"
#include "rewriter/ptx/verifier.h"
#include "rewriter/support/diagnostic.h"

namespace gridloom::ptx {

/// ParseModule and VerifyModule, but for bodies of kernels that nothing else in the module names: those have a Block
/// without statements until Module::unread has read them. Device functions are read, so that numbers of functions and
/// instructions are as always.
std::unique_ptr<Module> ParseModuleLazily(std::string_view text, DiagnosticSink& sink, PtxOrigin origin);

/// Reads whatever is unread. For those who look at all functions of a module; they need not know whether something is.
inline void ReadAllBodies(const Module& module);

class LazyBodies {
 public:
  /// Where a body begins: its opening brace, and the lexer behind it.
  struct Place {
    Lexer lexer;
    Token token;
  };

  LazyBodies(Module& module, std::string_view text, PtxOrigin origin) : module_(module), text_(text), origin_(origin) {}
  LazyBodies(const LazyBodies&) = delete;
  LazyBodies& operator=(const LazyBodies&) = delete;

  // For the parser.
  void Add(Function& function, const Place& place) { places_.emplace(&function, place); }
  void Keep(SymbolTable symbols) { symbols_ = std::move(symbols); }

  /// Reads the body of a kernel, and those of kernels that it names, unless that was done. What is wrong with it, as a
  /// text with places; empty: nothing. Thread-safe, also beside threads that use other bodies.
  std::string Read(const Function& function);
  /// Thread-safe.
  void ReadAll();
  /// Calls `look` while no body is being read.
  template <typename Look>
  void WhileNothingIsRead(const Look& look) {
    const std::lock_guard lock(mutex_);
    look();
  }

 private:
  void ReadOne(Function& function);

  Module& module_;
  const std::string_view text_;
  const PtxOrigin origin_;
  std::mutex mutex_;  // of all below
  SymbolTable symbols_;
  std::unordered_map<const Function*, Place> places_;  // of what is unread
  std::unordered_map<const Function*, std::string> problems_;
};

inline void ReadAllBodies(const Module& module) {
  if (module.unread != nullptr) module.unread->ReadAll();
}

}  // namespace gridloom::ptx
