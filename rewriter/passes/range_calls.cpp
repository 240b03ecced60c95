#include "rewriter/passes/range_calls.h"

#include <algorithm>

#include "rewriter/passes/range_emitter.h"

namespace gridloom::passes {

using analysis::AddressAnalysis;
using analysis::Polynomial;
using analysis::RangeAccess;
using analysis::RangeArgument;

namespace {

struct Parameter {
  std::string_view name;
  ptx::ScalarType type;
};
constexpr Parameter kIntervalParameters[] = {{"array", ptx::ScalarType::kU64},
                                             {"low", ptx::ScalarType::kU64},
                                             {"high", ptx::ScalarType::kU64},
                                             {"flags", ptx::ScalarType::kU32}};
constexpr Parameter kStridedParameters[] = {{"array", ptx::ScalarType::kU64},  {"base", ptx::ScalarType::kU64},
                                            {"stride", ptx::ScalarType::kU64}, {"count", ptx::ScalarType::kU64},
                                            {"width", ptx::ScalarType::kU64},  {"flags", ptx::ScalarType::kU32}};

std::string FunctionName(RangeCallKind kind, RangeForm form) {
  return std::string("gridloom_") + (kind == RangeCallKind::kSet ? "set" : "release") +
         (form == RangeForm::kInterval ? "_range" : "_strided");
}

/// Bytes of an address' neighbourhood.
struct Piece {
  std::int64_t first = 0, last = 0;  ///< the latter does not belong to it
};

/// Accesses whose addresses differ by constants: pieces around `address`.
struct Group {
  Polynomial address;  ///< without its constant
  std::vector<analysis::AssumptionId> assumptions;
  std::vector<analysis::UniformCondition> conditions;
  std::vector<analysis::RangeGuard> guards;
  std::vector<Piece> pieces;
  unsigned flags = 0;

  Piece Hull() const {
    Piece hull = pieces.front();
    for (const Piece& piece : pieces) hull = {std::min(hull.first, piece.first), std::max(hull.last, piece.last)};
    return hull;
  }
};

/// Pieces of one width at equal distances.
struct Row {
  Piece first;
  std::int64_t distance = 0, count = 1;
};

// Rows of a matrix whose size the compiler knew, from an unrolled loop or a stencil; what lies nearer together than a
// page is one piece. So is all, where there are more than a few at unequal distances.
constexpr std::int64_t kNear = 4096;
constexpr std::size_t kMostPieces = 8;
// nvcc unrolls by up to this.
constexpr std::int64_t kMostUnrolled = 16;

/// The group's pieces: one row, or one for each piece where their distances differ.
std::vector<Row> RowsOf(const Group& group) {
  std::vector<Piece> sorted = group.pieces, apart;
  std::ranges::sort(sorted, {}, &Piece::first);
  for (const Piece& piece : sorted) {
    if (!apart.empty() && piece.first < apart.back().last + kNear) {
      apart.back().last = std::max(apart.back().last, piece.last);
    } else {
      apart.push_back(piece);
    }
  }
  Row row{apart.front(), 0, static_cast<std::int64_t>(apart.size())};
  if (row.count == 1) return {row};
  row.distance = apart[1].first - apart[0].first;
  bool equal = true;
  for (std::size_t i = 1; i < apart.size(); ++i) {
    equal = equal && apart[i].first - apart[i - 1].first == row.distance;
    row.first.last = std::max(row.first.last, row.first.first + apart[i].last - apart[i].first);
  }
  if (equal) return {row};
  if (apart.size() > kMostPieces) return {{group.Hull()}};
  std::vector<Row> rows;
  for (const Piece& piece : apart) rows.push_back({piece});
  return rows;
}

unsigned FlagsOf(const RangeAccess& access) { return (access.reads ? 1u : 0u) | (access.writes ? 2u : 0u); }

/// Accesses of the bounded ones; those of different flags are kept apart when `by_flags`.
std::vector<Group> GroupsOf(const AddressAnalysis& analysis, const RangeArgument& argument, bool by_flags) {
  std::vector<Group> groups;
  for (const std::uint32_t index : argument.accesses) {
    const RangeAccess& access = analysis.accesses()[index];
    if (!access.bounded) continue;
    const std::int64_t constant = access.address.constant();
    const Polynomial address = access.address.Plus(Polynomial::Constant(-constant));
    const auto it = std::ranges::find_if(groups, [&](const Group& group) {
      return group.address == address && group.assumptions == access.assumptions &&
             group.conditions == access.conditions && group.guards == access.guards &&
             (!by_flags || group.flags == FlagsOf(access));
    });
    if (it == groups.end()) {
      groups.push_back({address,
                        access.assumptions,
                        access.conditions,
                        access.guards,
                        {{constant, constant + access.bytes}},
                        FlagsOf(access)});
      continue;
    }
    it->pieces.push_back({constant, constant + access.bytes});
    it->flags |= FlagsOf(access);
  }
  return groups;
}

class CallEmitter {
 public:
  CallEmitter(const AddressAnalysis& analysis, RangeCallKind kind, RangeForm form,
              std::array<std::string, 3> block_size)
      : analysis_(analysis), code_(analysis, std::move(block_size)), function_(FunctionName(kind, form)) {}

  void Intervals(const RangeArgument& argument) {
    CodeNumber low{0}, high{-1};
    if (argument.bounded()) {
      std::string holds;
      bool first = true;
      for (const Group& group : GroupsOf(analysis_, argument, false)) {
        const CodeRange range = code_.RangeOf(group.address);
        const Piece hull = group.Hull();
        // What no thread reaches adds nothing to the others; alone, it ends before it begins.
        const std::string unreached = code_.Unreached(group.guards, group.conditions);
        CodeNumber from = code_.Add(range.low, {hull.first}), to = code_.Add(range.high, {hull.last});
        if (!unreached.empty()) {
          from = code_.Select(unreached, {INT64_MAX}, from);
          to = code_.Select(unreached, {0}, to);
        }
        low = first ? from : code_.Least(low, from);
        high = first ? to : code_.Most(high, to);
        holds = code_.And(holds, HoldsOrUnreached(group, unreached));
        first = false;
      }
      low = code_.Select(holds, code_.Most(low, {0}), {0});
      high = code_.Select(holds, high, {-1});
    }
    Call(argument, {low, high}, (argument.reads ? 1u : 0u) | (argument.writes ? 2u : 0u));
  }

  // The dimension that steps farthest is the stride; what the others cover is the width of a piece.
  void Strided(const RangeArgument& argument) {
    if (!argument.bounded()) {
      Call(argument, {{0}, {0}, {1}, {-1}}, (argument.reads ? 1u : 0u) | (argument.writes ? 2u : 0u));
      return;
    }
    for (const Group& group : GroupsOf(analysis_, argument, true)) {
      for (const Row& row : RowsOf(group)) Strided(argument, group, row);
    }
  }

  std::string Text() const { return "{\n" + code_.Text() + "}\n"; }

 private:
  std::string HoldsOrUnreached(const Group& group, const std::string& unreached) {
    const std::string holds = code_.Holds(group.assumptions);
    return holds.empty() ? holds : code_.Or(holds, unreached);
  }

  void Strided(const RangeArgument& argument, const Group& group, const Row& row) {
    CodeNumber base{row.first.first}, stride{0}, steps{0}, width{row.first.last - row.first.first};
    for (const Steps& dimension : Joined(Dimensions(group.address, row, base))) {
      base = code_.Add(base, dimension.low);
      width = code_.Add(width, dimension.span);
      if (stride.Is(0)) {
        stride = dimension.distance;
        steps = dimension.count;
      } else {
        const std::string farther = code_.Compare("gt", dimension.distance, stride);
        stride = code_.Select(farther, dimension.distance, stride);
        steps = code_.Select(farther, dimension.count, steps);
      }
    }
    width = code_.Subtract(width, code_.Multiply(stride, steps));
    const std::string unreached = code_.Unreached(group.guards, group.conditions),
                      holds = HoldsOrUnreached(group, unreached);
    // A base below zero belongs to threads that access nothing: as one wide piece it stays sound.
    const std::string usable = code_.Compare("ge", base, {0}, holds);
    CodeNumber count = code_.Select(usable, code_.Add(steps, {1}), {1});
    if (!unreached.empty()) count = code_.Select(unreached, {0}, count);
    Call(argument,
         {code_.Select(usable, base, {0}), code_.Select(usable, stride, {0}), count, code_.Select(usable, width, {-1})},
         group.flags);
  }

  struct Dimension {
    Polynomial factor;
    CodeRange range;
  };
  /// What ranges with the same factor is one dimension, and so is a row; what is uniform is added to `base`.
  std::vector<Dimension> Dimensions(const Polynomial& address, const Row& row, CodeNumber& base) {
    std::vector<Dimension> dimensions;
    const auto add = [&](const Polynomial& factor, const CodeRange& range) {
      const auto it = std::ranges::find(dimensions, factor, &Dimension::factor);
      if (it == dimensions.end()) {
        dimensions.push_back({factor, range});
      } else {
        it->range = {code_.Add(it->range.low, range.low), code_.Add(it->range.high, range.high)};
      }
    };
    for (const RangeEmitter::Part& part : code_.Split(address)) {
      if (part.ranging.degree() == 0) {
        base = code_.Add(code_.Uniform(part.factor), base);
      } else {
        add(part.factor, code_.RangeOf(part.ranging));
      }
    }
    if (row.count > 1) add(Polynomial::Constant(row.distance), {{0}, {row.count - 1}});
    return dimensions;
  }

  /// `count` steps of `distance` bytes from `low` on, `span` in all.
  struct Steps {
    CodeNumber distance, count, low, span;
  };

  Steps StepsOf(const Dimension& dimension) {
    const analysis::Interval bounds = analysis_.symbols().BoundsOf(dimension.factor);
    const CodeNumber factor = code_.Uniform(dimension.factor);
    const CodeRange scaled = code_.Scale(dimension.range, dimension.factor, bounds);
    return {bounds.low >= 0 ? factor : code_.Most(factor, code_.Subtract({0}, factor)),
            code_.Subtract(dimension.range.high, dimension.range.low), scaled.low,
            code_.Subtract(scaled.high, scaled.low)};
  }

  /// How many times the one factor is the other, 2 to kMostUnrolled, either sign; 0 when it is not.
  static std::int64_t Ratio(const Polynomial& coarse, const Polynomial& fine) {
    if (coarse.IsZero() || fine.IsZero()) return 0;
    const std::int64_t a = coarse.terms().front().factor, b = fine.terms().front().factor;
    if (a == INT64_MIN || a % b != 0 || fine.Times(a / b) != coarse) return 0;
    const std::int64_t ratio = std::max(a / b, -(a / b));
    return ratio >= 2 && ratio <= kMostUnrolled ? ratio : 0;
  }

  // An unrolled loop takes several steps at once and its copies, or the loop for the rest, take one: together they go
  // on by one. Where the finer dimension has one value only, the coarse one goes by its own steps.
  std::vector<Steps> Joined(const std::vector<Dimension>& dimensions) {
    std::vector<Steps> all;
    std::vector<bool> done(dimensions.size(), false);
    for (std::size_t coarse = 0; coarse < dimensions.size(); ++coarse) {
      for (std::size_t fine = 0; fine < dimensions.size() && !done[coarse]; ++fine) {
        const std::int64_t ratio =
            done[fine] || fine == coarse ? 0 : Ratio(dimensions[coarse].factor, dimensions[fine].factor);
        if (ratio == 0) continue;
        const Steps far = StepsOf(dimensions[coarse]), near = StepsOf(dimensions[fine]);
        const std::string both = code_.Compare("gt", near.count, {0});
        all.push_back({code_.Select(both, near.distance, far.distance),
                       code_.Select(both, code_.Add(code_.Multiply(far.count, {ratio}), near.count), far.count),
                       code_.Add(far.low, near.low), code_.Add(far.span, near.span)});
        done[coarse] = done[fine] = true;
      }
    }
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      if (!done[i]) all.push_back(StepsOf(dimensions[i]));
    }
    return all;
  }

  void Call(const RangeArgument& argument, const std::vector<CodeNumber>& numbers, unsigned flags) {
    std::vector<std::string> values{code_.InRegister(code_.Uniform(Polynomial::Of(argument.pointer)))};
    for (const CodeNumber& number : numbers) values.push_back(code_.InRegister(number));
    std::string text = "{\n", names;
    for (std::size_t i = 0; i <= values.size(); ++i) {
      const std::string name = "gl_range" + std::to_string(i);
      text += std::string(".param .b") + (i < values.size() ? "64 " : "32 ") + name + ";\n";
      names += (i == 0 ? "" : ", ") + name;
    }
    for (std::size_t i = 0; i < values.size(); ++i)
      text += "st.param.b64 [gl_range" + std::to_string(i) + "], " + values[i] + ";\n";
    text += "st.param.b32 [gl_range" + std::to_string(values.size()) + "], " + std::to_string(flags) + ";\n";
    text += "call " + function_ + ", (" + names + ");\n}";
    code_.Block(text);
  }

  const AddressAnalysis& analysis_;
  RangeEmitter code_;
  const std::string function_;
};

}  // namespace

void DeclareRangeFunctions(ptx::Module& module) {
  std::vector<ptx::ModuleItem> declared;
  for (const RangeForm form : {RangeForm::kInterval, RangeForm::kStrided}) {
    for (const RangeCallKind kind : {RangeCallKind::kSet, RangeCallKind::kRelease}) {
      const std::string name = FunctionName(kind, form);
      if (module.FindFunction(name) != nullptr) continue;
      ptx::Function& function = module.functions.emplace_back();
      function.name = module.strings.Intern(name);
      function.linkage = ptx::Linkage::kExtern;
      const auto add = [&](const Parameter& parameter) {
        ptx::Variable& variable = function.params.emplace_back();
        variable.name = module.strings.Intern(parameter.name);
        variable.space = ptx::StateSpace::kParam;
        variable.type = parameter.type;
      };
      if (form == RangeForm::kInterval) std::ranges::for_each(kIntervalParameters, add);
      else std::ranges::for_each(kStridedParameters, add);
      declared.emplace_back(&function);
    }
  }
  module.items.insert(module.items.begin(), std::make_move_iterator(declared.begin()),
                      std::make_move_iterator(declared.end()));
}

std::string RangeCalls(const AddressAnalysis& analysis, RangeCallKind kind, RangeForm form,
                       std::array<std::string, 3> block_size) {
  CallEmitter emitter(analysis, kind, form, std::move(block_size));
  for (const RangeArgument& argument : analysis.arguments()) {
    if (form == RangeForm::kInterval) {
      emitter.Intervals(argument);
    } else {
      emitter.Strided(argument);
    }
  }
  return emitter.Text();
}

}  // namespace gridloom::passes
