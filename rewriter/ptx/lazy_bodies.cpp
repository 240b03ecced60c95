#include "rewriter/ptx/lazy_bodies.h"

#include <utility>

#include "rewriter/ptx/parser_impl.h"

namespace gridloom::ptx {

std::unique_ptr<Module> ParseModuleLazily(std::string_view text, DiagnosticSink& sink, PtxOrigin origin) {
  auto module = std::make_unique<Module>();
  const std::string_view kept = module->strings.Adopt(text);
  module->unread = std::make_shared<LazyBodies>(*module, kept, origin);
  std::vector<const Function*> named;
  {
    Parser parser(*module, kept, sink, module->unread.get());
    parser.ParseModule();
    module->unread->Keep(parser.TakeSymbols());
    named = parser.named_kernels();
  }
  if (!sink.has_errors()) VerifyModule(*module, sink, origin);
  // Who launches or calls through a table may come by any of them.
  for (const Function* function : named) {
    if (const std::string problem = module->unread->Read(*function); !problem.empty())
      sink.Error(function->loc, problem);
  }
  return module;
}

std::string LazyBodies::Read(const Function& function) {
  const std::lock_guard lock(mutex_);
  if (places_.contains(&function))
    ReadOne(const_cast<Function&>(function));  // the module is ours; const is who looks at it
  const auto problem = problems_.find(&function);
  return problem == problems_.end() ? std::string() : problem->second;
}

void LazyBodies::ReadAll() {
  const std::lock_guard lock(mutex_);
  while (!places_.empty()) ReadOne(const_cast<Function&>(*places_.begin()->first));
}

void LazyBodies::ReadOne(Function& first) {
  std::vector<Function*> wanted = {&first};
  while (!wanted.empty()) {
    Function& function = *wanted.back();
    wanted.pop_back();
    const auto found = places_.find(&function);
    if (found == places_.end()) continue;
    const Place place = found->second;
    places_.erase(found);
    DiagnosticSink sink;
    Parser parser(module_, text_, sink, this);
    parser.ReadBody(function, place, symbols_);
    for (const Function* named : parser.named_kernels()) wanted.push_back(const_cast<Function*>(named));
    if (!sink.has_errors()) VerifyFunction(module_, function, sink, origin_);
    if (sink.has_errors()) problems_[&function] = FormatDiagnostics(sink, "ptx", text_);
  }
}

}  // namespace gridloom::ptx
