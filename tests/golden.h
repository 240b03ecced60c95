// Golden tests: one text file holds input, expected output and expected diagnostics.
//
//   .version 8.0 …                     the input: everything before the first marker
//   //--- printed                      a section: what the test must produce under that name
//   …
//   //--- diagnostics
//   …
//
// `TEST --rebase` rewrites the sections with what was produced. A file named bad_… is one that must be refused.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace gridloom::testing {

/// What a test produced: section name to text, in the order of their names.
using GoldenSections = std::map<std::string, std::string>;

/// Runs `produce(file name, input)` on every file of a folder (path relative to the source tree) that ends in
/// `extension`, and CHECKs each section. Requires at least one file.
void CheckGoldenFolder(const std::string& folder, const std::string& extension,
                       const std::function<GoldenSections(const std::string& name, const std::string& input)>& produce);

/// Reads a whole file; the current test fails when that is not possible.
std::string ReadFile(const std::string& path);

/// True under --rebase.
bool& RebaseGoldens();

}  // namespace gridloom::testing
