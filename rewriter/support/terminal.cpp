#include "rewriter/support/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "rewriter/support/printable.h"

namespace gridloom {
namespace {

bool UseColours() {
  static const bool use = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  return use;
}

constexpr std::size_t kColumnGap = 2;

}  // namespace

std::string Coloured(Colour colour, std::string_view text) {
  static constexpr std::string_view kCodes[] = {"", "\033[1m", "\033[2m", "\033[32m", "\033[33m", "\033[31m"};
  if (colour == Colour::kNone || !UseColours()) return std::string(text);
  return std::string(kCodes[static_cast<std::size_t>(colour)]) + std::string(text) + "\033[0m";
}

std::size_t TerminalWidth() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 1 << 20;
  return size.ws_col;
}

std::string SizeText(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", value, kUnits[unit]);
  return text;
}

std::size_t Width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      i = std::min(text.find('m', i), text.size() - 1);
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++width;
    }
  }
  return width;
}

std::string Cut(std::string_view text, std::size_t width) {
  if (Width(text) <= width) return std::string(text);
  if (width == 0) return "";
  // Names are ASCII; a multi-byte character at the cut goes as a whole.
  std::size_t end = std::min(width - 1, text.size());
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

Table::Table(std::vector<std::string> header) : header_(std::move(header)) {
  for (std::string& cell : header_) {
    right_.push_back(cell.starts_with('>'));
    if (right_.back()) cell.erase(0, 1);
  }
}

void Table::Add(std::vector<std::string> row) {
  for (std::string& cell : row) {
    cell = PrintableLines(cell);
    for (std::size_t at = 0; (at = cell.find_first_of("\n\t", at)) != std::string::npos;)
      cell.replace(at, 1, cell[at] == '\n' ? "\\n" : "\\t");
  }
  rows_.push_back(std::move(row));
}

std::string Table::Line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                        std::size_t indent) const {
  std::string line(indent, ' ');
  std::size_t used = indent;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool last = i + 1 == cells.size();
    const std::string cell = last ? Cut(cells[i], TerminalWidth() - std::min(used, TerminalWidth() - 8)) : cells[i];
    const std::string padding(widths[i] - std::min(widths[i], Width(cell)), ' ');
    if (right_[i]) line += padding + cell;
    else line += last ? cell : cell + padding;
    if (!last) line += std::string(kColumnGap, ' ');
    used += widths[i] + kColumnGap;
  }
  line.resize(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string Table::Text(std::size_t indent) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < header_.size(); ++i) {
    std::size_t width = Width(header_[i]);
    for (const auto& row : rows_) width = std::max(width, Width(row[i]));
    widths.push_back(width);
  }
  std::string header = Line(header_, widths, indent);
  header.pop_back();  // the colour ends before the line does
  std::string text = Coloured(Colour::kDim, header) + "\n";
  for (const auto& row : rows_) text += Line(row, widths, indent);
  return text;
}

void Print(std::string_view text) {
  const std::string shown = PrintableLines(text);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

void PrintData(std::string_view bytes) {
  if (isatty(STDOUT_FILENO) != 0) Print(bytes);
  else std::fwrite(bytes.data(), 1, bytes.size(), stdout);
}

std::string Quoted(const std::string& text) {
  const std::string_view safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!text.empty() && text.find_first_not_of(safe) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string CommandLine(const std::string& command, const std::vector<std::string>& arguments) {
  std::string line = "gridloom " + command;
  for (const std::string& argument : arguments) line += " " + Quoted(argument);
  return line;
}

}  // namespace gridloom
