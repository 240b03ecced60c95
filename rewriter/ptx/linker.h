// Links PTX modules into one, as nvlink and cuLink do with their machine code: the parts of an -rdc program, or what a
// program adds with cuLinkAddData (PTX ISA, 11.6 Linking Directives).
//
//   .extern                  is resolved against a .visible, .weak or .common definition of another module
//   .visible                 may be defined once; a second definition is an error that names both modules
//   .weak                    gives way to a .visible or .common one; of several, the first stays
//   .common                  gives way to a .visible one; of several, the largest stays
//   no directive             belongs to its module; renamed (x -> x$1) when another module has the name too
//   .extern .shared          of unknown size is the launch's dynamic shared memory and stays
//   .version, .target        the highest; further target options are joined
//   .file, .loc              file numbers are renumbered; DWARF sections (with .target debug) and inlining chains are
//                            left out, since their labels would collide
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/ptx/ir.h"
#include "rewriter/support/result.h"

namespace gridloom::ptx {

struct LinkInput {
  std::string name;  ///< for messages: a file or the name given to cuLinkAddData
  std::unique_ptr<Module> module;
  bool stands_in = false;  ///< its `.target` is not the program's: PTX of a newer device in the place of machine code
};

/// True for functions that nobody defines because the system provides them: vprintf, malloc, __assertfail, …
using IsProvided = std::function<bool(std::string_view)>;

/// Consumes the modules. The result owns all it points to and prints as one PTX text. The error has one line per
/// problem: duplicate definitions, declarations that contradict each other, symbols that are defined nowhere and that a
/// kernel comes to or a variable has the address of.
Result<std::unique_ptr<Module>> LinkModules(std::vector<LinkInput> inputs, const IsProvided& is_provided);

}  // namespace gridloom::ptx
