// Reads the part of YAML our configuration needs: nested maps of scalars, and lists of scalars where they are asked
// for. libyaml does the parsing (C, small, and without C++ symbols that could clash with those of the program the
// driver shim is loaded into).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/support/result.h"

namespace gridloom::sim {

/// One scalar of the document; nesting is written with dots: `sm: {count: 132}` is key "sm.count", value "132".
struct YamlEntry {
  std::string key;
  std::string value;
  std::uint32_t line = 0;  ///< from 1; 0: `file` says where it stands
  bool of_list = false;    ///< an item of a list
};

/// All scalars of the first document, in file order. Lists, anchors and a key given twice are errors.
Result<std::vector<YamlEntry>> ReadYamlMap(std::string_view text, std::string_view file);

/// ReadYaml, with lists of scalars: each item is an entry with the list's key.
Result<std::vector<YamlEntry>> ReadYamlLists(std::string_view text, std::string_view file);

/// "FILE:LINE", or "FILE" without a line.
std::string PlaceOf(const YamlEntry& entry, std::string_view file);

/// "FILE:LINE: unknown key 'polices'; did you mean 'policies'?"; without a near one, `otherwise` says where the keys
/// are listed.
Error UnknownYamlKey(const YamlEntry& entry, std::string_view file, std::span<const std::string_view> known,
                     std::string_view otherwise);

}  // namespace gridloom::sim
