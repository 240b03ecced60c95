// What an experiment shows: a table or the data of a figure, with sentences about it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewriter/support/result.h"

namespace gridloom::experiment {

struct Exhibit {
  std::string name;   ///< "fig13"
  std::string title;  ///< one line
  std::vector<std::string> columns{};
  std::vector<std::vector<nlohmann::ordered_json>> rows{};  ///< texts, numbers, null for nothing
  std::vector<std::string> notes{};                         ///< sentences: what differs from the paper, and why
};

/// For people.
std::string TextOf(const Exhibit& exhibit);
/// {"name", "title", "columns", "rows", "notes"}
nlohmann::ordered_json JsonOf(const Exhibit& exhibit);
/// RFC 4180; a line of names first, no notes.
std::string CsvOf(const Exhibit& exhibit);

}  // namespace gridloom::experiment
