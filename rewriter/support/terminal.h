// Output for people: colours where the output is a terminal, aligned columns, sizes with units.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace gridloom {

enum class Colour { kNone, kBold, kDim, kGreen, kYellow, kRed };

/// `text` in a colour when stdout is a terminal and NO_COLOR is not set (https://no-color.org).
std::string Coloured(Colour colour, std::string_view text);

/// Columns of the terminal; a very large number when stdout is not one.
std::size_t TerminalWidth();

/// "512 B", "5.0 KiB", "139.8 GiB".
std::string SizeText(std::uint64_t bytes);

/// `text` cut to `width` characters, with … where something is missing.
std::string Cut(std::string_view text, std::size_t width);

/// Number of terminal columns a UTF-8 text takes, colours not counted.
std::size_t Width(std::string_view text);

/// Rows of cells, aligned: numbers to the right, everything else to the left. The last column is cut to the terminal.
class Table {
 public:
  /// A header cell that starts with '>' makes its column right-aligned.
  explicit Table(std::vector<std::string> header);
  /// Line breaks and whatever else would break the table are shown as escapes (printable.h).
  void Add(std::vector<std::string> row);
  bool empty() const { return rows_.empty(); }
  /// All lines, each after `indent` blanks.
  std::string Text(std::size_t indent) const;

 private:
  std::string Line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                   std::size_t indent) const;

  std::vector<std::string> header_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

/// `text` as a shell takes it back as one word.
std::string Quoted(const std::string& text);

/// "gridloom COMMAND ARGUMENTS...", for a shell.
std::string CommandLine(const std::string& command, const std::vector<std::string>& arguments);

/// On stdout, by PrintableLines().
void Print(std::string_view text);
/// Bytes that another program may read: as they are, unless stdout is a terminal.
void PrintData(std::string_view bytes);

}  // namespace gridloom
