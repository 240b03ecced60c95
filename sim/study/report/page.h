// Building blocks of a page: one HTML file that needs no network and no other file, light and dark, narrow and wide. A
// page is data (JSON); the script in it draws tables that sort, bars, lines and timelines. Texts are shown as they are:
// nothing in them is HTML.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/study/report/files.h"

namespace gridloom::report {

/// What a value is, so that it is shown and aligned as such. A share of 0.25 is shown as 25 %; times are in seconds.
enum class Kind { kText, kCount, kReal, kShare, kTime };

struct Column {
  std::string name, unit, meaning;  ///< unit and meaning are shown when the pointer rests on the name
  Kind kind = Kind::kReal;
};

/// A part of a page.
using Block = Json;

Block Paragraph(const std::string& text);
/// Text to copy, as it is.
Block Code(const std::string& text);
/// A few figures, large: label, value as text, and a line below.
struct Figure {
  std::string label, value, note;
};
Block Figures(const std::vector<Figure>& figures);

/// Rows of cells, one for each column; null is empty. Sorts by the column that is clicked on; a filter where there are
/// many rows.
Block Table(const std::string& caption, const std::vector<Column>& columns, const std::vector<Json>& rows);

/// Horizontal bars in groups. Bars of one series have one colour.
struct Bar {
  std::string label, series;
  double value = 0;
  std::optional<std::array<double, 2>> range = std::nullopt;  ///< least and most of what the value is the mean of
};
struct BarGroup {
  std::string name;
  std::vector<Bar> bars;
};
/// `reference`: where a line is drawn, such as 1 for speed-ups.
Block Bars(const std::string& caption, const std::string& unit, const std::vector<BarGroup>& groups,
           std::optional<double> reference = std::nullopt);

/// Horizontal bars of equal length, each divided into the same parts.
struct Shares {
  std::string name;
  std::vector<double> values;  ///< of any sum
};
Block Divided(const std::string& caption, const std::vector<std::string>& parts, const std::vector<Shares>& rows);

struct Series {
  std::string name;
  std::vector<double> values;  ///< one for each x; not a number where the line is not there (points only)
};
enum class LineStyle {
  kPoints,   ///< points of a function, joined
  kSteps,    ///< value i holds from x[i - 1] (or begin) to x[i]
  kStacked,  ///< like steps, each upon the one before
};
struct Axis {
  std::string unit;
  double begin = 0;             ///< of x, where steps begin
  std::optional<double> max{};  ///< of y
};
Block Lines(const std::string& caption, LineStyle style, const Axis& x, const std::vector<double>& xs, const Axis& y,
            const std::vector<Series>& series);

/// What is where when: rows of intervals.
struct Interval {
  std::size_t row = 0, series = 0;
  double begin = 0, end = 0;
  double share = 1;  ///< of the interval in which it really is there
};
Block Timeline(const std::string& caption, const std::string& unit, double end, const std::vector<std::string>& rows,
               const std::vector<std::string>& series, const std::vector<Interval>& intervals);

/// One of several lists of blocks; the reader chooses.
Block Choice(const std::string& label, std::vector<std::pair<std::string, std::vector<Block>>> options);

class Page {
 public:
  Page(std::string title, std::string subtitle) : title_(std::move(title)), subtitle_(std::move(subtitle)) {}
  void Section(const std::string& title) { sections_.push_back({{"title", title}, {"blocks", Json::array()}}); }
  /// To the last section.
  void Add(Block block) { sections_.back()["blocks"].push_back(std::move(block)); }
  std::string Html() const;

 private:
  std::string title_, subtitle_;
  Json sections_ = Json::array();
};

/// The rows as CSV (RFC 4180): a line of names, then the rows. Numbers are written so that they read back the same.
std::string Csv(const std::vector<Column>& columns, const std::vector<Json>& rows);
/// One cell of such a file. A text that a spreadsheet would take for a formula gets an apostrophe in front of it, which
/// says that it is none.
std::string CsvCell(const Json& value);

}  // namespace gridloom::report
