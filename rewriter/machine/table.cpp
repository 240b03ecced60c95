#include "rewriter/machine/table.h"

#include <algorithm>
#include <array>

namespace gridloom::machine {
namespace {

constexpr Row kRows[] = {
#define MACHINE_ROW(name, opcode, forms, architectures, modifiers, operands, rest) \
  {name, opcode, forms, architectures, modifiers, operands, rest},
#include "rewriter/machine/table/bits.def"
#include "rewriter/machine/table/control.def"
#include "rewriter/machine/table/convert.def"
#include "rewriter/machine/table/float.def"
#include "rewriter/machine/table/integer.def"
#include "rewriter/machine/table/memory.def"
#include "rewriter/machine/table/tensor.def"
#include "rewriter/machine/table/texture.def"
#include "rewriter/machine/table/uniform.def"
#include "rewriter/machine/table/warp.def"
#undef MACHINE_ROW
};

constexpr std::array<unsigned, 5> kArchitectures = {75, 80, 86, 89, 90};
constexpr std::size_t kOpcodes = 4096;

struct Table {
  std::vector<Format> formats{};
  std::vector<std::string> errors{};
  std::array<std::vector<std::vector<const Format*>>, kArchitectures.size()> by_opcode{};

  Table();
};

Table::Table() {
  for (const Row& row : kRows) {
    for (const char form : row.forms) {
      Result<Format> format = ParseRow(row, static_cast<unsigned>(form - '0'));
      if (format.ok()) {
        formats.push_back(std::move(format).value());
      } else {
        errors.push_back(format.error().message);
      }
    }
  }
  for (std::size_t number = 0; number < kArchitectures.size(); ++number) {
    by_opcode[number].resize(kOpcodes);
    for (const Format& format : formats) {
      const unsigned sm = kArchitectures[number];
      if (format.first_sm <= sm && sm <= format.last_sm) by_opcode[number][format.opcode].push_back(&format);
    }
  }
}

const Table& TheTable() {
  static const Table* const table = new Table;  // lives as long as the process: code that ends it may still print
  return *table;
}

}  // namespace

std::span<const unsigned> KnownArchitectures() { return kArchitectures; }

bool IsKnownArchitecture(unsigned sm) { return std::ranges::find(kArchitectures, sm) != kArchitectures.end(); }

std::span<const Format> AllFormats() { return TheTable().formats; }

std::span<const Format* const> FormatsOf(unsigned sm, unsigned opcode) {
  const auto found = std::ranges::find(kArchitectures, sm);
  if (found == kArchitectures.end() || opcode >= kOpcodes) return {};
  return TheTable().by_opcode[static_cast<std::size_t>(found - kArchitectures.begin())][opcode];
}

std::span<const std::string> TableErrors() { return TheTable().errors; }

}  // namespace gridloom::machine
