// What an experiment shows: a table or the data of a figure, with sentences about it.
#pragma once

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rewriter/support/result.h"

namespace gridloom::study {

/// One result beside the paper's.
struct Finding {
  std::string what, ours, paper;  ///< paper: empty where it prints nothing
};

/// How columns are drawn, for each device (column 0) by itself.
struct Drawing {
  enum class Kind { kBars, kLines };
  Kind kind = Kind::kBars;
  std::string caption, unit;
  std::vector<std::size_t> names;   ///< columns that together name a group of bars, or a line
  std::vector<std::size_t> values;  ///< bars: columns, one bar each; lines: the column of x and that of y
  std::optional<double> limit{};    ///< lines: y that is shown at most
  /// Bars: columns with the least and the most of what a column has the mean of, by that column.
  std::map<std::size_t, std::array<std::size_t, 2>> ranges{};
};

struct Exhibit {
  std::string name;   ///< "fig13"
  std::string title;  ///< one line
  std::vector<std::string> columns{};
  std::vector<std::vector<nlohmann::ordered_json>> rows{};  ///< texts, numbers, null for nothing
  std::vector<std::string> notes{};                         ///< sentences: what differs from the paper, and why
  std::vector<Finding> findings{};
  std::vector<Drawing> drawings{};
};

/// The value as printf writes it.
std::string Number(const char* format, double value);
/// For people.
std::string TextOf(const Exhibit& exhibit);
/// {"name", "title", "columns", "rows", "notes", "findings"}
nlohmann::ordered_json JsonOf(const Exhibit& exhibit);
/// RFC 4180; a line of names first, no notes.
std::string CsvOf(const Exhibit& exhibit);
/// One HTML page that needs no network and no other file (report/page.h). `repeat`: the command that makes it again.
std::string PageOf(const std::string& title, const std::vector<Exhibit>& exhibits, const std::string& repeat);

}  // namespace gridloom::study
