// Reads the part of YAML our configuration needs: nested maps of scalars. libyaml does the parsing (C, small, and
// without C++ symbols that could clash with those of the program the driver shim is loaded into).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/support/result.h"

namespace gridloom::sim {

/// One scalar of the document; nesting is written with dots: `sm: {count: 132}` is key "sm.count", value "132".
struct YamlEntry {
  std::string key;
  std::string value;
  std::uint32_t line = 0;
};

/// All scalars of the first document, in file order. Lists, anchors and a key given twice are errors.
Result<std::vector<YamlEntry>> ReadYamlMap(std::string_view text, std::string_view file);

}  // namespace gridloom::sim
